"""RunConfig: the YAML file a user writes, validated before anything is asked of any model."""

from __future__ import annotations

import difflib
import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import yaml
from pydantic import (
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)

from pipeline.config_design import (
    BestOfNConfig,
    BudgetConfig,
    DesignConfig,
    JudgeConfig,
    RetryTruncatedConfig,
    RolesConfig,
)
from pipeline.config_messages import one_line
from pipeline.config_sections import (
    BenchmarkConfig,
    FieldMap,
    ModelConfig,
    PositiveFloat,
    PositiveInt,
    PriceConfig,
    ProfileConfig,
    Section,
)
from pipeline.config_values import read_yaml
from pipeline.errors import ConfigError

__all__ = [
    "SCHEMA",
    "BenchmarkConfig",
    "BestOfNConfig",
    "BudgetConfig",
    "DesignConfig",
    "FieldMap",
    "ModelConfig",
    "PriceConfig",
    "ProfileConfig",
    "RetryTruncatedConfig",
    "RolesConfig",
    "RunConfig",
    "config_json_schema",
    "load_config",
    "parse_config",
]

SCHEMA = 1
DEFAULT_LABELED = 50
"""Gold answers used where there are signals for the rest and the file does not say how many."""

EstimateName = Literal[
    "naive", "one_step", "lace", "lace_profile", "gaps", "repeated_decoding", "best_of_n", "comparators"
]
EVERY_ESTIMATE: tuple[str, ...] = get_args(EstimateName)
SignalWord = Literal[
    "judge", "pairwise", "confidence", "length", "tau", "logprob", "p_true", "benchmark", "vote", "anchor", "target",
    "peer", "agreement",
]  # fmt: skip
StageName = Literal[
    "answer", "anchor", "auxiliary", "preference", "tau", "pointwise", "pairwise", "candidates", "candidate_scores",
    "criterion", "direct", "p_true",
]  # fmt: skip

MOST_COMPARED = 3
"""Targets up to which every two are compared directly: the calls grow with the pairs."""


