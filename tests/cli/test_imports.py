"""`auxeval import`: from the files of other tools to a table that `auxeval estimate` takes."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from pipeline.cli import main

FIXTURES = Path(__file__).parent.parent / "tables" / "fixtures"


def call(*arguments: object) -> int:
    with pytest.raises(SystemExit) as caught:
        main([str(argument) for argument in arguments])
    return int(caught.value.code or 0)


@pytest.mark.parametrize(
    ("tool", "folder", "rows", "gold", "signals"),
    [
        ("inspect", "inspect", 18, "score_match", "score_brevity,answer_chars"),
        ("lm-eval", "lm_eval", 28, "score_acc", "choice_probability,choice_margin"),
    ],
)
def test_imported_results_can_be_estimated(
    tool: str, folder: str, rows: int, gold: str, signals: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "table.parquet"
    assert call("import", tool, FIXTURES / folder, "--out", out) == 0
    printed = capsys.readouterr().out
    assert f"{rows} rows" in printed
    assert "auxeval estimate" in printed
    assert pl.read_parquet(out).height == rows
    assert (
        call(
            "estimate", out, "--gold", gold, "--signals", signals, "--model", "model", "--cluster", "cluster", "--json"
        )
        == 0
    )
    document = json.loads(capsys.readouterr().out)
    assert len(document["targets"]) == 2


def test_the_suggested_command_works(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "table.csv"
    assert call("import", "inspect", FIXTURES / "inspect" / "capitals_beta.json", "--out", out) == 0
    line = next(line for line in capsys.readouterr().out.splitlines() if "auxeval estimate" in line)
    assert call(*line.split("auxeval ")[1].split()) == 0


def test_plain_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, out = tmp_path / "in.csv", tmp_path / "out.jsonl"
    source.write_text("Item;ok?;x\na;yes;0,5\nb;no;1,5\n")
    assert call("import", "table", source, "--out", out, "--rename", "ok?=gold", "--columns", "Item,ok?") == 0
    assert [json.loads(line) for line in out.read_text().splitlines()] == [
        {"Item": "a", "gold": 1.0}, {"Item": "b", "gold": 0.0},
    ]  # fmt: skip
    assert call("import", "table", source, "--out", out, "--rename", "ok?") == 2
    assert call("import", "table", source, "--out", tmp_path / "out.xls") == 2
    assert call("import", "inspect", tmp_path, "--out", out) == 2
    assert len(capsys.readouterr().err.splitlines()) == 3
