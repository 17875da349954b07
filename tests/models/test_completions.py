"""The envelope of a reply, validated at the boundary, and tokens billed once each."""

from __future__ import annotations

from typing import Any

import pytest

from pipeline.models.completions import read_completion, read_embeddings, read_usage
from pipeline.models.pricing import reply_cost
from pipeline.models.reading import to_reply
from pipeline.models.transport import RawReply, TransportError
from pipeline.models.types import Price, Usage


def reply(message: Any = None, **more: Any) -> dict[str, Any]:
    message = {"role": "assistant", "content": "hi"} if message is None else message
    return {"model": "m", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}], **more}


@pytest.mark.parametrize(
    "data",
    [
        None, [], "text", {}, {"choices": []}, {"choices": None}, {"choices": "x"}, {"choices": [None]},
        {"choices": [{}]}, {"choices": [{"message": None}]}, reply({"content": 3}),
    ],
)  # fmt: skip
def test_an_envelope_of_another_shape_is_an_invalid_body(data: Any) -> None:
    with pytest.raises(TransportError) as caught:
        read_completion(data)
    assert caught.value.kind == "invalid_body"
    assert caught.value.retryable


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"message": "upstream", "code": 502}, "server"),
        ({"message": "slow down", "code": 429}, "rate_limited"),
        ({"message": "no key", "code": "401"}, "auth"),
        ("something broke", "server"),
    ],
)
def test_an_error_inside_a_200_is_that_error(error: Any, kind: str) -> None:
    with pytest.raises(TransportError) as caught:
        read_completion({"error": error})
    assert caught.value.kind == kind


def test_content_in_parts_null_usage_and_odd_fields() -> None:
    raw = read_completion(reply({"content": [{"type": "text", "text": "a"}, {"type": "x"}, {"text": "b"}]}, usage=None))
    assert (raw.text, raw.usage, raw.finish_reason) == ("ab", None, "stop")
    assert read_usage({"prompt_tokens": "12", "completion_tokens": -3, "total_tokens": None}) is None


PRICE = Price(input=2.0, output=10.0, cached_input=0.5)


@pytest.mark.parametrize(
    ("usage", "expected", "usd"),
    [
        # OpenAI: cached within prompt, reasoning within completion
        ({"prompt_tokens": 1000, "completion_tokens": 500, "total_tokens": 1500,
          "prompt_tokens_details": {"cached_tokens": 400}, "completion_tokens_details": {"reasoning_tokens": 300}},
         Usage(1000, 500, 400, 300), (600 * 2 + 400 * 0.5 + 500 * 10) / 1e6),
        # Anthropic: cached beside input
        ({"input_tokens": 600, "output_tokens": 500, "cache_read_input_tokens": 400, "cache_creation_input_tokens": 0},
         Usage(1000, 500, 400, 0), (600 * 2 + 400 * 0.5 + 500 * 10) / 1e6),
        # DeepSeek: hit and miss make up the prompt
        ({"prompt_tokens": 1000, "completion_tokens": 500, "total_tokens": 1500, "prompt_cache_hit_tokens": 400,
          "prompt_cache_miss_tokens": 600, "completion_tokens_details": {"reasoning_tokens": 300}},
         Usage(1000, 500, 400, 300), (600 * 2 + 400 * 0.5 + 500 * 10) / 1e6),
        # xAI: reasoning beside completion, as the total shows
        ({"prompt_tokens": 1000, "completion_tokens": 200, "total_tokens": 1500,
          "prompt_tokens_details": {"cached_tokens": 400}, "completion_tokens_details": {"reasoning_tokens": 300}},
         Usage(1000, 500, 400, 300), (600 * 2 + 400 * 0.5 + 500 * 10) / 1e6),
    ],
)  # fmt: skip
def test_every_token_is_billed_once(usage: dict[str, Any], expected: Usage, usd: float) -> None:
    found = read_usage(usage)
    assert found == expected
    assert found is not None
    assert reply_cost(PRICE, found) == pytest.approx(usd, rel=1e-12)


def test_an_unknown_price_is_no_price() -> None:
    assert reply_cost(None, Usage(10, 10)) is None
    assert reply_cost(Price(1.0, 1.0), Usage(10, 0, 10)) == pytest.approx(1e-5)


@pytest.mark.parametrize(
    ("raw", "outcome"),
    [
        (RawReply("text", "stop", None), "ok"),
        (RawReply("text", "length", None), "truncated"),
        (RawReply("", "length", None, reasoning="hm"), "truncated"),
        (RawReply(" ", "stop", None, reasoning="hm"), "truncated"),
        (RawReply("", "stop", None), "empty"),
        (RawReply("half", "content_filter", None), "refused"),
        (RawReply("", "stop", None, refusal="I can't"), "refused"),
        (RawReply("text", "SAFETY", None), "refused"),
        (RawReply("text", "unknown", None), "ok"),
        (RawReply("<think>hm", "length", None), "truncated"),
        (RawReply("<think>hm", "stop", None), "no_answer"),
        (RawReply("<think>hm</think>5", "eos", None), "ok"),
        (RawReply("half", "abort", None), "truncated"),
    ],
)
def test_outcomes(raw: RawReply, outcome: str) -> None:
    assert to_reply(raw, latency_s=0.0, price=None).outcome == outcome


def test_embeddings_come_back_in_the_order_of_the_texts() -> None:
    data = {"data": [{"index": 1, "embedding": [1]}, {"index": 0, "embedding": [2.5]}]}
    assert read_embeddings(data, 2).vectors == ((2.5,), (1.0,))
    for bad in ({"data": data["data"][:1]}, {"data": [{"embedding": ["x"]}, {"embedding": [1]}]}, {}, None):
        with pytest.raises(TransportError):
            read_embeddings(bad, 2)
