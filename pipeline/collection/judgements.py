"""Verdicts and numbers as judges write them: a plain one is read, one that needs mending is none."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from pipeline.collection.judgement_words import NUMBER_WORDS, TIE_WORDS, VERDICT_WORDS

Scale = tuple[float, float]
"""The scores for the worst and the best."""
UNIT: Scale = (0.0, 1.0)
_WRAPPING = " \t\r\n\"'`*_“”‘’"
_NUMBER = r"(?:0,\d+|\d+(?:\.\d+)?|\.\d+)(?:[eE][-+]?\d{1,3})?"
_VALUE = re.compile(
    rf"[~≈]?\s?(?P<sign>[-−])?\s?(?P<value>{_NUMBER})"
    r"(?:\s?(?P<percent>%|percent\b|per cent\b)|\s?(?:/|out of|von|sur|de|из)\s?(?P<of>\d+(?:\.\d+)?)(?!\d))?"
)
_EXPLAINED = re.compile(
    r"\s*(?:$|[.,;:!)](?:\s|$)|[(\[]|[-–—]\s+[^\W\d]|\s(?=(?:because|since|as|for|due|points?|on|weil|da|car|porque"
    r"|that)\b))",
    re.I,
)
_COMPETES = re.compile(
    r"\b(?:or|to|and|oder|bis|ou|o)\s+[~≈]?[-−]?(?:\d|\.\d)|[-–—/+*<>]\s*(?:\d|\.\d)|\d\s*(?:to|or)\s*\d", re.I
)
_SCALE_NOTE = re.compile(r"[(\[][^()\[\]]{0,80}[)\]]")
_RETRACTS = re.compile(
    r"(?:^|[.!?;,\n]|\bbut|\b(?:oh|hmm))\s{0,3}[*_]{0,3}(?:actually|wait|hold on|on (?:second thoughts?|reflection)"
    r"|correction|scratch that|no,|sorry|oops"
    r"|i (?:change|changed|take|retract|was wrong|made a mistake|must correct|correct myself)|that(?:'s| is"
    r"| was) (?:wrong|incorrect|not right|too)"
    r"|rather,|instead,|let me (?:correct|revise|reconsider)|moment|halt|attendez|espera|подожд|等等|不对)",
    re.I,
)
_NOUN = (
    r"(?:the\s+)?(?:responses?|assistant|answers?|chain|solution|option|model|candidate|text|output|completion"
    r"|antwort|respuesta|réponse|risposta|resposta|ответ|回答|答案|응답|답변)?[\s_#:-]{0,3}"
)
_LABEL = re.compile(rf"{_NOUN}[(\[{{<\"'“*_]{{0,4}}(?P<label>A|B)[)\]}}>\"'”*_]{{0,4}}(?![A-Za-z0-9_À-ɏ])", re.I)
_COMPARISON = re.compile(
    r"(?:response\s|answer\s)?\b(?P<left>[AB])\s?(?P<sign>>{1,3}|<{1,3}|≻+|≺+|=+|≈|~)\s?(?:response\s"
    r"|answer\s)?(?P<right>[AB])\b",
    re.I,
)
_FOLLOWS = re.compile(
    r"\s*(?:$|[.,;:!—–-](?:\s|$)|[(\[]|(?:is|was|wins?|seems|appears|has|performs?|does|by|because|since|as"
    r"|slightly|clearly|much|significantly|better|over|ist|est|es|è|é|更好|がより|が)\b)",
    re.I,
)
_BETTER = re.compile(
    r"\s*(?:is|was|seems|appears|performs|does)\s+(?:\w+\s+){0,3}?(?:better|best|winner|stronger|superior|preferred"
    r"|preferable|right|correct|more\s\w+)\b",
    re.I,
)
_BESIDE = re.compile(
    r"(?:\b(?:but|although|though|while|whereas|than|over|unlike|compared (?:to|with))\b|[(—–]\s?(?!or\b|and\b)|\s-\s)",
    re.I,
)
_NOT_BETTER = re.compile(
    r"\s*(?:is|was|seems|appears|does)(?:n't| not| never)\b|\s*(?:is|was|seems|appears)\s+(?:\w+\s+){0,2}?(?:worse"
    r"|wrong|inferior|weaker|incorrect|worst|loser)\b",
    re.I,
)
_HOMOGLYPHS = str.maketrans({"А": "A", "В": "B", "Α": "A", "Β": "B", "а": "a"})
_SEEN_FROM = 60
_REPORTS = re.compile(
    r"\b(?:say|says|said|claim|claims|claimed|contain|contains|write|writes|wrote|state|states|stated|read|reads"
    r"|include|includes|output|outputs|demand|demands"
    r"|ask|asks|asked|instruct|instructs|told|tells|quote|quotes|quoting|embed|embeds|print|prints|inject|injects"
    r"|with the text|the string|the line|text)\b[^.!?\n]{0,30}[\"'“`(]?\s{0,2}$",
    re.I,
)
_CONTINUES = re.compile(
    r"[\"'”`)]?\s{0,2},?\s{0,2}(?!(?:as requested|as asked|hope|thanks|because|since|done)\b)[a-z]{2}"
)


@dataclass(frozen=True, slots=True)
class Statement:
    """One place where a judge states a value.

    Attributes:
        start, end: where it stands.
        said: what it says.
        firm: whether it stands on a line, in a tag or in brackets of its own.
        final: whether it is called final.
    """

    start: int
    end: int
    said: str
    firm: bool
    final: bool = False


def unit_number(value: Any, scale: Scale = UNIT) -> Any:
    """A number from 0 to 1: 0.85, "0.85", "85%", "85/100", "8 out of 10"; a plain 85 stays 85, out of range.

    On a scale up to 5, 4 and "4/5" are 4, and a percentage or a part of anything else is no score.

    Raises:
        ValueError: a bound, two numbers, arithmetic, a fraction of no whole, or no number: none is mended into one.
    """
    if isinstance(value, bool):
        raise ValueError("must be a number")
    if not isinstance(value, str):
        return value
    text = value.strip(_WRAPPING).strip("()[]{}").strip(_WRAPPING)
    match = _VALUE.fullmatch(text.rstrip(".").strip(_WRAPPING))
    if match is None:
        raise ValueError("must be a number from 0 to 1")
    return _worth(match, scale)


def _worth(match: re.Match[str], scale: Scale) -> float:
    number = float(match["value"].replace(",", ".")) * (-1 if match["sign"] else 1)
    if scale != UNIT:
        if match["percent"] or (match["of"] and float(match["of"]) != scale[1]):
            raise ValueError(f"must be a number from {scale[0]:g} to {scale[1]:g}")
        return number
    if match["percent"]:
        return number / 100
    if match["of"]:
        whole = float(match["of"])
        if whole < 1 or not whole.is_integer():
            raise ValueError("must be a number from 0 to 1")
        return number / whole
    return number


def stated_number(phrase: str, scale: Scale = UNIT) -> float:
    """The number that what follows ``Score:`` states: it, and words that explain it.

    Raises:
        ValueError: as :func:`unit_number`.
    """
    text = phrase.strip(_WRAPPING).lstrip("([{").strip(_WRAPPING)
    if retracts(text):
        raise ValueError("is taken back")
    if re.match(r"[<>]\s{0,3}\d+(?:\.\d+)?\s{0,3}>", text):
        text = text[1:]
    match = _VALUE.match(text)
    rest = "" if match is None else re.sub(r"^[\s*_`\"'”\])}>]{1,6}(?=$|[\s.,;:!(\[–—-])", " ", text[match.end() :])
    if match is None or not _EXPLAINED.match(rest) or _COMPETES.search(_SCALE_NOTE.sub(" ", rest)[:120]):
        raise ValueError("must be a number from 0 to 1")
    return _worth(match, scale)


def verdict_label(text: str) -> str | None:
    """A, B or tie; None for anything else, two labels at once among it."""
    text = text.strip().translate(_HOMOGLYPHS)
    core = " ".join(text.strip(_WRAPPING + ".[](){}<>|!").casefold().split())
    if core in TIE_WORDS:
        return "tie"
    comparison = _COMPARISON.search(text)
    if comparison is not None and len(text) < 200:
        return _compared(comparison)
    match = _LABEL.match(re.sub(r"^[\s\"'`*_“‘(\[<{]+", "", text))
    if match is None:
        first = re.match(r"[\s\"'`*_“‘(\[]*([^\W\d_]+)", text)
        rest = text[first.end() :] if first else ""
        tied = (
            first is not None and first[1].casefold() in TIE_WORDS and re.match(r"[\s*_\"'”)\]]*(?:$|[.,;:(—–-])", rest)
        )
        return "tie" if tied and not re.search(r"\b[AB]\b\s+(?:is|wins)", rest) else None
    rest = re.sub(r"^[\s\"'`*_“‘(\[<{]+", "", text)[match.end() :]
    rest = re.sub(r"^[\"'`*_”’)\]>}]+", "", rest)
    label = match["label"].upper()
    if not _FOLLOWS.match(rest) or _NOT_BETTER.match(rest):
        return None
    if re.match(r"\s*(?:is|was|seems|appears|has|performs?|does)\b", rest) and not _BETTER.match(rest):
        return None
    if retracts(rest):
        return None
    head = re.split(r"[.;\n]|\bbecause\b|\bsince\b", rest, maxsplit=1)[0]
    other = "B" if label == "A" else "A"
    named = re.search(rf"(?<![\w']){other}(?![\w'])", head)
    if named is None or _BETTER.match(rest):
        return label
    # "A, but B is close" and "A (B is worse)" leave no doubt; "A and B", "A, but B is better" do.
    beside = _BESIDE.search(head, 0, named.start()) and not _BETTER.match(head, named.end())
    return label if beside else None


def _compared(match: re.Match[str]) -> str | None:
    left, right = match["left"].upper(), match["right"].upper()
    if left == right:
        return None
    sign = match["sign"][0]
    if sign in "=≈~":
        return "tie"
    return left if sign in ">≻" else right


def retracts(tail: str) -> bool:
    """Whether what follows a judgement takes it back."""
    return bool(_RETRACTS.search(tail))


def quoted(text: str, start: int, end: int) -> bool:
    """Whether what stands there is quoted inside a sentence about a response, and is no judgement."""
    line = text.rfind("\n", max(0, start - _SEEN_FROM), start) + 1 or max(0, start - _SEEN_FROM)
    return bool(_REPORTS.search(text, line, start)) or bool(_CONTINUES.match(text, end))


def _stated(words: str) -> re.Pattern[str]:
    return re.compile(
        r"(?P<line>^[ \t>#*_\-|]*)?"
        r"(?:(?P<final>final|overall|endgültiges?|finale?|最终|最終|최종|итоговый|nihai|akhir"
        r"|النهائي)[ \t]{0,4}|(?:my|the"
        r"|own|mein|mi|ma|il|mio|meu)[ \t]{1,4}){0,4}"
        rf"[\"'“]?(?<![^\W\d_])(?:{words})(?![^\W\d_]{{3}})[\"'”]?[*_]{{0,3}}"
        r"(?:[ \t]{0,2}\([^()\n]{1,30}\))?(?:[ \t]{1,3}(?:of|for (?:this|the) \w{1,20}|value))?[*_]{0,3}"
        r"[ \t\u00a0\u202f]{0,4}"
        r"(?:(?P<colon>[:：=])|(?P<verb>\b(?:is|would be|ist|lautet|est|es|è|é|это|adalah"
        r"|là)\b[:：]?|是|为|は|은|는)"
        r"|(?=[ \t]{0,2}[~≈]?\d))"
        r"(?P<said>[^\n]*)",
        re.IGNORECASE | re.MULTILINE,
    )


_PATTERNS = {"verdict": _stated(VERDICT_WORDS), **{key: _stated(words) for key, words in NUMBER_WORDS.items()}}
_TAGGED = {key: re.compile(rf"<{key}>(?P<said>[^<>]{{0,200}})</{key}>", re.IGNORECASE) for key in _PATTERNS}
_AGAINST = re.compile(r"\s{0,2}(?:vs\.?|versus|and|or)\s{1,2}\[\[", re.IGNORECASE)
_BRACKETED = re.compile(r"\[\[(?P<said>[^\[\]\n]{1,40})\]\]")
_MAX_STATEMENTS = 2_000


def statements(text: str, key: str) -> list[Statement]:
    """Every place where a judge states the value of a key, in order; quotations are none."""
    stated = [*_announced(text, key), *_enclosed(text, key)]
    return sorted((one for one in stated if not _is_quoted(text, one)), key=lambda one: one.start)


def _is_quoted(text: str, one: Statement) -> bool:
    before = text[max(0, one.start - 2) : one.start]
    return not one.firm and before.endswith(("'", '"', "“", "‘", "`"))


def _announced(text: str, key: str) -> Iterator[Statement]:
    for match in list(_PATTERNS[key].finditer(text))[-_MAX_STATEMENTS:]:
        line_start = text.rfind("\n", 0, match.start()) + 1
        before = text[line_start : match.start()]
        firm = not before.strip(" \t>#*_-|")
        sentence = before.rstrip(" *_\"'")[-1:] in ".!?:;)"
        phrase = match["said"]
        nested = list(_PATTERNS[key].finditer(phrase)) if len(phrase) < 2_000 else []
        if nested:
            last = nested[-1]
            yield Statement(match.start(), match.end(), last["said"], firm, bool(last["final"] or match["final"]))
        elif firm or sentence or match["final"] or key != "verdict":
            yield Statement(match.start(), match.end(), phrase, firm and bool(match["colon"]), bool(match["final"]))


def _enclosed(text: str, key: str) -> Iterator[Statement]:
    for match in list(_TAGGED[key].finditer(text))[-_MAX_STATEMENTS:]:
        yield Statement(match.start(), match.end(), match["said"], True)
    for match in list(_BRACKETED.finditer(text))[-_MAX_STATEMENTS:]:
        if not _CONTINUES.match(text, match.end()) or _AGAINST.match(text, match.end()):
            yield Statement(match.start(), match.end(), match["said"], True)


def decided(text: str, key: str, read: Callable[[str], Any]) -> tuple[Any, int] | str | None:
    """The value on which all of a judge's statements agree, and where the last of them ends.

    Returns:
        A problem in words where they disagree or the one that binds cannot be read; None where there is none.
    """
    stated = statements(text, key)
    chosen = [one for one in stated if one.final] or [one for one in stated if one.firm] or stated
    values: list[tuple[Any, Statement]] = []
    problem: str | None = None
    for one in chosen:
        try:
            value = read(one.said)
        except ValueError:
            value = None
        if value is None:
            problem = f"its {key} {one.said.strip()[:40]!r} cannot be read"
        else:
            values.append((value, one))
    if not values:
        return problem
    if problem is not None and chosen[-1].start > values[-1][1].start:
        return problem
    if any(value != values[-1][0] for value, _ in values):
        return f"it states two different values of {key!r}"
    return values[-1][0], values[-1][1].end
