"""The tables of a paper, as Markdown and LaTeX: means, gaps, profiles, best of N."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pipeline.estimators import Estimate, Profile
from pipeline.evaluation.document import EstimateSet
from pipeline.evaluation.methods import decides, method_label
from pipeline.report.markup import clean
from pipeline.report.terminal import about, number

_SPECIAL = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "λ": r"$\lambda$", "−": "$-$", "–": "--",
}  # fmt: skip
_MARKS = re.compile(r"([\\|`*_\[\]<>&])")


@dataclass(frozen=True, slots=True)
class PaperTable:
    """One table of text cells; ``words`` columns at the left, numbers after them."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    words: int


def paper_tables(estimates: EstimateSet, axis: str = "profile") -> Iterator[PaperTable]:
    """Every table that has rows."""
    for made in (_means(estimates), *_profiles(estimates, axis), _gaps(estimates), _best_of_n(estimates)):
        if made.rows:
            yield made


def _numbers(estimate: Estimate) -> tuple[str, ...]:
    return (
        *(number(v, percent=False, digits=2) for v in (estimate.value, estimate.se, estimate.low, estimate.high)),
        str(estimate.n),
    )


_ENDS = ("Estimate", "SE", "Low", "High")


def _means(estimates: EstimateSet) -> PaperTable:
    rows = tuple(
        (target, method_label(method), *_numbers(estimate))
        for target, methods in estimates.items()
        for method, estimate in methods.items()
        if isinstance(estimate, Estimate)
    )
    return PaperTable(
        " ".join(filter(None, ("Mean performance", about(estimates)))), ("Target", "Method", *_ENDS, "Labels"), rows, 2
    )


def _profiles(estimates: EstimateSet, axis: str) -> Iterator[PaperTable]:
    for target, methods in estimates.items():
        profile, band = methods.get("lace_profile"), methods.get("lace_profile_band")
        if not isinstance(profile, Profile):
            continue
        columns = [profile.value, profile.se, profile.low, profile.high]
        names = [axis, *_ENDS]
        if isinstance(band, Profile):
            columns += [band.low, band.high]
            names += ["Joint low", "Joint high"]
        rows = tuple(
            (
                str(at) if isinstance(at, str) else f"{float(at):.4g}",
                *(number(float(column[k]), percent=False, digits=2) for column in columns),
            )
            for k, at in enumerate(profile.at)
        )
        smoothed = ", smoothed" if profile.smoothed else ""
        yield PaperTable(f"Profile of {target} (LACE{smoothed})", tuple(names), rows, 1)


def _gaps(estimates: EstimateSet) -> PaperTable:
    joint = {} if estimates.decisions is None else {(p.a, p.b): p for p in estimates.decisions.pairs}
    rows = []
    for gap in estimates.gaps:
        if not isinstance(gap.estimate, Estimate):
            continue
        pair = joint.get((gap.a, gap.b)) if decides(gap.method) else None
        both = (math.nan, math.nan) if pair is None else (pair.low, pair.high)
        ends = tuple(number(end, percent=False, digits=2) for end in both)
        name = method_label(gap.method)
        rows.append((f"{gap.a} − {gap.b}", name, *_numbers(gap.estimate), *ends))
    return PaperTable("Paired gaps", ("Pair", "Method", *_ENDS, "Labels", "Joint low", "Joint high"), tuple(rows), 2)


def _best_of_n(estimates: EstimateSet) -> PaperTable:
    rows = tuple(
        (entry.target, entry.measure.replace("_", " "), str(entry.n), str(entry.j), *_numbers(entry.estimate))
        for entry in estimates.best_of_n
    )
    return PaperTable("Best of N", ("Target", "Measure", "N", "J", *_ENDS, "Prompts"), rows, 2)


def _line(cell: str) -> str:
    return " ".join(clean(cell).split())


def _marked(cell: str) -> str:
    return _MARKS.sub(r"\\\1", _line(cell))


def tables_markdown(estimates: EstimateSet, axis: str = "profile") -> str:
    """Every table as Markdown under its own heading; text of models and data cannot mark anything up."""
    return "\n".join(_markdown(made) for made in paper_tables(estimates, axis))


def _markdown(made: PaperTable) -> str:
    def row(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cells) + " |"

    rules = ["---" if k < made.words else "---:" for k in range(len(made.columns))]
    lines = [f"## {_marked(made.title)}", "", row([_marked(name) for name in made.columns]), row(rules)]
    lines += [row([_marked(cell) for cell in cells]) for cells in made.rows]
    return "\n".join(lines) + "\n"


def _tex(cell: str) -> str:
    return "".join(_SPECIAL.get(c, c) for c in _line(cell))


def tables_latex(estimates: EstimateSet, axis: str = "profile") -> str:
    """Every table as LaTeX (package booktabs), with its title in a comment above."""
    return "\n".join(_latex(made) for made in paper_tables(estimates, axis))


def _latex(made: PaperTable) -> str:
    layout = "l" * made.words + "r" * (len(made.columns) - made.words)
    lines = [f"% {_line(made.title)}", rf"\begin{{tabular}}{{{layout}}}", r"\toprule"]
    lines += [" & ".join(_tex(name) for name in made.columns) + r" \\", r"\midrule"]
    lines += [" & ".join(_tex(cell) for cell in cells) + r" \\" for cells in made.rows]
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"]) + "\n"
