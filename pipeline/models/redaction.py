"""Redaction: error texts cut to one line, with anything that may be a credential taken out."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable

__all__ = ["SecretFilter", "one_line", "redact"]

_LONGEST = 400
_HIDDEN = "[hidden]"
_CREDENTIAL = re.compile(
    r"\b(sk|pk|rk|gsk|xai|hf|r8|AIza|key|ghp)[-_][A-Za-z0-9*._-]{8,}|\bAIza[A-Za-z0-9_-]{20,}"
    r"|\b(Bearer|Basic)\s+[A-Za-z0-9._~+/=-]{6,}|//[^/\s:@]+:[^/\s@]+@",
)


def redact(text: str, secrets: Iterable[str] = ()) -> str:
    """The text without the given secrets and without what looks like a key, a bearer token or URL credentials."""
    for secret in secrets:
        if len(secret) >= 4:
            text = text.replace(secret, _HIDDEN)
    return _CREDENTIAL.sub(_HIDDEN, text)


def one_line(text: str, *, secrets: Iterable[str] = ()) -> str:
    """A message fit for one line of a log or table: redacted, white space collapsed, at most 400 characters."""
    text = " ".join(redact(text[: 8 * _LONGEST], secrets).split())
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


class SecretFilter(logging.Filter):
    """A logging filter that takes secrets out of every record that passes."""

    def __init__(self, secrets: Iterable[str]) -> None:
        super().__init__()
        self._secrets = tuple(secrets)

    def filter(self, record: logging.LogRecord) -> bool:
        """Redact the record's text; never drops it."""
        text = record.getMessage()
        clean = redact(text, self._secrets)
        if clean != text:
            record.msg, record.args = clean, ()
        return True
