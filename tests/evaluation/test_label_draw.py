"""Drawing items to label: the design, its chances, and that stratified labels are worth more."""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from pipeline.errors import InputError
from pipeline.estimators import Sampling, lace_mean
from pipeline.estimators.labels.strata import Pilot, control_variate_fit, residual_strata
from pipeline.evaluation.evaluate import evaluate
from pipeline.evaluation.label_draw import draw_labels, realised_draw
from pipeline.evaluation.label_tables import export_table_labels, import_table_labels
from pipeline.evaluation.options import Options
from pipeline.evaluation.pool import Pool, TargetPool
from pipeline.evaluation.table_pool import read_pool
from pipeline.tables.column_roles import INCLUSION, ColumnRoles
from pipeline.tables.labels import realised_inclusion


def skewed(rng: np.random.Generator, size: int = 2000) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """A signal that is exact for half of the items and says little about the others."""
    signal = rng.standard_normal(size)
    noise = np.where(signal > 0.0, 1.5, 0.05)
    return signal + noise * rng.standard_normal(size), signal[:, None]


def pilot_of(truth: Any, signals: Any, rows: Any) -> Pilot:
    y = np.full(len(truth), np.nan)
    y[rows] = truth[rows]
    return Pilot(y, signals)


def test_a_uniform_draw_is_seeded_and_leaves_labeled_items_alone() -> None:
    truth, signals = skewed(np.random.default_rng(0), 200)
    ids = [f"q{k}" for k in range(200)]
    design = draw_labels(ids, 30, [pilot_of(truth, signals, range(50))], seed=4)
    assert len(set(design.drawn)) == 30
    assert not set(design.drawn) & set(design.before)
    assert design == draw_labels(ids, 30, [pilot_of(truth, signals, range(50))], seed=4)
    assert set(design.drawn) != set(draw_labels(ids, 30, [pilot_of(truth, signals, range(50))], seed=5).drawn)


def test_every_unlabeled_item_has_the_same_chance() -> None:
    ids = [f"q{k}" for k in range(20)]
    pilot = Pilot(np.full(20, np.nan), np.zeros((20, 1)))
    counts = Counter(item for seed in range(2000) for item in draw_labels(ids, 5, [pilot], seed=seed).drawn)
    # 2000 draws of 5 in 20: mean 500, sd 19.4 each; 4.5 sd for the largest of 20.
    assert max(abs(counts[item] - 500) for item in ids) < 4.5 * 19.4


def test_the_control_variate_leaves_out_its_own_label() -> None:
    """The leave-one-out residual equals the one of a fit without the item, at the same pool scale."""
    truth, signals = skewed(np.random.default_rng(1), 60)
    pilot = pilot_of(truth, signals, range(40))
    _, residual = control_variate_fit(pilot, ridge=1e-12)
    without = pilot.y.copy()
    without[7] = np.nan
    prediction, _ = control_variate_fit(Pilot(without, signals), ridge=1e-12)
    assert residual[7] == pytest.approx(truth[7] - prediction[7], abs=1e-9)
    assert np.isnan(residual[50])


def test_strata_follow_the_prediction_and_know_where_it_fails() -> None:
    truth, signals = skewed(np.random.default_rng(2))
    found = residual_strata([pilot_of(truth, signals, range(300))])
    assert found.sizes.tolist() == [400] * 5
    assert found.deviations[4] > 3 * found.deviations[0]


def test_stratified_labels_are_worth_more_and_stay_unbiased() -> None:
    """Against uniform labels of the same number, after a shared pilot: smaller error, honest interval."""
    rng = np.random.default_rng(3)
    truth, signals = skewed(rng)
    ids = [str(k) for k in range(len(truth))]
    errors: dict[str, list[float]] = {"uniform": [], "stratified": []}
    covered = []
    for rep in range(300):
        pilot = pilot_of(truth, signals, rng.choice(len(truth), 80, replace=False))
        for kind, found in errors.items():
            design = draw_labels(ids, 80, [pilot], kind=kind, seed=rep)  # type: ignore[arg-type]
            labeled = [*design.before, *design.drawn]
            y = np.full(len(truth), np.nan)
            rows = np.array([int(item) for item in labeled])
            y[rows] = truth[rows]
            chances = realised_inclusion(design, labeled) if kind == "stratified" else None
            estimate = lace_mean(y, signals, adapt="average", learner=None, inclusion_probabilities=chances)
            found.append(estimate.value - truth.mean())
            if kind == "stratified":
                covered.append(estimate.low <= truth.mean() <= estimate.high)
    uniform, stratified = (np.array(errors[kind]) for kind in ("uniform", "stratified"))
    # Neyman's formula gives a ratio of .73; a ratio of two MSEs from 300 draws has a relative sd of about .11.
    assert np.mean(stratified**2) < 0.95 * np.mean(uniform**2)
    assert abs(stratified.mean()) < 3.5 * stratified.std() / np.sqrt(300)
    assert np.mean(covered) > 0.90


