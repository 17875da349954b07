"""The confidence that a model states in its own answer."""

from __future__ import annotations

import re

from pipeline.benchmark.confidences import StatedConfidence, stated_confidences, tabled_confidence
from pipeline.benchmark.plain import ascii_digits, unify
from pipeline.collection.replies import Invalid
from pipeline.turn import read_turn

_MAX_READ_CHARS = 100_000
_WRAPPING = " \t\r\n\"'`*_[]{}“”‘’|"
_CONFIDENCE = re.compile(
    r"(?:[~≈]|(?:about|around|roughly|approximately|approx\.?|etwa|ca\.?|environ|около)\s)?\s{0,3}(?P<value>\d+(?:[.,]\d+)?|\.\d+)\s{0,3}"
    r"(?:(?P<percent>%|percent\b|per cent\b|prozent\b)|(?:/|out of|von|sur|de|из)\s{0,3}(?P<of>\d+(?:\.\d+)?))?"
    r"\s{0,3}(?:$|[.;,。)](?=\s|$)|[(（—–]\s{0,3}[^\d\s]|-\s[^\d\s]|because\b|since\b)",
    re.IGNORECASE,
)


def parse_confidence(text: str) -> float | Invalid:
    """The self-reported confidence in [0, 1]: the last statement of it, in any language.

    ``85``, ``85%``, ``85/100`` and ``0.85`` are 0.85; a number with a decimal point and at most 1 is a probability,
    any other is percent. Outside the range, or two values in neighbouring lines, is invalid; a word for it inside a
    sentence about something else states nothing.
    """
    plain = unify(ascii_digits(read_turn(text[-_MAX_READ_CHARS:]).text))
    stated = stated_confidences(plain)
    alone = [one for one in stated if one.alone] or [
        one for one in stated if not isinstance(_confidence(one.said), Invalid)
    ]
    tabled = tabled_confidence(plain) if not alone else None
    if tabled is not None:
        return _confidence(tabled)
    if not alone:
        return Invalid("it has no line 'Confidence: N'")
    last = _confidence(alone[-1].said)
    if isinstance(last, Invalid):
        return last
    for before, after in zip(reversed(alone[:-1]), reversed(alone), strict=False):
        if not _neighbours(plain, before, after):
            break
        if _confidence(before.said) != last:
            return Invalid("it states two different confidences")
    return last


def _neighbours(text: str, before: StatedConfidence, after: StatedConfidence) -> bool:
    return not text[before.end : after.start].strip(" \t\r\n*_>#-•,;.")


def _confidence(phrase: str) -> float | Invalid:
    stripped = phrase.strip(_WRAPPING)
    if stripped.startswith("<") and stripped.endswith(">"):
        stripped = stripped[1:-1].strip()
    match = _CONFIDENCE.match(stripped)
    if match is None:
        return Invalid(f"its confidence {stripped[:40]!r} is not a number from 0 to 100")
    figure = match["value"].replace(",", ".")
    number = float(figure)
    if match["of"]:
        number = number / float(match["of"]) if float(match["of"]) else float("inf")
    elif match["percent"] or "." not in figure or number > 1:
        number /= 100
    if not 0 <= number <= 1:
        return Invalid(f"its confidence {stripped[:40]!r} is not from 0 to 100")
    return number
