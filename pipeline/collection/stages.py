"""What a run asks: the stages its estimates need, calls per item, and a forecast of calls and prompt tokens."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from pipeline.benchmark.given import Criterion
from pipeline.benchmark.items import Benchmark
from pipeline.collection.prompts import Prompt, PromptSet, load_prompts, render
from pipeline.config import MOST_COMPARED, RunConfig

CHARS_PER_TOKEN = 4.0
CHAIN_TOKENS = 250.0
"""Length taken for a chain of reasoning where no pilot says better."""

_LACE = frozenset({"lace", "lace_profile", "gaps", "comparators"})


CORRECT = "Is the response correct?"
"""Asked where a file names no criterion but gives a context or a reference, which our pointwise prompts lack."""


@dataclass(frozen=True, slots=True)
class StagePlan:
    """The stages of a run.

    Attributes:
        targets: the evaluated models.
        answers: R, answers per target; 0 where no estimate needs one.
        judges: the models that score and compare; empty where nothing is judged.
        anchors: (name, model) of those that answer beside the targets; empty where there are none.
        auxiliary: the models of w1 and w2, or None.
        draws: M + 1 auxiliary draws.
        episode: whether draws are coupled with answers in one conversation.
        tau: whether a regressor predicts.
        variant: what the τ table calls its prompt.
        examples: labeled examples per τ prompt; 0 for zero-shot.
        pointwise: judge prompts per response.
        candidates: C, candidates per item.
        scores: K, judge scores per candidate.
        given: whether the responses exist already, so that no target is asked.
        criteria: what judges are asked of each response in the place of the pointwise prompts; may be empty.
        direct: pairs of targets whose answers the judges compare with each other.
        pairwise: whether judges compare targets with anchors.
        weighed: targets whose answers come with token probabilities.
        p_true: targets that are asked, in one token, whether their answer is right.
        expected: judges whose scores come with the probabilities of other scores.
    """

    targets: tuple[str, ...]
    answers: int
    judges: tuple[str, ...]
    anchors: tuple[tuple[str, str], ...]
    auxiliary: tuple[str, str] | None
    draws: int
    episode: bool
    tau: bool
    variant: str
    examples: int
    pointwise: int
    candidates: int
    scores: int
    given: bool = False
    criteria: tuple[Criterion, ...] = ()
    direct: tuple[tuple[str, str], ...] = ()
    pairwise: bool = True
    weighed: tuple[str, ...] = ()
    p_true: tuple[str, ...] = ()
    expected: tuple[str, ...] = ()
    confidence: bool = True
    answer_prompt: str = "answer"

    @property
    def asked_anchors(self) -> tuple[str, ...]:
        """Anchors that are asked; one that is also a target lends its answer."""
        return tuple(dict.fromkeys(model for _, model in self.anchors if model not in self.targets))

    @property
    def calls_at_once(self) -> int:
        """Calls that one item can have under way together: the larger of its first ones and of those that follow."""
        first = 2 * self.draws + len(self.asked_anchors) + len(self.targets) * (self.answers + self.candidates)
        compared = 2 * (len(self.anchors) + len(self.direct))
        judged = len(self.judges) * (self.pointwise + len(self.criteria) + compared) + self.candidates * self.scores
        return max(1, first, len(self.targets) * (judged + self.orders * self.draws))

    def opponents(self, target: str) -> tuple[tuple[str, str], ...]:
        """(name, model) of the anchors that a target is compared with: never itself, a comparison that says nothing."""
        return (
            tuple((name, model) for name, model in self.anchors if model != target)
            if self.judges and self.pairwise
            else ()
        )

    @property
    def orders(self) -> int:
        """Orders in which a pair of chains is shown: both, or one in an episode."""
        return 1 if self.episode else 2


@dataclass(frozen=True, slots=True)
class StageCalls:
    """Calls per item of one stage to one model, for one target or (None) for all."""

    stage: str
    role: str
    model: str
    target: str | None
    calls: int


@dataclass(frozen=True, slots=True)
class PlannedCalls:
    """Calls of a whole run: repairs and retries of cut-off replies, which nobody can foresee, are not in it.

    Attributes:
        stage, role, model: what is asked of whom.
        calls: how many.
        prompt_tokens: of all of them together, estimated.
    """

    stage: str
    role: str
    model: str
    calls: int
    prompt_tokens: int


def stage_plan(config: RunConfig) -> StagePlan:
    """The stages that the estimates of a configuration need, and no other."""
    estimates = set(config.estimate)
    design, roles = config.design, config.roles
    one_step, lace = "one_step" in estimates, bool(estimates & _LACE)
    best_of_n = config.best_of_n if "best_of_n" in estimates else None
    tau = one_step and design.algorithm == "regressor"
    given = config.judges_what_exists
    scored, compared = (lace and bool(roles.judge) and config.wants(family) for family in ("judge", "pairwise"))
    criteria = _criteria(config) if scored else ()
    direct = given if config.judge.compare is None else config.judge.compare
    pairs = combinations(roles.targets, 2) if direct and compared else ()
    asked = () if given or not lace else tuple(name for name in roles.targets if _gives(config, name, "logprobs"))
    own = {str(stage) for stage in config.prompts}
    rubric = "_correctness" if design.tau.rubric == "correctness" else ""
    return StagePlan(
        targets=roles.targets,
        answers=design.answers if estimates - {"best_of_n"} else 0,
        judges=roles.judge if scored or compared else (),
        anchors=tuple(roles.anchors.items()) if lace and (compared or config.wants("anchor")) else (),
        pairwise=compared,
        auxiliary=(roles.auxiliary[0], roles.auxiliary[-1]) if one_step else None,
        draws=design.draws + 1 if one_step else 0,
        episode=one_step and design.coupling == "episode",
        tau=tau,
        variant=design.tau.variant + rubric,
        examples=design.tau.examples if tau and design.tau.variant == "in_context" else 0,
        pointwise=design.judge_prompts if scored and not criteria else 0,
        candidates=best_of_n.candidates if best_of_n is not None else 0,
        scores=best_of_n.scores if best_of_n is not None else 0,
        given=given,
        criteria=criteria,
        direct=tuple(pairs) if len(roles.targets) <= MOST_COMPARED else (),
        weighed=asked if config.wants("logprob") else (),
        p_true=asked if config.wants("p_true") else (),
        expected=tuple(name for name in roles.judge if scored and _gives(config, name, "top_logprobs")),
        confidence=config.wants("confidence"),
        answer_prompt="answer" if config.wants("confidence") or own & {"answer", "anchor"} else "anchor",
    )


def _gives(config: RunConfig, model: str, param: str) -> bool:
    """Whether an entry asks its provider for token probabilities, or for those of other tokens too."""
    params = config.model_entry(model).params
    return bool(params.get("logprobs")) and bool(params.get(param))


def _criteria(config: RunConfig) -> tuple[Criterion, ...]:
    named = config.judge.criteria.items()
    fields = config.benchmark.fields
    if not named and (fields.context or fields.reference):
        return (Criterion("correct", CORRECT, *(config.benchmark.range or (0.0, 1.0))),)
    return tuple(Criterion(name, part.question, *part.scale) for name, part in named)


def is_rated(config: RunConfig) -> bool:
    """Whether people rate the responses of a run, in the place of a right answer to each question."""
    return config.benchmark.grading == "rating"


def rated_criteria(config: RunConfig) -> tuple[Criterion, ...]:
    """What people are asked of a response, first what the estimates are about; the scales are the judge's."""
    judged = {name: Criterion(name, part.question, *part.scale) for name, part in config.judge.criteria.items()}
    bounds = config.benchmark.range or (0.0, 1.0)
    first = next(iter(judged), "correct")
    names = dict.fromkeys([*(name or first for name in config.benchmark.fields.gold_columns), *(judged or (first,))])
    others = {
        name: Criterion(name, CORRECT if name == first else f"How good is it: {name}?", *bounds) for name in names
    }
    return tuple(judged.get(name, others[name]) for name in names)


