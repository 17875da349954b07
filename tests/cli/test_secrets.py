"""No key in any log line of the command, whatever logs it."""

from __future__ import annotations

import logging

import pytest

from pipeline.cli import _without_secrets


def test_the_value_of_a_key_variable_never_passes_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret-123456")
    record = logging.LogRecord("x", logging.DEBUG, "f", 1, "sent %s to %s", ("sk-very-secret-123456", "server"), None)
    assert _without_secrets(record)
    assert "sk-very-secret" not in record.getMessage()
    assert "server" in record.getMessage()
