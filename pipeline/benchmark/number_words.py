"""Numbers in words: English number words, Chinese numerals, and the words that scale a figure."""

from __future__ import annotations

import re
from fractions import Fraction

SCALES: dict[str, int] = {
    "hundred": 10**2, "hundreds": 10**2, "thousand": 10**3, "thousands": 10**3, "million": 10**6, "millions": 10**6,
    "billion": 10**9, "billions": 10**9, "trillion": 10**12, "trillions": 10**12, "quadrillion": 10**15,
    "bn": 10**9, "mn": 10**6, "mln": 10**6, "mio": 10**6, "mrd": 10**9, "tn": 10**12, "trn": 10**12,
    "lakh": 10**5, "lakhs": 10**5, "lac": 10**5, "crore": 10**7, "crores": 10**7, "dozen": 12, "dozens": 12,
        "score": 20,
    "tausend": 10**3, "millionen": 10**6, "milliarde": 10**9, "milliarden": 10**9, "billionen": 10**12,
    "mille": 10**3, "milliard": 10**9, "milliards": 10**9, "millón": 10**6, "millones": 10**6, "milhão": 10**6,
    "milhões": 10**6, "bilhão": 10**9, "bilhões": 10**9, "milione": 10**6, "milioni": 10**6, "miliardi": 10**9,
    "тысяч": 10**3, "тысячи": 10**3, "тысяча": 10**3, "миллион": 10**6, "миллиона": 10**6, "миллионов": 10**6,
    "миллиард": 10**9, "миллиарда": 10**9, "миллиардов": 10**9, "ribu": 10**3, "juta": 10**6, "miliar": 10**9,
    "nghìn": 10**3, "ngàn": 10**3, "triệu": 10**6, "tỷ": 10**9, "milyon": 10**6, "milyar": 10**9,
    "万": 10**4, "萬": 10**4, "亿": 10**8, "億": 10**8, "千": 10**3, "百": 10**2, "만": 10**4, "억": 10**8, "천": 10**3,
        "백": 10**2,
    "हज़ार": 10**3, "हजार": 10**3, "लाख": 10**5, "करोड़": 10**7, "ألف": 10**3, "آلاف": 10**3, "مليون": 10**6,
        "مليار": 10**9,
    "млн": 10**6, "млрд": 10**9, "тыс": 10**3, "трлн": 10**12, "ملايين": 10**6,
    "হাজার": 10**3, "লাখ": 10**5, "লক্ষ": 10**5, "কোটি": 10**7,
}  # fmt: skip
"""Words after a figure that multiply it, in lower case."""

