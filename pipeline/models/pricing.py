"""Prices: what a reply costs, what the next attempt may cost at most, and where the price comes from."""

from __future__ import annotations

import functools
import importlib.util
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from pipeline.errors import ConfigError
from pipeline.models.budget import Budget, Cost
from pipeline.models.embeddings import is_embedding
from pipeline.models.spec import ModelSpec
from pipeline.models.types import Price, Request, Shown, Usage

ASSUMED_MAX_TOKENS = 4096
"""Completion tokens reserved where a request names no maximum."""

_PER_MESSAGE_TOKENS = 8
_MOST_TOKENS = 10**12


@dataclass(frozen=True, slots=True)
class KnownPrice:
    """A price and its origin: the configuration, LiteLLM's table, or a simulated model (free).

    Attributes:
        guess: why it may not be the price that is paid; None where nothing speaks against it.
    """

    price: Price
    source: Literal["config", "litellm", "simulated"]
    guess: str | None = None


def find_price(spec: ModelSpec) -> KnownPrice | None:
    """The price of a model entry, or None where it is unknown (never taken as 0)."""
    if spec.price is not None:
        return KnownPrice(spec.price, "config")
    if spec.transport == "simulated" or spec.provider == "sim":
        return KnownPrice(Price(0.0, 0.0), "simulated")
    if spec.transport != "litellm":
        return None
    table = _litellm_table()
    name = next((each for each in (spec.model, spec.model.partition("/")[2]) if isinstance(table.get(each), dict)), "")
    price = _listed(table.get(name) or {})
    if price is None:
        return None
    return KnownPrice(price, "litellm", _doubt(spec, name, str(table[name].get("litellm_provider") or "")))


def listed_window(model: str) -> int | None:
    """Tokens that a prompt to a model may have, as LiteLLM's table says; None where it does not."""
    table = _litellm_table()
    rows = (table.get(name) for name in (model, model.partition("/")[2]))
    size = next((row.get("max_input_tokens") for row in rows if isinstance(row, dict)), None)
    return size if isinstance(size, int) and size > 0 else None


def _doubt(spec: ModelSpec, name: str, listed_for: str) -> str | None:
    """What speaks against a listed price."""
    if name != spec.model and listed_for.partition("_")[0] != spec.provider.partition("_")[0]:
        return f"it is LiteLLM's for {name} of {listed_for or 'another provider'}"
    host = urlsplit(spec.api_base or "").hostname
    if host and spec.provider.partition("_")[0] not in host:
        return f"it is the provider's own, and {host} is another address"
    return None


_LISTED = re.compile(
    r"(input_cost_per_token|output_cost_per_token|output_cost_per_reasoning_token|cache_read_input_token_cost"
    r"|cache_creation_input_token_cost)(?:_above_(\d+)k_tokens)?(?:_(priority|flex))?"
)
_FIELDS = {
    "input_cost_per_token": "input",
    "output_cost_per_token": "output",
    "output_cost_per_reasoning_token": "reasoning",
    "cache_read_input_token_cost": "cached_input",
    "cache_creation_input_token_cost": "cache_write",
}


def _listed(entry: Mapping[str, Any]) -> Price | None:
    """The price in an entry of LiteLLM's table, with its tiers by length of the prompt and by service."""
    rates: dict[tuple[str, int], dict[str, float]] = {}
    steps = entry.get("tiered_pricing")
    for step in steps if isinstance(steps, list) else ():
        start = step["range"][0] if isinstance(step, dict) and step.get("range") else 0
        rates[("", int(start))] = {_FIELDS[key]: value * 1e6 for key, value in step.items() if key in _FIELDS}
    for key, value in entry.items():
        match = _LISTED.fullmatch(key)
        if match is not None and isinstance(value, int | float):
            place = (match.group(3) or "", int(match.group(2) or 0) * 1000)
            rates.setdefault(place, {}).setdefault(_FIELDS[match.group(1)], value * 1e6)
    if not {"input", "output"} <= rates.get(("", 0), {}).keys():
        return None
    services = {service for service, _ in rates if service}
    return replace(_tiered(rates, ""), services={service: _tiered(rates, service) for service in sorted(services)})


