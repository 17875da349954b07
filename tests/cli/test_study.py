"""`auxeval study` at the command line: list, run, write, refuse; other people's tables by column options."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from pipeline.cli.study import command
from pipeline.errors import InputError
from pipeline.studies.lace import discrete as lace_discrete


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(command, list(arguments), catch_exceptions=True)


def test_list_names_every_study() -> None:
    result = invoke("--list")
    assert result.exit_code == 0
    assert "lace-repeated-pool" in result.output
    names = [entry["name"] for entry in json.loads(invoke("--list", "--json").output)["studies"]]
    assert "lace-real" in names


def test_list_is_also_a_word() -> None:
    """`runs list` had taught people `study list`, which answered that there is no such study."""
    assert invoke("list").output == invoke("--list").output
    assert invoke("list", "--json").output == invoke("--list", "--json").output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "which study"),
        (("lace-x",), "did you mean"),
        (("lace-real",), "needs a table"),
        (("lace-real", "absent.csv"), "no table absent.csv"),
        (("lace-b", "--reps", "1"), "--reps"),
    ],
)
def test_refusals(arguments: tuple[str, ...], message: str) -> None:
    result = invoke(*arguments)
    assert isinstance(result.exception, InputError)
    assert message in str(result.exception)


def test_a_study_is_printed_and_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lace_discrete, "DESIGNS", 1)
    out = tmp_path / "b.txt"
    result = invoke("lace-b", "--reps", "2", "--seed", "4", "--out", str(out))
    assert result.exit_code == 0, result.exception
    assert out.read_text().splitlines()[0] in result.stdout
    assert max(map(len, [line for line in result.stdout.splitlines() if "Made by" not in line])) <= 80
    assert f"Made by: auxeval study lace-b --reps 2 --seed 4 --out {out}" in out.read_text()
    document = json.loads(invoke("lace-b", "--reps", "2", "--seed", "4", "--json").stdout)
    assert document["tables"][0]["columns"][1:] == ["n = 500", "n = 1000", "n = 1500"]


def own_table(folder: Path, gold_everywhere: bool = True) -> Path:
    rng = np.random.default_rng(0)
    lines = ["name,who,right,judge,noise,words"]
    for who in ("x", "y"):
        for item in range(80):
            right = int(rng.random() < 0.6)
            gold = "" if not gold_everywhere and item == 7 else str(right)
            judge, noise = right + rng.normal() * 0.7, rng.normal()
            lines.append(f"i{item},{who},{gold},{judge:.4f},{noise:.4f},{rng.integers(5, 60)}")
    path = folder / "own.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


COLUMNS = (
    "--gold",
    "right",
    "--signals",
    "judge,noise",
    "--profile",
    "words:continuous",
    "--model",
    "who",
    "--id",
    "name",
)


def test_a_table_of_ones_own_runs_through_the_whole_protocol(tmp_path: Path) -> None:
    result = invoke("lace-real", str(own_table(tmp_path)), "--reps", "2", *COLUMNS)
    assert result.exit_code == 0, result.exception
    printed = " ".join(result.output.split())  # headings are wrapped
    for heading in ("as Table 2", "Signal families", "Ridge × bandwidth", "as Table 28", "stratified before labelling"):
        assert heading in printed
    assert "LACE, adaptive rule" in result.output


def test_gold_must_be_full(tmp_path: Path) -> None:
    result = invoke("lace-real", str(own_table(tmp_path, gold_everywhere=False)), "--reps", "2", *COLUMNS)
    assert isinstance(result.exception, InputError)
    assert "have no gold" in str(result.exception)


def test_columns_must_be_named(tmp_path: Path) -> None:
    path = own_table(tmp_path)
    for arguments, message in (((), "--gold, --signals and --profile"), (("--gold", "right"), "--signals")):
        result = invoke("lace-real", str(path), "--reps", "2", *arguments)
        assert isinstance(result.exception, InputError)
        assert message in str(result.exception)


@pytest.mark.shared
def test_known_tables_become_cells(shared_path: Path) -> None:
    from pipeline.studies.real.tables import is_known, load_cells
    from pipeline.studies.registry import TableColumns

    files = [*(shared_path / "data" / "tables").iterdir(), *(shared_path / "data" / "judges").iterdir()]
    counts = {}
    for file in files:
        if is_known(file):
            cells = load_cells(file, TableColumns())
            counts[file.name.split(".")[0]] = len(cells)
            for cell in cells:
                assert len(cell.z) == len(cell.y) == len(cell.signals) == len(cell.raw_judge)
                assert np.isfinite(cell.signals).all()
                assert np.isfinite(cell.y).all()
                columns = sorted(column for family in cell.families.values() for column in family)
                assert columns == list(range(cell.signals.shape[1]))
                spread = cell.signals.std(axis=0) > 0
                correlation = np.corrcoef(cell.signals[:, spread].T, cell.y)[-1, :-1]
                assert np.abs(correlation).max() < 0.999  # no signal is the gold itself
    assert counts["gsm8k_outcomes"] == 16
    assert counts["mmlupro_table"] == 12
    assert counts["openqa_sciq"] == 12
    assert counts["mcq_confidence_mmlu"] == 14


@pytest.mark.shared
def test_ordered_axes_are_jittered_alike_for_every_target(shared_path: Path) -> None:
    from pipeline.studies.real.tables import load_cells
    from pipeline.studies.registry import TableColumns

    path = shared_path / "data" / "tables" / "gsm8k_outcomes.csv.gz"
    first, again = load_cells(path, TableColumns()), load_cells(path, TableColumns())
    assert first[0].levels is not None
    np.testing.assert_array_equal(first[0].z, again[0].z)
    assert np.abs(first[0].z - first[0].levels).max() <= 0.4
    np.testing.assert_array_equal(first[0].z, first[1].z)
