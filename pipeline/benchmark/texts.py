"""Whether an answer in words is the gold one: what only dresses it falls away where the gold has none of it."""

from __future__ import annotations

import html
import re

from pipeline.benchmark.plain import bare_text, normalize_text, plain_text, strip_markup, unwrap

_FINAL = " .。．!！?？,，;；:：…।॥؟،۔"


def same_text(answer: str, gold: str) -> bool:
    """Whether an answer, as written or without quotes, markup and final punctuation, is exactly the gold.

    Since the two must be equal in the end, nothing falls away that the gold has: ``__init__`` is ``__init__`` and not
    ``init``, and ``N/A`` and ``?`` can be golds.
    """
    if len(answer) > 4 * len(gold) + 1_000:
        return False
    wanted = normalize_text(gold)
    lines = answer.strip()
    forms = {lines, html.unescape(lines), unwrap(lines), bare_text(lines), strip_markup(lines), plain_text(lines)}
    forms |= {strip_markup(unwrap(lines)), re.sub(r"^[\s>\-•]+(?=\S)", "", lines)}
    for form in forms:
        text = normalize_text(form)
        if wanted in (text, text.rstrip(_FINAL), normalize_text(unwrap(text.rstrip(_FINAL)))):
            return True
    return False
