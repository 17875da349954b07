"""Where a reply states its confidence, in any language, on a line of its own or beside the answer."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from pipeline.benchmark.languages import LANGUAGES

_MARKS = " \t*_>#-•"
_BEFORE = " \t*_>#-•|,;:.(–—[，；（。、"
_ENGLISH = ("confident", "% sure", "% certain", "percent sure")
_LITERALS = [
    word.lower()
    for language in LANGUAGES
    for word in re.split(r"[|()?:\[\]]+", language.confidence)
    if len(word) > 2 or not word.isascii()
]
_TRIGGERS = tuple(dict.fromkeys([*_LITERALS, *_ENGLISH]))
_CONFIDENT = re.compile(
    r"(?P<bracket>[(\[（][ \t]{0,2})?"
    r"(?:(?P<i>\b(?:i am|i'm|i’m)[ \t](?:about[ \t])?)|(?P<with>\bwith[ \t](?:a[ \t])?))?"
    r"(?P<said>\d{1,3}(?:\.\d{1,2})?\s?(?:%|percent\b))[ \t]{0,2}(?:confident|confidence|sure|certain(?:ty)?)\b"
    r"(?(bracket)[ \t]{0,2}[)\]）]|(?(i)|(?(with)(?=[.!]?[ \t]{0,3}(?:\n|$))|(?!))))",
    re.IGNORECASE,
)  # "We are 90% confident that the mean lies …" is an answer in statistics, and no confidence
_TAIL = 20_000
_TABLE_LINES = 200
_WORD = re.compile(
    rf"(?:{'|'.join(language.confidence for language in LANGUAGES)})(?: (?:level|score))?(?: ?\([^()]{{0,20}}\))?",
    re.IGNORECASE,
)
_PROSE = re.compile(r"[^\W\d_]{2}")


@dataclass(frozen=True, slots=True)
class StatedConfidence:
    """One statement of a confidence.

    Attributes:
        start, end: where it stands.
        said: what stands after the word for it.
        alone: whether its line holds nothing else, or nothing else but an answer before it.
    """

    start: int
    end: int
    said: str
    alone: bool


@lru_cache(maxsize=1)
def _pattern() -> re.Pattern[str]:
    words = "|".join(language.confidence for language in LANGUAGES)
    return re.compile(
        rf"(?<![^\W\d_])(?:(?:my|overall|final|ma|mi|la|meine|niveau|nivel)[ \t]){{0,2}}[\"']?(?:{words})[\"']?"
        r"(?:[ \t]{0,2}(?:\([^()\n]{0,30}\)|（[^（）\n]{0,30}）))?"
        r"[*_]{0,3}[ \t]{0,4}(?:(?:level|score|rating|in (?:this|my) answer)[ \t]{0,4})?[*_]{0,3}[ \t\u00a0\u202f]{0,4}"
        r"(?:[:：=＝]|(?:is|est|ist|es|é|è|是|为|は|은|는|là|adalah)(?=[^\n\d]{0,12}\d)"
        r"|(?=\d{1,3}(?:\.\d{1,2})?\s?%?[ \t]{0,2}[)\]]?\.?[ \t]{0,3}(?:\n|$)))[*_]{0,3}(?P<said>[^\n]*)",
        re.IGNORECASE,
    )


def stated_confidences(text: str) -> list[StatedConfidence]:
    """Every statement of a confidence, in order."""
    lowered = text.lower()
    if not any(word in lowered for word in _TRIGGERS):
        return []
    stated = []
    for match in _pattern().finditer(text):
        head = text[text.rfind("\n", 0, match.start()) + 1 : match.start()]
        open_bracket = head.rstrip().endswith(("(", "[", "（"))
        phrase, end = match["said"], match.end()
        closing = re.search(r"[)\]）]", phrase) if open_bracket else None
        if closing is not None:
            phrase, end = phrase[: closing.start()], match.start("said") + closing.end()
        elif '"' in match[0][: match.start("said") - match.start()]:  # a key of a JSON object
            value = re.match(r"[^,}\]\n]{0,40}", phrase)
            phrase = value[0] if value else phrase
            end = match.start("said") + len(phrase)
        alone = not head.strip(_MARKS) or head.rstrip(" \t*_")[-1:] in _BEFORE or not _PROSE.search(head[-20:])
        stated.append(StatedConfidence(match.start(), end, phrase, alone))
    if any(word in lowered for word in (*_ENGLISH, "confidence")):
        taken = [(one.start, one.end) for one in stated]
        stated += [
            StatedConfidence(match.start(), match.end(), match["said"], False)
            for match in _CONFIDENT.finditer(text, max(0, len(text) - _TAIL))
            if not any(start <= match.start() < end for start, end in taken)
        ]
        stated.sort(key=lambda one: one.start)
    return stated


def tabled_confidence(text: str) -> str | None:
    """What the last row of a table says in its column for the confidence; None where there is no such table."""
    lowered = text.lower()
    if "|" not in text or not any(word in lowered for word in _TRIGGERS):
        return None
    column, phrase = -1, None
    for line in text.split("\n")[-_TABLE_LINES:]:
        cells = [cell.strip(" *_`") for cell in line.strip().strip("|").split("|")]
        if len(cells) < 2:
            column = -1
        elif column < 0:
            named = [place for place, cell in enumerate(cells) if _WORD.fullmatch(cell)]
            column = named[-1] if named else -1
        elif column < len(cells) and not re.fullmatch(r":?-{1,40}:?", cells[column]):
            phrase = cells[column]
    return phrase


def _single_stars(line: str) -> int:
    return line.replace("**", "").count("*")


def strip_confidence(text: str) -> str:
    """The reply without its confidence, for eyes that must not see it and readers of answers."""
    stated = stated_confidences(text)
    if not stated:
        return text.rstrip()
    kept, position = [], 0
    for one in stated:
        if one.start < position:
            continue
        before = text[position : one.start]
        line = before.rpartition("\n")[2]
        rest = line.rstrip(_BEFORE.replace(".", "").replace(">", "")) if line.strip(_MARKS) else ""
        if _single_stars(rest) % 2 > _single_stars(line) % 2:  # the star that closes *42* is the answer's
            rest += "*"
        kept.append(before[: len(before) - len(line)] + rest)
        position = one.end
        if not line.strip(_MARKS):  # its line goes with it
            following = text[position : position + 1]
            position += following == "\n"
    kept.append(text[position:])
    return "".join(kept).rstrip()
