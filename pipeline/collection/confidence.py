"""The confidence that a model states in its own answer."""

from __future__ import annotations

import re
import unicodedata

from pipeline.collection.replies import Invalid

__all__ = ["parse_confidence"]

_MAX_READ_CHARS = 100_000
_WRAPPING = " \t\r\n\"'`*_[](){}<>“”‘’"
_CONFIDENCE_LINE = re.compile(
    r"\bconfidence[*_]{0,3}[ \t]{0,4}(?:(?:level|score)[ \t]{0,4})?[*_]{0,3}[ \t]{0,4}[:=](?P<said>.*)$",
    re.IGNORECASE | re.MULTILINE,
)
_CONFIDENCE = re.compile(
    r"[~≈]?\s*(?P<value>\d+(?:\.\d+)?|\.\d+)\s*"
    r"(?:(?P<percent>%|percent\b|per cent\b)|/\s*(?P<of>\d+(?:\.\d+)?))?\s*\.?$",
    re.IGNORECASE,
)


def parse_confidence(text: str) -> float | Invalid:
    """The self-reported confidence in [0, 1] of the last ``Confidence: …`` line.

    ``85``, ``85%``, ``85/100`` and ``0.85`` are 0.85; a number with a decimal point and at most 1 is a probability,
    any other is percent. Outside the range, or two values in neighbouring lines, is invalid.
    """
    plain = unicodedata.normalize("NFKC", text[-_MAX_READ_CHARS:])
    matches = list(_CONFIDENCE_LINE.finditer(plain))
    if not matches:
        return Invalid("it has no line 'Confidence: N'")
    values = [_confidence(match["said"]) for match in matches]
    last = values[-1]
    if isinstance(last, Invalid):
        return last
    for k in range(len(matches) - 1, 0, -1):
        if plain[matches[k - 1].end() : matches[k].start()].strip():
            break
        if values[k - 1] != last:
            return Invalid("it states two different confidences")
    return last


def _confidence(said: str) -> float | Invalid:
    shown = said.strip(_WRAPPING)
    match = _CONFIDENCE.fullmatch(shown) if len(shown) <= 60 else None
    if match is None:
        return Invalid(f"its confidence {shown[:40]!r} is not a number from 0 to 100")
    number = float(match["value"])
    if match["of"]:
        number = number / float(match["of"]) if float(match["of"]) else float("inf")
    elif match["percent"] or "." not in match["value"] or number > 1:
        number /= 100
    if not 0 <= number <= 1:
        return Invalid(f"its confidence {shown[:40]!r} is not from 0 to 100")
    return number