def calls_per_item(config: RunConfig) -> tuple[StageCalls, ...]:
    """Calls for one item, by stage, model and target."""
    plan = stage_plan(config)
    regressor = config.roles.regressor or ""
    calls = [StageCalls("anchor", "anchor", model, None, 1) for model in plan.asked_anchors]
    if plan.auxiliary is not None:
        calls += [StageCalls("auxiliary", "auxiliary", model, None, plan.draws) for model in plan.auxiliary]
        if config.design.algorithm == "features" and config.design.embedding is not None:
            calls.append(StageCalls("embedding", "embedding", config.design.embedding, None, 1 + 2 * plan.draws))
    for target in plan.targets:
        calls += [
            StageCalls("answer", "target", target, target, 0 if plan.given else plan.answers),
            StageCalls("episode", "target", target, target, plan.draws - 1 if plan.episode else 0),
            StageCalls("preference", "target", target, target, plan.orders * plan.draws),
            StageCalls("tau", "regressor", regressor, target, plan.draws if plan.tau else 0),
            StageCalls("candidates", "target", target, target, plan.candidates),
            StageCalls("p_true", "target", target, target, int(target in plan.p_true)),
        ]
        for judge in plan.judges:
            calls += [
                StageCalls("pointwise", "judge", judge, target, plan.pointwise),
                StageCalls("criterion", "judge", judge, target, len(plan.criteria)),
                StageCalls("direct", "judge", judge, target, 2 * sum(first == target for first, _ in plan.direct)),
                StageCalls("pairwise", "judge", judge, target, 2 * len(plan.opponents(target))),
            ]
        calls += [
            StageCalls("candidate_scores", "judge", judge, target, plan.candidates * plan.scores)
            for judge in config.roles.judge[:1]
        ]
    return tuple(entry for entry in calls if entry.calls)