def _tiered(rates: Mapping[tuple[str, int], Mapping[str, float]], service: str) -> Price:
    """The price of one service; what it does not state is as without it, and as below."""
    base: dict[str, Any] = {**rates[("", 0)], **rates.get((service, 0), {})}
    starts = sorted({start for _, start in rates if start})
    steps = {start: {**base, **rates.get(("", start), {}), **rates.get((service, start), {})} for start in starts}
    return Price(**base, above={start: Price(**step) for start, step in steps.items()})


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


def reply_cost(price: Price | None, usage: Usage, service: str | None = None) -> float | None:
    """USD of one reply, each token billed once: cached, written and thinking tokens at their own prices.

    Args:
        price: None where unknown.
        usage: of the reply; how long its prompt is decides the tier.
        service: service tier that the provider says, or was asked for; one without a price of its own is the usual.
    """
    if price is None:
        return None
    price = price.services.get(service or "", price)
    price = price.above.get(max((start for start in price.above if usage.prompt > start), default=-1), price)
    cached = min(usage.cached, usage.prompt)
    written = min(usage.written, usage.prompt - cached)
    reasoning = min(usage.reasoning, usage.completion)
    return (
        (usage.prompt - cached - written) * price.input
        + cached * _or(price.cached_input, price.input)
        + written * _or(price.cache_write, price.input)
        + (usage.completion - reasoning) * price.output
        + reasoning * _or(price.reasoning, price.output)
    ) / 1e6


def _or(rate: float | None, otherwise: float) -> float:
    return otherwise if rate is None else rate


def asked_service(params: Mapping[str, Any]) -> str | None:
    """The service tier that a request asks for."""
    extra = params.get("extra_body")
    tier = params.get("service_tier") or (extra.get("service_tier") if isinstance(extra, Mapping) else None)
    return tier if isinstance(tier, str) else None


def worst_case(price: Price | None, request: Request, counted: Shown | None = None) -> tuple[Cost, int]:
    """The most that one attempt can cost, and the bound of its prompt tokens.

    A token per byte of prompt, and every completion token it may write; where the model's replies have shown more
    (a server that counts a system prompt of its own, thinks beyond ``max_tokens``, or is given none), that. At the
    dearest of the tiers that so long a prompt may reach and the services that may serve it.
    """
    size = sum(_PER_MESSAGE_TOKENS + _bytes(message.get("content", "")) for message in request.messages)
    schema = request.params.get("response_format")
    if schema:
        size += len(json.dumps(schema))
    stated = request.params.get("max_completion_tokens") or request.params.get("max_tokens") or ASSUMED_MAX_TOKENS
    cap = int(min(stated, _MOST_TOKENS)) if isinstance(stated, int | float) else ASSUMED_MAX_TOKENS
    if is_embedding(request):
        cap = 0
    elif counted is not None:
        cap = max(cap, counted.completion)
    prompt = size + (0 if counted is None else counted.excess)
    usd = None if price is None else _dearest(price, prompt, cap, asked_service(request.params))
    return Cost(prompt + cap, usd), size


def _dearest(price: Price, prompt: int, completion: int, service: str | None) -> float:
    served = price.services.values() if service == "auto" else [price.services.get(service or "", price)]
    reached = [
        each for one in (price, *served) for each in (one, *(p for start, p in one.above.items() if prompt > start))
    ]
    dear_input = max(max(each.input, each.cached_input or 0.0, each.cache_write or 0.0) for each in reached)
    dear_output = max(max(each.output, each.reasoning or 0.0) for each in reached)
    return float(prompt * dear_input + completion * dear_output) / 1e6


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "replace"))


@functools.cache
def _litellm_table() -> Mapping[str, Any]:
    """LiteLLM's price table, read from its package without importing it (an import costs seconds)."""
    package = importlib.util.find_spec("litellm")
    for folder in (package.submodule_search_locations or ()) if package else ():
        path = Path(folder) / "model_prices_and_context_window_backup.json"
        if path.is_file():
            table = json.loads(path.read_bytes())
            return table if isinstance(table, dict) else {}
    return {}
