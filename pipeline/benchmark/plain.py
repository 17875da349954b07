"""Text without what only dresses it: markup, LaTeX wrapping, width variants; its meaning is left alone."""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Iterator

_MAX_ANSWER_CHARS = 4_000
_MAX_BOXES = 100
_MAX_BOX_CHARS = 10_000
_JOINS = re.compile(
    r"[\s$]{0,6}(?:,|;|and|or|,\s?and|,\s?or|y|et|ou|und|oder|和|或|と|и|или)[\s$]{0,6}(?:[a-z]\s?=\s?)?", re.I
)
_LATEX_SPACES = re.compile(r"\\[,;:! ]|\\(?:quad|qquad|thinspace)\b|~")
_LATEX_WORDS = re.compile(
    r"\\(?:left|right|displaystyle|mathrm|mathbf|mathit|mathsf|mathtt|textbf|textit|rm|bf|bigl?|bigr?|bm|boldsymbol)\b"
)
_LATEX_TEXT = re.compile(
    r"\\(?:text|mbox|textrm|textsf|texttt|operatorname|mathrm|mathbf|mathit|mathsf|textbf|textit|underline|emph"
    r"|boxed|fbox|framebox|bm|boldsymbol)"
    r"\s{0,3}\{([^{}]*)\}"
)
_TAGS = re.compile(
    r"</?(?:b|i|u|em|strong|p|span|code|br|div|font|mark|kbd|tt|small|big|center|h[1-6])(?:\s[^<>]{0,100})?/?>", re.I
)
_WRAPPERS = (r"\(", r"\)", r"\[", r"\]", "$$", "**", "__", "`")
_SUPERSCRIPTS = dict(zip("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺", "0123456789-+", strict=True))
_SUPERSCRIPT = re.compile("[⁺⁻]?[⁰¹²³⁴-⁹]{1,30}")
_SUBSCRIPT = re.compile("[₀-₉]{1,30}")
# Letters beside which a star is no emphasis: 2*3*4, snake_case. Scripts without spaces set it within a word: は*A*です.
_BESIDE = r"A-Za-z0-9À-ɏͰ-ӿ*_"
_EMPHASIS = re.compile(rf"(?<![{_BESIDE}])([*_])(?=\S)([^*_\n]{{1,200}}?)(?<=\S)\1(?![{_BESIDE}{{])")
_MINUS = str.maketrans("−–‐‑➖﹣－⁄∕’×·⋅", "-------//'***")
_WIDE = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)} | {0x3000: 0x20}
_QUOTES = {
    '"': '"', "'": "'", "“": "”", "„": "“”", "«": "»", "»": "«", "‹": "›", "「": "」", "『": "』", "《": "》",
    "〈": "〉", "‘": "’", "‚": "‘", "<": ">", "`": "`", "【": "】",
}  # fmt: skip
_FINAL = ".。．!！?？,，;；:：…।॥؟،۔"


def ascii_digits(text: str) -> str:
    """Digits of every script as 0 to 9, full-width signs as narrow ones."""
    if text.isascii():
        return text
    text = text.translate(_WIDE)
    return "".join(
        str(unicodedata.decimal(c)) if not c.isascii() and unicodedata.decimal(c, None) is not None else c for c in text
    )


def _exponents(text: str) -> str:
    """Superscripts as exponents: 10³ is 10^3, and not 103 as NFKC has it."""
    if text.isascii():
        return text
    text = _SUPERSCRIPT.sub(lambda match: "^" + "".join(_SUPERSCRIPTS[char] for char in match[0]), text)
    return _SUBSCRIPT.sub(lambda match: "_" + "".join(chr(ord(char) - 0x2080 + 48) for char in match[0]), text)


def _spread_fractions(text: str) -> str:
    """A space before ½ and its like, so that 3½ is 3 1/2 and not 31/2."""
    return re.sub(r"(\d)([¼-¾⅐-⅞])", r"\1 \2", text)


def normalize_text(text: str) -> str:
    """Compatibility forms unified but for exponents, every run of whitespace one space, invisible marks gone."""
    if text.isascii():
        return " ".join(text.split())
    text = "".join(char for char in unify(text) if unicodedata.category(char) != "Cf")
    return " ".join(text.split())


