"""Every shape of table through the one command and the one function that estimate."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import pipeline
from pipeline.cli import main
from pipeline.errors import DataError, InputError
from pipeline.tables.column_roles import ColumnRoles
from pipeline.tables.shapes.files import input_files, model_name
from pipeline.tables.shapes.read import read_shaped_table
from pipeline.tables.shapes.shape import TableShape, parse_arithmetic, parse_map, parse_wide, table_shape
from pipeline.tables.table_source import inspect_source

ROWS = [
    {
        "item": f"q{i}",
        "model": model,
        "ok": int((i + shift) % 3 > 0) if i % 2 else None,
        "judge": (i * 7 + shift) % 5 / 4,
    }
    for shift, model in enumerate(("left", "right"))
    for i in range(40)
]
ROLES = ["--gold", "ok", "--signals", "judge", "--model", "model", "--id", "item"]


def estimate(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict[str, Any]:
    capsys.readouterr()
    with pytest.raises(SystemExit) as caught:
        main(["estimate", *map(str, arguments), "--json"])
    printed = capsys.readouterr()
    assert not caught.value.code, printed.err
    document: dict[str, Any] = json.loads(printed.out)
    return {name: (t["naive"]["value"], t["lace"]["value"]) for name, t in document["targets"].items()}


def refusal(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    with pytest.raises(SystemExit) as caught:
        main([str(argument) for argument in arguments])
    assert caught.value.code == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert len(printed.err.splitlines()) == 1
    return printed.err


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    path = tmp_path / "plain.csv"
    pl.DataFrame(ROWS).write_csv(path)
    return path


def test_rows_deeper_in_a_json_document_are_proposed_and_read(
    tmp_path: Path, plain: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "nested.json"
    path.write_text(json.dumps({"meta": {"n": 1}, "out": {"results": ROWS, "few": [{"a": 1}]}}))
    assert "80 rows stand deeper: add --records out.results (or out.few)" in refusal(capsys, "estimate", path, *ROLES)
    assert estimate(capsys, path, *ROLES, "--records", "out.results") == estimate(capsys, plain, *ROLES)
    assert "no list at --records out.nothing" in refusal(capsys, "estimate", path, *ROLES, "--records", "out.nothing")
    path.write_text(json.dumps({"out": {"results": ROWS}}, indent=1))
    assert estimate(capsys, path, *ROLES, "--records", "out.results") == estimate(capsys, plain, *ROLES)


@pytest.mark.parametrize("suffix", ["jsonl", "parquet"])
def test_list_positions_and_exploded_lists(
    tmp_path: Path, plain: Path, suffix: str, capsys: pytest.CaptureFixture[str]
) -> None:
    nested = [
        {"item": a["item"], "games": [{"who": r["model"], "ok": r["ok"], "judge": r["judge"]} for r in (a, b)]}
        for a, b in zip(ROWS[:40], ROWS[40:], strict=True)
    ]
    path = tmp_path / f"games.{suffix}"
    frame = pl.DataFrame(nested)
    frame.write_ndjson(path) if suffix == "jsonl" else frame.write_parquet(path)
    whole = estimate(capsys, plain, *ROLES)
    names = ["--gold", "games.ok", "--signals", "games.judge", "--model", "games.who", "--id", "item"]
    assert estimate(capsys, path, *names, "--explode", "games") == whole
    second = estimate(capsys, path, "--gold", "games.1.ok", "--signals", "games.1.judge", "--id", "item")
    assert second["all"] == whole["right"]
    message = refusal(capsys, "estimate", path, "--gold", "games", "--signals", "item")
    assert "--explode games" in message
    assert "games.0" in message


def test_wide_tables_are_the_long_ones(tmp_path: Path, plain: Path, capsys: pytest.CaptureFixture[str]) -> None:
    frame = pl.DataFrame(ROWS)
    wide = frame.pivot(on="model", index="item", values=["ok", "judge"])
    path = tmp_path / "wide.csv"
    wide.write_csv(path)
    assert wide.columns == ["item", "ok_left", "ok_right", "judge_left", "judge_right"]
    long = estimate(capsys, plain, *ROLES)
    assert estimate(capsys, path, "--wide", "gold=ok_*,judge=judge_*", "--id", "item") == long
    assert estimate(capsys, path, "--wide", "gold=ok_*,judge=judge_*") == long
    assert "matches none of" in refusal(capsys, "estimate", path, "--wide", "gold=right_*,judge=judge_*")
    assert "is not ROLE=PATTERN" in refusal(capsys, "estimate", path, "--wide", "gold=ok")
    document = pipeline.estimate(wide, wide={"gold": "ok_*", "judge": "judge_*"}, id="item").to_dict()
    assert {name: target["lace"]["value"] for name, target in document["targets"].items()} == {
        name: values[1] for name, values in long.items()
    }


def test_a_row_per_judge_becomes_a_signal_per_judge(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [
        {**row, "rater": rater, "judge": row["judge"] + shift}
        for row in ROWS
        for rater, shift in (("a", 0.0), ("b", 0.25), ("b", 0.75))
    ]
    path = tmp_path / "long.csv"
    pl.DataFrame(rows).write_csv(path)
    roles = ColumnRoles("ok", ("judge",), id="item", model="model")
    table, shaped = read_shaped_table([path], roles, TableShape(rater="rater"))
    assert shaped.signals == ("a", "b")
    assert table.frame.height == len(ROWS)
    expected = pl.DataFrame(ROWS)["judge"]
    assert table.frame["a"].to_list() == pytest.approx(expected.to_list())
    assert table.frame["b"].to_list() == pytest.approx((expected + 0.5).to_list())
    estimate(capsys, path, *ROLES, "--rater", "rater")
    assert "--rater needs --id" in refusal(capsys, "estimate", path, *ROLES[:-2], "--rater", "rater")
    rows[4]["ok"] = 1 - (rows[4]["ok"] or 0)
    pl.DataFrame(rows).write_csv(path)
    assert "says different things" in refusal(capsys, "estimate", path, *ROLES, "--rater", "rater")


def test_words_and_arithmetic_of_the_gold(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "votes.csv"
    path.write_text(
        "id,vote,pref,s\n" + "".join(f"{i},{['model_a', 'Tie', 'model_b'][i % 3]},{1 + i % 2},{i}\n" for i in range(30))
    )
    winner = ["--map", "vote: model_a=1, tie=0.5, model_b=0"]
    assert estimate(capsys, path, "--gold", "vote", "--signals", "s", *winner)["all"][0] == pytest.approx(0.5)
    assert estimate(capsys, path, "--gold", "pref-1", "--signals", "s")["all"][0] == pytest.approx(0.5)
    assert estimate(capsys, path, "--gold", "pref*2", "--signals", "s", "--gold-range", "0,9")["all"][
        0
    ] == pytest.approx(3)
    message = refusal(capsys, "estimate", path, "--gold", "vote", "--signals", "s", "--map", "vote: model_a=1, tie=0.5")
    assert "'model_b' has no number (first in row 3 (line 4))" in message
    assert "has no column 'pref+1'" in refusal(capsys, "estimate", path, "--gold", "pref+1", "--signals", "s")


def test_a_column_of_that_name_goes_before_arithmetic(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("pref-1,s\n" + "".join(f"{i % 2},{i}\n" for i in range(12)))
    table, roles = read_shaped_table([path], ColumnRoles("pref-1", ("s",)))
    assert (roles.gold, table.frame["pref-1"].to_list()) == ("pref-1", ["0", "1"] * 6)


def test_several_files_a_folder_and_a_glob(tmp_path: Path, plain: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "models"
    folder.mkdir()
    for name in ("left", "right"):
        pl.DataFrame(ROWS).filter(pl.col("model") == name).drop("model").write_csv(folder / f"{name}.csv")
    names = ["--gold", "ok", "--signals", "judge", "--id", "item", "--model-from-file"]
    long = estimate(capsys, plain, *ROLES)
    for paths in ([folder], [folder / "*.csv"], [folder / "left.csv", folder / "right.csv"]):
        assert estimate(capsys, *paths, *names) == long
    assert "give one of them" in refusal(capsys, "estimate", folder, *ROLES, "--model-from-file")
    (folder / "left.csv").write_text("item,ok,judge\nq,maybe,1\nr,1,1\ns,0,1\n")
    assert "of left.csv" in refusal(capsys, "estimate", folder, *names)
    assert "matches no file" in refusal(capsys, "estimate", folder / "*.json", *names)


def test_two_files_of_one_name_are_named_with_their_folder() -> None:
    files = [Path("a/x.csv.gz"), Path("b/x.csv"), Path("c/y.jsonl")]
    assert [model_name(file, files) for file in files] == ["a/x", "b/x", "y"]


def test_standard_input(plain: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    long = estimate(capsys, plain, *ROLES)

    class Standard:
        buffer = io.BytesIO(plain.read_bytes())

    monkeypatch.setattr("sys.stdin", Standard)
    assert estimate(capsys, "-", *ROLES) == long
    Standard.buffer = io.BytesIO(b"a,b\n1,2\n")
    assert "standard input has no column 'ok'" in refusal(capsys, "estimate", "-", *ROLES)


@pytest.mark.parametrize("above", ["A title, of June\n\n", "# made by a tool\n# version 2\n", "Results;;;;\n"])
def test_a_title_above_the_names_is_proposed_not_guessed(
    tmp_path: Path, plain: Path, above: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "titled.csv"
    body = plain.read_text()
    path.write_text(above + (body.replace(",", ";") if ";" in above else body))
    message = refusal(capsys, "estimate", path, *ROLES)
    line = above.count("\n") + 1
    assert f"add --header-line {line}" in message
    assert estimate(capsys, path, *ROLES, "--header-line", line) == estimate(capsys, plain, *ROLES)


@pytest.mark.parametrize(
    "text",
    [
        "question\nParis, is it?\nNo, Rome\n",
        "#,ok,judge\n1,1,1\n2,0,1\n",
        "a,b,,\nx y,z t,u,v\nm,n,o,p\n",
        "id,note\n1,\n2,\n",
    ],
)
def test_plain_headers_are_no_titles(tmp_path: Path, text: str) -> None:
    path = tmp_path / "t.csv"
    path.write_text(text)
    assert inspect_source(path).columns[0] == text.splitlines()[0].split(",")[0]


def test_a_quoted_separator_line_of_excel(tmp_path: Path, plain: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "euro.csv"
    path.write_text('"sep=;"\n' + plain.read_text().replace(",", ";").replace(".", ","))
    assert estimate(capsys, path, *ROLES) == estimate(capsys, plain, *ROLES)


def workbook(path: Path, sheets: dict[str, list[list[Any]]]) -> Path:
    openpyxl = pytest.importorskip("openpyxl", reason="the extra xlsx is not installed")
    book = openpyxl.Workbook()
    book.remove(book.active)
    for title, rows in sheets.items():
        sheet = book.create_sheet(title)
        for row in rows:
            sheet.append(row)
    book.save(path)
    return path


def test_workbooks(tmp_path: Path, plain: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = list(ROWS[0])
    rows = [names, *([row[name] for name in names] for row in ROWS)]
    long = estimate(capsys, plain, *ROLES)
    assert estimate(capsys, workbook(tmp_path / "one.xlsx", {"Results": rows, "Empty": []}), *ROLES) == long
    two = workbook(tmp_path / "two.xlsx", {"Results": rows, "Notes": [["see", "there"], [1, 2]]})
    assert "2 sheets with rows ('Results', 'Notes'); add --sheet NAME" in refusal(capsys, "estimate", two, *ROLES)
    assert estimate(capsys, two, *ROLES, "--sheet", "Results") == long
    titled = workbook(tmp_path / "titled.xlsx", {"R": [["June results"], [], *rows]})
    assert "add --header-line 3" in refusal(capsys, "estimate", titled, *ROLES)
    assert estimate(capsys, titled, *ROLES, "--header-line", 3) == long


def test_a_formula_that_was_never_computed_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = workbook(tmp_path / "f.xlsx", {"R": [["ok", "judge"], [1, 0.5], ["=A2*2", 0.5], [0, 1]]})
    message = refusal(capsys, "estimate", path, "--gold", "ok", "--signals", "judge")
    assert "row 3, column 1 holds a formula without a stored value" in message


def test_damaged_and_huge_workbooks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = workbook(tmp_path / "f.xlsx", {"R": [["ok", "judge"], [1, 0.5]]})
    monkeypatch.setattr("pipeline.tables.shapes.workbook.MAX_UNPACKED_BYTES", 1000)
    assert "unpacks to more than" in refusal(capsys, "estimate", path, "--gold", "ok", "--signals", "judge")
    path.write_bytes(path.read_bytes()[:500])
    refusal(capsys, "estimate", path, "--gold", "ok", "--signals", "judge")


@pytest.mark.parametrize("text", ["x", "gold=*_a*", "gold=*", "=*_a", "gold=*_a,gold=*_b"])
def test_bad_wide(text: str) -> None:
    with pytest.raises(InputError, match="--wide"):
        parse_wide(text)


@pytest.mark.parametrize("text", ["winner", "winner: a", "winner: a=x", ": a=1", "a=1"])
def test_bad_map(text: str) -> None:
    with pytest.raises(InputError, match="--map"):
        parse_map(text)


def test_maps_and_arithmetic_as_written() -> None:
    assert parse_map("a: b: X Y =1, z=-.5") == ("a: b", {"x y": 1.0, "z": -0.5})
    assert parse_arithmetic("a - b - 1") == ("a - b", "-", 1.0)
    assert parse_arithmetic("score*0.5") == ("score", "*", 0.5)
    assert parse_arithmetic("a/2") is None
    with pytest.raises(InputError, match="two shapes"):
        table_shape({"wide": "gold=*_a", "rater": "r"})


def test_nothing_there(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="folder without tables"):
        input_files([tmp_path])


CASES = {
    "titlerow.csv": ["--header-line", "3"],
    "euro_sep.csv": [],
    "base.csv": [],
}


@pytest.mark.shared
def test_one_table_in_every_shape_gives_the_same_numbers(shared_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = shared_path / "cases" / "evaluation"
    if not folder.exists():
        pytest.skip("the shared cases are not there")
    roles = ["--gold", "Correct?", "--signals", "Judge", "--model", "Model", "--id", "Question ID"]
    printed = {name: estimate(capsys, folder / name, *roles, *more) for name, more in CASES.items()}
    wide = estimate(capsys, folder / "wide.csv", "--wide", "gold=*_correct,judge=*_judge", "--id", "id")
    assert all(document == wide for document in printed.values())
    table, shaped = read_shaped_table(
        [folder / "longjudge.csv"], ColumnRoles("gold", ("score",), id="item", model="model"), TableShape(rater="judge")
    )
    assert shaped.signals == ("gpt", "claude", "gemini")
    graded = table.frame.filter(pl.col("gold").is_not_null())
    assert graded.group_by("model").len()["len"].to_list() == [100, 100, 100]


def test_a_first_line_of_megabytes_in_a_file_of_lines_is_a_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Once taken for the beginning of one long document, and refused."""
    rows = [{"id": k, "gold": k % 2 if k < 20 else None, "judge": (k * 7) % 10 / 10, "text": "x"} for k in range(60)]
    rows[0]["text"] = "x" * (6 << 20)
    (tmp_path / "long.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "short.jsonl").write_text("".join(json.dumps({**row, "text": ""}) + "\n" for row in rows))
    made = [
        estimate(capsys, tmp_path / name, "--gold", "gold", "--signals", "judge", "--id", "id")
        for name in ("long.jsonl", "short.jsonl")
    ]
    assert made[0] == made[1]
