"""Labels of an earlier version: what did not change is asked of nobody, and changes no number."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import polars as pl
import pytest

import pipeline
from pipeline.cli import main
from pipeline.cli.documents import document_schema
from pipeline.tables.label_store import Label, LabelStore, label_unit

ROLES = ("--gold", "gold", "--signals", "judge", "--id", "id", "--model", "model")
ITEMS = 120


def auxeval(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    capsys.readouterr()
    with pytest.raises(SystemExit) as caught:
        main([str(word) for word in words])
    out, err = capsys.readouterr()
    return int(caught.value.code or 0), out, err


def truth(answer: str) -> float:
    return float(int(answer.rpartition(" ")[2]) % 3 > 0)


@pytest.fixture
def versions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """Two versions of two models on the same questions; the second changed a fifth of the answers."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(2)
    frames = []
    answers = {(k, model): f"I say {rng.integers(100)}" for k in range(ITEMS) for model in ("new", "old")}
    for version in (1, 2):
        rows = []
        for (k, model), before in answers.items():
            answer = f"I say {int(rng.integers(100))}" if version == 2 and k % 5 == 0 else before
            gold = truth(answer) if version == 1 and k % 2 else None
            judge = 0.5 * truth(answer) + 0.5 * rng.random()
            rows.append({"id": f"q{k:03d}", "model": model, "question": f"What of {k}?", "answer": answer,
                         "judge": judge, "gold": gold})  # fmt: skip
        frames.append(pl.DataFrame(rows, infer_schema_length=None))
    for name, frame in zip(("one.csv", "two.csv"), frames, strict=True):
        frame.write_csv(tmp_path / name)
    return tmp_path / "one.csv", tmp_path / "two.csv"


def planned(capsys: pytest.CaptureFixture[str], table: Path) -> None:
    code, _, err = auxeval(capsys, "labels", "plan", table, "--gap", "new,old", "--max", 60, "--sheet", 60, *ROLES)
    assert code == 0, err


def sheet_of(capsys: pytest.CaptureFixture[str], table: Path, sheet: Path) -> pl.DataFrame:
    code, _, err = auxeval(capsys, "labels", "next", table, sheet)
    assert code == 0, err
    return pl.read_csv(sheet, infer_schema=False)


def test_an_unchanged_answer_is_asked_of_nobody(
    versions: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    one, two = versions
    planned(capsys, two)
    code, out, err = auxeval(capsys, "labels", "carry", one, two, "--json")
    assert code == 0, err
    told = json.loads(out)
    jsonschema.validate(told, document_schema("labels carry"))
    assert (told["labels"], told["disagreeing"]) == (ITEMS, 0)  # half of the items, of two models
    same = pl.read_csv(one).join(pl.read_csv(two), on=["id", "model", "answer"]).filter(pl.col("gold").is_not_null())
    assert told["holding"] == same.height
    sheet = sheet_of(capsys, two, two.parent / "s.csv")
    rows = pl.read_csv(two).select("id", "model", "answer")
    filled = sheet.filter(pl.col("gold").is_not_null()).join(rows, on=["id", "model"])
    keys = set(same.select("id", "model").rows())
    asked = [row for row in sheet.select("id", "model").rows() if row in keys]
    assert set(filled.select("id", "model").rows()) == set(asked) != set()
    assert all(float(gold) == truth(answer) for gold, answer in filled.select("gold", "answer").iter_rows())
    again = json.loads(auxeval(capsys, "labels", "carry", one, two, "--json")[1])
    assert again["added"] == 0


def test_carried_labels_change_no_number(versions: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    """A plan's estimates are the same whether its items are labelled anew or partly from before."""
    one, two = versions
    numbers = []
    for carried in (False, True):
        place = two.parent / f"carried-{carried}"
        place.mkdir()
        table = place / "two.csv"
        table.write_bytes(two.read_bytes())
        planned(capsys, table)
        if carried:
            assert auxeval(capsys, "labels", "carry", one, table)[0] == 0
        sheet = sheet_of(capsys, table, place / "s.csv").join(
            pl.read_csv(two).select("id", "model", pl.col("answer").alias("said")), on=["id", "model"], how="left",
            maintain_order="left",
        )  # fmt: skip
        golds = [gold or f"{truth(said):g}" for gold, said in sheet.select("gold", "said").iter_rows()]
        sheet.drop("said").with_columns(pl.Series("gold", golds)).write_csv(place / "s.csv")
        code, out, err = auxeval(capsys, "labels", "import", table, place / "s.csv", "--out", table, "--json")
        assert code == 0, err
        numbers.append(json.loads(out)["looks"])
    first, second = ([look["estimates"] for look in looks] for looks in numbers)
    assert first == second


def test_raters_that_disagree_are_counted(versions: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    one, two = versions
    planned(capsys, two)
    row = pl.read_csv(one).filter(pl.col("gold").is_not_null() & (pl.col("id") == "q001")).row(0, named=True)
    unit = label_unit(row["question"], row["answer"])
    other = Label(unit, "gold", 1.0 - row["gold"], "ben", "2026-01-01T00:00:00Z")
    LabelStore(two.with_name("two.csv.labels.jsonl")).add([other])
    code, out, _ = auxeval(capsys, "labels", "carry", one, two)
    assert code == 0
    assert "raters disagree on 1 answers" in out


def test_bad_versions_are_one_line(versions: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    one, two = versions
    code, out, err = auxeval(capsys, "labels", "carry", one, two)
    assert (code, out) == (2, "")
    assert "--id COL is needed" in err or "has no plan" in err
    planned(capsys, two)
    for earlier in ("nowhere.csv", "runs"):
        code, out, err = auxeval(capsys, "labels", "carry", earlier, two)
        assert (code, out, len(err.splitlines())) == (2, "", 1)
        assert "internal" not in err


def test_right_answers_of_a_run_hold_for_its_next_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AUXEVAL_CACHE_DIR", str(tmp_path / "cache"))
    for name, known in (("one", 20), ("two", 2)):
        lines = [
            {"id": f"{k:03d}", "question": f"What is {k} + {k % 7}?", "gold": str(k + k % 7) if k < known else None}
            for k in range(40)
        ]
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        config: dict[str, Any] = {
            "schema": 1, "name": name, "seed": 1,
            "benchmark": {"preset": "custom", "path": f"{name}.jsonl", "grading": "numeric",
                          "fields": {"id": "id", "question": "question", "gold": "gold"}},
            "models": {"a": {"model": "sim/strong"}, "b": {"model": "sim/weak"}, "j": {"model": "sim/judge"}},
            "roles": {"targets": ["a", "b"], "judge": "j"}, "design": {"labeled": "gold"},
            "estimate": ["naive", "gaps"],
        }  # fmt: skip
        pipeline.run(config, run_id=name, yes=True)
    assert auxeval(capsys, "labels", "plan", "two", "--gap", "a,b", "--max", 30, "--sheet", 30)[0] == 0
    code, out, err = auxeval(capsys, "labels", "carry", "one", "two")
    assert code == 0, err
    assert out.startswith("20 of 20 labels of one hold in two")
    sheet = sheet_of(capsys, Path("two"), tmp_path / "s.csv")
    filled = sheet.filter(pl.col("gold").is_not_null())
    assert filled.height == sum(int(name) < 20 for name in sheet["id"]) > 0
