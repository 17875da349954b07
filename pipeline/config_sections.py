"""Sections of a configuration that stand by themselves: the benchmark and the model entries."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    SerializerFunctionWrapHandler,
    field_validator,
    model_serializer,
    model_validator,
)

from pipeline.config_values import check_address, check_header, check_model, check_params
from pipeline.credentials import check_variable

PresetName = Literal[
    "embedded", "gsm8k", "math500", "aime2025", "gpqa-diamond", "mmlu", "scienceqa", "winogrande",
    "hellaswag", "truthfulqa", "arc-challenge", "custom",
]  # fmt: skip
PositiveInt = Annotated[int, Field(ge=1)]
PositiveFloat = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class Section(BaseModel):
    """A part of the configuration: unknown keys are errors, values do not change."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, allow_inf_nan=False, protected_namespaces=(), use_attribute_docstrings=True
    )

    later: ClassVar[frozenset[str]] = frozenset()
    """Keys added since the first release. With their defaults they are not written: the hash of a configuration, and
    with it the identity of every run made before, must not change because more became possible."""

    @model_serializer(mode="wrap")
    def _without_later_defaults(self, plain: SerializerFunctionWrapHandler) -> dict[str, Any]:
        written: dict[str, Any] = plain(self)
        for name in self.later:
            if getattr(self, name) == type(self).model_fields[name].get_default(call_default_factory=True):
                written.pop(name, None)
        return written


class FieldMap(Section):
    """Which column of the benchmark file holds what."""

    later = frozenset({"response", "model", "reference", "context", "cluster", "signals"})

    id: str | None = None
    """The column with the item ids; left out: `item_id` or `id`, else the rows are numbered."""
    question: str | None = None
    """What is asked; left out: `question`, `prompt` or `problem`."""
    gold: str | dict[str, str] | None = None
    """The right answer, or under `grading: rating` the column of people's ratings (a mapping criterion: column where
    several things are rated); left out: `gold` or `answer`."""
    choices: str | None = None
    """The options of a multiple-choice question; left out: `choices` or `options`."""
    profile: str | None = None
    """The column of the profile axis."""
    response: str | None = None
    """The column of responses that exist already: they are judged and graded, and no target is asked."""
    model: str | None = None
    """Which model or version gave the response; each distinct value is a target."""
    reference: str | None = None
    """A reference answer that judges are shown."""
    context: str | None = None
    """What the response was to be based on (retrieved passages, say); judges are shown it."""
    cluster: str | None = None
    """Items with the same value are not independent (one conversation, one document)."""
    signals: tuple[str, ...] = ()
    """Columns of your own numbers that say something of an item without its gold answer."""

    @property
    def gold_columns(self) -> dict[str, str]:
        """Criterion → column of people's ratings; the one column of a plain name goes by an empty criterion."""
        return self.gold if isinstance(self.gold, dict) else {} if self.gold is None else {"": self.gold}


class ProfileConfig(Section):
    """The axis along which performance is profiled."""

    field: str
    """The column that holds it."""
    kind: Literal["continuous", "ordinal", "categorical", "tags", "semantic"]
    """Numbers, levels with an order, names, tags (an item may have several), or a text to be grouped by meaning."""
    smooth: bool = False
    """Whether levels of an ordinal axis borrow labels from their neighbours; else a level's number is its own."""


class FilterConfig(Section):
    """Which rows of a benchmark are kept; without it a benchmark is whole."""

    field: str
    """The profile axis, or a column of the file."""
    min: float | None = None
    """The least value that is kept."""
    max: float | None = None
    """The greatest value that is kept."""
    values: tuple[str, ...] | None = None
    """The values that are kept."""

    @model_validator(mode="after")
    def _says_something(self) -> FilterConfig:
        if self.min is None and self.max is None and self.values is None:
            raise ValueError("needs min, max or values")
        return self

    def keeps(self, value: object) -> bool:
        """Whether a row with this value is kept; one without a value is not."""
        if value is None:
            return False
        if self.values is not None and str(value) not in self.values:
            return False
        if self.min is None and self.max is None:
            return True
        try:
            number = float(str(value))
        except ValueError:
            return False
        low, high = self.min, self.max
        return (low is None or number >= low) and (high is None or number <= high)