class RunConfig(Section):
    """One run: items, models, roles, design, estimates, limits.

    Relative paths are relative to the file the configuration came from (:func:`load_config` makes them absolute).
    """

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        populate_by_name=True,
        allow_inf_nan=False,
        protected_namespaces=(),
        use_attribute_docstrings=True,
    )

    later = frozenset({"judge", "signals"})

    schema_: Literal[1] = Field(default=1, alias="schema")
    """Version of this format."""
    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")] = "run"
    """A short name; part of the run's id."""
    seed: Annotated[int, Field(ge=0)] = 0
    """Of everything random: the labels drawn, the order of choices, the folds."""
    benchmark: BenchmarkConfig = BenchmarkConfig()
    """Where the items come from."""
    models: dict[str, ModelConfig] = Field(default_factory=dict)
    """Name → how the model is reached; a role may also name a bare ``provider/model`` string."""
    roles: RolesConfig = RolesConfig()
    """Which model plays which part."""
    judge: JudgeConfig = JudgeConfig()
    """By what responses are judged."""
    design: DesignConfig = DesignConfig()
    """How many labels, answers and draws."""
    estimate: tuple[EstimateName, ...] = ()
    """What to estimate; left out: everything that the roles allow."""
    signals: tuple[SignalWord, ...] = ()
    """Families of signals to use, and to ask for; left out: all. ``agreement`` is vote, anchor and target."""
    target: Literal["population", "pool"] = "population"
    """What intervals and decisions are about: items like these, or these very items (then nothing is decided)."""
    margin: PositiveFloat | None = None
    """Two targets whose joint interval lies within ± this are called equivalent; null decides no equivalence."""
    best_of_n: BestOfNConfig | None = None
    """Candidates, scores and policies of Best-of-N."""
    prompts: dict[StageName, tuple[Path, ...]] = Field(default_factory=dict)
    """Stage → prompt files of your own in the place of ours."""
    missing_reply: Literal["wrong", "exclude"] = "wrong"
    """What an answer that was refused, cut off or cannot be read counts as on a labeled item."""
    retry_truncated: RetryTruncatedConfig | None = None
    """Asks answers that were cut off once more, with more room."""
    budget: BudgetConfig = BudgetConfig()
    """What may be spent at most; the run stops before it would be passed."""
    confirm_above_usd: Annotated[float, Field(ge=0)] = 1.0
    """A forecast above this many US dollars is asked about first."""
    attempt_timeout_s: PositiveFloat = 180.0
    """Seconds of one attempt, from getting its slot to the last byte."""
    call_deadline_s: PositiveFloat = 1800.0
    """Seconds of one call: all its attempts and waits."""
    max_attempts: PositiveInt = 6
    """Attempts of one call; being told to wait (429) is none."""
    drain_s: Annotated[float, Field(ge=0)] = 30.0
    """Seconds that calls in flight are given to land after Ctrl-C."""
    stage_failure_limit: Annotated[float, Field(gt=0, le=1)] = 0.2
    """Share of a stage's calls that may fail before the run stops."""

    def wants(self, family: str) -> bool:
        """Whether a family of signals is used, and asked for."""
        agreement = "agreement" in self.signals and family in ("vote", "anchor", "target")
        return not self.signals or family in self.signals or agreement

    @field_validator("estimate", mode="before")
    @classmethod
    def _one_is_a_list(cls, value: Any) -> Any:
        if isinstance(value, list | tuple) and not value:
            raise ValueError("names nothing to estimate; leave the key out to get everything that the roles allow")
        return [value] if isinstance(value, str) else value

    @field_validator("prompts", mode="before")
    @classmethod
    def _one_file_is_a_list(cls, value: Any) -> Any:
        if not isinstance(value, Mapping):
            return value
        return {stage: [files] if isinstance(files, str | Path) else files for stage, files in value.items()}

    @model_validator(mode="after")
    def _left_out_is_derived(self) -> RunConfig:
        """What the roles decide where the file says nothing; written out, so that config.yaml shows what ran."""
        if self.design.labeled is None:
            rated = self.benchmark.grading == "rating"  # people rated what they rated: nothing is to be drawn
            labeled = DEFAULT_LABELED if self.roles.signals_asked and not rated else "gold"
            object.__setattr__(self, "design", self.design.model_copy(update={"labeled": labeled}))
        if not self.estimate:
            object.__setattr__(self, "estimate", self._allowed())
        return self

    def _allowed(self) -> tuple[str, ...]:
        """Every estimate that the roles can feed, but for those that nobody wants unasked."""
        lacking = {name for name, _ in self._lacking(EVERY_ESTIMATE)}
        if self.judges_what_exists:
            lacking.add("one_step")
        several = len(self.roles.targets) > 1 or (self.judges_what_exists and self.benchmark.fields.model is not None)
        wanted = ("naive", "one_step", "lace", "lace_profile", *(("gaps",) if several else ()))
        return tuple(name for name in wanted if name not in lacking)

    def _lacking(self, estimates: Iterable[str]) -> list[tuple[str, str]]:
        """(estimate, the line to add) for everything that an estimate needs and the file does not have."""
        roles = self.roles
        lines = {
            "auxiliary": "roles.auxiliary: [MODEL, MODEL]",
            "regressor": "roles.regressor: MODEL",
            "judge": "roles.judge: MODEL",
            "best_of_n": "best_of_n: {candidates: 8, scores: 4, n: [2, 4], j: [1, 3]}",
            "answers": "design.answers: 2 (or more)",
        }
        present = {
            "auxiliary": bool(roles.auxiliary),
            "regressor": bool(roles.regressor) or self.design.algorithm == "features",
            "judge": bool(roles.judge),
            "best_of_n": self.best_of_n is not None,
            "answers": self.design.answers > 1,
        }
        needs: dict[str, tuple[str, ...]] = {
            "one_step": ("auxiliary", "regressor"),
            "best_of_n": ("judge", "best_of_n"),
            "repeated_decoding": ("answers",),
        }
        return [(name, lines[need]) for name in estimates for need in needs.get(name, ()) if not present[need]]

    @model_validator(mode="after")
    def _roles_are_filled(self) -> RunConfig:
        lacking: dict[str, list[str]] = {}
        for estimate, line in self._lacking(self.estimate):
            lacking.setdefault(line, []).append(estimate)
        if lacking:
            told = "; ".join(f"{line} (for {', '.join(names)})" for line, names in lacking.items())
            raise ValueError(f"what is estimated needs more than the file has; add {told}, or leave it out of estimate")
        return self

    @model_validator(mode="after")
    def _somebody_answers(self) -> RunConfig:
        if not self.roles.targets and not self.judges_what_exists:
            raise ValueError(
                "roles.targets: name the models under evaluation (or, for responses that exist already, their column in"
                " benchmark.fields.response)"
            )
        if self.judges_what_exists:
            self._nobody_is_asked()
        return self

    @model_validator(mode="after")
    def _few_are_compared(self) -> RunConfig:
        wanted, count = self.judge.compare, len(self.roles.targets)
        if wanted and count > MOST_COMPARED:
            raise ValueError(
                f"judge.compare: {count} targets are too many to compare each two; at most {MOST_COMPARED}"
            )
        if wanted and count == 1 and not self.judges_what_exists:
            raise ValueError("judge.compare: there is one target; name two in roles.targets")
        if wanted and not self.roles.judge:
            raise ValueError("judge.compare: nobody compares; add roles.judge: MODEL")
        return self

    def _nobody_is_asked(self) -> None:
        """Refuse what only a target that is asked could give."""
        asked = [name for name in ("one_step", "best_of_n", "repeated_decoding") if name in self.estimate]
        if asked:
            raise ValueError(f"estimate {asked[0]} asks the targets, and these responses exist already; leave it out")
        if self.design.answers > 1:
            raise ValueError("design.answers asks the targets again, and these responses exist already; leave it out")

    @property
    def judges_what_exists(self) -> bool:
        """Whether the responses are given, so that no target is asked."""
        return self.benchmark.fields.response is not None

    @property
    def labeled(self) -> int | Literal["gold"]:
        """How many labels may be used, as given or as derived from the roles."""
        return DEFAULT_LABELED if self.design.labeled is None else self.design.labeled

    @model_validator(mode="after")
    def _roles_name_models(self) -> RunConfig:
        embedding = (self.design.embedding,) if self.design.embedding is not None else ()
        given = self.roles.targets if self.judges_what_exists else ()
        for name in (*self.roles.names(without=given), *embedding):
            place = "design.embedding" if name in embedding else "roles"
            if name not in self.models and "/" not in name:
                near = difflib.get_close_matches(name, self.models, n=1)
                hint = f"; did you mean {near[0]!r}?" if near else ""
                raise ValueError(
                    f"unknown model {name!r} in {place}: not under models, and not a provider/model string{hint}"
                )
        return self

    def model_entry(self, name: str) -> ModelConfig:
        """The entry of a model named by a role; a bare model string is its own entry."""
        return self.models.get(name) or ModelConfig(model=name)

    @property
    def model_entries(self) -> dict[str, ModelConfig]:
        """Every model that plays a role or embeds, by name."""
        names = [*self.roles.names(without=self.roles.targets if self.judges_what_exists else ())]
        if self.design.algorithm == "features" and self.design.embedding is not None:
            names.append(self.design.embedding)
        return {name: self.model_entry(name) for name in names}

    def canonical(self) -> dict[str, Any]:
        """The configuration as JSON values, with every default filled in."""
        values = self.model_dump(mode="json", by_alias=True)
        # Keys that were added later are written where they say something: the hash of a configuration, and with it
        # the identity of a run, must not change because more became possible.
        for name, default in (("target", "population"), ("margin", None)):
            if values[name] == default:
                del values[name]
        if values["benchmark"].get("filter") is None:
            values["benchmark"].pop("filter", None)
        profile = values["benchmark"]["profile"]
        if profile and not profile["smooth"]:
            del profile["smooth"]
        return values

    def digest(self) -> str:
        """SHA-256 of what makes the run this run: everything but how much it may spend and how long it may wait."""
        limits = ("budget", "confirm_above_usd", "attempt_timeout_s", "call_deadline_s", "max_attempts", "drain_s")
        identity = {name: value for name, value in self.canonical().items() if name not in limits}
        text = json.dumps(identity, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
        return hashlib.sha256(text.encode("ascii")).hexdigest()

    def to_yaml(self) -> str:
        """The resolved configuration as YAML; it holds the names of key variables, never keys."""
        return yaml.safe_dump(self.canonical(), sort_keys=False, allow_unicode=True)


def parse_config(data: object, *, source: str = "config", base: Path | None = None) -> RunConfig:
    """Validate a configuration given as plain values.

    Args:
        data: the parsed YAML, a mapping.
        source: what to call it in error messages.
        base: folder that relative paths are relative to.

    Raises:
        ConfigError: anything wrong with it, as one line.
    """
    if not isinstance(data, Mapping):
        problems = (
            "it is empty" if data is None else "it holds a list" if isinstance(data, list) else "it holds plain text"
        )
        raise ConfigError(
            f"{source}: expected a mapping of keys at the top, but {problems}; see examples/quickstart.yaml"
        )
    schema = data.get("schema", SCHEMA)
    if isinstance(schema, int) and schema > SCHEMA:
        raise ConfigError(f"{source}: schema {schema} is newer than this program reads ({SCHEMA}); upgrade auxeval")
    try:
        config = RunConfig.model_validate(dict(data))
    except ValidationError as error:
        raise ConfigError(one_line(error, source, RunConfig, {"models": ModelConfig})) from None
    return _absolute_paths(config, base) if base is not None else config


def _absolute_paths(config: RunConfig, base: Path) -> RunConfig:
    def absolute(path: Path) -> Path:
        return path if path.is_absolute() else (base / path).resolve()

    benchmark = config.benchmark
    if benchmark.path is not None:
        benchmark = benchmark.model_copy(update={"path": absolute(benchmark.path)})
    prompts = {stage: tuple(absolute(path) for path in paths) for stage, paths in config.prompts.items()}
    return config.model_copy(update={"benchmark": benchmark, "prompts": prompts})


def load_config(path: str | Path) -> RunConfig:
    """Read and validate a configuration file.

    Raises:
        ConfigError: the file is missing, is not YAML, or does not fit; one line.
    """
    file = Path(path)
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ConfigError(f"{file}: no such configuration file") from None
    except IsADirectoryError:
        raise ConfigError(f"{file}: is a folder; a configuration is a YAML file") from None
    except (UnicodeDecodeError, OSError) as error:
        raise ConfigError(f"{file}: cannot be read as UTF-8 text: {error}") from None
    try:
        data = read_yaml(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f" at line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        problem = getattr(error, "problem", None) or "cannot be parsed"
        raise ConfigError(f"{file}: not valid YAML{place}: {problem}") from None
    return parse_config(data, source=str(file), base=file.resolve().parent)


def config_json_schema() -> dict[str, Any]:
    """JSON Schema of the configuration, for editors."""
    schema = RunConfig.model_json_schema(by_alias=True)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "auxeval run configuration",
        **schema,
    }
