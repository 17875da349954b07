"""Where a reply commits itself to an answer: every such place, in order, with what stands there."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from pipeline.benchmark.confidences import strip_confidence
from pipeline.benchmark.languages import LANGUAGES, Language
from pipeline.benchmark.number_terms import DENIED
from pipeline.benchmark.plain import boxes
from pipeline.turn import read_turn

Kind = Literal["line", "sentence", "bare", "json", "table", "tag", "hash", "box", "choose", "alone", "last", "first"]
"""How an answer is announced.

``line``: a word for answer and a colon, or a heading; ``sentence``: such a word and a verb; ``bare``: such a word
alone; ``choose``: a word for choosing; ``alone``: the reply is one short line; ``last``, ``first``: that line of it.
"""

# Replies are hostile: no pattern below repeats something that can match the same text in two ways, and what is looked
# at around a word is bounded.
_BEFORE_CHARS = 120
_AFTER_CHARS = 400
_CONTENT_CHARS = 4_000
_MAX_WORDS = 120
_SINGLE_LINE_CHARS = 400
_FEW_WORDS = 5
_S = r"[ \t\u00a0\u202f\u3000]"
_MARKS = r"[*_`\"'“”’」』】»)\]]"
_SKIPPED = frozenset({"", "$$", "$", r"\[", r"\(", "---", "***", "___"})
_NOT_ANSWERED = re.compile(
    r"(?:\b(?:to|can|can't|cannot|could|will|would|i'll|let me|let's|not|please|you|no)|n't|’t)\s{1,3}$", re.I
)
_NO_CUE = re.compile(
    rf"{_S}{{0,3}}(?:choices?|options?|key|sheet|format|candidates|set|space|type|the question(?!s? is)"
    rf"|this question(?! is)|questions?:)\b",
    re.I,
)


@dataclass(frozen=True, slots=True)
class Commitment:
    """One place.

    Attributes:
        start: where its content stands in the reply.
        content: what stands there, as written; one line, a fenced block or a box.
        kind: how it is announced.
        comma: whether the language of its announcement writes decimals with a comma.
    """

    start: int
    content: str
    kind: Kind
    comma: bool = False


def reply_body(text: str) -> str:
    """The reply that an answer is looked for in: its own turn, without thought and stated confidence."""
    body = strip_confidence(read_turn(text).text).strip()
    return _STRUCK.sub("", body).strip() or body if "~~" in body or "<" in body else body


_STRUCK = re.compile(r"~~[^~\n]{1,200}~~(?=[ \t]{0,3}[^\s~])|<(del|s|strike)>[^<>\n]{1,200}</\1>", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Words:
    """A language's patterns."""

    triggers: tuple[str, ...]
    answer: re.Pattern[str]
    after: re.Pattern[str]
    heading: re.Pattern[str]
    choose: re.Pattern[str] | None
    choose_triggers: tuple[str, ...]
    comma: bool


def _bounded(words: str) -> str:
    return rf"(?<![^\W\d_])(?:{words})(?![^\W\d_])"


def _literals(words: str) -> tuple[str, ...]:
    bare = re.sub(r"\(\?:[^()]*\)\??|\[[^\]]*\]\??|.\?", "|", words)
    return tuple(word.lower() for word in bare.split("|") if len(word) > 1 or not word.isascii())


@lru_cache(maxsize=1)
def _languages() -> tuple[_Words, ...]:
    every_verb = "|".join(language.verbs for language in LANGUAGES if language.verbs)
    every_qualifier = "|".join(language.qualifiers for language in LANGUAGES if language.qualifiers)
    return tuple(_words(language, every_verb, every_qualifier) for language in LANGUAGES)


