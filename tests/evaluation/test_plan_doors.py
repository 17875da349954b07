"""A blind plan at every door of tables and runs, and what several looks without a plan change at each."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import pipeline
from pipeline.cli import main
from pipeline.errors import InputError
from pipeline.estimators.looks import asymptotic_critical, tail_quantile

COLUMNS = ("--gold", "gold", "--signals", "judge", "--id", "id", "--model", "model")


def auxeval(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    capsys.readouterr()
    with pytest.raises(SystemExit) as caught:
        main(list(words))
    out, err = capsys.readouterr()
    return int(caught.value.code or 0), out, err


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two models, 40 items labeled of 300."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(4)
    rows = []
    for k in range(300):
        hard = rng.normal()
        for model, skill in (("new", 1.3), ("old", 0.4)):
            right = int(rng.random() < 1 / (1 + np.exp(-(skill - hard))))
            gold = right if k < 40 else None
            rows.append({"note": f"n{k}", "id": f"q{k:03d}", "model": model, "judge": right + rng.normal(0, 0.6),
                         "gold": gold, "truth": right})  # fmt: skip
    path = tmp_path / "answers.csv"
    pl.DataFrame(rows).write_csv(path)
    return path


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A finished run of 60 sums and two targets, the gold answers of 30 known."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AUXEVAL_CACHE_DIR", str(tmp_path / "cache"))
    lines = [
        {"id": f"{k:03d}", "question": f"What is {k} + {k % 7}?", "gold": str(k + k % 7) if k < 30 else None}
        for k in range(60)
    ]
    (tmp_path / "sums.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    config = {
        "schema": 1, "name": "sums", "seed": 1,
        "benchmark": {"preset": "custom", "path": "sums.jsonl", "grading": "numeric",
                      "fields": {"id": "id", "question": "question", "gold": "gold"}},
        "models": {"new": {"model": "sim/strong"}, "old": {"model": "sim/medium"}, "j": {"model": "sim/judge"}},
        "roles": {"targets": ["new", "old"], "judge": "j"}, "design": {"labeled": "gold"},
        "estimate": ["naive", "lace", "gaps"],
    }  # fmt: skip
    return Path(pipeline.run(config, run_id="sums", yes=True).path)


TABLE_DOORS: dict[str, Callable[[Path], tuple[str, ...]]] = {
    "estimate": lambda t: ("estimate", str(t), *COLUMNS),
    "estimate --json": lambda t: ("estimate", str(t), *COLUMNS, "--json"),
    "estimate --out": lambda t: ("estimate", str(t), *COLUMNS, "--out", str(t.parent / "out")),
    "estimate of several": lambda t: ("estimate", str(t.parent / "other.csv"), str(t), *COLUMNS),
    "estimate along": lambda t: ("estimate", str(t), *COLUMNS, "--profile", "judge", "--rehearse", "2"),
    "gate": lambda t: ("gate", str(t), str(t), "--model", "old=new"),
    "gate of one side": lambda t: ("gate", str(t.parent / "other.csv"), str(t), "--model", "old=new"),
    "gate --aa": lambda t: ("gate", "--aa", str(t), str(t), "--model", "old"),
}
RUN_DOORS: dict[str, Callable[[Path], tuple[str, ...]]] = {
    "report": lambda r: ("report", str(r)),
    "resume": lambda r: ("resume", str(r)),
    "replay": lambda r: ("replay", str(r), "--out", str(r.parent / "again")),
    "compare": lambda r: ("compare", str(r), str(r)),
    "gate": lambda r: ("gate", str(r), str(r), "--model", "old=new"),
    "estimate of its table": lambda r: ("estimate", str(r / "tables" / "signals.parquet")),
}


@pytest.mark.parametrize("door", TABLE_DOORS)
def test_a_blind_plan_of_a_table_is_blind_at_every_door(table: Path, capsys, door: str) -> None:
    pl.read_csv(table).with_columns(pl.col("id").str.replace("q", "r")).write_csv(table.parent / "other.csv")
    assert auxeval(capsys, "labels", "plan", str(table), "--half-width", "0.01", "--max", "300", *COLUMNS)[0] == 0
    code, out, err = auxeval(capsys, *TABLE_DOORS[door](table))
    assert (code, out) == (2, "")
    assert "is blind: its numbers are shown when they are precise enough" in err
    assert len(err.splitlines()) == 1
    assert not (table.parent / "out").exists()


@pytest.mark.parametrize("door", RUN_DOORS)
def test_a_blind_plan_of_a_run_is_blind_at_every_door(run: Path, capsys, door: str) -> None:
    assert (run / "report.html").exists()
    assert auxeval(capsys, "labels", "plan", str(run), "--half-width", "0.01", "--max", "60")[0] == 0
    left = [path.name for path in run.rglob("*") if path.name in ("estimates.json", "report.html")]
    assert left == []  # what was written before the plan would tell it
    code, out, err = auxeval(capsys, *RUN_DOORS[door](run))
    assert (code, out) == (2, "")
    assert "blind" in err or "no estimates yet" in err
    assert not (run / "estimates.json").exists()
    assert not (run / "report.html").exists()
    assert not (run.parent / "again" / "estimates.json").exists()


def test_python_is_a_door_and_a_person_may_insist(table: Path, capsys) -> None:
    columns = {"gold": "gold", "signals": ["judge"], "id": "id", "model": "model"}
    whole = pipeline.estimate(str(table), **columns)
    auxeval(capsys, "labels", "plan", str(table), "--half-width", "0.01", "--max", "300", *COLUMNS)
    with pytest.raises(InputError, match="is blind"):
        pipeline.estimate(str(table), **columns)
    assert pipeline.estimate(str(table), **columns, forget_plan=True)["new"] == whole["new"]
    assert auxeval(capsys, "estimate", str(table), *COLUMNS, "--forget-plan")[0] == 0


def test_the_end_of_a_blind_plan_opens_every_door_of_a_run(run: Path, capsys) -> None:
    before = (run / "estimates.json").read_bytes()
    assert auxeval(capsys, "labels", "plan", str(run), "--half-width", "0.01", "--max", "60")[0] == 0
    code, _, err = auxeval(capsys, "labels", "status", str(run), "--close")
    assert code == 0, err
    assert (run / "estimates.json").read_bytes() == before
    for words in (("report", str(run)), ("compare", str(run), str(run))):
        code, _, err = auxeval(capsys, *words)
        assert code == 0, err


# ---- looks without a plan


def label_more(capsys, source: Path, gold: Callable[[str, str], str], number: int, *more: str) -> str:
    """One ordinary round: ten more items."""
    sheet = source.parent / f"round{number}.csv"
    columns = COLUMNS if source.is_file() else ()
    count = "20" if source.is_file() else "10"
    code, _, err = auxeval(capsys, "labels", "export", str(source), str(sheet), "-n", count, *columns)
    assert code == 0, err
    with sheet.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    name = "gold" if "gold" in rows[0] else "y"
    for row in rows:
        item, _, model = row["id"].rstrip("]").partition(" [")
        row[name] = gold(item, row.get("model") or model)
    with sheet.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    out = ("--out", str(source)) if source.is_file() else ()
    code, out_text, err = auxeval(capsys, "labels", "import", str(source), str(sheet), *out, "--json", *more)
    assert code == 0, err
    return out_text


def the_law_of_looks(document: dict) -> None:
    """Every pair's interval is that of the asymptotic sequence, and the document says what the looks cost."""
    assert document["looks"]["decisions"] == "anytime"
    assert document["decisions"]["adjustment"] == "anytime"
    assert any(warning["code"] == "looks" for warning in document["warnings"])
    sizes = document["looks"]["sizes"]
    for pair in document["decisions"]["pairs"]:
        assert pair["p"] is None
        gap = next(g for g in document["gaps"] if (g["a"], g["b"]) == (pair["a"], pair["b"]))["estimate"]
        critical = asymptotic_critical(pair["n"], max(100.0, 2 * sizes[0]), 0.05)
        reach = tail_quantile(critical, gap["df"]) * pair["se"]
        assert pair["high"] - pair["value"] == pytest.approx(reach)
        assert pair["high"] - pair["low"] > gap["high"] - gap["low"]


