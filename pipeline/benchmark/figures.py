"""Figures in the form that is read: Western digits, one way of writing signs, fractions, groups and decimals."""

from __future__ import annotations

import html
import re

from pipeline.benchmark.number_terms import spelled_minus
from pipeline.benchmark.plain import ascii_digits, plain_text

CURRENCY = "$€£¥₹₩₽₫₺¢"
_LATEX_FRACTION = re.compile(r"\\[dtc]?frac\s*(?:\{\s*(-?[\d.,]+)\s*\}|(\d))\s*(?:\{\s*(-?[\d.,]+)\s*\}|(\d))")
_STARRED = re.compile(r"(?<![A-Za-z0-9*)])\*(?=\S)([^*\n]{1,60}?)(?<=\S)\*(?![A-Za-z0-9*(])")
_SENTENCE = re.compile(r"(?<=[^\s.][.!?。！？])(?:\s+|$)")
_ABBREVIATED = re.compile(
    r"(?:\b(?:approx|ca|no|rs|est|vs|eq|ans|nr|max|min|st|dr|mr|mrs|etc|i\.e|e\.g)|\b[A-Z])\.$", re.I
)


def spell_fractions(text: str) -> str:
    r"""``\frac{1}{2}`` as 1/2."""
    return _LATEX_FRACTION.sub(_slash, text)


def _slash(match: re.Match[str]) -> str:
    before = " " if match.start() and match.string[match.start() - 1].isdigit() else ""
    return f"{before}{match[1] or match[2]}/{match[3] or match[4]} "


def clean_figures(text: str, comma: bool) -> str:
    text = html.unescape(text) if "&" in text else text
    text = re.sub(r"</?[a-z][a-z0-9]{0,9}\s?/?>", "", text)
    text = text.replace("—", "-").replace("٫", ".").replace("٬", ",")
    plain = plain_text(_STARRED.sub(r"\1", ascii_digits(text)))
    plain = re.sub(r"\^\s?\{?\s?\\circ\s?\}?|\\degree\b", "°", plain)
    plain = spell_fractions(plain).strip()
    plain = spelled_minus(re.sub(r"(?<=\d)/-(?!\d)", "", plain))
    if comma:
        plain = re.sub(r"(?<=\d)\s?(?:mila?|bin)\b(?!\.)", " thousand", plain)
    plain = re.sub(r"\\times\b", "*", plain)
    if re.search(r"\d[.,]\d", plain):
        plain = _western(plain, comma)
    if plain.count("$") == 2:
        plain = re.sub(rf"(?<![\w{CURRENCY}])\$|\$$", "", plain)
    return plain


_FIGURE = re.compile(
    r"(?<![\d.,])\d{1,3}(?:[ \u00a0\u202f']\d{3})*(?:[.,]\d{1,400}){1,400}(?![\d.,]*\d)"
    r"|(?<![\d.,])\d{1,400}(?:[.,]\d{1,400}){1,400}(?![\d.,]*\d)"
)


def _western(text: str, comma: bool) -> str:
    """Figures with a decimal comma written with a point, where the language or the figure shows which it is."""
    return _FIGURE.sub(lambda match: _figure(match[0], comma), text)


def _figure(figure: str, comma: bool) -> str:
    points, commas = figure.count("."), figure.count(",")
    if points and commas:
        if figure.rfind(",") > figure.rfind(".") and commas == 1 and _grouped(figure.split(",")[0], "."):
            return figure.replace(".", "").replace(",", ".")
        return figure
    if points > 1 and _grouped(figure, "."):
        return figure.replace(".", "")
    if commas == 1 and re.search(r"[ \u00a0\u202f']\d{3},\d", figure):
        return figure.replace(",", ".")
    if comma and commas == 1:
        return figure.replace(",", ".")
    if comma and points == 1 and _grouped(figure, ".") and not figure.startswith("0"):
        return figure.replace(".", "")
    return figure


def _grouped(figure: str, mark: str) -> bool:
    head, *groups = figure.split(mark)
    return 1 <= len(head) <= 3 and all(len(group) == 3 for group in groups) and head.isdigit()


def first_sentence(text: str) -> str:
    """Up to the first full stop that ends a sentence and is followed by more."""
    for match in _SENTENCE.finditer(text):
        head = text[: match.start()]
        if re.search(r"\d|[a-z]{3}", head, re.I) and not _ABBREVIATED.search(head):
            return head
    return text
