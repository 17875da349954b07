"""Numbers as people and models write them, read exactly; a text that is not one number is none."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

from pipeline.benchmark.figures import CURRENCY, clean_figures, first_sentence, spell_fractions
from pipeline.benchmark.number_terms import after_denial, bounded_after, bounded_before, is_bound
from pipeline.benchmark.number_words import SCALES, chinese_number, number_in_words
from pipeline.benchmark.plain import ascii_digits, plain_text
from pipeline.benchmark.units import GLUED_UNITS, compound_value

_MAX_CHARS = 4_000
_MAX_DIGITS = 400
_MAX_EXPONENT = 400
_GROUPED = (
    r"\d{1,3}(?:,\d{3})+(?![\d,])|\d{1,2}(?:,\d{2})+,\d{3}(?![\d,])|\d{1,3}(?:[ '\u202f\u00a0\u2009]\d{3})+(?!\d)"
    r"|\d{1,3}(?:_\d{3})+(?!\d|_)|\d+"
)
_UNSIGNED = rf"(?:(?:{_GROUPED})(?:\.\d+)?|\.\d+)"
_NUMBER = re.compile(
    rf"(?P<sign>[-+]\s{{0,3}})?[{CURRENCY}]?\s?(?P<sign2>-)?"
    rf"(?:(?P<whole>\d+)\s{{1,3}}(?:and\s{{1,3}})?(?P<mnum>\d+)\s?/\s?(?P<mden>\d+)(?![\d,.]*\d)"
    rf"|(?P<num>{_UNSIGNED})(?:\s?/\s?(?P<den>{_UNSIGNED}))?)"
    r"(?:[eE](?P<exp>[-+]?\d{1,4})(?!\w)|\s?(?:\*|\\times|\\cdot|x|X)\s?10\s?\^\s?[{(]?\s?(?P<pow>[-+]?\d{1,4})\s?[})]?"
    r"|\s?\^\s?[{(]?\s?(?P<own>[-+]?\d{1,4})\s?[})]?)?"
)
_PLAIN = re.compile(r"\s*-?[0-9]{1,18}(?:\.[0-9]{1,18})?\s*")
_PERCENT = re.compile(
    r"\s{0,3}(?:%|٪|percent(?:age points?)?\b|per cent\b|percentage points?\b|prozent\b|pour cent\b|por ciento\b"
    r"|por cento\b|procent\b)",
    re.I,
)
_EXPLAINS = re.compile(
    r"\s{0,3}[,;:.(\[—–-]?\s{0,3}\(?(?:(?:and\s)?not\b|instead of|rather than"
    r"|which|because|since|as\b|i\.e|that is|that's|from|given|this|these|so\b"
    r"|since|where|when|with|for\b|after|if|thus|obtained|by\b|calculated|rounded|per\b|the\b|it\b|they\b|he\b"
    r"|she\b|we\b|there|note|explanation|check|namely|weil|denn|car\b|porque|потому)",
    re.I,
)
_AGAIN = re.compile(
    r"(?:\b(?:wrong|incorrect|not right|a mistake|mistaken)\b[^\d]{0,20}|[.;!?,—–-]\s{1,3}(?:no|wait|actually|sorry"
    r"|correction|hmm|oops|rather|i mean)\b)"
    r"[^\d\n]{0,60}?(?=[-−]?[$€£]?\d)",
    re.I,
)
_LETTER = r"(?:[^\W\d_]|[\u0900-\u0903\u093a-\u094f\u0981-\u0983\u09bc-\u09cd\u0e31-\u0e4e])"
"""A letter, or a vowel sign of a script that writes them apart."""
_NEXT_VALUE = re.compile(r",|;|\b(?:or|and|oder|und|ou|et|o|y|e|или|и)\s{1,3}[^\W\d_]\w{0,3}\s*$|或|和|または")
_WORDS = re.compile(r"[a-z]+")
_BEFORE_WORDS_TEXT = (
    "the answer is it a an of total about approximately roughly exactly around nearly almost only just so thus "
    "therefore hence in that will be must should are there were was they he she we has have had i think get "
    "gets equals final result sum value number would probably likely correct approx"
)
_BEFORE_WORDS = frozenset(_BEFORE_WORDS_TEXT.split())
_NOT_AFTER_TEXT = "of that who which is are was or to and thing way hand more less than one half third"
_NOT_AFTER = frozenset(_NOT_AFTER_TEXT.split())


@dataclass(frozen=True, slots=True)
class Number:
    """An exact number.

    Attributes:
        value: as written, before any percent sign is applied.
        percent: whether a percent sign or the word follows it.
    """

    value: Fraction
    percent: bool = False


def parse_number(text: str, *, comma: bool = False, question: str = "") -> Number | None:
    """The one number that a short answer states, or None.

    ``72, which is 6 * 12`` is 72; ``about 72 dollars`` is 72; ``minus 7``, ``5 Million``, ``3 and a half``,
    ``1.5 × 10³``, ``2 dozen``, ``forty-two`` are what they say; ``3 4``, ``5 or 6``, ``5-6``, ``≥ 72``, ``72 ± 3``,
    ``x = 72, y = 5`` state no single number; ``72 is wrong; it is 73`` is 73. Grouping must be right.

    Args:
        text: the committed answer, all of which must be that number and its unit.
        comma: whether its language writes decimals with a comma (``1.500`` is then 1500, ``3,14`` is 3.14).
        question: what was asked; a compound (``2 hours 30 minutes``) is given in its unit.
    """
    if len(text) > _MAX_CHARS:
        return None
    if not comma and _PLAIN.fullmatch(text):
        return Number(Fraction(text.strip()) if "." in text else Fraction(int(text)))
    cleaned = clean_figures(text, comma)
    again = list(_AGAIN.finditer(cleaned))
    instead = cleaned[again[-1].end() :] if again else after_denial(cleaned)
    return _sentence(first_sentence(cleaned) if instead is None else instead, question)


def names_number(text: str) -> bool:
    """Whether an answer begins with a number, a bound or a word for one, read or not."""
    start = re.sub(r"^[\s(*_$\"'“«\[{\\-]+", "", ascii_digits(text[:_MAX_CHARS]))
    word = _WORDS.match(start.lower())
    return bool(
        re.match(
            rf"[\d.]?\d|[<>≤≥±~≈{CURRENCY}]|x\s?=|(?:about|around|approximately|roughly|less|more|at least|at most"
            rf"|between|either|not)\b",
            start,
            re.I,
        )
    ) or (word is not None and number_in_words([word[0]]) is not None)


def is_plain_gold(text: str) -> bool:
    """Whether a gold answer is a number all of which can be seen: figures, sign, grouping, fraction, unit in words.

    Scale words, exponents, compounds and number words are refused: a gold of ``3 hundred`` was once read as 3.
    """
    cleaned = spell_fractions(plain_text(ascii_digits(text))).strip().rstrip(".")
    match = _NUMBER.match(cleaned.lstrip("(")) if cleaned else None
    if match is None or match["own"] is not None or parse_number(text) is None:
        return False
    rest = cleaned.lstrip("(")[match.end() :].strip(" $)")
    percent = _PERCENT.match(rest)
    rest = rest[percent.end() :].strip() if percent else rest
    words = re.findall(r"[^\W\d_]+", rest.lower())
    return not re.search(r"\d", rest.replace("^2", "").replace("^3", "")) and not any(
        word in SCALES or number_in_words([word]) for word in words
    )


def _sentence(text: str, question: str) -> Number | None:
    text = text.strip().rstrip(" .;,:!?。！？；，।").strip()
    if "=" in text or "≈" in text or "≒" in text:
        return _equation(text, question)
    return _single(text, question)


def _equation(text: str, question: str) -> Number | None:
    """The one value of a chain of equations: of its sides that are single numbers, all must be equal."""
    if re.search(r"[<>!≠]=|=<", text):
        return None
    exact: list[Number] = []
    approximate: list[Number] = []
    parts = re.split(r"(=+|≈|≒)", text)
    for place in range(0, len(parts), 2):
        side = parts[place].strip()
        rounded = place > 0 and parts[place - 1] in "≈≒"
        number = _single(side, question) if side else None
        if number is not None:
            (approximate if rounded else exact).append(number)
        elif re.search(r"\d", side) and _NEXT_VALUE.search(side):
            return None  # x = 72, y = 5; x = 3 or x = 4
    values = exact or approximate
    if not values:
        return None
    return values[-1] if all(value.value == values[0].value for value in values) else None


def _single(text: str, question: str) -> Number | None:
    text = text.strip()
    if text.startswith("(") and text.endswith(")") and text.count("(") == 1:
        text = text[1:-1].strip()
    match = _leading_number(text)
    if match is None:
        return _in_words(text)
    before, rest = text[: match.start()], text[match.end() :]
    if bounded_before(before) or bounded_after(rest) or re.search(r"\\|[*/^=]|[-+]\s*$", before):
        return None
    number = _value(match)
    if number is None:
        return None
    value, rest = _scaled(number, text[match.start() : match.end()], rest)
    percent = _PERCENT.match(rest)
    if percent is not None:
        rest = rest[percent.end() :]
    half = re.match(r"\s{1,3}and\s{1,3}(?:a|one)\s{1,3}(half|quarter|third)\b", rest, re.I)
    if half is not None:
        part = {"half": Fraction(1, 2), "quarter": Fraction(1, 4), "third": Fraction(1, 3)}[half[1].lower()]
        value, rest = value + (part if value >= 0 else -part), rest[half.end() :]
        value, rest = _scaled(value, "", rest)
    unit = re.match(r"\s{0,3}([^\W\d_]{1,14}|['\"′″°$¢])", rest)
    if unit is not None:
        compound = compound_value(value, unit[1], rest[unit.end() :], question)
        if compound is not None:
            value, rest = compound
        elif _another_part(rest):
            return None
    return Number(value, percent is not None) if _only_a_unit(value, rest) else None


def _another_part(rest: str) -> bool:
    return bool(
        re.match(r"\s{0,3}[^\W\d_]{1,14}\.?\s{0,2}(?:,|and)?\s{0,2}\d(?!\d{0,8} of (?:which|whom|them|these)\b)", rest)
    ) and not _EXPLAINS.match(rest)


def _leading_number(text: str) -> re.Match[str] | None:
    """The first number that is not the inside of a word."""
    for match in _NUMBER.finditer(text):
        start = match.start() + len(match[0]) - len(match[0].lstrip())
        before = text[start - 1] if start else " "
        if before.isascii() and (before.isalpha() or before in "_^\\@"):
            if before.isalpha() and re.search(r"(?:rs|usd|eur|gbp|us|inr|cny|rmb)$", text[:start], re.I):
                return match
            return None
        return match
    return None


def _scaled(value: Fraction, figure: str, rest: str) -> tuple[Fraction, str]:
    """The value times the scale that follows it, and what follows that."""
    glued = re.match(r"([kKMBT]|[mM](?:n|ln|io)|[bB]n|mil)(?![^\W_])", rest)
    money = any(sign in figure for sign in CURRENCY)
    if glued is not None:
        letter = glued[1]
        scale = {"k": 10**3, "K": 10**3, "M": 10**6, "B": 10**9, "T": 10**12}.get(letter) or SCALES.get(
            letter.lower(), 0
        )
        if scale and (letter != "T" or money):
            return value * scale, rest[glued.end() :]
    if money and (short := re.match(r"\s?([mbkMBKT])(?![^\W_])", rest)) is not None:
        return value * {"m": 10**6, "b": 10**9, "k": 10**3, "t": 10**12}[short[1].lower()], rest[short.end() :]
    for _ in range(3):
        word = re.match(rf"\s{{0,3}}({_LETTER}{{1,14}}|[万萬亿億千百만억천백])(?![^\W_])", rest) or re.match(
            r"\s{0,2}([万萬亿億千百만억천백])", rest
        )
        if word is None:
            break
        name = word[1]
        scale = SCALES.get(name.lower(), 0)
        if name in ("Mil", "MIL"):
            scale = 10**6
        if not scale:
            break
        value, rest = value * scale, rest[word.end() :]
    return value, rest


def _only_a_unit(value: Fraction, rest: str) -> bool:
    """Whether what follows a number is nothing, a unit, or words that explain it."""
    if not rest.strip(" .,;:!?)]}*'\"”’»$"):
        return True
    if re.match(r"\s{0,3}(?:mil\b|‰)", rest):  # a thousandth of an inch, a million, or a thousand in Spanish
        return False
    if rest[0].isalpha() or rest[0] in "°′″€£¥₹₩₽¢℃℉Ω":
        tail = re.match(rf"{_LETTER}+|[°′″€£¥₹₩₽¢℃℉Ω]{{1,2}}[CF]?", rest)
        name = tail[0] if tail else ""
        cjk = bool(name) and ord(name[0]) >= 0x0590  # scripts that glue their units to figures
        if (
            name not in GLUED_UNITS
            and not cjk
            and name[:1] not in GLUED_UNITS - frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
        ):
            return False
        rest = rest[len(name) :]
    elif (rest[0] in "_^*/:\\({<>=" and not re.match(r"\(|/\s?[a-z]{1,12}\b(?!\s?\d)", rest)) or re.match(
        r"[-–+]\s{0,2}[\d$(\\]|\s{1,3}[-–+*/x]\s{1,3}[\d$(\\]", rest
    ):
        return False
    if not rest.strip(" .,;:!?)]}*'\"”’»$"):
        return True
    aside = re.match(r"\s{0,3}\(([^()]{0,200})\)", rest)
    if aside is not None:
        inner = aside[1].strip()
        if re.match(r"(?:or|to)\b", inner, re.I):
            return False
        other = _single(inner, "") if re.fullmatch(r"[-+\d.,/%$\s]+|[a-z\s-]+", inner, re.I) else None
        if other is not None and other.value != value:
            return False
        return _only_a_unit(value, rest[aside.end() :])
    if _EXPLAINS.match(rest):
        return not re.search(r"\b(?:or|maybe|perhaps)\s{1,3}[-$]?\d", rest)
    words = re.sub(r"[²³]|(?<=[a-zA-Z])\^?\{?[23]\}?(?!\d)|[₂₃]|\b(?:m|cm|km|ft|in|mm)\^?[23]\b", "", rest)
    explained = re.search(
        r"[,;:.(—–]\s{0,3}\(?(?:which|because|since|as|i\.e|that is|so|from|given"
        r"|\d{1,9} of (?:which|whom|them|these))\b|\(",
        words,
    )
    head = words[: explained.start()] if explained else words
    if re.search(r"\d|[<>±]|\\", head) or (
        re.search(r"\b(?:or|maybe|perhaps|to)\s{1,3}\w", head) and re.search(r"\bor\b(?! so\b)", head)
    ):
        return False
    if explained and words[explained.start()] == "(":
        return not re.match(r"\(\s?(?:or|to)\b", words[explained.start() :])
    return not re.search(
        r"\b(?:wrong|incorrect|too (?:big|small|high|low)|not (?:right|correct|the answer))\b", head, re.I
    )


def _in_words(text: str) -> Number | None:
    """A number written in words, with nothing before it but words that say nothing and little after it."""
    core = text.strip(" .,;:!?()*'\"“”«»$")
    chinese = re.match(
        r"[^\w]*(?:约|大约|共|总共|一共)?([负負]?[零〇一二三四五六七八九两兩十百千万萬亿億]{1,30})(?:个|個|元|人|只|天|岁|次|本|块|名|米|公里|小时|分钟|年|枚|円|回)?$",
        core,
    )
    if chinese is not None:
        value = chinese_number(chinese[1])
        return None if value is None else Number(value)
    if not core.isascii() or re.search(r"[\d\\=<>/^_]", core) or is_bound(core.replace("-", " ")):
        return None
    lowered = core.lower()
    negative = lowered.startswith("-")
    words = _WORDS.findall(lowered)
    start = 0
    while start < len(words) and words[start] in _BEFORE_WORDS:
        if number_in_words(words[start:]) is not None:
            break
        start += 1
    read = number_in_words(words[start:])
    if read is None:
        return None
    value, taken = read
    after = words[start + taken :]
    if (
        len(after) > 4
        or (after and after[0] in _NOT_AFTER and not (after[0] == "of" and value < 1))
        or any(number_in_words([word]) for word in after)
    ):
        return None
    percent = after[:1] == ["percent"]
    return Number(-value if negative else value, percent)


def _value(match: re.Match[str]) -> Fraction | None:
    if match.end() - match.start() > _MAX_DIGITS:
        return None
    try:
        if match["whole"] is not None:
            value = Fraction(int(match["whole"])) + Fraction(int(match["mnum"]), int(match["mden"]))
        else:
            value = _exact(match["num"])
            if match["den"] is not None:
                value /= _exact(match["den"])
        if match["own"] is not None:
            power = int(match["own"])
            if abs(power) > _MAX_EXPONENT or abs(value) > 10**6:
                return None
            value = value**power
    except ZeroDivisionError:
        return None
    exponent = int(match["exp"] or match["pow"] or 0)
    if abs(exponent) > _MAX_EXPONENT:
        return None
    value *= Fraction(10) ** exponent
    negative = (match["sign"] or "").strip() == "-" or match["sign2"] == "-"
    return -value if negative else value


def _exact(text: str) -> Fraction:
    digits = re.sub(r"[,'_ \u202f\u00a0\u2009]", "", text)
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
