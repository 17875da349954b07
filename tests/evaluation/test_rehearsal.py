"""Rehearsals: honest error and coverage, gain where there is one and none where there is none."""

from __future__ import annotations

import numpy as np
import pytest

from pipeline.errors import InputError
from pipeline.evaluation.document import EstimateSet, Warned
from pipeline.evaluation.evaluate import evaluate
from pipeline.evaluation.pool import Pool, TargetPool
from pipeline.evaluation.rehearsal import rehearse, rehearse_target
from pipeline.report.printers.html import html
from pipeline.report.table_files import csv_text, table_page


def a_target(rho: float, size: int = 400, labeled: int | None = None, clusters: int = 0) -> TargetPool:
    rng = np.random.default_rng(9)
    signal = rng.normal(size=size)
    group = np.arange(size) // max(clusters, 1)
    shared = rng.normal(size=size)[group] if clusters else 0.0
    y = rho * signal + np.sqrt(1 - rho**2) * rng.normal(size=size) + shared
    known = np.arange(size) < (labeled or size)
    return TargetPool(
        "all", np.where(known, y, np.nan), known, signal[:, None], ("s",),
        clusters=group.astype(str) if clusters else None,
    )  # fmt: skip


def test_a_good_signal_gains_what_theory_says() -> None:
    """MSE ratio 1/(1 − ρ²) = 2.8 for ρ = .8; 200 rehearsals give a ratio of MSEs a relative sd of 14 % at most."""
    rows = {(r.labels, r.method): r for r in rehearse_target(a_target(0.8), 200, budgets=(100,))}
    lace = rows[100, "lace"]
    assert lace.efficiency == pytest.approx(2.8, rel=0.42)
    assert lace.efficiency_low < lace.efficiency < lace.efficiency_high
    # 3.3 Monte Carlo sd of a coverage of .95 from 200 are .051.
    assert lace.coverage > 0.89
    assert rows[100, "naive"].efficiency == 1.0
    assert abs(lace.bias) < 4 * lace.rmse / np.sqrt(200)


def test_a_useless_signal_costs_nothing() -> None:
    rows = rehearse_target(a_target(0.0), 150, budgets=(50, 100))
    assert all(row.efficiency > 0.85 for row in rows)


def test_clusters_are_hidden_as_wholes_and_covered() -> None:
    rows = {r.method: r for r in rehearse_target(a_target(0.6, clusters=5), 150, budgets=(100,))}
    # Without whole clusters the error would be that of independent rows, and the interval too short.
    assert rows["naive"].coverage > 0.88
    assert rows["lace"].coverage > 0.88


def test_only_known_labels_are_rehearsed() -> None:
    rows = rehearse_target(a_target(0.5, labeled=120), 5)
    assert {row.pool for row in rows} == {120}
    assert {row.labels for row in rows} == {20, 50}
    with pytest.raises(InputError, match="there are 30"):
        rehearse(Pool((a_target(0.5, labeled=30),)), 5)


def test_text_in_a_page_is_text() -> None:
    estimates = evaluate(Pool((a_target(0.5, labeled=50),)))
    named = EstimateSet({"<b>x</b>": estimates["all"]}, warnings=(Warned("w", "<script>alert(1)</script>"),))
    page = "".join(html(table_page(named, title="a & b")))
    assert "<b>x</b>" not in page
    assert "<script>alert" not in page
    assert "&lt;b&gt;x&lt;/b&gt;" in page
    assert csv_text(named).splitlines()[1].startswith("<b>x</b>,naive,,")