def _words(language: Language, verbs: str, qualifiers: str) -> _Words:
    scripts = language.code in ("zh", "ja", "ko", "th")
    bound = (lambda words: f"(?:{words})") if scripts else _bounded
    quoted = r"(?:\"[^\"\n]{0,300}\"|“[^”\n]{0,300}”|«[^»\n]{0,300}»|'[^'\n]{0,300}')"
    aside = (
        rf"(?:{_S}{{0,3}}(?:\((?:[^()\n]{{2,30}})\)|（[^（）\n]{{2,30}}）"
        rf"|{bound(language.qualifiers or qualifiers)}"
        rf"|(?:to|for|of|in){_S}{{1,3}}(?:(?:the|this|that|your|question|problem|above|multiple|choice|part|item"
        rf"|number|\d{{1,3}}|\([a-z]\))(?![^\W\d_]){_S}{{0,3}}){{1,6}}{quoted}?"
        rf"|{quoted}|#?\d{{1,2}}(?={_S}{{0,2}}[:：])))"
    )
    after = re.compile(
        rf"{_MARKS}{{0,4}}{aside}{{0,5}}{_MARKS}{{0,4}}{_S}{{0,4}}"
        rf"(?:(?P<colon>[:：=＝]|->|=>|→|⇒|—|–|-(?={_S}))"
        rf"|(?P<verb>{bound(language.verbs or verbs)}){_S}{{0,3}}(?P<verbcolon>[:：])?)?",
        re.IGNORECASE,
    )
    return _Words(
        _literals(language.answer),
        re.compile(bound(language.answer), re.IGNORECASE),
        after,
        re.compile(
            rf"[\s>#*_\-•·|–—\"'“「【\d.)]{{0,12}}(?:(?:{language.qualifiers or qualifiers}),?{_S}{{0,3}}){{0,4}}",
            re.IGNORECASE,
        ),
        re.compile(bound(language.choose), re.IGNORECASE) if language.choose else None,
        _literals(language.choose),
        language.comma,
    )


def commitments(body: str) -> list[Commitment]:
    """Every place where a reply commits itself, in the order of their contents.

    Args:
        body: as :func:`reply_body` gives it.
    """
    if not body:
        return []
    places = _announcements(body)
    cut = _next_turn(body, places)
    if cut is not None:
        body = body[:cut].rstrip()
        places = _announcements(body)
    return places + _unannounced(body)


def _announcements(body: str) -> list[Commitment]:
    places = sorted(
        [*_announced(body), *(Commitment(start, content, "box") for start, content in boxes(body)), *_hashes(body)],
        key=lambda place: place.start,
    )
    if places:
        corrected = _CORRECTED.search(body, max(places[-1].start, len(body) - _CONTENT_CHARS))
        if corrected is not None:
            content = corrected["content"] or corrected["free"]
            places.append(Commitment(corrected.end() - len(content), content, "line", places[-1].comma))
    return places


_CORRECTED = re.compile(
    r"^[ \t*_]{0,6}correction[ \t*_]{0,3}:[ \t*_]{0,4}(?P<free>[^\n]{1,80})"
    r"|^[ \t*_(—–-]{0,6}(?:(?:no|oh|oops|wait|hmm+|actually|sorry|hold on|scratch that|correction|on second thought"
    r"|i meant?|make that|i was wrong)[ \t]{0,2}[,.:;!…—–-]{0,3}[ \t]{1,2}){1,3}"
    r"(?:i (?:think|believe)[ \t])?"
    r"(?:(?:it is|it['’]s|that['’]s|it should be|should be|must be|make that|i meant?)[ \t]{1,2})?"
    r"(?P<content>[$*(\\]{0,4}(?:[-−]?[$€£]?\d[\d.,]{0,20}|[A-J])[$*)%]{0,4}(?:[ \t][a-z]{1,12})?)[ \t.!]{0,3}$",
    re.IGNORECASE | re.MULTILINE,
)
"""A line that says nothing but another number or letter than the one before: ``No wait, 43.``"""


@lru_cache(maxsize=1)
def _question() -> re.Pattern[str]:
    words = "|".join(language.question for language in LANGUAGES if language.question)
    return re.compile(
        rf"\n[ \t]{{0,4}}[*#_]{{0,5}}[ \t]{{0,2}}(?:(?:next|new|another){_S})?(?:{words})"
        rf"{_S}{{0,2}}\d{{0,4}}[*_]{{0,3}}{_S}{{0,2}}[:：]",
        re.IGNORECASE,
    )


def _next_turn(body: str, places: list[Commitment]) -> int | None:
    """Where, after a commitment, the model asks itself the next question."""
    firm = [
        place.start
        for place in places
        if place.content.strip()
        and (place.kind not in ("bare", "choose") or re.match(r"\s{0,2}(?:[-−]?\d|[(*]{0,3}[A-J]\b)", place.content))
    ]
    if not firm:
        return None
    match = _question().search(body, min(firm))
    return match.start() if match else None