class BenchmarkConfig(Section):
    """Where the items come from and how answers are graded."""

    later = frozenset({"range"})

    preset: PresetName = "embedded"
    """A benchmark that the program knows, or `custom` for a file of your own."""
    path: Path | None = None
    """A local file; without it a preset is read from the hub (extra `hf`)."""
    limit: Annotated[int, Field(ge=1)] | None = None
    """The first N items of a shuffled order, so that a larger limit contains a smaller one."""
    sample: Annotated[int, Field(ge=1)] | None = None
    """N items drawn at random with the seed."""
    fields: FieldMap = FieldMap()
    """Which column holds what."""
    grading: str | None = None
    """How answers are graded: exact, choice, numeric, math, squared_error, python:module:function, or rating where
    people have rated the responses."""
    range: tuple[float, float] | None = None
    """Lowest and highest rating under `grading: rating`; a rating outside it is an error."""
    tolerance: Annotated[float, Field(ge=0)] | None = None
    """Largest difference at which two numbers count as equal."""
    filter: FilterConfig | None = None
    """Which rows are kept; left out: all of them."""
    profile: ProfileConfig | None = None
    """The axis along which results are profiled."""

    @field_validator("grading")
    @classmethod
    def _known_grading(cls, value: str | None) -> str | None:
        metrics = ("exact", "choice", "numeric", "math", "squared_error", "rating")
        if value is None or value in metrics:
            return value
        if value.startswith("python:") and value.count(":") == 2:
            return value
        raise ValueError(f"must be one of {', '.join(metrics)} or 'python:module:function', got {value!r}")

    @model_validator(mode="before")
    @classmethod
    def _a_file_is_custom(cls, value: Any) -> Any:
        """A file without a preset is a file of one's own, not the embedded benchmark under another's path."""
        if isinstance(value, Mapping) and value.get("path") is not None and value.get("preset") is None:
            return {**value, "preset": "custom"}
        return value

    @model_validator(mode="after")
    def _responses_are_whole(self) -> BenchmarkConfig:
        fields = self.fields
        if fields.response is None:
            lonely = next((name for name in ("model", "reference", "context") if getattr(fields, name)), None)
            lonely = "gold" if lonely is None and self.grading == "rating" and fields.gold else lonely
            if lonely is not None:
                what = f"fields.{lonely}" + (" under grading: rating" if lonely == "gold" else "")
                raise ValueError(f"{what} is about responses that exist already; name their column in fields.response")
        elif self.path is None:
            raise ValueError("fields.response needs a path: the file that holds the responses")
        elif fields.id is None:
            raise ValueError("fields.response needs fields.id: what joins the responses of several models to one item")
        if self.range is not None and not self.range[0] < self.range[1]:
            raise ValueError(f"range must be [lowest, highest], got [{self.range[0]:g}, {self.range[1]:g}]")
        if isinstance(fields.gold, dict) and self.grading != "rating":
            raise ValueError("fields.gold maps criteria to ratings; set grading: rating")
        return self

    @model_validator(mode="after")
    def _one_size(self) -> BenchmarkConfig:
        if self.limit is not None and self.sample is not None:
            raise ValueError("give limit or sample, not both")
        if self.preset == "custom" and self.path is None:
            raise ValueError("preset custom needs a path")
        return self


Rate = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class RateConfig(Section):
    """USD per million tokens."""

    later = frozenset({"cache_write_per_million", "reasoning_per_million"})

    input_per_million: Rate
    """Of the prompt."""
    output_per_million: Rate
    """Of the reply, thinking included."""
    cached_input_per_million: Rate | None = None
    """Of the part of the prompt that the provider had in its cache; left out: as the prompt."""
    cache_write_per_million: Rate | None = None
    """Of the part of the prompt that the provider puts into its cache; left out: as the prompt."""
    reasoning_per_million: Rate | None = None
    """Of the thinking in the reply; left out: as the reply."""


