"""Which model answered: dated suffixes are the model asked for, anything else is told once per change, with counts."""

from __future__ import annotations

import logging

import pytest

from pipeline.models.served import ServedModels, is_same_model, served_warning


@pytest.mark.parametrize(
    ("asked", "served", "same"),
    [
        ("openai/gpt-4o", "gpt-4o-2024-08-06", True),
        ("gpt-4", "gpt-4-0613", True),
        ("anthropic/claude-sonnet-4-5", "claude-sonnet-4-5-20250929", True),
        ("anthropic/claude-3-5-sonnet-latest", "claude-3-5-sonnet-20241022", True),
        ("gemini/gemini-1.5-pro", "models/gemini-1.5-pro-002", True),
        ("openai/meta-llama/Llama-3-8B", "meta-llama/llama-3-8b", True),
        ("openai/smol", "/models/smol.gguf", True),
        ("anthropic/claude-sonnet-4", "claude-sonnet-4-5", False),
        ("openai/gpt-4o", "gpt-4o-mini", False),
        ("openai/gpt-4o", "gpt-4o-mini-2024-07-18", False),
        ("openai/llama-8b", "llama-70b", False),
    ],
)
def test_another_model_beyond_a_dated_suffix(asked: str, served: str, same: bool) -> None:
    assert is_same_model(asked, served) is same


def test_every_change_is_told_once_with_counts(caplog: pytest.LogCaptureFixture) -> None:
    served = ServedModels({"m": "openai/big"})
    with caplog.at_level(logging.WARNING):
        for name in ["big-2026-01-01"] * 119 + ["small", "big-2026-01-01", "small", None]:  # type: ignore[list-item]
            served.see("m", name)
    (told,) = caplog.messages
    assert "'small'" in told
    assert "119" in told
    assert served.to_dict() == {"m": {"big-2026-01-01": 120, "small": 2}}
    assert served_warning("m", "openai/big", {"big-2026-01-01": 5}) is None
    text = served_warning("m", "openai/big", served.to_dict()["m"])
    assert text is not None
    assert "small (2)" in text
    assert served_warning("m", "openai/big", {"small": 5}) is not None