def _announced(body: str) -> Iterator[Commitment]:
    lowered = body.lower()
    for words in _languages():
        if any(trigger in lowered for trigger in words.triggers):
            for match in list(words.answer.finditer(body))[-_MAX_WORDS:]:
                place = _place(body, match.start(), match.end(), words)
                if place is not None:
                    yield place
        if words.choose is not None and any(trigger in lowered for trigger in words.choose_triggers):
            for match in list(words.choose.finditer(body, max(0, len(body) - _CONTENT_CHARS)))[-_MAX_WORDS:]:
                chosen = _chosen(body, match, words)
                if chosen is not None:
                    yield chosen


_NOUNS = frozenset({"option", "choice", "letter"})
_SETTLES = re.compile(
    r"\b(?:closest|best|correct|right|likely|appropriate|accurate|suitable|match(?:es)?|corresponds? to"
    r"|equivalent to|equal to|is|be|chose|choose|pick|select"
    r"|therefore|thus|so|hence|with|for|only|my|final|closest to|answer|remaining)\W{1,4}(?:the\s)?(?:(?:answer|one"
    r"|possible|given|correct|best|right|available)\W{1,3})?$",
    re.IGNORECASE,
)


def _chosen(body: str, match: re.Match[str], words: _Words) -> Commitment | None:
    """``I choose B``, ``故选：B``; with a colon it is as firm as an answer line. ``Option B`` alone is a mention."""
    if match[0].lower() in _NOUNS and not _SETTLES.search(body, max(0, match.start() - 60), match.start()):
        line_start = body.rfind("\n", 0, match.start()) + 1
        if body[line_start : match.start()].strip("*_# ") or match[0].lower() != "choice":
            return None
    rest = body[match.end() : match.end() + _AFTER_CHARS]
    colon = re.match(rf"{_MARKS}{{0,3}}{_S}{{0,3}}[:：]", rest)
    if colon:
        start = match.end() + colon.end()
        return Commitment(start, _line(body, start), "line", words.comma)
    return Commitment(match.end(), _line(body, match.end()), "choose", words.comma)


def _place(body: str, start: int, end: int, words: _Words) -> Commitment | None:
    line_start = body.rfind("\n", max(0, start - _BEFORE_CHARS), start) + 1
    if line_start == 0:
        line_start = max(0, start - _BEFORE_CHARS)
    before = body[line_start:start]
    rest = body[end : end + _AFTER_CHARS]
    if before.endswith("<") and rest.startswith(">"):
        close = body.find("</", end, end + _CONTENT_CHARS)
        content = body[end + 1 : close if close >= 0 else end + _CONTENT_CHARS]
        return Commitment(end + 1, content, "tag", words.comma)
    if before.endswith("</"):
        return None
    field = re.match(r"\w{0,20}[\"'”]\s{0,3}[:：]\s{0,3}", rest)
    if field and re.search(r"[\"'“]\w{0,20}$", before[-24:]):
        return _field(body, end + field.end(), words)
    if re.search(r"^\s{0,3}\|", before) and "|" in rest.split("\n", 1)[0]:
        return _cell(body, line_start, start, words)
    if _NOT_ANSWERED.search(before) or _NO_CUE.match(rest):
        return None
    after = words.after.match(rest)
    assert after is not None  # every part of it is optional
    content_start = end + after.end()
    content = _line(body, content_start)
    if after["colon"] or after["verbcolon"]:
        if after["colon"] in ("-", "–", "—") and not content.strip():
            return None
        if not content.strip("*_`$ \t\"'“”|"):
            content_start, content = _below(body, content_start)
        return Commitment(content_start, content, "line", words.comma)
    if after["verb"]:
        return Commitment(content_start, content, "sentence", words.comma)
    if not content.strip("*_`:： \t\"'“”)】」|"):
        if not words.heading.fullmatch(before):
            return None
        content_start, content = _below(body, content_start)
        return Commitment(content_start, content, "line", words.comma)
    # A denial belongs to the answer: ``La respuesta no es 42 sino 43``.
    denied = DENIED.match(content.lstrip(" ,:"))
    return Commitment(content_start, content, "sentence" if denied else "bare", words.comma)


def _line(body: str, start: int) -> str:
    end = body.find("\n", start, start + _CONTENT_CHARS)
    return body[start : end if end >= 0 else start + _CONTENT_CHARS]


