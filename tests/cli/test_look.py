"""`auxeval look`: the command that it prints runs as it is, whatever the file."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from pipeline.cli import main

ROWS = [
    {"item": f"q{i}", "model": m, "human": (i + k) % 3 % 2 if i % 2 else None, "judge": (i * 7 + k) % 5 / 4}
    for k, m in enumerate(("left", "right"))
    for i in range(40)
]


def call(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    capsys.readouterr()
    with pytest.raises(SystemExit) as caught:
        main([str(argument) for argument in arguments])
    printed = capsys.readouterr()
    assert not caught.value.code, printed.err
    return printed.out


def look(capsys: pytest.CaptureFixture[str], path: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(call(capsys, "look", path, "--json"))
    return document


def test_plain_titled_nested_and_wide_tables(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    frame = pl.DataFrame(ROWS)
    frame.write_csv(tmp_path / "plain.csv")
    (tmp_path / "titled.csv").write_text("A title\n\n" + (tmp_path / "plain.csv").read_text())
    (tmp_path / "deep.json").write_text(json.dumps({"out": {"rows": ROWS}, "n": 80}))
    frame.write_parquet(tmp_path / "t.parquet")
    wide = frame.pivot(on="model", index="item", values=["human", "judge"])
    wide.rename({c: "_".join(reversed(c.split("_"))) for c in wide.columns if "_" in c}).write_csv(
        tmp_path / "wide.csv"
    )
    numbers = []
    for name in ("plain.csv", "titled.csv", "deep.json", "t.parquet", "wide.csv"):
        document = look(capsys, tmp_path / name)
        assert len(document["sample"]) == 5
        words = shlex.split(document["next"])
        assert words[:2] == ["auxeval", "estimate"]
        targets = json.loads(call(capsys, *words[1:], "--json"))["targets"]
        numbers.append({model: target["lace"]["value"] for model, target in targets.items()})
    assert all(number == numbers[0] for number in numbers)
    assert set(numbers[0]) == {"left", "right"}
    assert "looks like a title" in look(capsys, tmp_path / "titled.csv")["odd"][0]
    assert "--records out.rows" in look(capsys, tmp_path / "deep.json")["next"]
    assert "  run        auxeval estimate" in call(capsys, "look", tmp_path / "plain.csv")


def test_rows_per_judge(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{**row, "grader": grader, "judge": row["judge"]} for row in ROWS for grader in "ab"]
    pl.DataFrame(rows).rename({"judge": "score"}).write_csv(tmp_path / "long.csv")
    document = look(capsys, tmp_path / "long.csv")
    assert "--rater grader" in document["next"]
    call(capsys, *shlex.split(document["next"])[1:])


def test_a_tools_file_is_imported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    samples = [{"id": i, "epoch": 1, "input": "q", "scores": {"m": {"value": "CI"[i % 2]}}} for i in range(8)]
    log = {"version": 2, "status": "success", "eval": {"task": "t", "model": "m", "created": "1"}, "samples": samples}
    (tmp_path / "log.json").write_text(json.dumps(log))
    document = look(capsys, tmp_path / "log.json")
    assert document["kind"] == "results of inspect (1 files)"
    call(capsys, *shlex.split(document["next"])[1:])
    assert pl.read_parquet("log.parquet").height == 8


def test_a_benchmark_becomes_a_configuration(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "bench.jsonl"
    lines = [{"id": i, "question": f"What is {i}?", "answer": str(i)} for i in range(9)]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    document = look(capsys, path)
    assert document["roles"] == {"question": "question", "gold": "answer"}
    call(capsys, *shlex.split(document["next"])[1:])
    assert (tmp_path / "bench.yaml").exists()


def test_what_cannot_be_read_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x.bin").write_bytes(b"\x00\x01" * 50)
    (tmp_path / "empty").mkdir()
    for path in (tmp_path / "x.bin", tmp_path / "absent.csv", tmp_path / "empty"):
        with pytest.raises(SystemExit) as caught:
            main(["look", str(path)])
        assert caught.value.code == 2
        assert len(capsys.readouterr().err.splitlines()) == 1


WORDS = {  # yes, no
    "german": ("ja", "nein"), "french": ("Oui", "Non"), "spanish": ("sí", "no"), "russian": ("да", "нет"),
    "chinese": ("是", "否"), "japanese": ("はい", "いいえ"), "signs": ("✔\ufe0f", "✖\ufe0f"), "emoji": ("✅", "❌"),
    "spreadsheet": ("TRUE", "FALSE"), "passes": ("pass", "fail"),
}  # fmt: skip
SCALE = ("strongly disagree", "disagree", "neutral", "agree", "strongly agree")
CELLS = {
    "share": lambda value: str(value),
    "percent": lambda value: f"{value:.0%}",
    "fraction": lambda value: f"{value * 4:.0f}/4",
    "scale": lambda value: SCALE[round(value * 4)],
}


def estimated(capsys: pytest.CaptureFixture[str], path: Path) -> dict[str, Any]:
    """Model → its LACE mean, by the command that ``look`` prints."""
    words = shlex.split(look(capsys, path)["next"])
    assert words[:2] == ["auxeval", "estimate"], words
    targets = json.loads(call(capsys, *words[1:], "--json"))["targets"]
    return {model: target["lace"]["value"] for model, target in targets.items()}


@pytest.mark.parametrize("words", sorted(WORDS))
def test_words_for_yes_and_no_are_read(words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    yes, no = WORDS[words]
    pl.DataFrame(ROWS).write_csv(tmp_path / "plain.csv")
    told = [{**row, "human": None if row["human"] is None else yes if row["human"] else no} for row in ROWS]
    pl.DataFrame(told).write_csv(tmp_path / "told.csv")
    assert estimated(capsys, tmp_path / "told.csv") == estimated(capsys, tmp_path / "plain.csv")


@pytest.mark.parametrize("cells", sorted(CELLS))
def test_shares_in_any_spelling_are_one_signal(cells: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """LACE does not ask for the scale of a signal, so every spelling gives one number."""
    pl.DataFrame(ROWS).write_csv(tmp_path / "plain.csv")
    told = [{**row, "judge": CELLS[cells](row["judge"])} for row in ROWS]
    pl.DataFrame(told).write_csv(tmp_path / "told.csv")
    plain, other = estimated(capsys, tmp_path / "plain.csv"), estimated(capsys, tmp_path / "told.csv")
    assert other == pytest.approx(plain, abs=1e-9)


def test_an_object_of_rows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pl.DataFrame(ROWS).write_csv(tmp_path / "plain.csv")
    entries = {f"{row['item']}/{row['model']}": row for row in ROWS}
    for name, document in (("top.json", entries), ("deep.json", {"v": 2, "results": entries})):
        (tmp_path / name).write_text(json.dumps(document))
        assert estimated(capsys, tmp_path / name) == estimated(capsys, tmp_path / "plain.csv")


def test_people_among_the_judges_are_the_gold(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = [row for row in ROWS if row["model"] == "left"]
    pl.DataFrame(first).write_csv(tmp_path / "plain.csv")
    rows = [{"item": row["item"], "rater": "gpt", "score": row["judge"]} for row in first]
    rows += [
        {"item": row["item"], "rater": "human", "score": row["human"]} for row in first if row["human"] is not None
    ]
    pl.DataFrame(rows, infer_schema_length=None).write_csv(tmp_path / "raters.csv")
    plain = json.loads(
        call(
            capsys,
            "estimate",
            tmp_path / "plain.csv",
            "--gold",
            "human",
            "--signals",
            "judge",
            "--id",
            "item",
            "--json",
        )
    )
    assert estimated(capsys, tmp_path / "raters.csv") == {"all": plain["targets"]["all"]["lace"]["value"]}


def test_a_row_of_too_many_fields_is_one_line_for_every_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Once an internal error, where the columns that were asked for are read and the blank lines are looked for."""
    pl.DataFrame(ROWS).write_csv(tmp_path / "t.csv")
    lines = (tmp_path / "t.csv").read_text().splitlines()
    (tmp_path / "t.csv").write_text("\n".join([*lines[:9], lines[9] + ",more", *lines[10:]]) + "\n")
    assert "line 10" in " ".join(look(capsys, tmp_path / "t.csv")["odd"])
    roles = ("--gold", "human", "--id", "item", "--model", "model")
    for words in (("estimate", "t.csv", *roles), ("labels", "export", "t.csv", "s.csv", *roles), ("import", "t.csv")):
        command = [str(tmp_path / word) if word.endswith(".csv") else word for word in words]
        with pytest.raises(SystemExit) as ended:
            main([*command, *(["--out", str(tmp_path / "o.csv")] if words[0] == "import" else [])])
        assert (ended.value.code, "internal" in capsys.readouterr().err) in ((2, False), (0, False))