_UNIT_WORDS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen"
    " eighteen nineteen"
)
_UNITS = {word: value for value, word in enumerate(_UNIT_WORDS.split())}
_TEN_WORDS = "twenty thirty forty fifty sixty seventy eighty ninety"
_TENS = {word: 10 * (k + 2) for k, word in enumerate(_TEN_WORDS.split())}
_TENS["fourty"] = 40
_PARTS = {
    "half": Fraction(1, 2), "halves": Fraction(1, 2), "third": Fraction(1, 3), "thirds": Fraction(1, 3),
    "quarter": Fraction(1, 4), "quarters": Fraction(1, 4), "fourth": Fraction(1, 4), "fourths": Fraction(1, 4),
    "fifth": Fraction(1, 5), "fifths": Fraction(1, 5), "sixth": Fraction(1, 6), "sixths": Fraction(1, 6),
    "eighth": Fraction(1, 8), "eighths": Fraction(1, 8), "tenth": Fraction(1, 10), "tenths": Fraction(1, 10),
}  # fmt: skip
_PLURAL_PARTS = frozenset(word for word in _PARTS if word.endswith("s"))
_ORDINAL_WORDS = "first second third fourth fifth sixth seventh eighth ninth"
_ORDINALS = {word: value for value, word in enumerate(_ORDINAL_WORDS.split(), 1)}
_GREAT = {"thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_CHINESE = {char: value for value, char in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2, "兩": 2}
_CHINESE_SCALES = {"十": 10, "百": 100, "千": 1000}
_CHINESE_GREAT = {"万": 10**4, "萬": 10**4, "亿": 10**8, "億": 10**8}
_CHINESE_RUN = re.compile("[负負]?[零〇一二三四五六七八九两兩十百千万萬亿億]{1,30}")
_MAX_WORDS = 40


def chinese_number(text: str) -> Fraction | None:
    """The value of a text that is nothing but Chinese numerals; None otherwise."""
    if not _CHINESE_RUN.fullmatch(text):
        return None
    negative, text = text[0] in "负負", text.lstrip("负負")
    if all(char in _CHINESE for char in text):
        value = int("".join(str(_CHINESE[char]) for char in text))
        return Fraction(-value if negative else value)
    total = section = digit = 0
    for char in text:
        if char in _CHINESE:
            digit = _CHINESE[char]
        elif char in _CHINESE_SCALES:
            section += (digit or 1) * _CHINESE_SCALES[char]
            digit = 0
        else:
            total = (total + section + digit) * _CHINESE_GREAT[char]
            section = digit = 0
    value = total + section + digit
    return Fraction(-value if negative else value)


def number_in_words(words: list[str]) -> tuple[Fraction, int] | None:
    """The number that a list of lower-case English words begins with, and how many of them it takes.

    ``forty two``, ``three hundred and five``, ``three and a half``, ``two thirds``, ``half a million``, ``a dozen``.
    """
    words = words[:_MAX_WORDS]
    if words[:1] == ["half"]:
        scale = next((SCALES[w] for w in words[1:3] if w in _GREAT or w == "dozen"), None)
        if scale and (words[1] in SCALES or words[1] == "a"):
            return Fraction(scale, 2), 2 if words[1] in SCALES else 3
        return Fraction(1, 2), 1
    if words[:1] in (["a"], ["an"]) and len(words) > 1 and words[1] in _PARTS:
        return _PARTS[words[1]], 2
    value, taken = _whole(words)
    if taken == 0:
        return None
    following = words[taken] if taken < len(words) else ""
    if following in _ORDINALS and value % 10 == 0 and value >= 20:  # twenty-first; twenty thirds is another thing
        return value + _ORDINALS[following], taken + 1
    if following in _PARTS and value < 100 and (value == 1 or following in _PLURAL_PARTS or following == "quarter"):
        return value * _PARTS[following], taken + 1
    if words[taken : taken + 2] in (["and", "a"], ["and", "one"]) and words[taken + 2 : taken + 3]:
        part = _PARTS.get(words[taken + 2])
        if part is not None:
            scale = _GREAT.get(words[taken + 3], 1) if len(words) > taken + 3 else 1
            return (value + part) * scale, taken + 3 + (scale > 1)
    if words[taken : taken + 1] == ["and"] and len(words) > taken + 2 and words[taken + 2] in _PARTS:
        count = _UNITS.get(words[taken + 1])
        if count is not None:
            return value + count * _PARTS[words[taken + 2]], taken + 3
    if words[taken : taken + 1] == ["point"]:
        digits = []
        for word in words[taken + 1 :]:
            if word not in _UNITS or _UNITS[word] > 9:
                break
            digits.append(str(_UNITS[word]))
        if digits:
            return value + Fraction(int("".join(digits)), 10 ** len(digits)), taken + 1 + len(digits)
    return value, taken


def _whole(words: list[str]) -> tuple[Fraction, int]:
    total = section = 0
    taken, last, seen = 0, 10**18, False
    for place, word in enumerate(words):
        if (
            word in ("a", "an")
            and place == 0
            and len(words) > 1
            and (words[1] in _GREAT or words[1] in ("hundred", "dozen", "half", "third", "quarter", "couple"))
        ):
            section, seen = 1, True
            continue
        if (
            word == "and"
            and seen
            and place + 1 < len(words)
            and (words[place + 1] in _UNITS or words[place + 1] in _TENS)
            and taken
            and words[place - 1] in ("hundred", *_GREAT)
        ):
            if place + 2 < len(words) and words[place + 2] in _PARTS:
                break
            continue
        if word in _UNITS and (not seen or last > 19):
            if seen and last < 100 and _UNITS[word] > 9:
                break
            section, last, seen = section + _UNITS[word], _UNITS[word], True
        elif word in _TENS and (not seen or last >= 100):
            section, last, seen = section + _TENS[word], _TENS[word], True
        elif word == "hundred" and seen and 0 < section < 100:
            section, last = section * 100, 100
        elif word == "dozen" and seen and total == 0:
            section, last = section * 12, 1
        elif word in _GREAT and seen:
            total, section, last = total + (section or 1) * _GREAT[word], 0, 10**6
        else:
            break
        taken = place + 1
    return Fraction(total + section), taken