def unify(text: str) -> str:
    """Compatibility forms unified but for exponents; lines and spaces stay."""
    if text.isascii():
        return text
    return unicodedata.normalize("NFKC", _exponents(_spread_fractions(text)))


def strip_markup(text: str) -> str:
    """Text without HTML tags of emphasis, LaTeX wrapping, dollar signs of mathematics, stars and backticks."""
    if "<" in text:
        text = _TAGS.sub("", text)
    if "\\" in text:
        for _ in range(4):
            text, changed = _LATEX_TEXT.subn(r"\1", text)
            if not changed:
                break
        text = _LATEX_SPACES.sub(" ", _LATEX_WORDS.sub("", text))
    for wrapper in (r"\(", r"\)", r"\[", r"\]", "$", "**", "__", "`"):
        text = text.replace(wrapper, "")
    return _EMPHASIS.sub(r"\2", text)


def plain_text(text: str) -> str:
    """Text with compatibility forms unified (full-width digits, ½, −, ³) and LaTeX and Markdown wrapping taken off."""
    text = re.sub(r"(?<=\d)\*\*(?=\d)", "^", text)
    if not text.isascii():
        text = unicodedata.normalize("NFKC", _exponents(_spread_fractions(text))).translate(_MINUS)
    text = text.replace("\\$", "$").replace("\\%", "%").replace("{,}", ",").replace("\\dollar", "$")
    if "\\" in text or "~" in text:
        text = _LATEX_SPACES.sub(lambda match: " " if match[0] not in (r"\!", r"\,") else "", text)
        text = _LATEX_TEXT.sub(r" \1 ", text)
        text = _LATEX_WORDS.sub("", text)
    for wrapper in _WRAPPERS:
        text = text.replace(wrapper, "")
    return " ".join(text.split())


def boxes(body: str) -> Iterator[tuple[int, str]]:
    r"""Every complete ``\boxed{…}`` or ``\fbox{…}`` that is not inside another, with its place; braces are counted.

    Boxes that only a comma or a word for and or or parts are one answer of several parts.
    """
    end, place = -1, None
    if "box" not in body:
        return
    for match in list(re.finditer(r"\\(?:f?boxed|fbox)[ \t]{0,4}\{", body))[-_MAX_BOXES:]:
        if match.start() < end:
            continue
        depth, index, last = 1, match.end(), min(len(body), match.end() + _MAX_BOX_CHARS)
        while index < last and depth:
            char = body[index]
            if char == "\\":
                index += 1
            elif char == "{":
                depth += 1
            elif char == "}":
                depth -= 1
            index += 1
        if depth == 0:
            content = body[match.end() : index - 1]
            if place is not None and _JOINS.fullmatch(body, end, match.start()):
                content = f"{place[1]}, {content}"
            elif place is not None:
                yield place
            end, place = index, (match.start(), content)
    if place is not None:
        yield place


def last_boxed(text: str) -> tuple[int, str] | None:
    """Position and content of the last complete box, or None."""
    every = list(boxes(text))
    return every[-1] if every else None


def unwrap(content: str) -> str:
    """An answer without emphasis, quotes, code marks, a box or a fence around it."""
    text = content.strip()
    if len(text) > _MAX_ANSWER_CHARS:
        return text
    for _ in range(8):
        before = text
        box = re.search(r"\\f?box(?:ed)?[ \t]{0,4}\{", text)
        if box is not None:
            inner = last_boxed(text)
            text = inner[1].strip() if inner is not None else text
        text = re.sub(r"^(?:\*\*|__|`+|[*_])\s*(.*?)\s*(?:\*\*|__|`+|[*_])(?=[.\s]*$)", r"\1", text, flags=re.DOTALL)
        text = text.strip(" \t\r\n*")
        text = _unquoted(text)
        if text == before:
            break
    return text


def _unquoted(text: str) -> str:
    if len(text) > 2 and text[0] in _QUOTES and text[-1] in _QUOTES[text[0]] and text[0] not in text[1:-1]:
        return text[1:-1].strip()
    return text


def bare_text(content: str) -> str:
    """An answer as plain as its text can be read: unwrapped, entities resolved, no tags, no final punctuation."""
    text = html.unescape(content) if "&" in content else content
    text = unwrap(_TAGS.sub("", text) if "<" in text else text)
    return unwrap(text.rstrip(_FINAL + " \t")) if text.rstrip(_FINAL + " \t") else text
