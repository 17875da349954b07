"""The estimates of a user's table for a terminal: the numbers, and in words whether the signals helped."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pipeline.estimators import Estimate, Profile
from pipeline.evaluation.document import EstimateSet
from pipeline.evaluation.rehearsal import Rehearsed
from pipeline.report.terminal import number, print_estimates
from pipeline.report.text_tables import TextTable, plain

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["print_table_estimates", "worth_sentences"]

_HELP, _HURT = 1.05, 0.95
_MAX_SENTENCES = 20


def worth_sentences(estimates: EstimateSet) -> tuple[str, ...]:
    """Per target: did the signals help, and as how many labels; per profile: at how many of its points."""
    sentences = []
    for target, methods in estimates.items():
        prefix = "" if target == "all" else f"{target}: "
        mean = methods.get("lace")
        if isinstance(mean, Estimate) and "labels_gain" in mean.diagnostics:
            gain, worth = mean.diagnostics["labels_gain"], mean.diagnostics["effective_labels"]
            said = (
                "the signals help"
                if gain > _HELP
                else "the signals hurt"
                if gain < _HURT
                else "the signals add nothing"
            )
            sentences.append(f"{prefix}{said}: {mean.n} labels are worth {worth:.0f} ({gain:.2f}×).")
        parts = _component_sentence(methods.get("naive"))
        sentences += [f"{prefix}{parts}"] if parts else []
        for method, profile in methods.items():
            if method.partition(":")[0] == "lace_profile" and isinstance(profile, Profile):
                verdicts = list(profile.diagnostics.get("verdict") or [])
                if verdicts:
                    counts = ", ".join(f"{verdicts.count(v)} {v}" for v in ("help", "neutral", "hurt") if v in verdicts)
                    column = profile.diagnostics.get("column", "the profile")
                    sentences.append(f"{prefix}along {column}: of {len(verdicts)} points the signals {counts}.")
    return tuple(sentences)


def _component_sentence(naive: Estimate | Profile | None) -> str:
    """Where the variance of clustered labels lies, and what more rows or more clusters would buy."""
    parts = naive.diagnostics.get("cluster_components") if isinstance(naive, Estimate) else None
    if not parts:
        return ""

    def error(clusters: float, size: float) -> str:
        return f"{math.sqrt((parts['between'] + parts['within'] / size) / clusters):.4f}"

    count, size = parts["clusters"], parts["size"]
    return (
        f"{count:.0f} labeled clusters of about {size:.1f} rows: {parts['share']:.0%} of the variance lies between"
        f" them; the plain mean's SE is about {error(count, size)}, and would be {error(count, 2 * size)} with twice"
        f" the rows in each, {error(2 * count, size)} with twice the clusters."
    )


def print_table_estimates(
    console: Console, estimates: EstimateSet, *, title: str = "", rehearsed: Sequence[Rehearsed] = ()
) -> None:
    """Estimate, interval, labels, what they are worth, whether the signals helped, the rehearsal, the warnings."""
    from rich.text import Text

    print_estimates(console, estimates, title=title)
    sentences = worth_sentences(estimates)
    for sentence in sentences[:_MAX_SENTENCES]:
        console.print(Text(plain(sentence)))
    if len(sentences) > _MAX_SENTENCES:
        console.print(Text(f"… and {len(sentences) - _MAX_SENTENCES} more (see --json or --out)"))
    if rehearsed:
        console.print(_rehearsal(rehearsed))


def _rehearsal(rehearsed: Sequence[Rehearsed]) -> TextTable:
    first = rehearsed[0]
    table = TextTable(
        f"Rehearsal: labels hidden at random {first.reps} times; the truth is the mean of all labeled rows",
        [
            ("target", False),
            ("labels", True),
            ("method", False),
            ("RMSE", True),
            ("coverage", True),
            ("±", True),
            ("efficiency", True),
        ],
    )
    for row in rehearsed:
        efficiency = f"{row.efficiency:.2f} [{row.efficiency_low:.1f}, {row.efficiency_high:.1f}]"
        table.add(
            row.target, str(row.labels), row.method, f"{row.rmse:.4f}", f"{number(row.coverage, percent=True)} %",
            f"{row.half_width:.4f}", "" if row.method == "naive" else efficiency,
        )  # fmt: skip
    return table
