"""Prices: what a reply costs, what the next attempt may cost at most, and where the price comes from."""

from __future__ import annotations

import functools
import importlib.util
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pipeline.errors import ConfigError
from pipeline.models.budget import Budget, Cost
from pipeline.models.embeddings import is_embedding
from pipeline.models.spec import ModelSpec
from pipeline.models.types import Price, Request, Shown, Usage

__all__ = [
    "ASSUMED_MAX_TOKENS",
    "KnownPrice",
    "find_price",
    "reply_cost",
    "require_prices",
    "unbounded_replies",
    "worst_case",
]

ASSUMED_MAX_TOKENS = 4096
"""Completion tokens reserved where a request names no maximum."""

_PER_MESSAGE_TOKENS = 8
_MOST_TOKENS = 10**12


@dataclass(frozen=True, slots=True)
class KnownPrice:
    """A price and its origin: the configuration, LiteLLM's table, or a simulated model (free)."""

    price: Price
    source: Literal["config", "litellm", "simulated"]


def find_price(spec: ModelSpec) -> KnownPrice | None:
    """The price of a model entry, or None where it is unknown (never taken as 0)."""
    if spec.price is not None:
        return KnownPrice(spec.price, "config")
    if spec.transport == "simulated" or spec.provider == "sim":
        return KnownPrice(Price(0.0, 0.0), "simulated")
    if spec.transport != "litellm":
        return None
    table = _litellm_table()
    listed = table.get(spec.model) or table.get(spec.model.partition("/")[2])
    if not isinstance(listed, Mapping):
        return None
    prompt, completion = listed.get("input_cost_per_token"), listed.get("output_cost_per_token")
    if not isinstance(prompt, int | float) or not isinstance(completion, int | float):
        return None
    cached = listed.get("cache_read_input_token_cost")
    return KnownPrice(
        Price(prompt * 1e6, completion * 1e6, cached * 1e6 if isinstance(cached, int | float) else None), "litellm"
    )


def require_prices(specs: Mapping[str, ModelSpec], prices: Mapping[str, KnownPrice | None], budget: Budget) -> None:
    """Refuse a money bound over models whose price is unknown.

    Raises:
        ConfigError: names the first such model and the line to add.
    """
    if budget.usd is None:
        return
    for name, spec in specs.items():
        if prices.get(name) is None:
            raise ConfigError(
                f"models.{name}: budget.usd is set but the price of {spec.model} is unknown; add to it"
                "  price: {input_per_million: …, output_per_million: …}"
            )


def unbounded_replies(specs: Mapping[str, ModelSpec]) -> list[str]:
    """The entries whose replies no parameter bounds: a budget reserves ``ASSUMED_MAX_TOKENS`` for each of them."""
    bounds = {"max_tokens", "max_completion_tokens"}
    return [name for name, spec in specs.items() if not bounds & spec.params.keys() and spec.transport != "simulated"]


def reply_cost(price: Price | None, usage: Usage) -> float | None:
    """USD of one reply, each token billed once: cached prompt tokens at their own price, reasoning as completion."""
    if price is None:
        return None
    cached_price = price.input if price.cached_input is None else price.cached_input
    cached = min(usage.cached, usage.prompt)
    return ((usage.prompt - cached) * price.input + cached * cached_price + usage.completion * price.output) / 1e6


def worst_case(price: Price | None, request: Request, shown: Shown | None = None) -> tuple[Cost, int]:
    """The most that one attempt can cost, and the bound of its prompt tokens.

    A token per byte of prompt, and every completion token it may write; where the model's replies have shown more
    (a server that counts a system prompt of its own, thinks beyond ``max_tokens``, or is given none), that.
    """
    size = sum(_PER_MESSAGE_TOKENS + _bytes(message.get("content", "")) for message in request.messages)
    schema = request.params.get("response_format")
    if schema:
        size += len(json.dumps(schema))
    stated = request.params.get("max_completion_tokens") or request.params.get("max_tokens") or ASSUMED_MAX_TOKENS
    cap = int(min(stated, _MOST_TOKENS)) if isinstance(stated, int | float) else ASSUMED_MAX_TOKENS
    if is_embedding(request):
        cap = 0
    elif shown is not None:
        cap = max(cap, shown.completion)
    prompt = size + (0 if shown is None else shown.excess)
    usd = None if price is None else (prompt * max(price.input, price.cached_input or 0.0) + cap * price.output) / 1e6
    return Cost(prompt + cap, usd), size


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "replace"))


@functools.cache
def _litellm_table() -> Mapping[str, Any]:
    """LiteLLM's price table, read from its package without importing it (an import costs seconds)."""
    found = importlib.util.find_spec("litellm")
    for folder in (found.submodule_search_locations or ()) if found else ():
        path = Path(folder) / "model_prices_and_context_window_backup.json"
        if path.is_file():
            table = json.loads(path.read_bytes())
            return table if isinstance(table, dict) else {}
    return {}
