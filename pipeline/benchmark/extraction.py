"""The answer a reply commits to: of all places with evidence for one, the last that says something binds."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from pipeline.benchmark.choices import CONFLICT, choice_of, letter_with_text
from pipeline.benchmark.choices import choice_letter as choice_letter
from pipeline.benchmark.commitments import Commitment, commitments, reply_body
from pipeline.benchmark.confidences import strip_confidence
from pipeline.benchmark.numbers import Number, names_number, parse_number
from pipeline.benchmark.plain import last_boxed, normalize_text, unwrap

__all__ = [
    "NumericAnswer",
    "choice_letter",
    "chosen_letter",
    "committed_text",
    "final_answer",
    "last_boxed",
    "normalize_text",
    "numeric_answer",
    "strip_confidence",
    "unwrap",
]

_EMPTY = frozenset({"", "...", "…", ".", "..", ":", "**", "$", "$$", "n.a."})
_UNSURE = frozenset({"-", "–", "—", "?", "n/a"})
_FIRM = frozenset({"line", "json", "table", "tag", "hash", "box", "sentence"})
_MAX_READ = 60
"""Places that are read, from the last one back."""
_MAX_READ_CHARS = 2_000
_RETRACTED = re.compile(
    r"\b(?:wait|actually|no|hold on|hmm|oops|sorry|scratch that|correction|on (?:second thought|reflection)|i mean"
    r"|i take (?:that|it) back|rather)\b",
    re.IGNORECASE,
)
_IS_RIGHT = re.compile(
    r"\b(?:this|it|that|which) (?:is|would be|must be|corresponds to|matches) (?:option |choice )?[(\[][A-J][)\]]"
    r"|(?<![\w'’])[(\[*]{0,3}([A-J])[)\]*]{0,3}\s{1,3}(?:is|must be|would be|seems|ist|est|es|é"
    r"|è)\s{1,3}(?:clearly\s|definitely\s|therefore\s|indeed\s)?"
    r"(?:the\s|la\s|die\s)?(?:\w{1,12}\s){0,2}?(?:right|correct|best|answer|choice|richtig|correct[ao]"
    r"|bonne)\b[^\n.;]{0,80}"
)
_CONCLUDES = re.compile(
    r"^[\s>*_#\-•]{0,8}(?:so|thus|therefore|hence|in conclusion|consequently|finally|overall|in total|altogether"
    r"|also|daher|somit|donc|ainsi|por lo tanto|por tanto|"
    r"entonces|portanto|logo|assim|quindi|dunque|итак|следовательно|значит|所以|因此|故|综上|したがって|よって|따라서|그러므로|vậy"
    r"|do đó"
    r"|jadi|dolayısıyla|इसलिए|অতএব|لذلك|إذن|i(?:'d| would)? (?:go|choose|pick|select|say|think)|"
    r"(?:the |final )?(?:result|solution|total|conclusion)|my (?:choice|pick|vote)|it(?:'s| is| must be))(?![^\W\d_])",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class NumericAnswer:
    """A number as it was read, and the text it was read from."""

    text: str
    number: Number


@lru_cache(maxsize=4)
def _read_places(text: str) -> tuple[str, tuple[Commitment, ...]]:
    """The reply that an answer is looked for in, and the places that commit to one; kept for the next question."""
    body = reply_body(text)
    return body, tuple(commitments(body))


def final_answer(text: str) -> str | None:
    """What the reply commits to as its answer, unwrapped, or None.

    The last of all places that announce an answer and say one counts; a reply that is a single short line, or that
    ends in a line which is nothing but an emphasised answer, needs no announcement.
    """
    place = _text_place(text)
    if place is None:
        return None
    answer = unwrap(place.content)
    return None if answer.casefold() in _UNSURE | _EMPTY else answer


def committed_text(text: str) -> str | None:
    """As :func:`final_answer`, but as written: markup, quotes and signs may belong to the answer."""
    place = _text_place(text)
    return None if place is None else place.content.strip()


def _text_place(text: str) -> Commitment | None:
    _, places = _read_places(text)
    for place in reversed([place for place in places if place.kind in _FIRM]):
        if place.content.strip("*_ \t\"'“”").casefold() not in _EMPTY:
            return place
    announced = any(place.kind in _FIRM for place in places)
    for place in reversed(places):
        if place.kind == "alone" and not announced:
            return place
        if place.kind == "last" and re.fullmatch(r"(?:\*\*|__|\$\$?|`|\\\(|\\\[|>\s).{1,200}", place.content):
            return place
    return None


def chosen_letter(text: str, choices: Sequence[str] | None) -> str | None:
    """The letter that a reply commits to; None for none, or for two that it does not decide between."""
    body, places = _read_places(text)
    firm = [place for place in places if place.kind in _FIRM]
    soft = [place for place in places if place.kind in ("bare", "choose")]
    soft += [
        Commitment(match.start(), match[0], "choose") for match in _IS_RIGHT.finditer(body, max(0, len(body) - 8_000))
    ]
    soft.sort(key=lambda place: place.start)
    last, at = _last_read(firm, choices)
    if at >= 0 and _ABSTAINS.search(body, at):
        last, at = None, len(body)
    given_up = [place for place in firm if place.start > at and _NO_CHOICE.search(place.content[:80])]
    if given_up:  # "the answer is not listed": what was said before it does not hold
        last, at = CONFLICT, given_up[-1].start
    later = [
        place
        for place in soft
        if place.start > at and (at < 0 or given_up or _RETRACTED.search(body, max(0, place.start - 60), place.start))
    ]
    softly, soft_at = _last_read(later, choices)
    if softly is not None and _ABSTAINS.search(body, soft_at):
        return None
    if softly is not None:
        return None if softly == CONFLICT else softly
    if last is not None or at >= 0:
        return None if last == CONFLICT else last
    return _unannounced_letter(body, places, choices)


def _last_read(places: list[Commitment], choices: Sequence[str] | None) -> tuple[str | None, int]:
    """The letter (or conflict) of the last place that names one, and where it stands."""
    for place in reversed(places[-_MAX_READ:]):
        content = place.content[:_MAX_READ_CHARS]
        if content.strip("*_ \t").casefold() in _EMPTY:
            continue
        sentence = place.kind in ("sentence", "bare", "choose", "line")
        read = _sentence_choice(content, choices) if sentence else choice_of(content, choices)
        if place.kind in ("bare", "choose") and read == CONFLICT:
            continue
        if read is not None:
            return read, place.start
    return None, -1


_TAKEN_BACK = re.compile(
    r"[,.;…—–-]\s{0,3}(?:no|wait|actually|scratch that|sorry|correction|oops|i mean|make that)\b"
    r"(?:[,.:;\s]{1,3}(?:no|wait|actually|it['’]s|it is|make that)\b){0,2}[,.:;\s]{0,3}",
    re.IGNORECASE,
)
_STOP = re.compile(r"(?<=[^\s.(])[.!?。！？](?=\s|$|[^\W\d_a-z])")


def _sentence_choice(content: str, choices: Sequence[str] | None) -> str | None:
    """The choice that a line names: whole, or in its first sentence where more follows."""
    led = letter_with_text(content, choices)
    own = choices[ord(led) - 65] if led is not None and choices is not None else ""
    place = content.find(own)
    # "C. No birds can fly" takes nothing back where that is what choice C says.
    for taken_back in reversed(list(_TAKEN_BACK.finditer(content, len(content) if place < 0 else place + len(own)))):
        again = choice_of(content[taken_back.end() :], choices)
        if again is not None and again != CONFLICT:
            return again
    if led is not None:
        return led
    if len(content) > 200 or _STOP.search(content.rstrip(" .。*_\"'")):
        for stop in _STOP.finditer(content):
            head, rest = content[: stop.start()], content[stop.end() :]
            again = choice_of(rest, choices) if _RETRACTED.match(rest.lstrip(" *_")) else None
            if again is not None:
                return again
            if len(head.strip("*_ ([")) == 1 and rest.strip():  # B. Paris
                whole = choice_of(content, choices)
                if whole is not None:
                    return whole
                return choice_of(head, choices)
            read = choice_of(head, choices)
            if read is not None:
                return read
            break
    return choice_of(content, choices)


def _unannounced_letter(body: str, places: Sequence[Commitment], choices: Sequence[str] | None) -> str | None:
    """The letter of a reply that calls nothing its answer: a short line, its last line, or the one choice it shows."""
    letters = dict.fromkeys(match[1] for match in _SHOWN_CHOICE.finditer(body))
    for place in reversed(places):
        if place.kind not in ("alone", "last", "first"):
            continue
        content = place.content
        plain = unwrap(content)
        whole = choice_of(content, choices) if len(plain) <= 400 else None
        if whole == CONFLICT:
            return None
        if whole is None:
            continue
        short = len(plain.strip("()[].: ")) <= 2
        is_text = choices is not None and any(
            plain.strip(" .").casefold() == str(choice).strip(" .").casefold() for choice in choices
        )
        if place.kind == "alone" or short or is_text or _CONCLUDES.match(content):
            return whole
    if len(letters) != 1 or choices is None:  # a reply that goes through the choices one by one has chosen none yet
        return None
    lines = [line.strip() for line in body.split("\n") if _SHOWN_CHOICE.match(line)]
    letter = next(iter(letters))
    return letter if ord(letter) - 65 < len(choices) and _begins_with_own(lines[-1], letter, choices) else None


_SHOWN_CHOICE = re.compile(r"^[ \t>*_(\[-]{0,6}([A-J])[)\].:*_]{1,4}(?=\s|$)", re.MULTILINE)
_ABSTAINS = re.compile(
    r"\b(?:I|we) (?:cannot|can't|can’t|could not|am unable to|are unable to|am not able to) (?:provide|give"
    r"|determine|answer|solve|choose)"
    r" (?:an?|the|this|that|any)\b[^\n.]{0,40}?\b(?:answer|question|option)"
    r"|\b(?:but|however|though|although),? (?:it|this|that) (?:option )?is not (?:the )?(?:exactly )?(?:correct"
    r"|right)\b"
    r"|\bthere is no correct (?:answer|option)\b",
    re.IGNORECASE,
)
_NO_CHOICE = re.compile(
    r"^[\s(\[*_]{0,6}(?:not (?:listed|provided|given|available|among|in the|present|clear|known|possible)"
    r"|none of (?:the )?(?:options|choices|above options|given)|unknown|unclear|undetermined|i (?:do not|don't"
    r"|don’t) know|cannot)",
    re.IGNORECASE,
)


def _begins_with_own(content: str, letter: str, choices: Sequence[str]) -> bool:
    rest = re.sub(r"^[(\[*_]{0,4}[A-J][)\].:*_]{1,4}\s{0,4}", "", content)
    return normalize_text(rest).casefold().startswith(normalize_text(choices[ord(letter) - 65]).casefold()[:200])


def numeric_answer(text: str, question: str = "") -> NumericAnswer | None:
    """The number that a reply commits to; None for none, or where its last commitment is not one number."""
    _, places = _read_places(text)
    for place in reversed([place for place in places if place.kind in _FIRM or place.kind == "bare"]):
        content = place.content.strip()
        if place.kind == "bare" and not re.match(r"[-−]?[$€£\\(*`]{0,4}\s?(?:x\s?=\s?)?[-−]?\d", content):
            continue
        if content.strip("*_ \t\"'").casefold() in _EMPTY:
            continue
        number = parse_number(content, comma=place.comma, question=question)
        if number is None and place.kind != "sentence":
            inner = unwrap(content)
            number = parse_number(inner, comma=place.comma, question=question) if inner != content else None
        if number is not None:
            return NumericAnswer(unwrap(content), number)
        if names_number(content) or (place.kind != "sentence" and re.search(r"\d", content)):
            return None
    for place in reversed(places):
        if place.kind not in ("alone", "last", "first"):
            continue
        content = place.content
        if place.kind == "alone" or _CONCLUDES.match(content) or not re.search(r"[^\W\d_]{2}", unwrap(content)):
            number = parse_number(
                re.sub(r"^\s*(?:the\s)?\w{1,12}\s?:\s", "", content) if place.kind == "alone" else content,
                question=question,
            )
            if number is not None:
                return NumericAnswer(unwrap(content), number)
            if re.search(r"\d", content):
                return None
    return None
