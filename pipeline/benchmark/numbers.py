"""Numbers as people and models write them, read exactly."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from fractions import Fraction

__all__ = ["Number", "numbers_equal", "parse_number", "plain_text"]

_MAX_CHARS = 4_000
_MAX_DIGITS = 400
_MAX_EXPONENT = 400
_LATEX_SPACES = re.compile(r"\\[,;:! ]|\\(?:quad|qquad|thinspace)\b|~")
_LATEX_WORDS = re.compile(r"\\(?:left|right|displaystyle|mathrm|mathbf|mathit|textbf|textit|rm|bf|bigl?|bigr?)\b")
_LATEX_TEXT = re.compile(r"\\(?:text|mbox|textrm|textsf|operatorname)\s*\{([^{}]*)\}")
_LATEX_FRACTION = re.compile(r"\\[dtc]?frac\s*(?:\{\s*(-?[\d.,]+)\s*\}|(\d))\s*(?:\{\s*(-?[\d.,]+)\s*\}|(\d))")
_MINUS = str.maketrans({"−": "-", "–": "-", "‐": "-", "‑": "-", "⁄": "/", "∕": "/", "’": "'", "×": "*", "·": "*"})
_CURRENCY = "$€£¥₹₩"
_GROUPED = r"\d{1,3}(?:,\d{3})+|\d{1,3}(?:[ '\u202f\u00a0]\d{3})+(?!\d)|\d+"
_UNSIGNED = rf"(?:(?:{_GROUPED})(?:\.\d+)?|\.\d+)"
_NUMBER = re.compile(
    rf"(?P<sign>[-+]\s*)?[{_CURRENCY}]?\s*(?P<sign2>-)?"
    rf"(?:(?P<whole>\d+)\s+(?P<mnum>\d+)\s*/\s*(?P<mden>\d+)|(?P<num>{_UNSIGNED})(?:\s*/\s*(?P<den>{_UNSIGNED}))?)"
    r"(?:[eE](?P<exp>[-+]?\d{1,4})(?![\w])|\s*(?:\*|\\times|\\cdot|x)\s*10\s*\^\s*\{?\s*(?P<pow>[-+]?\d{1,4})\s*\}?)?"
    r"(?:\s*(?P<scale>thousand|million|billion|trillion)\b)?"
    r"(?P<percent>\s*(?:%|percent\b|per cent\b|percentage points?\b))?",
)
_PLAIN = re.compile(r"\s*-?[0-9]{1,18}(?:\.[0-9]{1,18})?\s*")
_SCALES = {"thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_AMBIGUOUS_NEXT = re.compile(
    r"\s*(?:[-/*^+=<>:]\s*)?[\d\\]|\s*[*^<>_]|\(|\s*(?:or|to|and)\s+[-+$]?\.?\d|\s*,\s*[-+$]?\.?\d|[xyznkKMB]\b"
)


@dataclass(frozen=True, slots=True)
class Number:
    """An exact number.

    Attributes:
        value: as written, before any percent sign is applied.
        percent: whether a percent sign or the word follows it.
    """

    value: Fraction
    percent: bool = False


def plain_text(text: str) -> str:
    """Text with compatibility forms unified (full-width digits, ½, −) and LaTeX and Markdown wrapping taken off."""
    text = unicodedata.normalize("NFKC", _spread_fractions(text)).translate(_MINUS)
    text = text.replace("\\$", "$").replace("\\%", "%").replace("{,}", ",").replace("\\dollar", "$")
    text = _LATEX_SPACES.sub(lambda match: " " if match[0] not in (r"\!", r"\,") else "", text)
    text = _LATEX_TEXT.sub(r" \1 ", text)
    text = _LATEX_WORDS.sub("", text)
    for wrapper in (r"\(", r"\)", r"\[", r"\]", "$$", "**", "__", "`"):
        text = text.replace(wrapper, "")
    return " ".join(text.split())


def _spread_fractions(text: str) -> str:
    """Put a space before ½ and its like, so that 3½ is 3 1/2 and not 31/2."""
    return re.sub(r"(\d)([¼-¾⅐-⅞])", r"\1 \2", text)


def parse_number(text: str) -> Number | None:
    """The one number that a short answer states, or None.

    ``72, which is 6 * 12`` is 72 (it comes first); ``about 72 dollars`` is 72 (the only one); ``3 4``, ``5 or 6``,
    ``5-6`` state no single number; ``x = 72`` is 72. Grouping by commas or thin spaces must be in threes.
    """
    if len(text) > _MAX_CHARS:
        return None
    if _PLAIN.fullmatch(text):
        return Number(Fraction(text.strip()) if "." in text else Fraction(int(text)))
    cleaned = _LATEX_FRACTION.sub(_slash, plain_text(text)).strip()
    cleaned = _after_equals(cleaned.rstrip(" .;"))
    bare = re.sub(rf"(?<![\w{_CURRENCY}])\$|\$$", "", cleaned) if cleaned.count("$") == 2 else cleaned
    start = bare.lstrip(" (")
    first = _NUMBER.match(start)
    if first is not None:
        rest = start[first.end() :]
        return None if _AMBIGUOUS_NEXT.match(rest) or re.match(r"\w*\d", rest) else _value(first)
    if "\\" in bare or re.search(r"\bnot\b|n't\b", bare, re.IGNORECASE):
        return None
    found = [match for match in _NUMBER.finditer(bare) if not _inside_word(bare, match)]
    if not found or _AMBIGUOUS_NEXT.match(bare[found[0].end() :]):
        return None
    return _value(found[0]) if len(found) == 1 else None


def _inside_word(text: str, match: re.Match[str]) -> bool:
    start = match.start() + len(match[0]) - len(match[0].lstrip())
    before = text[start - 1] if start else " "
    return before.isalpha() or before in "_^\\"


def _slash(match: re.Match[str]) -> str:
    before = " " if match.start() and match.string[match.start() - 1].isdigit() else ""
    return f"{before}{match[1] or match[2]}/{match[3] or match[4]} "


def _after_equals(text: str) -> str:
    head, found, tail = text.rpartition("=")
    if not found or head.endswith(("<", ">", "!")):
        return text
    return next((side.strip() for side in (tail, head) if re.search(r"\d", side)), text)


def _value(match: re.Match[str]) -> Number | None:
    if match.end() - match.start() > _MAX_DIGITS:
        return None
    try:
        if match["whole"] is not None:
            value = Fraction(int(match["whole"])) + Fraction(int(match["mnum"]), int(match["mden"]))
        else:
            value = _exact(match["num"])
            if match["den"] is not None:
                value /= _exact(match["den"])
    except ZeroDivisionError:
        return None
    exponent = int(match["exp"] or match["pow"] or 0)
    if abs(exponent) > _MAX_EXPONENT:
        return None
    value *= Fraction(10) ** exponent * _SCALES.get(match["scale"] or "", 1)
    negative = (match["sign"] or "").strip() == "-" or match["sign2"] == "-"
    return Number(-value if negative else value, percent=match["percent"] is not None)


def _exact(text: str) -> Fraction:
    digits = re.sub(r"[,' \u202f\u00a0]", "", text)
    return Fraction(f"0{digits}" if digits.startswith(".") else digits)


def numbers_equal(answer: Number, gold: Number, *, tolerance: float | None = None) -> bool:
    """Whether an answer states the gold number.

    If the gold has a percent sign, ``50%`` and ``50`` are both right for ``50%``; if it has none, an answer with one
    is a hundredth of its figure. ``0.5`` is never ``50``.

    Args:
        answer: what was answered.
        gold: the reference.
        tolerance: largest absolute difference that still counts as equal; None means exact.
    """
    given = answer.value
    if answer.percent and not gold.percent:
        given = given / 100
    if given == gold.value:
        return True
    return tolerance is not None and abs(given - gold.value) <= Fraction(tolerance)