def _below(body: str, start: int) -> tuple[int, str]:
    """The answer below its heading: a fenced block, or the first line that says something."""
    position = body.find("\n", start, start + _CONTENT_CHARS)
    for _ in range(8):
        if position < 0:
            break
        position += 1
        line = _line(body, position)
        stripped = line.strip()
        if stripped.startswith(("```", "~~~")):
            fence = stripped[:3]
            inside = position + len(line) + 1
            close = body.find(f"\n{fence}", inside - 1, inside + _CONTENT_CHARS)
            return position, body[inside : close if close >= 0 else inside + _CONTENT_CHARS]
        if stripped not in _SKIPPED:
            return position, _listed(body, position) or stripped.removeprefix("> ").strip()
        position = body.find("\n", position, position + _CONTENT_CHARS)
    return start, ""


_BULLET = re.compile(r"\s{0,8}(?:[-*•+–]|\d{1,2}[.)])\s{1,4}(?=\S)")


def _listed(body: str, position: int) -> str:
    """The answer, or answers, that a list gives: ``- 42`` below a heading is 42 and was once -42."""
    entries: list[str] = []
    for line in body[position : position + _AFTER_CHARS].split("\n")[:8]:
        bullet = _BULLET.match(line)
        if bullet is None or (entries and len(line.split()) > _FEW_WORDS):
            break
        entries.append(line[bullet.end() :].strip())
    return "; ".join(entries)


def _field(body: str, start: int, words: _Words) -> Commitment:
    """The value of a key of a JSON object, also of one that is not quite JSON."""
    try:
        value, _ = json.JSONDecoder().raw_decode(body[start : start + _CONTENT_CHARS])
    except (ValueError, RecursionError):
        match = re.match(r"[\"'“]?([^\"'“”,}\n]{0,200})", body[start : start + 220])
        value = match[1].strip() if match else ""
    if isinstance(value, dict):
        value = value.get("value", value.get("letter", ""))
    text = ", ".join(str(part) for part in value) if isinstance(value, list) else "" if value is None else str(value)
    return Commitment(start, text, "json", words.comma)


def _cell(body: str, line_start: int, start: int, words: _Words) -> Commitment | None:
    """The cell below the heading, or beside it in a table without headings."""
    column = body.count("|", line_start, start) - 1
    header = _cells(_line(body, line_start))
    rows, position = [], body.find("\n", start)
    for _ in range(40):
        if position < 0:
            break
        line = _line(body, position + 1)
        if "|" not in line:
            break
        rows.append((position + 1, _cells(line)))
        position = body.find("\n", position + 1)
    rule = bool(rows) and all(re.fullmatch(r"\s*:?-{1,40}:?\s*", cell) for cell in rows[0][1] if cell.strip())
    if rule and len(rows) > 1:
        place, cells = rows[-1]
        return Commitment(place, cells[column] if column < len(cells) else "", "table", words.comma)
    if column + 1 < len(header):
        return Commitment(start, header[column + 1], "table", words.comma)
    return None


def _cells(line: str) -> list[str]:
    return line.strip().strip("|").split("|")


def _hashes(body: str) -> Iterator[Commitment]:
    """``#### 72``, the way of GSM8K's solutions; a heading of words is none."""
    for match in list(re.finditer(r"^[ \t]{0,8}####[ \t]{0,4}(?P<content>[^\n#]{1,200})$", body, re.MULTILINE))[
        -_MAX_WORDS:
    ]:
        content = match["content"].strip()
        last = match.end() >= len(body)
        if last or re.match(r"[-−+(\[{*$€£¥]{0,6}\s{0,2}(?:\d|\.\d|[A-J]\b|\\)", content):
            yield Commitment(match.start("content"), content, "hash")


def _unannounced(body: str) -> list[Commitment]:
    """The lines that may be an answer without being called one; the strongest last."""
    lines = [line for line in (body[:_CONTENT_CHARS] + "\n" + body[-_CONTENT_CHARS:]).split("\n") if line.strip()]
    if "\n" not in body and len(body) <= _SINGLE_LINE_CHARS:
        return [Commitment(0, body, "alone")]
    kept = [line for line in lines if line.strip() not in _SKIPPED and not line.strip().startswith("```")]
    if not kept:
        return []
    return [Commitment(0, kept[0].strip(), "first"), Commitment(len(body), kept[-1].strip(), "last")]
