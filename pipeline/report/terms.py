"""The words of pages and tables, each with what it means: definitions on the page, and the glossary of the docs."""

from __future__ import annotations

from collections.abc import Iterator

TERMS = {
    "target": "A model that is evaluated. Of an interval: what it covers, items like these (population) or these very"
    " items (pool).",
    "gold": "The right answer or a person's rating, against which a model's answer is graded.",
    "label": "A graded answer: an item whose outcome is known. Labels are what costs; the methods here save them.",
    "outcome": "How good one answer is, φ: 1 right, 0 wrong, or a rating.",
    "signal": "A number that is known for every item without a label: a judge's score, a preference, a stated"
    " confidence, a length. It may be biased; it corrects, it never replaces a label.",
    "pool": "All items, labeled or not.",
    "estimate": "The recommended number of a target: the mean of its labels, corrected by the signals of all items"
    " (LACE).",
    "interval": "Where the true value lies with the stated probability, were the labels drawn again and again.",
    "SE": "Standard error: how far the estimate would scatter over new draws of labels.",
    "jointly": "An interval that holds together with those of all other pairs, so that many comparisons are not many"
    " chances to be wrong.",
    "gap": "The difference of two targets on the same items: what makes an item hard for both falls out.",
    "rank range": "The ranks that a target could hold, all targets' ranges together with the stated probability.",
    "verdict": "What the joint interval of a gap decides: better, worse, equivalent within the margin, or no"
    " difference shown.",
    "worth": "How many labels the plain mean would need for the same standard error; in brackets its 95 % range.",
    "naive": "The plain mean of the labeled items.",
    "LACE": "Local average of control-variate estimates: the labels' mean corrected by signals, overall and along an"
    " axis.",
    "one-step": "The mean of the labels corrected within each item by a model's own further answers.",
    "best of N": "The policy that takes the best of N candidates by the mean of J scores.",
    "profile": "Performance along an axis, such as difficulty: one number per level.",
    "joint band": "Intervals that hold for the whole curve at once.",
    "calibration": "What people said of the answers that a judge scored alike: on the diagonal, it says what they say.",
    "margin": "The difference below which two targets count as equivalent.",
    "coverage": "The share of repetitions in which an interval holds the truth: 95 % if it keeps its promise.",
    "rehearsal": "Known labels hidden at random, many times, to see what the methods would have said.",
}  # fmt: skip
"""Word → what it means; a page links a column's header to it."""
_ALSO = {"labels": "label", "signals": "signal", "method": "LACE", "95 % interval": "interval", "a − b": "gap"}


def term_of(name: str) -> str:
    """The word that explains a header; empty where none does."""
    name = _ALSO.get(name, name)
    return name if name in TERMS else ""


def glossary() -> Iterator[str]:
    """The glossary as Markdown, line by line."""
    yield "# Glossary\n"
    yield "Made by `python docs/generate_reference.py` from `pipeline/report/terms.py`.\n"
    for word, meaning in TERMS.items():
        yield f"**{word}**: {meaning}\n"