class TierConfig(RateConfig):
    """USD per million tokens of a call whose prompt is long."""

    above_tokens: PositiveInt
    """Tokens of the prompt above which the whole call has this price."""


class ServiceConfig(RateConfig):
    """USD per million tokens, where need be by length of the prompt."""

    later = RateConfig.later | {"tiers"}

    tiers: tuple[TierConfig, ...] = ()
    """Prices of calls with longer prompts."""


class PriceConfig(ServiceConfig):
    """USD per million tokens, where need be by length of the prompt and by service tier."""

    later = ServiceConfig.later | {"services"}

    services: dict[str, ServiceConfig] = Field(default_factory=dict)
    """Service tier that is asked for, or that the server says, as `priority` → its price."""


class ModelConfig(Section):
    """One model and how it is reached."""

    later = frozenset({"headers_env", "serve", "window"})

    model: Annotated[str, Field(min_length=1)]
    """The `provider/model` string, as LiteLLM takes it; `sim/…` is simulated."""
    api_base: str | None = None
    """Address of the server, where it is not the provider's own."""
    api_key_env: str | None = None
    """Name of the environment variable that holds the key; never the key itself."""
    headers_env: dict[str, str] = Field(default_factory=dict)
    """Header → name of the environment variable that holds its value, for gateways that ask for more than a key."""
    transport: Literal["litellm", "direct", "simulated"] | None = None
    """How it is reached; left out: `litellm`, or `simulated` for `sim/…`."""
    serve: Literal["smollm2-135m"] | None = None
    """A small model that the run serves on this machine while it lasts (extra `laptop`), in the place of `api_base`."""
    params: dict[str, JsonValue] = Field(default_factory=dict)
    """Sampling parameters sent with every request."""
    drop_params: tuple[str, ...] = ()
    """Parameters that this model does not take and that are left out."""
    max_concurrency: PositiveInt = 16
    """Requests under way at once at most."""
    rpm: PositiveFloat | None = None
    """Requests a minute at most."""
    tpm: PositiveFloat | None = None
    """Tokens a minute at most."""
    price: PriceConfig | None = None
    """What it costs, where LiteLLM does not know."""
    window: PositiveInt | None = None
    """Tokens that a prompt may have at most, where LiteLLM does not know: what is too long is refused before asking."""
    simulate: dict[str, JsonValue] = Field(default_factory=dict)
    """Settings of a simulated model."""

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

    @field_validator("api_key_env")
    @classmethod
    def _is_a_variable(cls, value: str | None) -> str | None:
        if value is not None:
            check_variable(value)
        return value

    @field_validator("headers_env")
    @classmethod
    def _are_headers(cls, value: dict[str, str]) -> dict[str, str]:
        for header, variable in value.items():
            check_header(header)
            check_variable(variable)
        return value

    @model_validator(mode="after")
    def _reachable(self) -> ModelConfig:
        check_model(self.model)
        if self.transport == "direct" and self.api_base is None and self.serve is None:
            raise ValueError("transport direct needs api_base, the URL of an OpenAI-compatible server")
        if self.serve is not None:
            self._is_served_here()
        check_params(self.params)
        if self.api_base is not None and not self.is_simulated:
            check_address(self.api_base)
        return self

    def _is_served_here(self) -> None:
        """Refuse what has no meaning for a server that the run starts itself."""
        if self.api_base is not None:
            raise ValueError("serve starts a server of the run's own, and api_base names another; give one of them")
        if self.is_simulated or not self.model.startswith("openai/"):
            raise ValueError("serve speaks OpenAI's protocol; write model: openai/NAME")
        if self.api_key_env is not None or self.headers_env:
            raise ValueError("a served model takes no key; leave out api_key_env and headers_env")
