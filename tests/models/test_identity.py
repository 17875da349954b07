"""Request identity: what is in the key, what is not, and that its canonical form never changes by accident."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.models import ModelSpec
from pipeline.models.identity import canonical_json, public_endpoint, request_key, sendable_messages
from pipeline.models.types import Request

GOLDEN = Request(
    model="openai/gpt-5.2",
    endpoint="https://api.example.org/v1",
    messages=(
        {"role": "system", "content": "Answer briefly. — «ü»"},
        {"role": "user", "content": "2 + 2 = ?\n\U0001d400"},
    ),
    params={"temperature": 0.7, "max_tokens": 1024, "stop": ["\n\n"], "response_format": {"type": "json_object"}},
    draw=3,
)
GOLDEN_KEY = "831e3346c68e1b1b4a37e843da597cfac65626e771b7952f915fad2d3380f17a"


def test_the_key_of_a_fixed_request_is_fixed() -> None:
    assert request_key(GOLDEN) == GOLDEN_KEY


CHANGES: list[dict[str, Any]] = [
    {"model": "openai/gpt-5"},
    {"endpoint": None},
    {"endpoint": "https://api.example.org/v2"},
    {"messages": GOLDEN.messages[:1]},
    {"messages": ({"role": "system", "content": "Answer briefly."}, GOLDEN.messages[1])},
    {"draw": 4},
    *[
        {"params": {**GOLDEN.params, **change}}
        for change in (
            {"temperature": 0.8},
            {"top_p": 0.9},
            {"max_tokens": 1025},
            {"stop": ["\n"]},
            {"seed": 1},
            {"reasoning_effort": "low"},
            {"reasoning_effort": "high"},
            {"logprobs": True},
            {"extra_body": {"top_k": 5}},
            {"response_format": {"type": "json_schema", "json_schema": {"name": "score", "schema": {}}}},
        )
    ],
]


def test_everything_that_can_change_the_reply_is_in_the_key() -> None:
    keys = {request_key(GOLDEN), *(request_key(replace(GOLDEN, **change)) for change in CHANGES)}
    assert len(keys) == len(CHANGES) + 1


def test_nothing_that_cannot_change_the_reply_is_in_the_key() -> None:
    base = ModelSpec("a", "openai/x", api_base="http://user:pw@Host:8000/v1/?api_key=secret#top", api_key="k1")
    other = ModelSpec("b", "openai/x", api_base="http://host:8000/v1", api_key="k2", max_concurrency=3, rpm=5.0)
    assert base.endpoint == other.endpoint == "http://host:8000/v1"
    assert "k1" not in repr(base)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)


def _shuffled(value: Any, rng: random.Random) -> Any:
    if isinstance(value, dict):
        names = list(value)
        rng.shuffle(names)
        return {name: _shuffled(value[name], rng) for name in names}
    return [_shuffled(item, rng) for item in value] if isinstance(value, list) else value


@given(JSON, st.randoms(use_true_random=False))
def test_the_order_of_keys_does_not_matter(value: Any, rng: random.Random) -> None:
    assert canonical_json(_shuffled(value, rng)) == canonical_json(value)


def test_two_processes_with_different_hash_seeds_agree() -> None:
    code = (
        "from pipeline.models.identity import request_key; from pipeline.models.types import Request;"
        "print(request_key(Request('m', None, (), {c: {c + d: 1.5 for d in 'xyz'} for c in 'abcdef'})))"
    )
    keys = {
        subprocess.run(
            [sys.executable, "-c", code], env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in ("1", "2")
    }
    assert len(keys) == 1


def test_texts_that_utf8_cannot_carry_have_a_key_and_a_form_that_can_be_sent() -> None:
    lone = ({"role": "user", "content": "a\ud835b"},)
    assert len(request_key(Request("m", None, lone, {}))) == 64
    (sent,) = sendable_messages(lone)
    assert sent["content"] == "a\ufffdb"
    (pair,) = sendable_messages([{"content": "\ud835\udc00 é"}])
    assert pair["content"] == "\U0001d400 é"


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_numbers_without_a_json_form_are_refused(value: float) -> None:
    with pytest.raises(ValueError, match="JSON"):
        request_key(Request("m", None, (), {"temperature": value}))


@pytest.mark.parametrize(
    ("url", "identity"),
    [
        (None, None),
        ("https://API.Example.org/v1/", "https://api.example.org/v1"),
        ("https://u:p@h/v1", "https://h/v1"),
        ("https://h/v1?api-version=2&token=x&b=1", "https://h/v1?api-version=2&b=1"),
        ("http://[::1]:8000/v1", "http://[::1]:8000/v1"),
    ],
)
def test_an_endpoint_keeps_no_credentials(url: str | None, identity: str | None) -> None:
    assert public_endpoint(url) == identity
