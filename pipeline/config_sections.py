"""Sections of a configuration that stand by themselves: the benchmark and the model entries."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, field_validator, model_validator

from pipeline.config_values import check_address, check_params

__all__ = [
    "BenchmarkConfig", "FieldMap", "ModelConfig", "PositiveFloat", "PositiveInt", "PriceConfig", "ProfileConfig",
    "Section",
]  # fmt: skip

PresetName = Literal[
    "embedded", "gsm8k", "math500", "aime2025", "gpqa-diamond", "mmlu", "scienceqa", "winogrande",
    "hellaswag", "truthfulqa", "arc-challenge", "custom",
]  # fmt: skip
PositiveInt = Annotated[int, Field(ge=1)]
PositiveFloat = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class Section(BaseModel):
    """A part of the configuration: unknown keys are errors, values do not change."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, protected_namespaces=())


class FieldMap(Section):
    """Which column of the benchmark file holds what."""

    id: str | None = None
    question: str | None = None
    gold: str | None = None
    choices: str | None = None
    profile: str | None = None


class ProfileConfig(Section):
    """The axis along which performance is profiled."""

    field: str
    kind: Literal["continuous", "ordinal", "categorical"]


class BenchmarkConfig(Section):
    """Where the items come from and how answers are graded."""

    preset: PresetName = "embedded"
    path: Path | None = None
    limit: Annotated[int, Field(ge=1)] | None = None
    sample: Annotated[int, Field(ge=1)] | None = None
    fields: FieldMap = FieldMap()
    grading: str | None = None
    tolerance: Annotated[float, Field(ge=0)] | None = None
    profile: ProfileConfig | None = None

    @field_validator("grading")
    @classmethod
    def _known_grading(cls, value: str | None) -> str | None:
        known = ("exact", "choice", "numeric", "math", "squared_error")
        if value is None or value in known:
            return value
        if value.startswith("python:") and value.count(":") == 2:
            return value
        raise ValueError(f"must be one of {', '.join(known)} or 'python:module:function', got {value!r}")

    @model_validator(mode="after")
    def _one_size(self) -> BenchmarkConfig:
        if self.limit is not None and self.sample is not None:
            raise ValueError("give limit or sample, not both")
        if self.preset == "custom" and self.path is None:
            raise ValueError("preset custom needs a path")
        return self


class PriceConfig(Section):
    """USD per million tokens."""

    input_per_million: Annotated[float, Field(ge=0)]
    output_per_million: Annotated[float, Field(ge=0)]
    cached_input_per_million: Annotated[float, Field(ge=0)] | None = None


class ModelConfig(Section):
    """One model and how it is reached."""

    model: Annotated[str, Field(min_length=1)]
    api_base: str | None = None
    api_key_env: str | None = None
    transport: Literal["litellm", "direct", "simulated"] | None = None
    params: dict[str, JsonValue] = Field(default_factory=dict)
    drop_params: tuple[str, ...] = ()
    max_concurrency: PositiveInt = 16
    rpm: PositiveFloat | None = None
    tpm: PositiveFloat | None = None
    price: PriceConfig | None = None
    simulate: dict[str, JsonValue] = Field(default_factory=dict)

    @property
    def resolved_transport(self) -> Literal["litellm", "direct", "simulated"]:
        """The transport: as given, else ``simulated`` for ``sim/…`` models and ``litellm`` for all others."""
        if self.transport is not None:
            return self.transport
        return "simulated" if self.model.startswith("sim/") else "litellm"

    @property
    def is_simulated(self) -> bool:
        """Whether its replies come from a simulated model, over whichever transport."""
        return self.model.startswith("sim/") or self.transport == "simulated"

    @model_validator(mode="after")
    def _reachable(self) -> ModelConfig:
        if self.transport == "direct" and self.api_base is None:
            raise ValueError("transport direct needs api_base, the URL of an OpenAI-compatible server")
        check_params(self.params)
        if self.api_base is not None and not self.is_simulated:
            check_address(self.api_base)
        return self
