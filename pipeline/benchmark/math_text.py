"""Mathematics as it is typed, in the LaTeX that math-verify reads: Unicode signs, mixed numbers, units apart."""

from __future__ import annotations

import re

_SIGNS = {
    "−": "-", "–": "-", "➖": "-", "·": r"\cdot ", "⋅": r"\cdot ", "×": r"\times ", "÷": r"\div ", "∗": "*", "⁄": "/",
    "∕": "/", "∞": r"\infty ", "π": r"\pi ", "°": r"^\circ ", "≤": r"\le ", "≥": r"\ge ", "⩽": r"\le ", "⩾": r"\ge ",
    "≠": r"\ne ", "±": r"\pm ", "∓": r"\mp ", "∪": r"\cup ", "∩": r"\cap ", "∈": r"\in ", "∅": r"\emptyset ",
    "α": r"\alpha ", "β": r"\beta ", "γ": r"\gamma ", "δ": r"\delta ", "θ": r"\theta ", "λ": r"\lambda ",
    "μ": r"\mu ", "σ": r"\sigma ", "φ": r"\phi ", "ω": r"\omega ", "ℝ": r"\mathbb{R}", "′": "'", "％": "%",
    "∘": r"^\circ ", "→": r"\to ", "√": r"\sqrt ", "∛": r"\sqrt[3] ",
}  # fmt: skip
_FRACTIONS = {
    "½": (1, 2), "⅓": (1, 3), "⅔": (2, 3), "¼": (1, 4), "¾": (3, 4), "⅕": (1, 5), "⅖": (2, 5), "⅗": (3, 5), "⅘": (4, 5),
    "⅙": (1, 6), "⅚": (5, 6), "⅛": (1, 8), "⅜": (3, 8), "⅝": (5, 8), "⅞": (7, 8), "⅐": (1, 7), "⅑": (1, 9),
    "⅒": (1, 10),
}  # fmt: skip
_SUPERSCRIPTS = dict(zip("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺ⁿ", "0123456789-+n", strict=True))
_SUPERSCRIPT = re.compile("[⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺ⁿ]{1,20}")
_VULGAR = re.compile(rf"(?P<whole>\d{{1,9}})?\s?(?P<part>[{''.join(_FRACTIONS)}])")
_MIXED = re.compile(r"(?<![\d.,/^_}])(?P<whole>\d{1,9})\s{1,3}(?P<top>\d{1,9})\s?/\s?(?P<bottom>\d{1,9})(?![\d./])")
_SCIENTIFIC = re.compile(r"(?<![\w.])(\d{1,30}(?:\.\d{1,30})?)[eE]([+-]?\d{1,3})(?![\w.])")
_ROOT = re.compile(
    r"\\sqrt(?:\[3\])?\s(?:\((?P<inside>[^()]{1,80})\)|(?P<frac>\\frac\{[^{}]{1,40}\}\{[^{}]{1,40}\})"
    r"|(?P<bare>\d{1,20}(?:\.\d{1,20})?|[a-zA-Z]))"
)
_UNIT = re.compile(
    r"(?<=[\d)}\]%.$ ])\\?\s{0,3}(?:\\(?:text|mbox|mathrm|textrm"
    r"|operatorname)\s{0,2}\{\s{0,3}(?P<named>[^{}]{1,40}?)\s{0,3}\}"
    r"|\s(?P<plain>[a-zA-Z]{1,20}(?:[ /][a-zA-Z]{1,20}){0,3}))(?P<power>\s{0,2}\^\s?\{?[23]\}?)?[.$\s]{0,3}$"
)
_WORDS = re.compile(r"[a-z][a-z'’-]{2,}(?: [a-z'’-]{1,30}){0,8}")
_NAMES = re.compile(
    r"\b(?:sin|cos|tan|cot|sec|csc|arcsin|arccos|arctan|log|ln|exp|sqrt|pi|infinity|infty|inf|max|min|gcd|lcm|mod"
    r"|det|lim"
    r"|alpha|beta|gamma|delta|theta|lambda|sigma|omega|phi|and|or)\b"
)
_MAX_CHARS = 2_000
_OR = re.compile(r"\s?(?:または|もしくは|或者?|또는|和|と)\s?|\s(?:или|और|या|أو|বা|hoặc|и|và|और)\s")
"""Words that part two answers: math-verify knows English ones alone, and took the first of the two for all."""
_ENDING = re.compile(r"(?:です|だ|である|입니다|이다|है)?\s?[。．।.]?$")