def test_without_a_number_fifty_or_all_that_are_left_are_drawn() -> None:
    for size, expected in ((200, 50), (30, 25)):
        truth, signals = skewed(np.random.default_rng(0), size)
        ids = [str(k) for k in range(size)]
        assert len(draw_labels(ids, None, [pilot_of(truth, signals, range(5))]).drawn) == expected
    with pytest.raises(InputError, match="every item is labeled already"):
        draw_labels(ids, None, [pilot_of(truth, signals, range(30))])


def test_a_second_round_after_a_stratified_one_is_unbiased() -> None:
    """Chances of two rounds combine: the weighted mean of many two-round draws meets the pool mean."""
    rng = np.random.default_rng(6)
    truth, signals = skewed(rng, 400)
    ids = [str(k) for k in range(400)]
    errors, weights = [], []
    for rep in range(400):
        pilot = pilot_of(truth, signals, rng.choice(400, 40, replace=False))
        first = draw_labels(ids, 30, [pilot], kind="stratified", seed=rep)
        rows = np.array([int(item) for item in (*first.before, *first.drawn)])
        prior = realised_inclusion(first, [str(row) for row in rows])
        again = pilot_of(truth, signals, rows)
        second = draw_labels(ids, 40, [again], kind="stratified", seed=rep, prior=prior.tolist())
        labeled = [*second.before, *second.drawn]
        rows = np.array([int(item) for item in labeled])
        share = 1.0 / realised_inclusion(second, labeled)[rows]
        weights.append(share.sum())
        errors.append(float(share @ truth[rows]) / share.sum() - truth.mean())
    # The weights add up to the pool on average; the Hájek mean is off by less than 3.5 Monte Carlo sd.
    assert np.mean(weights) == pytest.approx(400, rel=0.02)
    assert abs(np.mean(errors)) < 3.5 * np.std(errors) / np.sqrt(400) + 0.005


def test_refusals() -> None:
    truth, signals = skewed(np.random.default_rng(0), 30)
    ids = [str(k) for k in range(30)]
    with pytest.raises(InputError, match="between 1 and 25 items"):
        draw_labels(ids, 26, [pilot_of(truth, signals, range(5))])
    with pytest.raises(InputError, match="draw uniformly first"):
        draw_labels(ids, 5, [pilot_of(truth, signals, range(5))], kind="stratified")


@pytest.fixture
def table(tmp_path: Path) -> Path:
    rng = np.random.default_rng(5)
    truth, signals = skewed(rng, 300)
    gold = [repr(float(v)) if k < 40 else None for k, v in enumerate(truth)]
    path = tmp_path / "t.csv"
    pl.DataFrame(
        {"id": [f"q{k}" for k in range(300)], "y": gold, "s": signals[:, 0], "q": ["why?"] * 300, "truth": truth}
    ).write_csv(path)
    return path


def fill_from_truth(sheet: Path, table: Path, count: int | None = None) -> None:
    truth = dict(pl.read_csv(table).select("id", "truth").iter_rows())
    rows = list(csv.reader(sheet.open(encoding="utf-8-sig", newline="")))
    for row in rows[1:][:count]:
        row[3] = repr(truth[row[0]])
    with sheet.open("w", encoding="utf-8-sig", newline="") as file:
        csv.writer(file).writerows(rows)


@pytest.mark.parametrize("kind", ["uniform", "stratified"])
def test_a_table_goes_out_and_comes_back(table: Path, tmp_path: Path, kind: Any) -> None:
    roles = ColumnRoles("y", ("s",), id="id")
    sheet, out = tmp_path / "sheet.csv", tmp_path / "labeled.csv"
    design = export_table_labels(table, roles, sheet, 30, kind=kind, question="q")
    assert len(design.drawn) == 30
    fill_from_truth(sheet, table)
    labeled = import_table_labels(table, sheet, out)
    estimates = evaluate(labeled.inputs)
    assert estimates["all"]["lace"].n == 70
    frame = pl.read_csv(out)
    assert frame["y"].is_not_null().sum() == 70
    assert (INCLUSION in frame.columns) == (kind == "stratified")
    if kind == "stratified":
        # Σ 1/π over the labels is the pool.
        assert (1 / frame.filter(pl.col("y").is_not_null())[INCLUSION]).sum() == pytest.approx(300)


