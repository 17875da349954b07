"""Leaderboard: ranks that each target could hold, the forest plot, every mean by target and method."""

from __future__ import annotations

from pipeline.estimators import Estimate
from pipeline.evaluation.methods import method_about, method_label
from pipeline.report.charts import Interval, forest_plot
from pipeline.report.markup import Cell, figure, section, table
from pipeline.report.run_folder import RunFolder
from pipeline.report.sections.values import between, is_share, means, truth, value
from pipeline.report.terminal import audit_sentence, worth


def leaderboard(run: RunFolder) -> str:
    """The section; empty where no mean was estimated."""
    if not any(means(run)):
        return ""
    percent = is_share(run)
    rows: list[list[Cell]] = []
    for target, methods in run.estimates.items():
        true_value = truth(run, target)
        if true_value is not None:
            true_text = value(true_value, percent=percent)
            rows.append(
                [target, "simulated\u00a0truth", true_text, "", "", "", "", "", "expected value over its replies"]
            )
        for method, estimate in methods.items():
            if isinstance(estimate, Estimate):
                rows.append([target, *_cells(method, estimate, percent)])
    unit = "estimate, %" if percent else "estimate"
    level = next((e.level for m in run.estimates.values() for e in m.values() if isinstance(e, Estimate)), 0.95)
    columns = ["target", "method", unit, "SE", f"{100 * level:g} % interval", "labels", "worth", "about", "how"]
    note = (
        "worth: labels that the plain mean would need for the same standard error. about: what the interval covers, the"
        " mean of these items (pool) or of the population they come from."
    )
    made = table(
        columns,
        rows,
        caption="Mean performance by target and method",
        numeric=(2, 3, 4, 5, 6),
        note=note,
        source="estimates.json, targets → target → method",
    )
    chart = figure(forest(run), f"Points and {100 * level:g} % intervals; diamonds are known values.")
    return section("leaderboard", "Leaderboard", _ranks(run), chart, made, _unread(run))


def _unread(run: RunFolder) -> str:
    """Answers in which none could be read, and what a person found in a checked sample of the others."""
    rows: list[list[Cell]] = [
        [target, entry.count, f"{entry.share:.1%}", *(_mean(value) for value in (entry.value_low, entry.value_high)),
         "; ".join(f"{form} ({count}×)" for form, count in entry.forms)]
        for target, entry in run.estimates.unread.items()
    ]  # fmt: skip
    audited = run.estimates.audit
    note = "if right: the plain mean over the labeled items, had all unread answers been right."
    if audited is not None:
        note = f"{audit_sentence(audited)} {note}"
    if not rows:
        return ""
    columns = ["target", "unread", "share", "mean, %", "if right, %", "commonest ends"]
    return table(
        columns, rows, caption="Answers in which none could be read", numeric=(1, 2, 3, 4), note=note,
        source="estimates.json, unread and audit",
    )  # fmt: skip


def _mean(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.1f}"


def _cells(method: str, estimate: Estimate, percent: bool) -> list[Cell]:
    exact = estimate.interval == "none"
    name, text = method_label(method).replace(" ", "\u00a0"), value(estimate.value, percent=percent)
    if exact:
        return [name, text, "", "", estimate.n, "", "pool", method_about(method)]
    return [
        name,
        text,
        value(estimate.se, percent=percent, digits=2 if percent else 1),
        between(estimate.low, estimate.high, percent=percent),
        estimate.n,
        worth(estimate),
        estimate.target,
        method_about(method),
    ]


def _ranks(run: RunFolder) -> str:
    decided = run.estimates.decisions
    if decided is None or not decided.rank_sets:
        return ""
    percent = is_share(run)
    rows: list[list[Cell]] = []
    for entry in sorted(decided.rank_sets, key=lambda entry: entry.rank):
        reach = str(entry.best) if entry.best == entry.worst else f"{entry.best} to {entry.worst}"
        beaten = ", ".join(decided.beaten(entry.name)) or "–"
        rows.append([entry.name, entry.rank, reach, value(entry.value, percent=percent), beaten])
    note = (
        f"All rank sets hold together with probability {decided.level:g}: they follow from the joint intervals of"
        f" all paired gaps ({decided.adjustment})."
    )
    columns = ["target", "rank", "could be", "LACE mean, %" if percent else "LACE mean", "better than"]
    return table(
        columns, rows, caption="Ranks", numeric=(1, 2, 3), note=note, source="estimates.json, decisions → rank_sets"
    )


def forest(run: RunFolder) -> str:
    """The forest plot as SVG; empty where no mean was estimated."""
    if not any(means(run)):
        return ""
    rows: list[Interval] = []
    for group, (target, methods) in enumerate(run.estimates.items()):
        rows.append(Interval(target, None))
        true_value = truth(run, target)
        if true_value is not None:
            rows.append(Interval("simulated truth", true_value, group=group))
        for method, estimate in methods.items():
            if isinstance(estimate, Estimate):
                low, high = (None, None) if estimate.interval == "none" else (estimate.low, estimate.high)
                rows.append(Interval(method_label(method), estimate.value, low, high, group))
    return forest_plot(rows, title="Estimates and intervals by target and method", percent=is_share(run))
