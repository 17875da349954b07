"""The final answer a reply commits to: the last ``Answer:`` line or box, and the choice it names."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from pipeline.benchmark.numbers import plain_text

__all__ = ["choice_letter", "final_answer", "last_boxed", "normalize_text", "strip_confidence", "unwrap"]

_CUES = (
    r"answers?|final answer|antwort|r[ée]ponse|respuesta|risposta|resposta|antwoord|odpowied[źz]|cevap|svar|ответ"
    r"|答案|答|回答|답|정답"
)
# Replies are hostile: no pattern below repeats something that can match the same text in two ways.
_STRONG = re.compile(
    rf"^[ \t>#*_\-•]*(?:(?:the|my|so|thus|therefore|hence|final|correct|best),?[ \t]{{1,4}}){{0,6}}"
    rf"[*_]{{0,3}}(?:{_CUES})[*_]{{0,3}}[ \t]{{0,4}}(?:\((?:letter|number)\)[ \t]{{0,4}})?[*_]{{0,3}}[ \t]{{0,4}}"
    rf"[:：=][*_]{{0,3}}(?P<content>[^\n]*)$",
    re.IGNORECASE | re.MULTILINE,
)
_INLINE = re.compile(
    r"\b(?:answer|choice|option)[ \t]{0,4}[*_]{0,3}[ \t]{0,4}(?:[:：]|(?:is|would be|must be|should be)\b[:：]?)"
    r"(?P<content>[^\n]*)",
    re.IGNORECASE,
)
_HASHES = re.compile(r"^[ \t]{0,8}####(?P<content>[^\n]+)$", re.MULTILINE)
_CONFIDENCE = re.compile(
    r"\bconfidence[*_]{0,3}[ \t]{0,4}(?:(?:level|score)[ \t]{0,4})?[*_]{0,3}[ \t]{0,4}[:：=].*", re.IGNORECASE
)
_MARKS = " \t*_>#-•"
_MAX_CUES = 100
_NEXT_LINE_CHARS = 2_000
_MAX_BOXES = 100
_MAX_BOX_CHARS = 10_000
_MAX_ANSWER_CHARS = 4_000
_EMPTY = {"", "-", "–", "—", "?", "...", "…", "n/a"}
_BECAUSE = re.compile(r"[,;]?\s*\b(?:because|since)\b.*$", re.IGNORECASE | re.DOTALL)
_LETTER = "[A-J]"


def normalize_text(text: str) -> str:
    """NFKC, every run of whitespace one space, invisible marks gone."""
    text = unicodedata.normalize("NFKC", text)
    text = "".join(char for char in text if unicodedata.category(char) != "Cf")
    return " ".join(text.split())


def strip_confidence(text: str) -> str:
    """The reply without its ``Confidence: …`` lines, for eyes that must not see them."""
    kept = []
    for line in text.split("\n"):
        stated = _CONFIDENCE.search(line)
        if stated is None:
            kept.append(line)
        elif line[: stated.start()].strip(_MARKS):
            kept.append(line[: stated.start()].rstrip(_MARKS))
    return "\n".join(kept).rstrip()


def last_boxed(text: str) -> tuple[int, str] | None:
    r"""Position and content of the last complete ``\boxed{…}`` that is not inside another; braces are counted."""
    found = None
    for match in list(re.finditer(r"\\f?boxed[ \t]{0,4}\{", text))[-_MAX_BOXES:]:
        if found is not None and match.start() < found[0] + len(found[1]):
            continue
        depth, index, last = 1, match.end(), match.end() + _MAX_BOX_CHARS
        while index < min(len(text), last) and depth:
            char = text[index]
            if char == "\\":
                index += 1
            elif char == "{":
                depth += 1
            elif char == "}":
                depth -= 1
            index += 1
        if depth == 0:
            found = (match.start(), text[match.end() : index - 1])
    return found


def unwrap(content: str) -> str:
    """An answer without emphasis, quotes, code marks, a box or a closing full stop around it."""
    text = content.strip()
    if len(text) > _MAX_ANSWER_CHARS:
        return text
    for _ in range(8):
        before = text
        box = last_boxed(text)
        if box is not None:
            text = box[1].strip()
        text = re.sub(r"^(?:\*\*|__|`+|[*_])\s*(.*?)\s*(?:\*\*|__|`+|[*_])(?=[.\s]*$)", r"\1", text, flags=re.DOTALL)
        text = text.strip(" \t\r\n*")
        if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'":
            text = text[1:-1].strip()
        if len(text) > 1 and (text[0], text[-1]) in (("“", "”"), ("<", ">")):
            text = text[1:-1].strip()
        if text == before:
            break
    return text


def final_answer(text: str) -> str | None:
    r"""What the reply commits to as its answer, as written, or None.

    The last of all ``Answer: …`` lines and ``\boxed{…}`` counts; then ``#### …``; then ``the answer is …``; then a
    reply that is a single short line is its own answer.
    """
    text = strip_confidence(text).strip()
    if not text:
        return None
    found: list[tuple[int, str]] = []
    for match in list(_STRONG.finditer(text))[-_MAX_CUES:]:
        content = match["content"].strip()
        if not content.strip("*_ "):
            content = _next_line(text, match.end())
        if content:
            found.append((match.start(), content))
    box = last_boxed(text)
    if box is not None:
        found.append(box)
    for pattern in (_HASHES, _INLINE):
        if not found:
            found = [(match.start(), match["content"]) for match in pattern.finditer(text) if match["content"].strip()]
    if not found:
        bare = "\n" not in text and len(text) <= 200 and not _STRONG.match(text)
        return _committed(text) if bare else None
    return _committed(max(found, key=lambda pair: pair[0])[1])


def _next_line(text: str, end: int) -> str:
    for line in text[end : end + _NEXT_LINE_CHARS].lstrip("\n").split("\n")[:4]:
        stripped = line.strip()
        if stripped in ("", "$$", r"\[", r"\(", "```"):
            continue
        return "" if _STRONG.match(line) else stripped
    return ""


def _committed(content: str) -> str | None:
    answer = unwrap(content)
    return None if answer.casefold() in _EMPTY else answer


def choice_letter(answer: str, choices: Sequence[str] | None) -> str | None:
    """The letter of the choice that a final answer names, or None if it names none or two different ones.

    Args:
        answer: as :func:`final_answer` gives it.
        choices: texts of the choices; None for letters A to J without texts.
    """
    if len(answer) > _MAX_ANSWER_CHARS:
        return None
    count = len(choices) if choices is not None else 10
    text = unwrap(normalize_text(plain_text(answer)))
    by_text = _by_text(text, choices)
    if by_text is not None:
        return by_text
    letter = _leading_letter(text, count)
    if letter is None:
        return None
    if choices is not None and _names_another(text, letter, choices):
        return None
    return letter


def _key(text: str) -> str:
    return normalize_text(plain_text(text)).casefold().strip(" .\"'")


def _by_text(text: str, choices: Sequence[str] | None) -> str | None:
    if choices is None:
        return None
    named = [k for k, choice in enumerate(choices) if _key(choice) == _key(text)]
    return chr(ord("A") + named[0]) if len(named) == 1 and len(_key(text)) > 0 else None


_ALONE = re.compile(r"[(\[{]*\s*([A-Ja-j])\s*[)\]}]*\s*[.:;]?$")
_PREFIXED = re.compile(
    rf"(?:the\s+)?(?:correct\s+|best\s+|right\s+)?(?:option|choice|answer|letter)\s*(?:is\s*)?:?\s*[(\[]?({_LETTER})\b[)\]]?",
    re.IGNORECASE,
)
_MARKED = re.compile(rf"[(\[]({_LETTER})[)\]]|^({_LETTER})\s*[).:\]](?=\s|$|[^\w])|^({_LETTER})\s*(?:[,;—]|-)\s")
_ANY_MARKED = re.compile(
    rf"[(\[]({_LETTER})[)\]]|(?<![\w'])({_LETTER})(?=\s*[).:\]])|(?:option|choice)\s+({_LETTER})\b"
)
_JOINED = re.compile(rf"(?<![\w'])({_LETTER})\s*[)\]]?\s*(?:,|/|&|\+|\bor\b|\band\b)\s*[(\[]?({_LETTER})(?![\w'])")
_SPACED = re.compile(rf"^{_LETTER}(?:\s+{_LETTER})+$")


def _leading_letter(text: str, count: int) -> str | None:
    text = _BECAUSE.sub("", text)
    if _JOINED.search(text) or _SPACED.match(text):
        return None
    match = _ALONE.match(text) or _PREFIXED.match(text) or _MARKED.search(text)
    if match is None:
        return None
    letter = next(group for group in match.groups() if group).upper()
    marked = {group for found in _ANY_MARKED.finditer(text) for group in found.groups() if group}
    if marked - {letter} or ord(letter) - ord("A") >= count:
        return None
    return None if re.search(r"\bnot\b|n't\b", text[: match.start() + 1], re.IGNORECASE) else letter


def _names_another(text: str, letter: str, choices: Sequence[str]) -> bool:
    """Whether the words after the letter are the text of another choice."""
    rest = re.sub(rf"^.*?{letter}[)\]\s.:,—-]*", "", text, count=1)
    named = [k for k, choice in enumerate(choices) if _key(choice) and _key(choice) == _key(rest)]
    return bool(named) and ord(letter) - ord("A") not in named