def test_looks_at_a_table_are_counted_and_decided_over(table: Path, capsys) -> None:
    truth = {(r["id"], r["model"]): str(r["truth"]) for r in pl.read_csv(table).iter_rows(named=True)}
    before = pl.read_csv(table)
    first = json.loads(auxeval(capsys, "estimate", str(table), *COLUMNS, "--json")[1])
    assert "looks" not in first
    assert first["decisions"]["adjustment"] == "max-t"
    document = json.loads(label_more(capsys, table, lambda item, model: truth[item, model], 1))
    assert document["looks"]["sizes"] == [40, 50]  # labels that were there before are a look
    assert document["looks"]["level"] == pytest.approx(0.93, abs=0.02)
    the_law_of_looks(document)
    _, out, _ = auxeval(capsys, "estimate", str(table), *COLUMNS, "--json")
    again = json.loads(out)
    assert again["looks"] == document["looks"]
    assert again["decisions"] == document["decisions"]
    once = json.loads(auxeval(capsys, "estimate", str(table), *COLUMNS, "--json", "--as-if-once")[1])
    assert once["looks"]["decisions"] == "as_if_once"
    assert once["decisions"]["adjustment"] == "max-t"
    assert once["targets"] == again["targets"]
    _, out, _ = auxeval(capsys, "gate", str(table), str(table), "--model", "old=new", "--json")
    wide = json.loads(out)["metrics"][0]
    narrow = json.loads(
        auxeval(capsys, "gate", str(table), str(table), "--model", "old=new", "--json", "--as-if-once")[1]
    )["metrics"][0]
    assert wide["high"] - wide["low"] > 1.2 * (narrow["high"] - narrow["low"])
    after = pl.read_csv(table)
    assert after.columns == before.columns
    assert after.drop("gold").equals(before.drop("gold"))  # no column and no row is lost or moved


