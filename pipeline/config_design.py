"""Sections of a configuration about who plays which part, and how much is asked."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationInfo, field_serializer, field_validator, model_validator

from pipeline.config_sections import PositiveInt, Section

ModelName = Annotated[str, Field(min_length=1)]
AnchorName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._/:@-]{0,127}$")]
CriterionName = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_]{0,63}$")]
RESERVED_PAIRS = frozenset({"chains"})
"""What the preferences table calls comparisons of chains: no anchor can have such a name."""


_LEVELS = {"weak": 0, "medium": 1, "strong": 2}
"""The paper's anchors, which stand first."""


class RolesConfig(Section):
    """Which model plays which part; each is a name under ``models`` or a bare model string."""

    targets: tuple[ModelName, ...] = ()
    """The models under evaluation: one name, or a list. Left out where `benchmark.fields.response` names responses
    that exist already: then they are the models of the file."""
    auxiliary: tuple[ModelName, ...] = ()
    """Writes the chains that the targets compare (one-step): one model, or two with one chain each."""
    judge: tuple[ModelName, ...] = ()
    """Scores answers and compares them: one model, or a list of judges, each a signal beside their mean. Best-of-N
    asks the first."""
    anchors: dict[AnchorName, ModelName] = Field(default_factory=dict)
    """Opponents of the pairwise comparisons and voters on the answer: name → model, or a list of models that go by
    their own names."""
    regressor: ModelName | None = None
    """Predicts the probability that a target answers right (one-step)."""

    @field_validator("targets", "auxiliary", "judge", mode="before")
    @classmethod
    def _one_is_a_list(cls, value: Any) -> Any:
        return () if value is None else [value] if isinstance(value, str) else value

    @field_validator("anchors", mode="before")
    @classmethod
    def _named_by_themselves(cls, value: Any) -> Any:
        if value is None:
            return {}
        if isinstance(value, str):
            return {value: value}
        if isinstance(value, list | tuple):
            if len(set(map(str, value))) != len(value):
                raise ValueError("names a model twice; a mapping name: model can tell two uses of one apart")
            return {str(model): model for model in value}
        return value

    @field_validator("anchors")
    @classmethod
    def _free_names(cls, value: dict[str, str]) -> dict[str, str]:
        taken = sorted(RESERVED_PAIRS & set(value))
        if taken:
            raise ValueError(f"{taken[0]!r} is the name of another comparison; give the anchor another name")
        # The order of a mapping is not in the hash of a configuration; so it must not be in the tables either.
        return dict(sorted(value.items(), key=lambda entry: (_LEVELS.get(entry[0], len(_LEVELS)), entry[0])))

    @field_validator("auxiliary")
    @classmethod
    def _two_chains(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if len(value) > 2:
            raise ValueError("takes one model (both chains) or two (one chain each)")
        return value

    @field_validator("targets", "judge")
    @classmethod
    def _distinct(cls, value: tuple[str, ...], field: ValidationInfo) -> tuple[str, ...]:
        if len(set(value)) != len(value):
            raise ValueError(f"names a {(field.field_name or '').rstrip('s')} twice")
        return value

    # One judge and no anchors are written as they always were: the hash of a configuration, and with it the identity
    # of a run, must not change because more became possible.
    @field_serializer("judge")
    def _plain_judge(self, value: tuple[str, ...]) -> Any:
        return None if not value else value[0] if len(value) == 1 else list(value)

    @field_serializer("anchors")
    def _plain_anchors(self, value: dict[str, str]) -> Any:
        return dict(value) or None

    def names(self, without: Collection[str] = ()) -> tuple[str, ...]:
        """Every model named by a role, without repetition, in a fixed order; targets ``without`` these."""
        targets = (name for name in self.targets if name not in without)
        named = (*targets, *self.auxiliary, *self.judge, *self.anchors.values(), self.regressor)
        return tuple(dict.fromkeys(name for name in named if name is not None))

    @property
    def signals_asked(self) -> bool:
        """Whether any model is asked for more than the targets' own answers."""
        return bool(self.judge or self.anchors or self.auxiliary or self.regressor)


class CriterionConfig(Section):
    """One thing that a response is judged by."""

    question: Annotated[str, Field(min_length=3, max_length=2_000)]
    """What the judge is asked about the response: one thing, as a question."""
    scale: tuple[float, float] = (0.0, 1.0)
    """The score for the worst and the best; people's ratings of it are on the same scale."""

    @field_validator("question")
    @classmethod
    def _one_thing(cls, value: str) -> str:
        if value.count("?") > 1:
            raise ValueError(
                f"asks {value.count('?')} questions in one; a score would say which? Make each a criterion"
            )
        return value

    @field_validator("scale")
    @classmethod
    def _upwards(cls, value: tuple[float, float]) -> tuple[float, float]:
        if not value[0] < value[1]:
            raise ValueError(f"must be [worst, best] with worst < best, got [{value[0]:g}, {value[1]:g}]")
        return value


class JudgeConfig(Section):
    """What judges are asked about responses."""

    later = frozenset({"compare"})

    criteria: Annotated[dict[CriterionName, CriterionConfig], Field(max_length=20)] = Field(default_factory=dict)
    """Name → a question, or {question, scale}; left out: whether the response is right, by our pointwise prompts."""

    compare: bool | None = None
    """Whether judges compare the answers of every two targets, of at most 3, in both orders: a signal of the gap; left
    out: where responses exist already, but not where targets are asked."""

    @field_validator("criteria", mode="before")
    @classmethod
    def _a_question_is_a_criterion(cls, value: Any) -> Any:
        if not isinstance(value, Mapping):
            return value
        return {name: {"question": part} if isinstance(part, str) else part for name, part in value.items()}


class TauConfig(Section):
    """How the semantic regressor is asked."""

    variant: Literal["zero_shot", "in_context"] = "zero_shot"
    """Without examples, or with labeled ones in the prompt."""
    rubric: Literal["default", "correctness"] = "default"
    """``correctness`` asks for the probability of a right answer and nothing else."""
    examples: Annotated[int, Field(ge=1, le=32)] = 4
    """Labeled examples in an in-context prompt."""


class DesignConfig(Section):
    """How many labels, answers and draws, and how they are coupled."""

    labeled: PositiveInt | Literal["gold"] | None = None
    """How many gold answers may be used, drawn at random with the seed; ``gold``: all there are. Left out: 50 where a
    judge, anchors, auxiliary models or a regressor give signals for the rest, else ``gold``."""
    answers: PositiveInt = 1
    """Answers asked of each target for each item; from two on their agreement is a signal."""
    draws: PositiveInt = 10
    """M of the one-step estimator: M + 1 pairs of chains an item."""
    coupling: Literal["independent", "episode"] = "independent"
    """Whether the preference on draw 0 is asked in the conversation that gave the graded answer (``episode``)."""
    judge_prompts: Annotated[int, Field(ge=1, le=3)] = 3
    """How many of the three pointwise prompts each judge is asked."""
    form_limit: Annotated[float, Field(gt=0, le=1)] = 0.5
    """Share of a model's first twenty replies in a stage that may be unread, cut off or failed; 1: never stops."""
    auxiliary_max_tokens: PositiveInt = 2048
    """Token limit of an auxiliary chain; one that is cut off there still counts."""
    tau: TauConfig = TauConfig()
    """How the regressor is asked."""
    algorithm: Literal["regressor", "features"] = "regressor"
    """Where the predictions of one-step come from: a regressor model, or a regression on text features."""
    embedding: str | None = None
    """The model that embeds the texts under ``algorithm: features``; left out: the static one of the extra embed."""


class BestOfNConfig(Section):
    """C candidates per item, K judge scores per candidate, the policies (N, J) to value."""

    candidates: Annotated[int, Field(ge=2)] = 8
    """C: independent answers of a target to an item."""
    scores: Annotated[int, Field(ge=2)] = 4
    """K: independent scores of each candidate by the judge."""
    n: Annotated[tuple[PositiveInt, ...], Field(min_length=1)] = (2, 4)
    """N: of how many candidates the best is taken; one number, or a list."""
    j: Annotated[tuple[PositiveInt, ...], Field(min_length=1)] = (1, 3)
    """J: by the mean of how many scores it is chosen; below K."""

    @field_validator("n", "j", mode="before")
    @classmethod
    def _one_is_a_list(cls, value: Any) -> Any:
        return [value] if isinstance(value, int) else value

    @model_validator(mode="after")
    def _possible(self) -> BestOfNConfig:
        if max(self.n) > self.candidates:
            raise ValueError(f"n = {max(self.n)} needs at least as many candidates, got {self.candidates}")
        if max(self.j) >= self.scores:
            raise ValueError(
                f"j = {max(self.j)} needs scores ≥ {max(self.j) + 1}, got {self.scores}: with J ≥ K no score is left"
                " to value the winner and no unbiased estimator exists; collect one more score per candidate"
            )
        return self


class RetryTruncatedConfig(Section):
    """Asks answers that were cut off again, with more room, under new keys."""

    max_tokens: PositiveInt
    """The token limit of the second try."""


class BudgetConfig(Section):
    """What the run, or all runs that name the same ledger together, may spend at most; null is no bound."""

    ledger: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")] | None = None
    """Name of a ledger that several runs on one cache share: the bounds hold for them together."""
    usd: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    """US dollars for all calls together."""
    calls: Annotated[int, Field(ge=0)] | None = None
    """Attempts sent to models."""
    tokens: Annotated[int, Field(ge=0)] | None = None
    """Tokens of prompts and replies together."""
