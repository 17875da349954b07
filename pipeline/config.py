"""RunConfig: the YAML file a user writes, validated before anything is asked of any model."""

from __future__ import annotations

import difflib
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import (
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
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
    "AnchorsConfig",
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

EstimateName = Literal[
    "naive", "one_step", "lace", "lace_profile", "gaps", "repeated_decoding", "best_of_n", "comparators"
]
StageName = Literal[
    "answer", "anchor", "auxiliary", "preference", "tau", "pointwise", "pairwise", "candidates", "candidate_scores"
]  # fmt: skip


class AnchorsConfig(Section):
    """Opponents of the pairwise comparisons."""

    weak: str
    medium: str
    strong: str

    def items(self) -> tuple[tuple[str, str], ...]:
        """(level, model name), from weak to strong."""
        return (("weak", self.weak), ("medium", self.medium), ("strong", self.strong))


class RolesConfig(Section):
    """Which model plays which part; each is a name under ``models`` or a bare model string."""

    targets: Annotated[tuple[str, ...], Field(min_length=1)]
    auxiliary: tuple[str, ...] = ()
    judge: str | None = None
    anchors: AnchorsConfig | None = None
    regressor: str | None = None

    @field_validator("targets", "auxiliary", mode="before")
    @classmethod
    def _one_is_a_list(cls, value: Any) -> Any:
        return [value] if isinstance(value, str) else value

    @field_validator("auxiliary")
    @classmethod
    def _two_chains(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if len(value) > 2:
            raise ValueError("takes one model (both chains) or two (one chain each)")
        return value

    @field_validator("targets")
    @classmethod
    def _distinct(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if len(set(value)) != len(value):
            raise ValueError("names a target twice")
        return value

    def names(self) -> tuple[str, ...]:
        """Every model named by a role, without repetition, in a fixed order."""
        anchors = tuple(name for _, name in self.anchors.items()) if self.anchors else ()
        named = (*self.targets, *self.auxiliary, self.judge, *anchors, self.regressor)
        return tuple(dict.fromkeys(name for name in named if name is not None))


class TauConfig(Section):
    """How the semantic regressor is asked."""

    variant: Literal["zero_shot", "in_context"] = "zero_shot"
    rubric: Literal["default", "correctness"] = "default"
    examples: Annotated[int, Field(ge=1, le=32)] = 4


class DesignConfig(Section):
    """How many labels, answers and draws, and how they are coupled."""

    labeled: PositiveInt | Literal["gold"] = 50
    answers: PositiveInt = 1
    draws: PositiveInt = 10
    coupling: Literal["independent", "episode"] = "independent"
    judge_prompts: Annotated[int, Field(ge=1, le=3)] = 3
    auxiliary_max_tokens: PositiveInt = 2048
    tau: TauConfig = TauConfig()
    algorithm: Literal["regressor", "features"] = "regressor"
    embedding: str | None = None


class BestOfNConfig(Section):
    """C candidates per item, K judge scores per candidate, the policies (N, J) to value."""

    candidates: Annotated[int, Field(ge=2)] = 8
    scores: Annotated[int, Field(ge=2)] = 4
    n: Annotated[tuple[PositiveInt, ...], Field(min_length=1)] = (2, 4)
    j: Annotated[tuple[PositiveInt, ...], Field(min_length=1)] = (1, 3)

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


class BudgetConfig(Section):
    """What the run may spend at most; null is no bound."""

    usd: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    calls: Annotated[int, Field(ge=0)] | None = None
    tokens: Annotated[int, Field(ge=0)] | None = None


class RunConfig(Section):
    """One run: items, models, roles, design, estimates, limits.

    Relative paths are relative to the file the configuration came from (:func:`load_config` makes them absolute).
    """

    model_config = ConfigDict(
        extra="forbid", frozen=True, populate_by_name=True, allow_inf_nan=False, protected_namespaces=()
    )

    schema_: Literal[1] = Field(default=1, alias="schema")
    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")] = "run"
    seed: Annotated[int, Field(ge=0)] = 0
    benchmark: BenchmarkConfig = BenchmarkConfig()
    models: dict[str, ModelConfig] = Field(default_factory=dict)
    roles: RolesConfig
    design: DesignConfig = DesignConfig()
    estimate: Annotated[tuple[EstimateName, ...], Field(min_length=1)] = (
        "naive",
        "one_step",
        "lace",
        "lace_profile",
    )
    best_of_n: BestOfNConfig | None = None
    prompts: dict[StageName, tuple[Path, ...]] = Field(default_factory=dict)
    missing_reply: Literal["wrong", "exclude"] = "wrong"
    retry_truncated: RetryTruncatedConfig | None = None
    budget: BudgetConfig = BudgetConfig()
    confirm_above_usd: Annotated[float, Field(ge=0)] = 1.0
    attempt_timeout_s: PositiveFloat = 180.0
    call_deadline_s: PositiveFloat = 1800.0
    max_attempts: PositiveInt = 6
    drain_s: Annotated[float, Field(ge=0)] = 30.0
    stage_failure_limit: Annotated[float, Field(gt=0, le=1)] = 0.2

    @field_validator("estimate", mode="before")
    @classmethod
    def _one_is_a_list(cls, value: Any) -> Any:
        return [value] if isinstance(value, str) else value

    @field_validator("prompts", mode="before")
    @classmethod
    def _one_file_is_a_list(cls, value: Any) -> Any:
        if not isinstance(value, Mapping):
            return value
        return {stage: [files] if isinstance(files, str | Path) else files for stage, files in value.items()}

    @model_validator(mode="after")
    def _roles_are_filled(self) -> RunConfig:
        needs = {
            "one_step": ("auxiliary", "regressor") if self.design.algorithm == "regressor" else ("auxiliary",),
            "lace": ("judge", "anchors"),
            "lace_profile": ("judge", "anchors"),
            "gaps": ("judge", "anchors"),
            "comparators": ("judge", "anchors"),
            "best_of_n": ("judge",),
        }
        for estimate in self.estimate:
            for role in needs.get(estimate, ()):
                if not getattr(self.roles, role):
                    raise ValueError(f"estimate {estimate} needs roles.{role}")
        if "best_of_n" in self.estimate and self.best_of_n is None:
            raise ValueError("estimate best_of_n needs a best_of_n section: {candidates, scores, n, j}")
        if "repeated_decoding" in self.estimate and self.design.answers < 2:
            raise ValueError("estimate repeated_decoding needs design.answers ≥ 2")
        return self

    @model_validator(mode="after")
    def _roles_name_models(self) -> RunConfig:
        embedding = (self.design.embedding,) if self.design.embedding is not None else ()
        for name in (*self.roles.names(), *embedding):
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
        names = [*self.roles.names()]
        if self.design.algorithm == "features" and self.design.embedding is not None:
            names.append(self.design.embedding)
        return {name: self.model_entry(name) for name in names}

    def canonical(self) -> dict[str, Any]:
        """The configuration as JSON values, with every default filled in."""
        return self.model_dump(mode="json", by_alias=True)

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
        found = (
            "it is empty" if data is None else "it holds a list" if isinstance(data, list) else "it holds plain text"
        )
        raise ConfigError(f"{source}: expected a mapping of keys at the top, but {found}; see examples/quickstart.yaml")
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
