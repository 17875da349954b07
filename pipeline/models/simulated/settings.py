"""What a simulated model is like: its ability, its habits as a judge, how often it fails."""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from pipeline.errors import ConfigError

Rate = Annotated[float, Field(ge=0, le=1)]
Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Number = Annotated[float, Field(ge=-20, le=20)]


class Simulation(BaseModel):
    """The ``simulate`` section of a model entry; what is left out comes from the model's own defaults.

    A problem of difficulty b (logits; the benchmark's levels span about −1.6 to 1.6) is answered correctly with
    probability 1/(1 + exp(b − ability)).
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    ability: Number = 1.0
    """Log-odds of a correct answer at middling difficulty."""

    overconfidence: Number = 1.2
    """Added to the log-odds of the confidence it states."""
    confidence_signal: Number = 0.25
    """How much higher its stated confidence is when it is right (log-odds, up and down)."""
    confidence_noise: Annotated[float, Field(ge=0, le=20)] = 1.0
    """Standard deviation of its stated confidence (log-odds)."""
    length: Annotated[float, Field(ge=0, le=1)] = 0.5
    """How long-winded its chains are, from terse to wordy."""

    accuracy: Rate = 0.86
    """Probability that its view of an answer, right or wrong, is the truth (as a judge or regressor)."""
    strength: Annotated[float, Field(ge=0, le=20)] = 1.3
    """How far its scores and comparisons follow its view (log-odds)."""
    leniency: Number = 0.2
    """Added to the log-odds of every score."""
    noise: Annotated[float, Field(ge=0, le=20)] = 0.6
    """Standard deviation of what differs between two judgements of one text (log-odds)."""
    text_noise: Annotated[float, Field(ge=0, le=20)] = 0.5
    """Standard deviation of what it thinks of a text beyond its answer (log-odds, the same each time)."""
    position_bias: Number = 0.4
    """Advantage of the text shown first (log-odds)."""
    verbosity_bias: Number = 0.2
    """Advantage of a text twice as long (log-odds)."""
    tie_width: Annotated[float, Field(ge=0, le=20)] = 0.7
    """It calls a tie when two texts differ by less than this (log-odds)."""

    coherence: Rate = 0.95
    """Probability that, asked on in a conversation, it stands by what it answered there."""
    expects: Number = 1.1
    """As a regressor: the ability it expects of a target."""
    sharpness: Annotated[float, Field(ge=0, le=20)] = 1.0
    """As a regressor: how much of the evidence's weight it uses; 1 is all of it."""

    malformed: Rate = 0.0
    """Share of replies that do not have the form asked for."""
    wrapped: Rate = 0.1
    """Share of replies whose JSON stands in a code fence or in prose."""
    refusal: Rate = 0.0
    """Share of replies that the content filter stops."""
    truncation: Rate = 0.0
    """Share of replies cut off as if by the token limit."""
    empty: Rate = 0.0
    """Share of replies without text."""
    rate_limit: Rate = 0.0
    """Share of attempts answered by 429 with Retry-After."""
    retry_after_s: Seconds = 0.05
    """What Retry-After says."""
    server_error: Rate = 0.0
    """Share of attempts answered by 500 or 503."""
    bad_request: Rate = 0.0
    """Share of requests refused by 400 for their content (terminal)."""
    latency_s: Seconds = 0.0
    """Mean time until a reply, exponentially distributed; 0 answers at once."""
    reasoning: bool = False
    """Whether the chain comes as reasoning text, apart from the reply."""
    structured: Literal["json_schema", "json_object", "none"] = "json_schema"
    """The best response_format it accepts; a better one is refused by 400."""

    def digest(self) -> str:
        """A short name of these settings: two models that answer alike have the same."""
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()[:12]


SIMULATED_MODELS: Mapping[str, Simulation] = {
    "sim/strong": Simulation(ability=2.2, overconfidence=0.9, length=0.6, malformed=0.005),
    "sim/medium": Simulation(ability=1.0, overconfidence=1.2, length=0.5, malformed=0.01),
    "sim/weak": Simulation(ability=0.0, overconfidence=1.6, length=0.35, malformed=0.015),
    "sim/aux-a": Simulation(ability=0.9, length=0.7),
    "sim/aux-b": Simulation(ability=0.5, length=0.4),
    "sim/judge": Simulation(ability=2.0, malformed=0.02),
    "sim/anchor-weak": Simulation(ability=-0.6, length=0.3),
    "sim/anchor-medium": Simulation(ability=0.8, length=0.5),
    "sim/anchor-strong": Simulation(ability=2.4, length=0.6),
    "sim/regressor": Simulation(ability=2.0, accuracy=0.95, noise=0.25, malformed=0.01),
}
"""The simulated models that exist, with their defaults."""


def simulation_settings(model: str, given: Mapping[str, Any] | None = None) -> Simulation:
    """The settings of a simulated model: its defaults, overridden by what the configuration gives.

    Args:
        model: ``sim/<name>``; any other string is a model of middling ability (to rehearse a run without its cost).
        given: the entry's ``simulate`` section.

    Raises:
        ConfigError: no such model, an unknown key, or a value out of range; one line.
    """
    if model.startswith("sim/") and model not in SIMULATED_MODELS:
        near = difflib.get_close_matches(model, SIMULATED_MODELS, n=1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise ConfigError(f"unknown simulated model {model!r}: {hint}there are {', '.join(SIMULATED_MODELS)}")
    own = SIMULATED_MODELS.get(model, Simulation())
    try:
        return Simulation.model_validate({**own.model_dump(), **(given or {})})
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        key = ".".join(str(part) for part in first["loc"])
        if first["type"] == "extra_forbidden":
            near = difflib.get_close_matches(key, Simulation.model_fields, n=1)
            mend = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(Simulation.model_fields)}"
            raise ConfigError(f"model {model}: unknown key simulate.{key}: {mend}") from None
        raise ConfigError(f"model {model}: simulate.{key}: {first['msg']}") from None
