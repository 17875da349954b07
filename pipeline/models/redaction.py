"""Redaction: whatever may be a credential is taken out of every text that is written, however it is dressed."""

from __future__ import annotations

import base64
import logging
import os
import re
import urllib.parse
from collections.abc import Iterable
from functools import lru_cache

_LONGEST = 400
_MOST_READ = 2**16
_HIDDEN = "[hidden]"
_CREDENTIAL = re.compile(
    r"\b(sk|pk|rk|gsk|xai|hf|r8|AIza|key|ghp)[-_][A-Za-z0-9*._-]{8,}|\bAIza[A-Za-z0-9_-]{20,}"
    r"|\b(Bearer|Basic)\s+[A-Za-z0-9._~+/=-]{6,}|//[^/\s:@]+:[^/\s@]+@",
)
_BREAK = r"(?:[\s\u200b\u00ad]|\\[nrt]|=\r?\n)*"
"""What may stand between two characters of a key that is broken over lines."""
_SPACES = re.compile(r"[\s\u200b\u00ad]+|\\[nrt]")
_SHORTEST_IN_REPLIES = 8


_KNOWN: set[str] = set()


def remember_secrets(secrets: Iterable[str]) -> None:
    """Have every log of this process hide these as well: headers come from variables of any name."""
    _KNOWN.update(secret for secret in secrets if len(secret) >= _SHORTEST_IN_REPLIES)


def environment_secrets() -> tuple[str, ...]:
    """What must show in no log and no error: the values of key variables, and the secrets in use."""
    words = ("KEY", "TOKEN", "SECRET", "PASSWORD")
    named = (value.strip() for name, value in os.environ.items() if any(word in name.upper() for word in words))
    return tuple(sorted({value for value in named if len(value) >= _SHORTEST_IN_REPLIES} | _KNOWN))


def redact(text: str, secrets: Iterable[str] = ()) -> str:
    """The text without the given secrets and without what looks like a key, a bearer token or URL credentials.

    A secret is known again broken over lines, in base64 (alone or within more) and URL-encoded.
    """
    secrets = tuple(secrets)
    for secret in secrets:
        if len(secret) >= 4:
            text = text.replace(secret, _HIDDEN)
    return _CREDENTIAL.sub(_HIDDEN, redact_reply(text, secrets))


def redact_reply(text: str, secrets: Iterable[str]) -> str:
    """A reply without the secrets that its request carried; every other byte stays, for it is data.

    Secrets of fewer than eight characters, or of letters alone (``none``, what local servers are given), may be words
    of the reply and stay.
    """
    long_secrets = tuple(secret for secret in secrets if len(secret) >= _SHORTEST_IN_REPLIES and not secret.isalpha())
    if not long_secrets or not text:
        return text
    dressed = _dressed(long_secrets)
    bare = _SPACES.sub("", text)
    folded = bare.lower()
    if not any(form in bare or form.lower() in folded for form in dressed):
        return text
    return _pattern(long_secrets).sub(_HIDDEN, text)


@lru_cache(maxsize=64)
def _dressed(secrets: tuple[str, ...]) -> tuple[str, ...]:
    """The forms in which secrets may come back, longest first, so that no end of one is left over."""
    forms: set[str] = set()
    for secret in secrets:
        data = secret.encode("utf-8")
        forms |= {secret, urllib.parse.quote(secret, safe=""), urllib.parse.quote_plus(secret), data.hex()}
        for offset in range(3):  # base64 depends on where in its source the secret starts
            coded = base64.b64encode(b"\0" * offset + data)
            inner = coded[(offset * 8 + 5) // 6 : (offset + len(data)) * 8 // 6].decode("ascii")
            forms |= {inner, inner.replace("+", "-").replace("/", "_")}
    return tuple(sorted(forms, key=lambda form: (-len(form), form)))


@lru_cache(maxsize=64)
def _pattern(secrets: tuple[str, ...]) -> re.Pattern[str]:
    alternatives = (_BREAK.join(re.escape(character) for character in form) for form in _dressed(secrets))
    # A server that folds the case of what it echoes gives most of the key away all the same.
    return re.compile("|".join(alternatives), re.IGNORECASE)


def one_line(text: str, *, secrets: Iterable[str] = ()) -> str:
    """A message fit for one line of a log or table: redacted, white space collapsed, at most 400 characters."""
    secrets = tuple(secrets)
    if len(text) > _MOST_READ:  # a secret that this cuts in two is cut off whole
        text = text[: _MOST_READ - 4 * max(map(len, secrets), default=0)]
    text = " ".join(redact(text, secrets).split())
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


class SecretFilter(logging.Filter):
    """A logging filter that takes secrets out of every record that passes, its traceback too."""

    def __init__(self, secrets: Iterable[str]) -> None:
        super().__init__()
        self._secrets = tuple(secrets)

    def filter(self, record: logging.LogRecord) -> bool:
        """Redact the record's text; never drops it."""
        text = record.getMessage()
        clean = redact(text, self._secrets)
        if clean != text:
            record.msg, record.args = clean, ()
        if record.exc_info and not record.exc_text:
            record.exc_text = logging.Formatter().formatException(record.exc_info)
        if record.exc_text:
            record.exc_text = redact(record.exc_text, self._secrets)
        return True
