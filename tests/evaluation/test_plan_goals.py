"""Every kind of plan on the command line: equivalence, open widths, fresh labels, closing, and a run as its table."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from pipeline.evaluation.plans.ledger import Goal, Ledger, Promise, StatisticEntry, read_ledger
from pipeline.evaluation.plans.order import next_sheet, sampling_of, with_imported, with_sheet
from pipeline.evaluation.plans.verdicts import verdict_of_look
from tests.evaluation.test_plans import COLUMNS, a_round, call, world

__all__ = ["world"]


def plan_of(table: Path) -> Ledger:
    ledger = read_ledger(table.with_name(table.name + ".plan.json"))
    assert ledger is not None
    return ledger


def test_equivalence_is_asked_and_read_from_all_looks(world, capsys):
    table, truth = world
    words = ("--gap", "new,old", "--equivalent", "0.02", "--max", "120", "--sheet", "60", *COLUMNS)
    assert call(capsys, "plan", str(table), *words)[0] == 0
    for number in (1, 2):
        out = a_round(capsys, table, truth, number)
    says = plan_of(table).looks[-1].verdict.says
    assert says in ("new and old more than 0.02 apart", "go on")
    assert ("apart" in out) == ("apart" in says)


@pytest.mark.parametrize(
    ("question", "margin", "low", "high", "says", "mirrored"),
    [
        ("superior", 0.0, 0.01, 0.2, "a > b", "b < a"),
        ("superior", 0.02, 0.03, 0.2, "a > b by more than 0.02", "b < a by more than 0.02"),
        ("superior", 0.02, 0.01, 0.2, "go on", "go on"),
        ("equivalent", 0.05, -0.04, 0.04, "a and b within 0.05", "b and a within 0.05"),
        ("equivalent", 0.05, 0.06, 0.2, "a and b more than 0.05 apart", "b and a more than 0.05 apart"),
        ("equivalent", 0.05, -0.06, 0.04, "go on", "go on"),
    ],
)
def test_relabeling_mirrors_the_verdict(question, margin, low, high, says, mirrored):
    def verdict(names: tuple[str, str], ends: tuple[float, float]) -> str:
        row = StatisticEntry(" - ".join(names), sum(ends) / 2, 0.01, 50.0, None, False, *ends, *ends)
        return verdict_of_look(Goal("gap", question=question, margin=margin, models=names), [row], False).says

    assert verdict(("a", "b"), (low, high)) == says
    assert verdict(("b", "a"), (-high, -low)) == mirrored


def test_an_open_width_plan_shows_its_number_at_every_look(world, capsys):
    table, truth = world
    words = ("--half-width", "0.05", "--open", "--max", "240", "--sheet", "40", *COLUMNS)
    assert call(capsys, "plan", str(table), *words)[0] == 0
    out = a_round(capsys, table, truth, 1)
    assert "plan interval [" in out
    assert plan_of(table).looks[0].estimates
    assert plan_of(table).looks[0].spent < 0.05  # something is left for the looks to come


def test_fresh_labels_leave_the_estimate(world, capsys):
    table, truth = world
    frame = pl.read_csv(table, infer_schema=False)
    early = {f"q{k:03d}" for k in range(30)}
    gold = [truth[i, m] if i in early else None for i, m in frame.select("id", "model").iter_rows()]
    frame.with_columns(pl.Series("gold", gold)).write_csv(table)
    words = ("--gap", "new,old", "--max", "100", "--sheet", "50", "--fresh", *COLUMNS)
    code, out, err = call(capsys, "plan", str(table), *words)
    assert code == 0, err
    assert "30 labels serve for planning only and leave the estimate (--fresh)" in out
    a_round(capsys, table, truth, 1)
    ledger = plan_of(table)
    assert ledger.promised is not None
    assert (ledger.promised.items, ledger.promised.labels_before, ledger.looks[-1].n) == (370, 0, 50)
    assert not early & set(ledger.sheets[0].items)
    assert not early & set(ledger.labels)


def test_labels_that_were_there_are_charged_as_a_look(world, capsys):
    table, truth = world
    frame = pl.read_csv(table, infer_schema=False)
    early = {f"q{k:03d}" for k in range(30)}
    gold = [truth[i, m] if i in early else None for i, m in frame.select("id", "model").iter_rows()]
    frame.with_columns(pl.Series("gold", gold)).write_csv(table)
    _, out, _ = call(capsys, "plan", str(table), "--gap", "new,old", "--max", "100", "--sheet", "30", *COLUMNS)
    assert "30 labels had been seen before this plan: they are charged as a look" in out
    a_round(capsys, table, truth, 1)
    assert [look.n for look in plan_of(table).looks] == [30, 60]
    assert plan_of(table).looks[0].t == pytest.approx(0.3)


def test_a_closed_plan_hands_out_nothing(world, capsys):
    table, _ = world
    assert call(capsys, "plan", str(table), "--gap", "new,old", "--max", "100", *COLUMNS)[0] == 0
    assert call(capsys, "status", str(table), "--close")[0] == 0
    code, out, err = call(capsys, "next", str(table), str(table.with_name("s.csv")))
    assert (code, out) == (2, "")
    assert "this plan is closed" in err
    code, _, err = call(capsys, "status", str(table), "--close")
    assert code == 2
    assert "only an open or decided plan can be closed" in err


def test_a_forgotten_plan_takes_its_sheet_and_counts_its_looks(world, capsys):
    table, truth = world
    words = ("--half-width", "0.02", "--max", "240", "--sheet", "40", *COLUMNS)
    assert call(capsys, "plan", str(table), *words)[0] == 0
    a_round(capsys, table, truth, 1)
    out = a_round(capsys, table, truth, 2, "--forget-plan", "--json")
    document = json.loads(out)
    assert document["looks"]["sizes"] == [40, 80]
    assert document["decisions"]["adjustment"] == "anytime"
    assert plan_of(table).promised is None
    assert plan_of(table).kind == "looks"


def test_sheets_by_strata_are_rounds_of_the_draw(world):
    """A sheet that was drawn by strata travels as a round with its strata; one that was not, as part of the first."""
    import numpy as np

    from pipeline.estimators.labels.strata import Pilot

    ids = [f"q{k:03d}" for k in range(200)]
    promise = Promise(
        Goal("gap", question="superior", models=("a", "b")), "population", 200, 0.05, "power:2", 120, 20, 40, False,
        "auto", {}, 0, 0, "", {},
    )  # fmt: skip
    rng = np.random.default_rng(0)
    signal = rng.normal(size=200)
    # Nothing is left to explain in the middle, and much at one end: strata pay.
    outcome = np.where(signal > 0.8, rng.normal(0, 3.0, 200), signal)
    ledger = Ledger(promise)
    first = next_sheet(ledger, ids, frozenset(), 40, [])
    ledger = with_imported(with_sheet(ledger, first.sheet), first.sheet.items)
    labeled = frozenset(first.sheet.items)
    y = np.where([item in labeled for item in ids], outcome, np.nan)
    second = next_sheet(ledger, ids, labeled, 40, [Pilot(y, signal[:, None])])
    assert second.reason.startswith("stratified: predicted ")
    assert second.sheet.strata
    ledger = with_imported(with_sheet(ledger, second.sheet), second.sheet.items)
    mask = np.array([item in {*first.sheet.items, *second.sheet.items} for item in ids])
    sampling = sampling_of(ledger, np.array(ids), mask)
    assert sampling is not None
    assert [int(entry.drawn.sum()) for entry in sampling.rounds] == [40, 40]
    chances = sampling.chances(mask)
    assert chances is not None
    assert (1.0 / chances[mask]).sum() == pytest.approx(200)
