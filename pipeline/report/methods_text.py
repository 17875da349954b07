"""What goes into a paper: a methods paragraph, and the table of estimates as Markdown and LaTeX."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pipeline.estimators import Estimate, Profile
from pipeline.report.document import EstimateSet
from pipeline.report.terminal import METHOD_LABELS, number

__all__ = ["methods_paragraph", "tables_latex", "tables_markdown"]

_COLUMNS = ("Target", "Method", "Estimate", "SE", "Low", "High", "Labels")
_SPECIAL = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "λ": r"$\lambda$",
}  # fmt: skip


def _rows(estimates: EstimateSet) -> Iterator[list[str]]:
    for target, methods in estimates.items():
        for method, estimate in methods.items():
            if isinstance(estimate, Estimate):
                numbers = (estimate.value, estimate.se, estimate.low, estimate.high)
                yield [
                    target,
                    METHOD_LABELS.get(method, method),
                    *(number(value, percent=False, digits=2) for value in numbers),
                    str(estimate.n),
                ]


def tables_markdown(estimates: EstimateSet) -> str:
    """The means as a Markdown table."""
    lines = ["| " + " | ".join(_COLUMNS) + " |", "| " + " | ".join("---" for _ in _COLUMNS) + " |"]
    cells = ([" ".join(cell.split()).replace("|", "\\|") for cell in row] for row in _rows(estimates))
    lines.extend("| " + " | ".join(row) + " |" for row in cells)
    return "\n".join(lines) + "\n"


def _tex(cell: str) -> str:
    return "".join(_SPECIAL.get(c, c) for c in " ".join(cell.split()))


def tables_latex(estimates: EstimateSet) -> str:
    """The means as a LaTeX table (package booktabs)."""
    lines = [r"\begin{tabular}{llrrrrr}", r"\toprule", " & ".join(_COLUMNS) + r" \\", r"\midrule"]
    lines += [" & ".join(_tex(cell) for cell in row) + r" \\" for row in _rows(estimates)]
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"]) + "\n"


def methods_paragraph(estimates: EstimateSet, manifest: Mapping[str, Any], config: Mapping[str, Any]) -> str:
    """What exactly was estimated, how, and from how many labels; in sentences ready for a methods section."""
    benchmark = manifest.get("benchmark") or {}
    design = config.get("design") or {}
    used = {method for methods in estimates.values() for method in methods}
    said = [
        f"We evaluated {_listed(tuple(estimates))} on {benchmark.get('items')} items of {benchmark.get('name')}"
        f" (grading: {benchmark.get('grading')}), {manifest.get('labeled')} of them with gold labels drawn uniformly"
        f" without replacement (seed {manifest.get('seed')})."
    ]
    if "naive" in used:
        said.append(
            "The naive estimate is the mean over the labeled items, with Wilson's interval for binary outcomes."
        )
    if "one_step" in used:
        said.append(
            f"The one-step estimate subtracts λ times the contrast of the first against {design.get('draws')} further"
            f" draws of the predicted probability of correctness ({design.get('coupling')} coupling); λ was chosen by"
            f" the rule '{_power_rule(estimates)}'."
        )
    if "one_step_pool" in used:
        said.append("Its pool version uses the predictions of the unlabeled items as well.")
    if used & {"lace", "lace_profile"}:
        said.append(
            "LACE uses the judge's scores, order-swapped comparisons with three anchors, confidence and score"
            " disagreement of all items as control variates, with coefficients averaged over candidate rules by"
            " leave-one-out error;"
            " its intervals are about the mean (or kernel-smoothed profile) of these items."
        )
    if estimates.best_of_n:
        said.append(
            "Best-of-N values are unbiased: no score both selects and values the winner; intervals are over prompts."
        )
    if manifest.get("simulated"):
        said.append(f"The replies of {_listed(tuple(manifest['simulated']))} are SIMULATED.")
    said.append(f"Intervals have nominal coverage {_level(estimates):g}. Software: auxeval {_version(manifest)}.")
    return " ".join(said)


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _power_rule(estimates: EstimateSet) -> str:
    for methods in estimates.values():
        found = methods.get("one_step")
        if isinstance(found, Estimate):
            return str(found.diagnostics.get("power_rule", "fixed"))
    return "fixed"


def _level(estimates: EstimateSet) -> float:
    for methods in estimates.values():
        for estimate in methods.values():
            if isinstance(estimate, Estimate | Profile):
                return estimate.level
    return 0.95


def _version(manifest: Mapping[str, Any]) -> str:
    return str((manifest.get("versions") or {}).get("auxeval", ""))