def plan_calls(
    config: RunConfig,
    benchmark: Benchmark,
    prompts: PromptSet | None = None,
    *,
    reply_tokens: Mapping[tuple[str, str], float] | None = None,
) -> tuple[PlannedCalls, ...]:
    """Calls and prompt tokens of a run, by stage, role and model.

    Args:
        config: the run.
        benchmark: its items.
        prompts: its prompts; by default those the configuration names.
        reply_tokens: (stage, model) → mean length of the visible reply, from a pilot; 250 where absent.

    Raises:
        ConfigError: a prompt of the configuration cannot be used.
    """
    if prompts is None:
        tau = config.design.tau
        prompts = load_prompts(
            {str(stage): files for stage, files in config.prompts.items()},
            tau_variant=tau.variant,
            tau_rubric=tau.rubric,
        )
    sizes = _Sizes(stage_plan(config), benchmark, prompts, reply_tokens or {})
    totals: dict[tuple[str, str, str], tuple[int, float]] = {}
    count = len(benchmark.items)
    for entry in calls_per_item(config):
        key = (entry.stage, entry.role, entry.model)
        calls, tokens = totals.get(key, (0, 0.0))
        added = entry.calls * count
        totals[key] = (calls + added, tokens + added * sizes.prompt(entry.stage, entry.target))
    return tuple(
        PlannedCalls(stage, role, model, calls, round(tokens))
        for (stage, role, model), (calls, tokens) in totals.items()
    )


def estimate_tokens(text: str) -> float:
    """A rough number of tokens: one per four bytes of UTF-8."""
    return len(text.encode("utf-8", "surrogatepass")) / CHARS_PER_TOKEN


class _Sizes:
    """Mean prompt lengths, in estimated tokens."""

    def __init__(
        self, plan: StagePlan, benchmark: Benchmark, prompts: PromptSet, replies: Mapping[tuple[str, str], float]
    ) -> None:
        self._plan, self._prompts, self._replies = plan, prompts, replies
        items = benchmark.items or ()
        questions = sum(estimate_tokens(item.question) for item in items)
        choices = sum(estimate_tokens("\n".join(f"A. {choice}" for choice in item.choices or ())) for item in items)
        self._item = (questions + choices) / max(1, len(items))
        self._with_choices = any(item.choices for item in items)

    def prompt(self, stage: str, target: str | None) -> float:
        """Mean prompt length of a stage's calls, for a target where the stage has one."""
        if stage == "embedding":  # a question and its chains, each alone
            texts = 1 + 2 * self._plan.draws
            chains = sum(self._reply("auxiliary", model) for model in self._plan.auxiliary or ())
            return (self._item + self._plan.draws * chains) / texts
        source = self._plan.answer_prompt if stage in ("answer", "episode") else stage
        template = self._prompts[source]
        if stage == "pointwise":
            template = template[: self._plan.pointwise]
        fixed = sum(self._fixed(prompt) for prompt in template) / len(template)
        return fixed + self._item + self._texts(stage, target or "")

    def _texts(self, stage: str, target: str) -> float:
        chains = sum(self._reply("auxiliary", model) for model in self._plan.auxiliary or ())
        if stage == "preference":
            fixed = self._fixed(self._prompts[self._plan.answer_prompt][0])
            before = fixed + self._item + self._reply("answer", target) if self._plan.episode else 0.0
            return chains + before
        if stage == "tau":
            return chains + self._plan.examples * (self._item + chains)
        if stage in ("pointwise", "criterion", "p_true"):
            return self._reply("answer", target)
        if stage == "direct":
            return 2 * self._reply("answer", target)
        if stage == "candidate_scores":
            return self._reply("candidates", target)
        if stage == "pairwise" and self._plan.anchors:
            opponents = [
                self._reply("answer" if model in self._plan.targets else "anchor", model)
                for _, model in self._plan.anchors
            ]
            return self._reply("answer", target) + sum(opponents) / len(opponents)
        return 0.0

    def _reply(self, stage: str, model: str) -> float:
        return self._replies.get((stage, model), CHAIN_TOKENS)

    def _fixed(self, prompt: Prompt) -> float:
        blank: dict[str, Any] = dict.fromkeys(
            ("question", "chain_a", "chain_b", "response", "response_a", "response_b"), ""
        )
        blank |= {"criterion": self._plan.criteria[0].question if self._plan.criteria else CORRECT}
        blank["preference"] = "CHAIN A, in both orders of showing them"
        example = {key: blank[key] for key in ("question", "chain_a", "chain_b", "preference")}
        blank["choices"] = ("",) if self._with_choices else None
        blank["examples"] = [{**example, "choices": blank["choices"], "correct": True}] * self._plan.examples
        blank["rubric"] = "default"
        return estimate_tokens(render(prompt, blank))