def read_expression(text: str) -> tuple[str, str]:
    """An expression in LaTeX without its unit, and the unit ('' for none) in one spelling."""
    text = _translated(text.strip().replace(r"\varnothing", r"\emptyset")) if len(text) <= _MAX_CHARS else text
    match = _UNIT.search(text[-80:])
    if match is None:
        return text, ""
    name = (match["named"] or match["plain"]).strip()
    start = len(text) - min(80, len(text)) + match.start()
    head = text[:start].rstrip().removesuffix("\\")
    if (
        not re.search(r"\d|\\pi|\\sqrt|\\frac", head)
        or _NAMES.search(name.lower())
        or (len(name) == 1 and match["plain"])
    ):
        return text, ""
    return head, _one_unit(name, match["power"] or "")


def base_of(text: str) -> str | None:
    """The base that a numeral is written in: ``101_2`` is not ``101_3``, which math-verify does not see."""
    base = re.search(r"(?<=[\dA-F])\s?_\s?\{?\s?(?:\\text\{)?(\d{1,2}|[a-z]{3,12})\}{0,2}[.$\s]{0,3}$", text[-80:])
    return base[1] if base else None


def _one_unit(name: str, power: str) -> str:
    unit = re.sub(r"\s{1,3}", " ", name.strip(" .").casefold())
    unit = unit if len(unit) < 4 else unit.removesuffix("s")
    digits = re.sub(r"\D", "", power)
    return "" if unit in ("degree", "°") else f"{unit}^{digits}" if digits else unit


def words_of(text: str) -> str | None:
    """The words of an answer that is nothing else, in lower case: they are compared as text, not as products."""
    plain = re.sub(
        r"\\(?:text|mbox|mathrm|textbf|textit|textrm|operatorname)\s{0,2}\{([^{}]*)\}", r"\1", text[:_MAX_CHARS]
    )
    plain = " ".join(plain.replace("$", "").replace(r"\(", "").replace(r"\)", "").split()).strip(" .!").casefold()
    if not _WORDS.fullmatch(plain) or _NAMES.search(plain):
        return None
    return plain


def _translated(text: str) -> str:
    if not text.isascii():
        text = _OR.sub(", ", _ENDING.sub("", text))
        text = _VULGAR.sub(_vulgar, text)
        text = _SUPERSCRIPT.sub(lambda run: "^{" + "".join(_SUPERSCRIPTS[char] for char in run[0]) + "}", text)
        text = "".join(_SIGNS.get(char, char) for char in text)
        text = _ROOT.sub(lambda root: f"{root[0].split(' ')[0]}{{{root.group(root.lastgroup or 0)}}}", text)
    text = _SCIENTIFIC.sub(lambda number: f"{number[1]} \\times 10^{{{int(number[2])}}}", text)
    return _MIXED.sub(lambda mixed: _sum(mixed["whole"], mixed["top"], mixed["bottom"]), text)


def _vulgar(match: re.Match[str]) -> str:
    top, bottom = _FRACTIONS[match["part"]]
    return _sum(match["whole"], top, bottom) if match["whole"] else rf"\frac{{{top}}}{{{bottom}}}"


def _sum(whole: str, top: str | int, bottom: str | int) -> str:
    """A mixed number as one fraction."""
    if int(bottom) == 0:
        return rf"{whole} \frac{{{top}}}{{{bottom}}}"
    return rf"\frac{{{int(whole) * int(bottom) + int(top)}}}{{{int(bottom)}}}"