def test_a_partly_filled_sheet_and_a_changed_table(table: Path, tmp_path: Path) -> None:
    roles = ColumnRoles("y", ("s",), id="id")
    sheet = tmp_path / "sheet.csv"
    export_table_labels(table, roles, sheet, 30)
    fill_from_truth(sheet, table, 12)
    labeled = import_table_labels(table, sheet)
    assert labeled.filled.notes == ("12 of 30 labels are filled in; 18 are still empty",)
    other = tmp_path / "other.csv"
    pl.read_csv(table).head(200).write_csv(other)
    with pytest.raises(InputError, match=r"is not the table that sheet\.csv was drawn from"):
        import_table_labels(other, sheet)


def test_several_models_get_their_share_and_rows_without_ids_are_numbered(table: Path, tmp_path: Path) -> None:
    frame = pl.read_csv(table)
    long = tmp_path / "long.csv"
    pl.concat([frame.with_columns(model=pl.lit("a")), frame.head(150).with_columns(model=pl.lit("b"))]).write_csv(long)
    design = export_table_labels(long, ColumnRoles("y", ("s",), id="id", model="model"), tmp_path / "s.csv", 30)
    assert Counter(item.split()[1] for item in design.drawn) == {"[a]": 21, "[b]": 9}  # of 260 and 110 unlabeled
    numbered = export_table_labels(table, ColumnRoles("y", ("s",)), tmp_path / "n.csv", 5)
    assert all(item.startswith("row ") for item in numbered.drawn)


def test_a_table_without_a_gold_column_gets_one(table: Path, tmp_path: Path) -> None:
    bare = tmp_path / "bare.csv"
    pl.read_csv(table).drop("y").write_csv(bare)
    sheet = tmp_path / "sheet.csv"
    export_table_labels(bare, ColumnRoles("new", ("s",), id="id"), sheet, 30)
    fill_from_truth(sheet, table)
    labeled = import_table_labels(bare, sheet, tmp_path / "out.csv")
    assert labeled.inputs.targets[0].labeled.sum() == 30
    assert pl.read_csv(tmp_path / "out.csv")["new"].is_not_null().sum() == 30


def test_a_table_without_any_label_can_be_drawn_from(table: Path, tmp_path: Path) -> None:
    blank = tmp_path / "blank.csv"
    pl.read_csv(table).with_columns(y=pl.lit(None, dtype=pl.String)).write_csv(blank)
    assert len(export_table_labels(blank, ColumnRoles("y", ("s",), id="id"), tmp_path / "s.csv", 5).drawn) == 5


def test_two_rounds_are_two_rounds_and_not_one(table: Path, tmp_path: Path) -> None:
    """θ̂ = aθ̂₁ + (1 − a)θ̂₂ with a from counts alone: the pilot by itself, and the pilot with what the strata add."""
    sheet = tmp_path / "sheet.csv"
    export_table_labels(table, ColumnRoles("y", ("s",), id="id"), sheet, 30, kind="stratified")
    fill_from_truth(sheet, table)
    (target,) = import_table_labels(table, sheet).inputs.targets
    first, second = target.sampling.rounds
    assert (int(first.drawn.sum()), int(second.drawn.sum())) == (40, 30)
    assert second.strata is not None
    size, left = target.size, ~first.drawn
    total, least = 0.0, []
    for stratum in np.unique(second.strata[left]):
        inside = left & (second.strata == stratum)
        new = inside & second.drawn
        least.append(int(new.sum()))
        total += inside.sum() * target.y[new].mean()
    assert min(least) >= 2
    alone = target.y[first.drawn].mean()
    together = (target.y[first.drawn].sum() + total) / size
    n1, n2, rest = 40, 30, size - 40
    p1, p2 = n1 / (1 - n1 / size), (size / rest) ** 2 * n2 / (1 - n2 / rest)
    a = p1 / (p1 + p2)
    naive = evaluate(import_table_labels(table, sheet).inputs, Options(("naive",)))["all"]["naive"]
    assert naive.value == pytest.approx(a * alone + (1 - a) * together, rel=1e-9)


@pytest.mark.parametrize("kind", ["uniform", "stratified"])
def test_models_of_one_table_share_their_labeled_items(tmp_path: Path, kind: Any) -> None:
    """Permanent random numbers: separate draws would share a fifth of a fifth, and a gap would have no pairs."""
    rng = np.random.default_rng(0)
    rows = [
        {"id": f"q{k}", "model": model, "y": 1.0 * (k % 3 > 0) if k < 20 else None, "s": float(k % 3)}
        for model in ("a", "b", "c")
        for k in rng.permutation(100).tolist()
    ]
    path = tmp_path / "t.csv"
    pl.DataFrame(rows, schema_overrides={"y": pl.Float64}).write_csv(path)
    roles = ColumnRoles(gold="y", signals=("s",), model="model", id="id")
    design = export_table_labels(path, roles, tmp_path / "sheet.csv", 60, kind=kind, seed=3)
    drawn = [{key.split()[0] for key in design.drawn if key.endswith(f"[{model}]")} for model in "abc"]
    assert [len(items) for items in drawn] == [20, 20, 20]
    assert drawn[0] == drawn[1] == drawn[2]
    more = export_table_labels(path, roles, tmp_path / "more.csv", 90, kind="uniform", seed=3)
    if kind == "uniform":
        assert set(design.drawn) <= set(more.drawn), "a larger sheet of the same seed holds the smaller one"


