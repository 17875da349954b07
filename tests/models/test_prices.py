"""Prices with tiers: what a call costs and may cost at most, from LiteLLM's table and from a configuration."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.config_sections import PriceConfig
from pipeline.models import ModelSpec
from pipeline.models.completions import read_completion
from pipeline.models.live_calls import service_of
from pipeline.models.pricing import find_price, reply_cost, worst_case
from pipeline.models.types import Price, Request, Usage
from pipeline.runs.setup import price_of

LONG = 200_000
STATED = {
    "input_per_million": 1.0,
    "output_per_million": 8.0,
    "cached_input_per_million": 0.1,
    "cache_write_per_million": 1.25,
    "reasoning_per_million": 10.0,
    "tiers": [{"above_tokens": LONG, "input_per_million": 2.0, "output_per_million": 12.0}],
    "services": {
        "priority": {
            "input_per_million": 2.0,
            "output_per_million": 16.0,
            "tiers": [{"above_tokens": LONG, "input_per_million": 4.0, "output_per_million": 24.0}],
        }
    },
}
PRICE = price_of(PriceConfig.model_validate(STATED))


@pytest.mark.parametrize(
    ("usage", "service", "usd"),
    [
        (Usage(1_000_000 // 10, 0), None, 0.1),
        (Usage(100_000, 10_000, cached=40_000, reasoning=4_000, written=20_000), None, 0.069 + 0.088),
        (Usage(LONG, 0), None, 0.2),
        (Usage(LONG + 1, 0), None, (LONG + 1) * 2e-6),
        (Usage(100_000, 10_000), "priority", 0.2 + 0.16),
        (Usage(300_000, 10_000), "priority", 1.2 + 0.24),
        (Usage(100_000, 10_000), "default", 0.1 + 0.08),
    ],
)  # fmt: skip
def test_each_token_is_billed_once_at_its_own_price(usage: Usage, service: str | None, usd: float) -> None:
    assert reply_cost(PRICE, usage, service) == pytest.approx(usd)


@given(
    length=st.integers(1, 400_000),
    completion=st.integers(0, 500),
    shares=st.tuples(st.floats(0, 1), st.floats(0, 1), st.floats(0, 1), st.floats(0, 1)),
    asked=st.sampled_from([None, "priority", "auto", "default"]),
)
def test_what_was_reserved_covers_every_reply_of_the_service_asked_for(
    length: int, completion: int, shares: tuple[float, float, float, float], asked: str | None
) -> None:
    params: dict[str, Any] = {"max_tokens": 500, **({"service_tier": asked} if asked else {})}
    request = Request("m", None, ({"role": "user", "content": "x" * length},), params)
    worst, size = worst_case(PRICE, request)
    prompt = int(size * shares[0])
    cached = int(prompt * shares[1])
    usage = Usage(prompt, completion, cached, int(completion * shares[2]), int((prompt - cached) * shares[3]))
    served = ["priority", "default"] if asked == "auto" else ["default", asked]
    for service in served:
        cost = reply_cost(PRICE, usage, service)
        assert worst.usd is not None
        assert cost is not None
        assert cost <= worst.usd * (1 + 1e-9)


@pytest.mark.parametrize(
    ("model", "usage", "usd"),
    [
        ("gemini/gemini-2.5-pro", Usage(300_000, 5_000), 0.825),
        ("gemini/gemini-2.5-pro", Usage(100_000, 5_000), 0.175),
    ],
)
def test_tiers_of_litellms_table(model: str, usage: Usage, usd: float) -> None:
    found = find_price(ModelSpec("m", model))
    assert found is not None
    assert reply_cost(found.price, usage) == pytest.approx(usd)
    assert found.guess is None


@pytest.mark.parametrize(
    ("model", "base", "guess"),
    [
        ("openai/gpt-4o", None, None),
        ("openai/gpt-4o", "https://api.openai.com/v1", None),
        ("anthropic/claude-sonnet-4-5", None, None),
        ("openai/gpt-4o", "http://127.0.0.1:8000/v1", "127.0.0.1"),
        ("together_ai/gpt-4o", None, "openai"),
    ],
)
def test_a_price_that_is_a_guess_says_why(model: str, base: str | None, guess: str | None) -> None:
    found = find_price(ModelSpec("m", model, api_base=base))
    assert found is not None
    assert (found.guess is None) is (guess is None)
    assert guess is None or (found.guess is not None and guess in found.guess)


@pytest.mark.parametrize(
    ("said", "asked", "service"),
    [("flex", "priority", "flex"), (None, "priority", "priority"), (None, None, None), ("default", None, "default")],
)
def test_the_servers_word_for_its_service_counts(said: str | None, asked: str | None, service: str | None) -> None:
    body = {"choices": [{"message": {"content": "x"}}], "service_tier": said}
    request = Request("m", None, (), {"service_tier": asked} if asked else {})
    assert service_of(read_completion(body), request) == service


def test_a_price_without_tiers_is_what_it_was() -> None:
    plain = PriceConfig.model_validate({"input_per_million": 1.0, "output_per_million": 2.0})
    assert price_of(plain) == Price(1.0, 2.0)
    assert set(plain.model_dump()) == {"input_per_million", "output_per_million", "cached_input_per_million"}
