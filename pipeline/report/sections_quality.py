"""The sections of the page about what the estimates rest on: signals, judges, calls and cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import polars as pl

from pipeline.estimators import Estimate
from pipeline.report.judge_diagnostics import pair_diagnostics, score_diagnostics
from pipeline.report.markup import Cell, section, table
from pipeline.report.run_folder import RunFolder
from pipeline.report.signal_families import family_costs
from pipeline.report.terminal import number, span

__all__ = ["quality"]


def quality(run: RunFolder) -> Iterator[str]:
    """Signals, judges, cost."""
    yield _signals(run)
    yield _judges(run)
    yield _cost(run)


def _signals(run: RunFolder) -> str:
    names = [c for c in run.signals.columns if c not in ("item_id", "target", "y", "labeled", "profile")]
    rows: list[list[Cell]] = []
    for target in run.targets:
        frame = run.signals.filter(pl.col("target") == target)
        labeled = frame.filter(pl.col("labeled"))
        for name in names:
            if name.endswith("_missing") or frame[name].is_null().all():
                continue
            pair = labeled.select("y", name).drop_nulls().to_numpy().astype(float)
            varies = len(pair) > 2 and np.ptp(pair, axis=0).min() > 0
            correlation = f"{np.corrcoef(pair.T)[0, 1]:.2f}" if varies else "–"
            missing = frame[name].null_count()
            rows.append(
                [target, name, correlation, len(pair), _short(frame[name].mean()), _short(frame[name].std()), missing]
            )
    parts = [_worth(run)]
    if rows:
        columns = ["target", "signal", "correlation with gold", "labels", "mean", "sd", "missing"]
        note = "A missing value is filled with the signal's mean; from 1 % missing an indicator joins the signals."
        parts.append(table(columns, rows, caption="Signals", numeric=range(2, 7), note=note))
    return section("signals", "Signals", *parts) if rows else ""


def _short(value: Any) -> str:
    return f"{value:.3f}" if isinstance(value, int | float) else "–"


def _worth(run: RunFolder) -> str:
    found = [entry for entry in run.estimates.extra.get("worth") or [] if entry.get("gain") is not None]
    if not found:
        return ""
    costs, unit = family_costs(run.manifest)
    total = sum(costs.values()) if costs else 0.0
    rows: list[list[Cell]] = [
        [
            entry["target"],
            entry["family"],
            f"{100 * (costs or {}).get(entry['family'], 0.0) / total:.0f} % of the {unit}" if total else "–",
            f"{entry['gain']:.2f}×",
            f"{entry['without']:.0f} → {entry['effective']:.0f}",
        ]
        for entry in found
    ]
    columns = ["target", "signals", "took", "the labels", "effective labels without → with"]
    note = "Leave one family out: how many times the labels the others alone would need for the same precision."
    return table(columns, rows, caption="What each family of signals was worth", numeric=(2, 3, 4), note=note)


def _interval(estimate: Estimate | None, *, percent: bool = True) -> str:
    if estimate is None:
        return "–"
    return f"{number(estimate.value, percent=percent)} {span(estimate.low, estimate.high, percent=percent)}"


def _triple(found: tuple[float, float, float] | None) -> str:
    return "–" if found is None else f"{found[0]:.2f} [{found[1]:.2f}, {found[2]:.2f}]"


def _judges(run: RunFolder) -> str:
    pairs: list[list[Cell]] = [
        [
            entry.rater,
            entry.kind,
            entry.verdicts,
            f"{100 * entry.failed:.1f}",
            f"{100 * entry.ties:.1f}",
            _interval(entry.position_effect),
            entry.pairs,
            _interval(entry.consistent),
        ]
        for entry in pair_diagnostics(run.preferences)
    ]
    scores: list[list[Cell]] = [
        [
            entry.rater,
            entry.scores,
            f"{100 * entry.failed:.1f}",
            f"{100 * entry.repaired:.1f}",
            _interval(entry.agreement),
            "–" if entry.gold_correlation is None else f"{entry.gold_correlation:.2f}",
            _triple(entry.verbosity),
            _interval(entry.self_preference),
            _triple(entry.drift),
        ]
        for entry in score_diagnostics(run.scores, run.responses, asked_at=run.score_times())
    ]
    parts = []
    if pairs:
        columns = [
            "rater",
            "of",
            "verdicts",
            "null, %",
            "ties, %",
            "position effect, points",
            "swap pairs",
            "consistent, %",
        ]
        note = "position effect: how much more often the first-shown wins than the second; 0 is fair, 100 always first."
        parts.append(table(columns, pairs, caption="Pairwise verdicts", numeric=range(2, 8), note=note))
    if scores:
        columns = ["rater", "scores", "null, %", "repaired, %", "on gold's side of ½, %", "correlation with gold"]
        columns += ["score and length", "own answers, points", "drift"]
        note = "score and length: correlation given correctness. own answers: its own minus others', given correctness."
        parts.append(table(columns, scores, caption="Scores", numeric=range(1, 9), note=note))
    return section("judges", "Judges", *parts) if parts else ""


def _cost(run: RunFolder) -> str:
    calls = run.manifest.get("calls") or {}
    rows: list[list[Cell]] = []
    for stage, counted in (calls.get("stages") or {}).items():
        outcomes = ", ".join(f"{count} {name}" for name, count in counted["outcomes"].items() if name != "ok")
        rows.append(
            [
                stage,
                counted["calls"],
                counted["answered"],
                counted["cached"],
                counted["failed"],
                counted["prompt_tokens"],
                counted["completion_tokens"],
                _money(counted),
                outcomes or "–",
            ]
        )
    columns = ["stage", "calls", "asked", "cached", "failed", "prompt tokens", "reply tokens", "cost", "other than ok"]
    note = (
        "asked: answered for this run and paid for; cached: answered earlier, by this or another run. Cost: this run's."
    )
    return section("cost", "Calls and cost", table(columns, rows, caption="By stage", numeric=range(1, 8), note=note))


def _money(counted: Mapping[str, Any]) -> str:
    known = f"${counted['cost_usd']:.4f}"
    return f"{known} + {counted['cost_unknown']} of unknown price" if counted["cost_unknown"] else known
