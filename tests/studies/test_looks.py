"""A seeded slice of the studies of looks and of the gate."""

from __future__ import annotations

import numpy as np
import pytest

from pipeline.evaluation.gate import chance_of_block
from pipeline.studies.looks.gate_power import DROP, ITEMS, MARGINS, drawn_pair, planted, verdicts
from pipeline.studies.looks.paths import GAPS, MEANS, Design, _critical, path_of
from pipeline.studies.real.tables import build_cell
from pipeline.studies.registry import StudyOptions, load_study


def test_the_gate_blocks_as_often_as_its_formula_says() -> None:
    rng = np.random.default_rng(0)
    made = [verdicts(*drawn_pair(DROP, 0.15, rng)) for _ in range(300)]
    for k, margin in enumerate(MARGINS[:3]):
        share = np.mean([row[k] == "BLOCK" for row in made])
        chance = chance_of_block(DROP, 0.15, ITEMS, margin)
        assert abs(share - chance) < 4.0 * np.sqrt(chance * (1 - chance) / 300) + 0.01


def test_equal_candidates_are_blocked_rarely_and_planted_drops_nearly_always() -> None:
    rng = np.random.default_rng(1)
    equal = [verdicts(*drawn_pair(0.0, 0.3, rng))[0] for _ in range(300)]
    assert np.mean([verdict == "BLOCK" for verdict in equal]) <= 0.025 + 3 * np.sqrt(0.025 * 0.975 / 300)
    base = (rng.random(ITEMS) < 0.6).astype(float)
    worse = [verdicts(base, planted(base, 0.1, rng))[0] for _ in range(40)]
    assert worse.count("BLOCK") >= 39


def made_cells(models: int, rng: np.random.Generator):
    hard = rng.normal(size=900)
    cells = {}
    for k in range(models):
        y = (rng.random(900) < 1 / (1 + np.exp(-(0.8 - 0.3 * k - hard)))).astype(float)
        signals = np.stack([y + rng.normal(0, 0.8, 900), hard + rng.normal(size=900)], axis=1)
        cells["ab"[k]] = build_cell("made/axis", f"m{k}", hard, "continuous", y, signals, {"judge": "judge", "x": "x"})
    return cells


@pytest.mark.parametrize("design", [MEANS, GAPS], ids=["means", "gaps"])
def test_intervals_of_a_plan_hold_together_where_plain_ones_do_not(design: Design) -> None:
    """60 paths of four looks: a plan's joint coverage is within Monte Carlo error of .95, and above the plain one."""
    rng = np.random.default_rng(5)
    parts = made_cells(1 if design.goal.kind == "width" else 2, rng)
    few = Design(design.goal, design.sizes[::3], design.targets)
    held = {"plain": 0, "obrien-fleming": 0, "power:2": 0, "pocock": 0}
    for _ in range(60):
        truth, statistics, items = path_of(parts, few, rng)
        for rule, critical in _critical(few, items).items():
            intervals = [at.interval(c) for at, c in zip(statistics, critical, strict=True)]
            held[rule] += all(low - 1e-12 <= truth <= high + 1e-12 for low, high in intervals)
    assert held["plain"] <= min(held["obrien-fleming"], held["power:2"], held["pocock"])
    assert min(held["obrien-fleming"], held["power:2"], held["pocock"]) >= 60 * 0.95 - 4 * np.sqrt(60 * 0.95 * 0.05)


def test_gate_power_runs_without_a_table() -> None:
    result = load_study("gate-power").run(StudyOptions(reps=2))
    assert [table.title.split(",")[0] for table in result.tables] == ["Truly 0.05 worse", "Equal: false blocks"]