def test_looks_at_a_run_are_counted_and_decided_over(run: Path, capsys) -> None:
    document = json.loads(label_more(capsys, run, lambda item, _: str(int(item) + int(item) % 7), 1))
    assert document["looks"]["sizes"] == [30, 40]
    the_law_of_looks(document)
    stored = json.loads((run / "estimates.json").read_text())
    assert stored["decisions"] == document["decisions"]
    table = json.loads(auxeval(capsys, "estimate", str(run / "tables" / "signals.parquet"), "--json")[1])
    assert table["decisions"] == document["decisions"]  # a run equals its own exported table
    assert table["looks"] == document["looks"]


def test_anytime_may_be_asked_for_at_the_first_look(table: Path, capsys) -> None:
    bare = pl.read_csv(table)
    truth = {(r["id"], r["model"]): str(r["truth"]) for r in bare.iter_rows(named=True)}
    bare.with_columns(gold=pl.lit(None, dtype=pl.String)).write_csv(table)
    document = json.loads(label_more(capsys, table, lambda item, model: truth[item, model], 1, "--anytime"))
    assert "looks" not in document
    assert document["decisions"]["adjustment"] == "anytime"


# ---- the gate by a plan


def test_a_gate_goes_by_the_plans_look(table: Path, capsys) -> None:
    truth = {(r["id"], r["model"]): str(r["truth"]) for r in pl.read_csv(table).iter_rows(named=True)}
    bare = pl.read_csv(table).with_columns(gold=pl.lit(None, dtype=pl.String))
    bare.write_csv(table)
    plan = table.with_name("answers.csv.plan.json")
    gate = ("gate", str(table), str(table), "--model", "old=new", "--plan", str(plan), "--json")
    words = ("--gap", "new,old", "--noninferior", "0.05", "--max", "200", *COLUMNS)
    assert auxeval(capsys, "labels", "plan", str(table), *words)[0] == 0
    for number in (1, 2):
        sheet = table.with_name(f"sheet{number}.csv")
        assert auxeval(capsys, "labels", "next", str(table), str(sheet))[0] == 0
        with sheet.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        for row in rows:
            row["gold"] = truth[row["id"], row["model"]]
        with sheet.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
        assert auxeval(capsys, "labels", "import", str(table), str(sheet), "--out", str(table))[0] == 0
        look = json.loads(plan.read_text())["looks"][-1]
        code, out, err = auxeval(capsys, *gate, "--signals", "judge")
        assert code in (0, 10, 11), err
        row = json.loads(out)["metrics"][0]
        assert row["margin"] == 0.05
        estimate = look["estimates"][0]
        assert row["gap"] == pytest.approx(estimate["value"], abs=0.01)
        assert row["low"] == pytest.approx(estimate["low"], abs=0.01)
    for more, part in (
        (("--margin", "0.02"), "another margin is another plan"),
        (("--as-if-once",), "leave --as-if-once"),
    ):
        code, out, err = auxeval(capsys, *gate, *more)
        assert (code, out) == (2, "")
        assert part in err
    swapped = ("gate", str(table), str(table), "--model", "new=old", "--plan", str(plan))
    code, _, err = auxeval(capsys, *swapped)
    assert code == 2
    assert "candidate first" in err


@pytest.mark.parametrize("door", ["table", "run"])
def test_whoever_prints_numbers_under_a_plan_says_what_the_plan_says(table: Path, run: Path, capsys, door: str) -> None:
    """Two verdicts on one set of labels are one too many: once, a decided plan was advised to be declared."""
    source = table if door == "table" else run
    columns = COLUMNS if door == "table" else ()
    words = ("labels", "plan", str(source), "--gap", "new,old", "--max", "60", *columns)
    assert auxeval(capsys, *words)[0] == 0
    for number in range(2):
        label_planned(capsys, source, number)
    if door == "table":
        document = json.loads(auxeval(capsys, "estimate", str(table), *COLUMNS, "--json")[1])
    else:
        document = json.loads((run / "estimates.json").read_text())
    (told,) = [warning["message"] for warning in document["warnings"] if warning["code"] == "looks"]
    status = auxeval(capsys, "labels", "status", str(source))[1]
    assert f"Plan {status.split()[1]}: " in told
    assert "its verdict is the one to report" in told
    assert "Next time" not in told


def label_planned(capsys, source: Path, number: int) -> None:
    """One sheet of a plan."""
    sheet = source.parent / f"sheet{number}.csv"
    code, _, err = auxeval(capsys, "labels", "next", str(source), str(sheet))
    assert code == 0, err
    frame = pl.read_csv(sheet, infer_schema=False)
    frame.with_columns(pl.lit("1").alias("gold")).write_csv(sheet)
    out = ("--out", str(source)) if source.is_file() else ()
    code, _, err = auxeval(capsys, "labels", "import", str(source), str(sheet), *out)
    assert code == 0, err
