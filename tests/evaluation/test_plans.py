"""Label plans of a table, from the promise to the verdict, on the command line."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from pipeline.cli import main
from pipeline.estimators.looks import spent
from pipeline.evaluation.plans.ledger import read_ledger
from pipeline.evaluation.plans.order import order_of

COLUMNS = ("--gold", "gold", "--signals", "judge", "--id", "id", "--model", "model")


def call(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    capsys.readouterr()
    with pytest.raises(SystemExit) as caught:
        main(["labels", *words])
    out, err = capsys.readouterr()
    return int(caught.value.code or 0), out, err


@pytest.fixture
def world(tmp_path: Path) -> tuple[Path, dict[tuple[str, str], str]]:
    """A table of two models without labels, with a column nobody uses, and the truth."""
    rng = np.random.default_rng(4)
    rows, truth = [], {}
    for k in range(400):
        hard = rng.normal()
        for model, skill in (("new", 1.6), ("old", 0.4)):
            right = int(rng.random() < 1 / (1 + np.exp(-(skill - hard))))
            truth[f"q{k:03d}", model] = str(right)
            rows.append(
                {"note": f"n,{k}", "id": f"q{k:03d}", "model": model, "judge": right + rng.normal(0, 0.6), "gold": ""}
            )
    path = tmp_path / "answers.csv"
    pl.DataFrame(rows).write_csv(path)
    return path, truth


def fill(sheet: Path, truth: dict[tuple[str, str], str], leave: int = 0) -> None:
    with sheet.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows[: len(rows) - leave]:
        row["gold"] = truth[row["id"], row["model"]]
    with sheet.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def a_round(capsys, table: Path, truth, number: int, *more: str) -> str:
    sheet = table.with_name(f"sheet{number}.csv")
    code, _, err = call(capsys, "next", str(table), str(sheet))
    assert code == 0, err
    fill(sheet, truth)
    code, out, err = call(capsys, "import", str(table), str(sheet), "--out", str(table), *more)
    assert code == 0, err
    return out


def test_a_gap_is_decided_over_looks(world, capsys):
    table, truth = world
    code, out, err = call(capsys, "plan", str(table), "--gap", "new,old", "--max", "200", *COLUMNS)
    assert code == 0, err
    assert "which of new and old is better? at most 200 labels, any number of looks from 20 on, 95 %" in out
    assert "at most 200 items, 400 ratings" in out
    assert "if new is truly equal: decided by 200 in 5 of 100 studies" in out
    says = []
    for number in range(1, 9):
        says.append(a_round(capsys, table, truth, number))
        if "You can stop" in says[-1]:
            break
    assert says[0].startswith("look 1, 25 of at most 200 labels: new − old ")
    assert "new is better than old: decided at look " in says[-1]
    ledger = read_ledger(table.with_name("answers.csv.plan.json"))
    assert ledger is not None
    assert ledger.state == "decided"
    for k, look in enumerate(ledger.looks):
        assert look.t == pytest.approx(look.n / 200)
        assert look.spent == pytest.approx(spent(look.t, 0.05, "power:2"))
        if k:
            assert look.estimates[0].low_all >= ledger.looks[k - 1].estimates[0].low_all
    frame = pl.read_csv(table, infer_schema=False)
    assert frame.columns == ["note", "id", "model", "judge", "gold"]
    assert frame["note"].to_list()[:3] == ["n,0", "n,0", "n,1"]
    code, out, _ = call(capsys, "status", str(table))
    assert code == 0
    assert "new > old" in out


def test_a_blind_plan_shows_no_number_until_it_is_precise(world, capsys):
    table, truth = world
    words = ("--half-width", "0.09", "--max", "240", "--sheet", "40", *COLUMNS)
    assert call(capsys, "plan", str(table), *words)[0] == 0
    first = a_round(capsys, table, truth, 1)
    assert first.startswith("look 1, 40 labels: ±")
    assert "(--peek shows it now)" in first
    kept = json.loads(table.with_name("answers.csv.plan.json").read_text())
    assert kept["looks"][0]["estimates"] == []
    out = first
    for number in range(2, 7):
        out = a_round(capsys, table, truth, number)
        if "precise enough" in out:
            break
    assert "precise enough, decided at look" in out
    look = read_ledger(table.with_name("answers.csv.plan.json")).looks[-1]
    assert all((row.high - row.low) / 2 <= 0.09 for row in look.estimates)


def test_peek_opens_a_blind_plan(world, capsys):
    table, truth = world
    words = ("--half-width", "0.05", "--max", "240", "--sheet", "40", *COLUMNS)
    assert call(capsys, "plan", str(table), *words)[0] == 0
    a_round(capsys, table, truth, 1)
    out = a_round(capsys, table, truth, 2, "--peek")
    assert "plan interval [" in out


def test_a_changed_promise_is_refused_and_can_be_forgotten(world, capsys):
    table, _ = world
    call(capsys, "plan", str(table), "--gap", "new,old", "--noninferior", "0.02", "--max", "200", *COLUMNS)
    path = table.with_name("answers.csv.plan.json")
    data = json.loads(path.read_text())
    data["promised"]["goal"]["margin"] = 0.05
    path.write_text(json.dumps(data))
    code, _, err = call(capsys, "status", str(table))
    assert code == 2
    assert "the promise was changed" in err


def test_a_chosen_label_is_refused(world, capsys):
    table, truth = world
    call(capsys, "plan", str(table), "--gap", "new,old", "--max", "200", *COLUMNS)
    sheet = table.with_name("s.csv")
    assert call(capsys, "next", str(table), str(sheet))[0] == 0
    last = order_of([f"q{k:03d}" for k in range(400)], 0)[-1]
    with sheet.open("a") as file:
        file.write(f"{last},new,1,x\n")
    fill(sheet, truth)
    code, _, err = call(capsys, "import", str(table), str(sheet), "--out", str(table))
    assert code == 2
    assert "a chosen label is no random one" in err
    frame = pl.read_csv(table, infer_schema=False)
    assert not (frame["gold"].fill_null("") != "").any()
    chosen = pl.when(pl.col("id").is_in([last])).then(pl.lit("1")).otherwise(pl.col("gold"))
    frame.with_columns(chosen.alias("gold")).write_csv(table)
    sheet.unlink()
    assert call(capsys, "next", str(table), str(sheet))[0] == 0
    fill(sheet, truth)
    code, _, err = call(capsys, "import", str(table), str(sheet), "--out", str(table))
    assert code == 2
    assert "1 labels are not next in the plan's order" in err


def test_no_look_stores_and_counts_and_a_repeated_look_is_none(world, capsys):
    table, truth = world
    call(capsys, "plan", str(table), "--gap", "new,old", "--max", "200", *COLUMNS)
    out = a_round(capsys, table, truth, 1, "--no-look")
    assert out == "25 of at most 200 labels are stored; no look was taken\n"
    code, out, _ = call(capsys, "import", str(table), str(table.with_name("sheet1.csv")), "--out", str(table))
    assert out.startswith("look 1, 25 of at most 200")
    code, out, _ = call(capsys, "import", str(table), str(table.with_name("sheet1.csv")), "--out", str(table))
    assert code == 0
    assert "no new one" in out


def test_nothing_is_shown_before_the_first_look(world, capsys):
    table, truth = world
    call(capsys, "plan", str(table), "--gap", "new,old", "--max", "200", "--sheet", "12", *COLUMNS)
    assert a_round(capsys, table, truth, 1) == "12 of at most 200 labels: nothing is shown before 20\n"


def test_refusals_are_one_line(world, capsys):
    table, _ = world
    for words, part in (
        (("plan", str(table), *COLUMNS), "a plan has one goal"),
        (("plan", str(table), "--gap", "new,old", "--max", "10", *COLUMNS), "--max must lie between"),
        (("plan", str(table), "--gap", "new,gone", "--max", "100", *COLUMNS), "no model 'gone'"),
        (("plan", str(table), "--gap", "new,old", "--target", "pool", *COLUMNS), "items like these"),
        (("next", str(table), "x.csv"), "no plan is there"),
        (("status", str(table)), "nothing is there"),
    ):
        code, out, err = call(capsys, *words)
        assert (code, out) == (2, "")
        assert part in err
        assert len(err.splitlines()) == 1


def test_the_best_of_two_is_found(world, capsys):
    table, truth = world
    assert call(capsys, "plan", str(table), "--top", "--max", "200", *COLUMNS)[0] == 0
    out = ""
    for number in range(1, 9):
        out = a_round(capsys, table, truth, number)
        if "You can stop" in out:
            break
    assert out.splitlines()[-1].startswith("new is best: decided at look ")


def test_looks_without_a_plan_are_counted_and_their_cost_is_said(world, capsys):
    table, truth = world
    for number, expected in ((1, ""), (2, "2 looks (30, 60 labels): both intervals are right together in 9")):
        sheet = table.with_name(f"free{number}.csv")
        assert call(capsys, "export", str(table), str(sheet), "-n", "60", *COLUMNS)[0] == 0
        with sheet.open(encoding="utf-8-sig", newline="") as file:
            rows = list(csv.DictReader(file))
        for row in rows:
            item, model = row["id"].rstrip("]").split(" [")
            row["gold"] = truth[item, model]
        with sheet.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
        code, out, err = call(capsys, "import", str(table), str(sheet), "--out", str(table))
        assert code == 0, err
        text = " ".join(out.split())
        assert ("looks (" in text) == bool(expected)
        assert expected in text
    ledger = read_ledger(table.with_name("answers.csv.plan.json"))
    assert ledger is not None
    assert ledger.kind == "looks"
    assert [look.n for look in ledger.looks] == [30, 60]