def _next_round(source: Path, out: Path, kind: Any, count: int, seed: int, truth: Path) -> ColumnRoles:
    first = "inclusion_probability" not in pl.read_csv(source, n_rows=1).columns
    roles = ColumnRoles("y", ("s",), id="id", inclusion=None if first else INCLUSION)
    sheet = out.with_suffix(".sheet.csv")
    export_table_labels(source, roles, sheet, count, kind=kind, seed=seed)
    fill_from_truth(sheet, truth)
    import_table_labels(source, sheet, out)
    return ColumnRoles("y", ("s",), id="id", inclusion=INCLUSION)


@pytest.mark.parametrize("last", ["stratified", "uniform"])
def test_any_number_of_rounds_is_a_value_that_the_written_table_carries(table: Path, tmp_path: Path, last: Any) -> None:
    second, third, fourth = (tmp_path / f"{name}.csv" for name in ("second", "third", "fourth"))
    _next_round(table, second, "stratified", 30, 1, table)
    _next_round(second, third, "stratified", 30, 2, table)
    roles = _next_round(third, fourth, last, 20, 3, table)
    (target,) = read_pool(fourth, roles).targets
    assert [int(entry.drawn.sum()) for entry in target.sampling.rounds] == [40, 30, 30, 20]
    # What was printed at the import is what the table says when it is read again.
    again = export_table_labels(third, roles, tmp_path / "again.csv", 20, kind=last, seed=3)
    fill_from_truth(tmp_path / "again.csv", table)
    printed = evaluate(import_table_labels(third, tmp_path / "again.csv").inputs, Options(("naive", "lace")))["all"]
    reread = evaluate(read_pool(fourth, roles), Options(("naive", "lace")))["all"]
    for name in ("naive", "lace"):
        assert (reread[name].value, reread[name].se) == (printed[name].value, printed[name].se)
    assert len(again.drawn) == 20


def test_three_rounds_are_unbiased_and_their_intervals_cover() -> None:
    """A pilot, a stratified round, and a third in the same strata: staged weights, over 300 draws."""
    rng = np.random.default_rng(8)
    truth, signals = skewed(rng, 500)
    ids = [str(k) for k in range(len(truth))]
    errors, covered = [], []
    for rep in range(300):
        pilot = pilot_of(truth, signals, rng.choice(len(truth), 60, replace=False))
        second = draw_labels(ids, 60, [pilot], kind="stratified", seed=rep)
        draw = realised_draw(second, [*second.before, *second.drawn])
        assert draw.stage is not None
        assert draw.strata is not None
        rows = np.array([int(item) for item in (*second.before, *second.drawn)])
        third = draw_labels(
            ids, 60, [pilot_of(truth, signals, rows)], kind="stratified", seed=rep, strata=draw.strata,
            rounds=draw.stage.tolist(),
        )  # fmt: skip
        labeled = [*third.before, *third.drawn]
        last = realised_draw(third, labeled)
        assert last.stage is not None
        assert last.strata is not None
        y = np.full(len(truth), np.nan)
        rows = np.array([int(item) for item in labeled])
        y[rows] = truth[rows]
        design = Sampling.staged(last.stage, last.strata)
        target = TargetPool("all", y, np.isfinite(y), signals, ("s",), sampling=design, drawn="known")
        estimate = evaluate(Pool((target,)), Options(("naive",), target="pool"))["all"]["naive"]
        errors.append(estimate.value - truth.mean())
        covered.append(estimate.low <= truth.mean() <= estimate.high)
    bias, error = np.mean(errors), np.std(errors) / np.sqrt(len(errors))
    assert abs(bias) < 3.5 * error
    assert np.mean(covered) > 0.95 - 3.5 * np.sqrt(0.95 * 0.05 / 300)


def test_the_table_never_takes_the_place_of_the_sheet(table: Path, tmp_path: Path) -> None:
    """A person's labels were lost where --out named the sheet itself, or another file with other columns."""
    roles = ColumnRoles("y", ("s",), id="id")
    sheet = tmp_path / "sheet.csv"
    export_table_labels(table, roles, sheet, 30, question="q")
    fill_from_truth(sheet, table)
    filled = sheet.read_bytes()
    with pytest.raises(InputError, match="columns that the new table has not"):
        import_table_labels(table, sheet, sheet)
    assert sheet.read_bytes() == filled
    import_table_labels(table, sheet, table)
    assert pl.read_csv(table)["y"].is_not_null().sum() == 70
