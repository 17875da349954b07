"""What a credential looks like and is called, and what a key must be to fit into a header."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

_WORDS = ("key", "token", "secret", "sig", "pass", "auth", "cred")
_QUERY_NAMES = frozenset({"code", "sv", "se", "sp", "jwt", "session", "sas"})

_ALONE = frozenset(
    {"apikey", "secret", "secrets", "password", "passwd", "passphrase", "authorization", "auth", "bearer", "credential",
     "credentials", "cookie", "jwt", "sig", "signature", "apitoken", "accesstoken"}
)  # fmt: skip
_KINDS_OF_KEY = frozenset(
    {"api", "access", "secret", "private", "subscription", "account", "master", "license", "function", "functions",
     "auth", "service", "x"}
)  # fmt: skip
_KINDS_OF_TOKEN = frozenset({"access", "auth", "api", "bearer", "id", "refresh", "security", "session", "secret", "x"})
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")

_KEY_SHAPE = re.compile(
    r"(?<![A-Za-z0-9])(?:sk|pk|rk|gsk|xai|hf|r8|key|ghp|gho|glpat|pplx|nvapi|fw|tgp|csk|dapi)[-_](?:[a-z0-9]+[-_])*"
    r"[A-Za-z0-9]{16,}|\bAIza[A-Za-z0-9_-]{30,}|\bAKIA[A-Z0-9]{16}\b|\b(?:Bearer|Basic)\s+[A-Za-z0-9._~+/=-]{8,}"
    r"|\beyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\."
)
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_RANDOM = re.compile(r"(?=[A-Za-z]*\d)(?=\d*[A-Za-z])[A-Za-z0-9]{16,}|[A-Za-z0-9]{25,}")


def names_a_credential(name: str) -> bool:
    """Whether what is called so in an address may be a secret; rather once too often."""
    return name.lower() in _QUERY_NAMES or any(word in name.lower() for word in _WORDS)


def names_a_credential_parameter(name: str) -> bool:
    """Whether a parameter called so holds a secret; ``max_tokens`` and ``prompt_cache_key`` do not."""
    words = [word.lower() for word in _WORD.findall(name)]
    if _ALONE & {*words, "".join(words)}:
        return True
    for kind, nouns in ((_KINDS_OF_KEY, ("key", "keys")), (_KINDS_OF_TOKEN, ("token",))):
        for place, word in enumerate(words):
            if word in nouns and (len(words) == 1 or (place > 0 and words[place - 1] in kind)):
                return True
    return False


def looks_like_a_key(text: str) -> bool:
    """Whether a text holds what providers' keys look like."""
    return _KEY_SHAPE.search(text) is not None


def named_credential(params: Mapping[str, Any], place: str = "params") -> str | None:
    """Where in a tree of parameters a credential stands: by its name or by its look; None where there is none."""
    for where, name, value in _leaves(params, place):
        if name is not None and value not in (None, "") and names_a_credential_parameter(name):
            return where
        if isinstance(value, str) and looks_like_a_key(value):
            return where
    return None


def _leaves(value: Any, place: str, name: str | None = None) -> Iterator[tuple[str, str | None, Any]]:
    if isinstance(value, Mapping):
        if name is not None and value and _ALONE & {word.lower() for word in _WORD.findall(name)}:
            yield place, name, "…"
        for key, inner in value.items():
            label = str(key) if not looks_like_a_key(str(key)) else "[hidden]"
            if label == "[hidden]":
                yield f"{place}.{label}", "api_key", "…"
            yield from _leaves(inner, f"{place}.{label}", str(key))
    elif isinstance(value, list | tuple):
        for number, inner in enumerate(value):
            yield from _leaves(inner, f"{place}[{number}]", name)
    else:
        yield place, name, value


def clean_key(value: str, variable: str) -> str:
    """A key fit for a header, from the value of a variable; white space around it falls away.

    Raises:
        ValueError: quotes, ``Bearer``, control characters or white space inside; names the variable, never the value.
    """
    key = value.strip()
    if key[:1] in "\"'`“‘" and key:
        raise ValueError(f"the value of {variable} stands in quotes; leave them out")
    if key[-1:] in "\"'`”’" and key:
        raise ValueError(f"the value of {variable} ends with a quote; leave it out")
    if re.match(r"(?i)(bearer|basic)\b[\s:]", key):
        raise ValueError(f"the value of {variable} begins with {key.split()[0]!r}; give the key alone")
    if re.search(r"[\r\n]", key):
        raise ValueError(f"the value of {variable} has a line break inside; a key is one line")
    if not key.isascii() or not key.isprintable() or " " in key:
        raise ValueError(f"the value of {variable} holds a space, a control character or a letter beyond ASCII")
    return key


def check_variable(name: str) -> None:
    """Refuse a key where the name of its variable belongs, without repeating it.

    Raises:
        ValueError: it is no name of a variable, or looks like a key.
    """
    if looks_like_a_key(name) or not _VARIABLE.fullmatch(name):
        raise ValueError(
            "takes the name of an environment variable, as in OPENAI_API_KEY, never the key itself; if that was a key,"
            " it stands in your file: take it out"
        )


def shown_variable(name: str) -> str:
    """The name of a variable for a message; one that may be a key in the wrong place is not repeated."""
    if looks_like_a_key(name) or any(_RANDOM.fullmatch(part) for part in name.split("_")):
        return "that it names (not repeated here: it looks like a key, and the key belongs into the variable)"
    return name
