"""Words beside a figure that make it another number, a bound, or none, in the languages that models reply in."""

from __future__ import annotations

import re

_OTHER = r"[^\W\d_]"
_FIGURE = r"[-−+]?[$€£¥₹]?\s?(?:\d|\.\d)"


def _words(latin: str, other: str) -> str:
    """Words of scripts that part them by spaces, and of those that do not."""
    return rf"(?:(?<!{_OTHER})(?:{latin})(?!{_OTHER})|{other})"


_MINUS = re.compile(
    _words(
        r"minus|negative|negativ|negativo|negatif|négatif|(?<!al )(?<!pelo )menos(?! (?:de|que|do)\b)"
        r"|(?<!au )moins(?! (?:de|que)\b)"
        r"|meno(?! di\b)|минус|eksi|âm|سالب|ناقص|ऋण|ऋणात्मक|माइनस|ঋণাত্মক|ঋণ|মাইনাস",
        "负|負|マイナス|마이너스",
    )
    + r"\s{0,3}(?=[\d.$€£¥₹\\(])|\b(?:minus|negative)\s{1,3}(?=[a-z])",
    re.IGNORECASE,
)
_DENIED_TEXT = _words(
    r"(?:is|was|are)\s{1,2}not|not|(?:is|was|are)n['’]t|nicht|keine?|no\s{1,2}(?:es|son|era|sería)|n['’](?:est|était|a)\s{1,2}pas"
    r"|pas|não(?:\s{1,2}(?:é|são))?|non(?:\s{1,2}(?:è|sono))?|не|bukan(?:lah)?|không(?:\s{1,2}phải)?|ليس|ليست",
    "不是|並非|并非|不为|不等于",
)
DENIED = re.compile(_DENIED_TEXT, re.IGNORECASE)
"""What says, before an answer, that it is not the one."""
_TAKEN_BACK = (
    r"(?:ではない|ではありません|でなく|ではなく|じゃない|[가이은는]?\s?아니|[가이은는]?\s?아닙|(?<!\w)değil|नहीं|নয়|নয়)"
)
_NOT_BUT = re.compile(
    rf"{_DENIED_TEXT}[^\n]{{1,60}}?"
    + _words(
        r"but|rather|it['’]?s|it is|sondern|sino|mais|mas(?:\s{1,2}sim)?|ma|bensì|а|melainkan|tetapi"
        r"|mà(?:\s{1,2}là)?|بل",
        "而是|是(?=[-−]?\\d)",
    )
    + r"|(?:ではなく、?|でなく、?|아니라|(?<!\w)değil,?|नहीं,?(?:\s{0,2}बल्कि)?|(?:নয়|নয়),?(?:\s{0,2}বরং)?)"
    rf"(?=\s{{0,3}}{_FIGURE})",
    re.IGNORECASE,
)
_LIMITS = _words(
    r"less|more|fewer|greater|smaller|larger|bigger|higher|lower|at least"
    r"|at most|(?:up to|over|under|below|above|unter|über|maior|menor|mayor|до|от|hơn|dưới|trên)(?=\W*$)"
    r"|exceeds?|between|no (?:more|less|fewer)|never|excluding|except|neither|nor"
    r"|(?:a )?(?:minimum|maximum|min|max)(?: of)?(?=\W*$)"
    r"|weniger|mehr als|höchstens|mindestens|zwischen|maximal|minimal"
    r"|menos|más de|al menos|como máximo|como mínimo|moins|plus de|plus que|au moins|au plus"
    r"|mais de|mais que|pelo menos|no máximo|no mínimo|meno|più di|almeno|al massimo|al minimo|maggiore|minore"
    r"|больше|меньше|более|менее|свыше|минимум|максимум|lebih|kurang|setidaknya|paling|sedikitnya|maksimal"
    r"|en az|en fazla|en çok|ít nhất|nhiều nhất|tối đa|tối thiểu|أكثر|أقل|أكبر|أصغر|على الأقل|على الأكثر"
    r"|कम से कम|अधिक से अधिक|ज़्यादा|কমপক্ষে|অন্তত|সর্বোচ্চ|সর্বনিম্ন",
    "小于|大于|不(?!过)|少于|多于|至少|至多|超过|不足|低于|高于|최소|최대|少なくとも|最大|最小",
)
_BOUND = re.compile(
    rf"[<>≤≥≦≧±≲≳]|\\(?:leq?|geq?|pm|mp|lt|gt|ne|neq)\b|!=|≠|n['’]t|{_DENIED_TEXT}|{_LIMITS}|\b(?:either|or)\b",
    re.IGNORECASE,
)
_LIMITS_AFTER = _words(
    r"at (?:most|least)|(?:or|and) (?:more|less|fewer|above|over|under|below|higher|lower|greater|up|upwards?)"
    r"|oder (?:mehr|weniger)|o (?:más|menos|più|meno)|ou (?:plus|moins|mais|menos)|или (?:больше|меньше|более)"
    r"|atau (?:lebih|kurang)|veya (?:daha )?(?:fazla|az)|hoặc (?:hơn|ít hơn)|fazla|trở lên|trở xuống"
    r"|से (?:अधिक|कम|ज़्यादा)|(?:এর|র) (?:বেশি|কম)|أو (?:أكثر|أقل)",
    "以上|以下|未満|未满|以内|より(?:大き|小さ|多|少)|を超え|多个|이상|이하|미만|초과|보다",
)
_BOUND_AFTER = re.compile(
    rf"[^\n.;,\d]{{0,24}}?(?:{_LIMITS_AFTER}|{_TAKEN_BACK})"
    r"|\s{0,2}\+(?=\s{0,2}(?:$|[^\W\d_]))|\s{0,2}(?:[a-z]{1,14}\s)?(?:minimum|maximum)\b",
    re.IGNORECASE,
)
_SAYS_OTHERWISE = re.compile(
    rf"{_DENIED_TEXT}|{_LIMITS}|{_LIMITS_AFTER}|{_TAKEN_BACK}|\b(?:wrong|incorrect)\b", re.IGNORECASE
)
_OPERATED = re.compile(
    r"(?:[√∛]|\b(?:sqrt|root of|log|ln|lg|sin|cos|tan|cot|exp|arcsin|arccos|arctan|factorial of|abs)\b"
    r"|\b(?:twice|thrice|double|triple|half|halves|thirds?|quarters?|fourths?|fifths?|sixths?|eighths?|tenths?)"
    r"(?: of)?\b"
    r"|(?:\bpercent|%) of)[\s({]*$",
    re.IGNORECASE,
)
_SQUARED = re.compile(r"\s{1,3}(?:squared|cubed|factorial|choose)\b", re.IGNORECASE)


def spelled_minus(text: str) -> str:
    """``minus 7``, ``moins 7``, ``负7`` as -7."""
    return _MINUS.sub("-", text)


def after_denial(text: str) -> str | None:
    """What an answer says instead of what it denies (``not 42 but 43``, ``42ではなく43``); None for no denial."""
    again = list(_NOT_BUT.finditer(text))
    return text[again[-1].end() :] if again else None


def is_bound(text: str) -> bool:
    """Whether words say that what they stand beside is a bound, or deny it."""
    return bool(_BOUND.search(text))


def bounded_before(text: str) -> bool:
    """Whether the words before a figure make it a bound or deny it, or apply something to it."""
    return is_bound(text) or bool(_OPERATED.search(text))


def bounded_after(text: str) -> bool:
    """Whether the words after a figure make it a bound, deny it, or apply something to it."""
    return bool(_BOUND_AFTER.match(text) or _SQUARED.match(text))


def says_otherwise(text: str) -> bool:
    """Whether a text says of what stands in it that it is a bound, or not the answer."""
    return bool(_SAYS_OTHERWISE.search(text))
