"""The estimates of a user's table for a terminal: the numbers, and in words whether the signals helped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pipeline.estimators import Estimate, Profile
from pipeline.estimators.worth import MIN_RANGE_LABELS
from pipeline.evaluation.document import EstimateSet
from pipeline.evaluation.methods import leading, leads
from pipeline.evaluation.rehearsal import Rehearsed, rehearsed_of
from pipeline.report.terminal import number, print_estimates
from pipeline.report.text_tables import TextTable, plain

if TYPE_CHECKING:
    from rich.console import Console

_HELP = 1.05
_MAX_SENTENCES = 20


def worth_sentences(estimates: EstimateSet) -> tuple[str, ...]:
    """Per target: did the signals help, and as how many labels; per profile: at how many of its points."""
    sentences = []
    for target, methods in estimates.items():
        prefix = "" if target == "all" else f"{target}: "
        mean = leading(methods)
        sentence = _worth(mean) if mean is not None and mean.worth is not None and mean.verdict else ""
        sentences += [f"{prefix}{sentence}"] if sentence else []
        for method, profile in methods.items():
            if isinstance(profile, Profile) and leads(method) and any(profile.verdict):
                counts = Counter(profile.verdict)
                listed = ", ".join(f"{counts[word]} {word}" for word in ("help", "neutral", "hurt") if counts[word])
                along = profile.column or "the profile"
                sentences.append(f"{prefix}along {along}: of {len(profile.at)} points the signals {listed}.")
    return tuple(sentences)


def _worth(mean: Estimate) -> str:
    """What the signals did: that they hurt is said only where the whole range of their worth lies below the labels."""
    assert mean.worth is not None
    low, high = mean.worth_low, mean.worth_high
    if low is None or high is None:
        few = f"{mean.n} labels are worth about {mean.worth:.0f}; how far that is noise cannot be told below"
        return f"{few} {MIN_RANGE_LABELS} labels." if mean.n_items < MIN_RANGE_LABELS else ""
    gain = mean.worth / mean.n
    if low > mean.n and gain > _HELP:
        effect = "the signals help"
    elif mean.verdict == "hurt":
        effect = "the signals hurt"
    else:
        effect = "the signals may help" if gain > _HELP else "the signals add nothing that shows"
    return f"{effect}: {mean.n} labels are worth about {mean.worth:.0f}, {low:.0f} to {high:.0f}."


def print_table_estimates(console: Console, estimates: EstimateSet, *, title: str = "") -> None:
    """Estimate, interval, labels, what they are worth, whether the signals helped, the rehearsal, the warnings."""
    from rich.text import Text

    print_estimates(console, estimates, title=title)
    sentences = worth_sentences(estimates)
    for sentence in sentences[:_MAX_SENTENCES]:
        console.print(Text(plain(sentence)))
    if len(sentences) > _MAX_SENTENCES:
        console.print(Text(f"… and {len(sentences) - _MAX_SENTENCES} more (see --json or --out)"))
    rehearsed = rehearsed_of(estimates)
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
