"""One server, two transports: the same bodies give the same replies, failures, usage and numbers of requests."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from fault_server import FaultServer
from server_faults import FAULTS

from pipeline.models.transports import TRANSPORT_DIFFERENCES
from pipeline.models.types import Answered, Outcome, Token

Open = Callable[..., Any]
CHUNK = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "tester"}


def shape(**message: Any) -> tuple[str, dict[str, Any]]:
    return "shape", {"message": message}


def ending(word: Any, text: str = "Let me see. 6*7 is") -> tuple[str, dict[str, Any]]:
    return "shape", {"message": {"content": text}, "choice": {"finish_reason": word}}


def usage(counts: Any) -> tuple[str, dict[str, Any]]:
    return "shape", {"message": {"content": "Answer: 42"}, "reply": {"usage": counts}}


def whole(content: str = "Answer: 42", **more: Any) -> dict[str, Any]:
    message = {"role": "assistant", "content": content}
    choices = [{"index": 0, "message": message, "finish_reason": "stop"}]
    counts = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    return {
        "id": "x",
        "object": "chat.completion",
        "created": 1,
        "model": "t",
        "choices": choices,
        "usage": counts,
        **more,
    }


def stream(*lines: str) -> str:
    return "".join(f"{line}\n\n" for line in lines)


def event(delta: dict[str, Any], finish: str | None = None) -> str:
    return "data: " + json.dumps({**CHUNK, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})


weights = [
    {"token": token, "logprob": -0.25, "bytes": None, "top_logprobs": [{"token": "x", "logprob": -2.0, "bytes": None}]}
    for token in ("Answer", ":", " 42")
]

SHAPES: dict[str, tuple[str, dict[str, Any]]] = {
    "text": shape(content="Answer: 42"),
    "parts": shape(content=[{"type": "text", "text": "Answer: "}, {"type": "text", "text": "42"}]),
    "parts with thought": shape(
        content=[{"type": "thinking", "thinking": "Answer: 40?"}, {"type": "text", "text": "Answer: 42"}]
    ),
    "parts with an image": shape(content=[{"type": "image_url", "image_url": {"url": "data:,"}}]),
    "reasoning_content": shape(content="Answer: 42", reasoning_content="Answer: 40?"),
    "reasoning": shape(content="Answer: 42", reasoning="Answer: 40?"),
    "null and reasoning": shape(content=None, reasoning_content="I was still"),
    "null and other reasoning": shape(content=None, reasoning="I was still"),
    "null": shape(content=None),
    "tool calls": shape(
        content=None, tool_calls=[{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}]
    ),
    "refusal": shape(content=None, refusal="I can't"),
    "think": shape(content="<think>\nAnswer: 40?\n</think>\n\n**42**"),
    "lone closing tag": shape(content="Answer: 40? no </think> 42"),
    "unclosed": shape(content="<think>\nAnswer: 40"),
    "unclosed and cut": ("shape", {"message": {"content": "<think>\nhm"}, "choice": {"finish_reason": "length"}}),
    "harmony": shape(
        content="<|channel|>analysis<|message|>40?<|end|><|start|>assistant<|channel|>final<|message|>Answer: 42"
    ),
    "turn marker": shape(content="Answer: 42<|im_end|>\nUser: next"),
    "several choices": ("shape", {"reply": {"choices": [whole("a")["choices"][0], whole("b")["choices"][0]]}}),
    "legacy text": ("shape", {"reply": {"choices": [{"index": 0, "text": "Answer: 42", "finish_reason": "stop"}]}}),
    "usage null": usage(None),
    "usage list": usage([]),
    "usage strings": usage({"prompt_tokens": "10", "completion_tokens": "5", "total_tokens": "15"}),
    "usage total": usage({"prompt_tokens": 1000, "completion_tokens": 20, "total_tokens": 9020}),
    "usage odd": usage({"prompt_tokens": 12, "completion_tokens": -3}),
    "error in 200": ("shape", {"reply": {"choices": None, "error": {"message": "no", "code": 400}}}),
    **{
        f"ends {word}": ending(word)
        for word in (
            None, "stop", "eos", "eos_token", "end_turn", "stop_sequence", "length", "max_tokens", "pause_turn",
            "model_context_window_exceeded", "content_filter", "refusal", "SAFETY", "SPII", "OTHER", "LANGUAGE",
            "IMAGE_SAFETY", "recitation", "blocklist", "prohibited_content", "abort", "error", "network_error",
            "insufficient_system_resource", "cancelled", "time_limit", "made_up",
        )
    },
    "byte-order mark": ("body", {"content": "\ufeff" + json.dumps(whole())}),
    "wrong content type": ("body", {"content": json.dumps(whole()), "type": "text/plain"}),
    "events": ("body", {"content": stream(
        ": PROCESSING", event({"role": "assistant", "content": "Answer: "}), event({"content": "42"}, "stop"),
        "data: [DONE]"), "type": "text/event-stream"}),
    "tokens": ("shape", {"message": {"content": "Answer: 42"}, "choice": {"logprobs": {"content": weights}}}),
    "tokens of thought": ("shape", {"message": {"content": "<think>4</think>42"}, "choice": {"logprobs": {"content": [
        {"token": t, "logprob": -0.5, "top_logprobs": []} for t in ("<think>", "4", "</think>", "42")]}}}),
    **{
        f"tokens {name}": ("shape", {"message": {"content": "Answer: 42"}, "choice": {"logprobs": content}})
        for name, content in {
            "absent": None, "empty": {"content": []}, "null": {"content": None}, "text": {"content": "Answer"},
            "a list": ["x"], "without weight": {"content": [{"token": "A"}]},
            "of a strange weight": {"content": [{"token": "A", "logprob": 3.0}]},
            "nan": {"content": [{"token": "A", "logprob": "NaN"}]}, "of numbers": {"content": [1, 2]},
            "strange others": {"content": [{"token": "A", "logprob": -1, "top_logprobs": [{"token": 1}, 5]}]},
        }.items()
    },
    "events cut off": ("body", {"content": stream(event({"content": "Answer: "})), "type": "text/event-stream"}),
}  # fmt: skip


FAULT_BODIES: dict[str, tuple[str, dict[str, Any]]] = {
    fault: (fault, {"status": 500} if fault == "status" else {})
    for fault in FAULTS
    if fault not in ("stall", "drip", "body", "rate_limit", "no_response_format", "unsupported", "quota")
}
"""Every fault of the server but those that never end, stop a model for good, or hang on what was sent."""
KNOWN = {"events": TRANSPORT_DIFFERENCES[0]}


def read(outcome: Outcome, requests: int) -> tuple[Any, ...]:
    if isinstance(outcome, Answered):
        reply = outcome.reply
        money = (reply.usage, reply.cost_usd, requests)
        return (reply.text, reply.reasoning, reply.finish_reason, reply.outcome, reply.tokens, *money)
    return ("failed", outcome.kind, requests)


@pytest.mark.parametrize("name", sorted(SHAPES | FAULT_BODIES))
async def test_both_transports_read_the_same(open_desk: Open, server: FaultServer, name: str, tmp_path: Any) -> None:
    fault, options = (SHAPES | FAULT_BODIES)[name]
    results = {}
    for transport in ("direct", "litellm"):
        server.reset()
        server.fail(fault, **options)
        async with open_desk(transport, hurry=200, max_attempts=2, cache_dir=tmp_path / transport) as desk:
            outcome = await desk.ask("What is 6 * 7?")
        results[transport] = read(outcome, server.seen.requests)
    if name in KNOWN:
        assert results["litellm"][0] == "failed"
        assert results["direct"][:2] == ("Answer: 42", None)
    else:
        assert results["litellm"] == results["direct"]


TOKENS = {
    "tokens": tuple(Token(text, -0.25, (("x", -2.0),)) for text in ("Answer", ":", " 42")),
    "tokens of thought": tuple(Token(text, -0.5) for text in ("<think>", "4", "</think>", "42")),
    "tokens strange others": (Token("A", -1.0),),
}


@pytest.mark.parametrize("name", sorted(name for name in SHAPES if name.startswith("tokens")))
async def test_token_probabilities_are_read_or_left_and_never_cost_a_reply(
    open_desk: Open, server: FaultServer, name: str
) -> None:
    server.fail(SHAPES[name][0], **SHAPES[name][1])
    async with open_desk("direct") as desk:
        outcome = await desk.ask("What is 6 * 7?", params={"logprobs": True, "top_logprobs": 1})
    assert isinstance(outcome, Answered)
    assert outcome.reply.tokens == TOKENS.get(name, ())


EXPECTED = {
    "parts with thought": ("Answer: 42", "Answer: 40?", "ok"),
    "think": ("**42**", "Answer: 40?", "ok"),
    "lone closing tag": ("42", "Answer: 40? no", "ok"),
    "unclosed": ("", "Answer: 40", "no_answer"),
    "unclosed and cut": ("", "hm", "truncated"),
    "harmony": ("Answer: 42", "40?", "ok"),
    "turn marker": ("Answer: 42", None, "ok"),
    "legacy text": ("Answer: 42", None, "ok"),
    "several choices": ("a", None, "ok"),
    "events": ("Answer: 42", None, "ok"),
    "byte-order mark": ("Answer: 42", None, "ok"),
    "wrong content type": ("Answer: 42", None, "ok"),
    "ends SPII": ("Let me see. 6*7 is", None, "refused"),
    "ends pause_turn": ("Let me see. 6*7 is", None, "truncated"),
    "ends None": ("Let me see. 6*7 is", None, "ok"),
}


@pytest.mark.parametrize("name", sorted(EXPECTED))
async def test_what_a_body_says(open_desk: Open, server: FaultServer, name: str) -> None:
    server.fail(SHAPES[name][0], **SHAPES[name][1])
    async with open_desk("direct") as desk:
        outcome = await desk.ask("What is 6 * 7?")
    assert isinstance(outcome, Answered)
    assert (outcome.reply.text, outcome.reply.reasoning, outcome.reply.outcome) == EXPECTED[name]


@pytest.mark.parametrize("word", ["abort", "error", "network_error", "made_up"])
async def test_an_ending_that_is_not_known_is_tried_again_and_never_stored(
    open_desk: Open, server: FaultServer, transport: str, word: str
) -> None:
    server.fail("shape", choice={"finish_reason": word})
    async with open_desk(transport, hurry=200, max_attempts=3) as desk:
        outcome = await desk.ask("What is 6 * 7?")
        assert (outcome.kind, len(desk.cache), server.seen.requests) == ("server", 0, 3)
    assert word in outcome.message


async def test_what_the_total_holds_beyond_its_parts_was_generated(
    open_desk: Open, server: FaultServer, transport: str
) -> None:
    server.fail("shape", reply={"usage": {"prompt_tokens": "1000", "completion_tokens": 20, "total_tokens": 9020}})
    async with open_desk(transport) as desk:
        outcome = await desk.ask("What is 6 * 7?")
    assert isinstance(outcome, Answered)
    assert (outcome.reply.usage.prompt, outcome.reply.usage.completion) == (1000, 8020)


async def test_a_reply_stored_with_its_thought_is_read_without_it(open_desk: Open, server: FaultServer) -> None:
    """The cache keeps what the server sent; an older cache, filled by a version that knew no thought, reads alike."""
    server.fail("shape", message={"content": "<think>Answer: 40?</think>\n\n42"})
    async with open_desk("direct") as desk:
        first = await desk.ask("What is 6 * 7?")
        stored = desk.cache.get(first.key)
        again = await desk.ask("What is 6 * 7?")
    assert stored.reply.text == "<think>Answer: 40?</think>\n\n42"
    assert (
        (again.reply.text, again.reply.reasoning) == (first.reply.text, first.reply.reasoning) == ("42", "Answer: 40?")
    )
