"""Unread answers are loud, and go out to a person and back; corrections stay with the run wherever it goes."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from fault_server import FaultServer

import pipeline
from pipeline.cli import main
from pipeline.errors import DataError, InputError
from pipeline.runs.audit import export_audit, import_audit, stored_audit
from pipeline.runs.directory import RunDirectory
from pipeline.runs.unread import unread_form


def replies(body: dict[str, Any], _digest: str) -> tuple[str, str]:
    """Every third question is answered in a form that nobody reads; the others rightly, or =wrong."""
    prompt = body["messages"][0]["content"]
    number = int(prompt.split("number ")[1].split("?")[0])
    if number % 3 == 0:
        return f"I would rather say it in a picture {number}.\n=see the drawing {number}", "stop"
    return f"Answer: {number if number % 3 == 1 else number + 1}\nConfidence: 80", "stop"


@pytest.fixture
def finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunDirectory:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AUXEVAL_CACHE_DIR", str(tmp_path / "cache"))
    rows = [{"id": f"{k:02d}", "question": f"Say the number {k}?", "gold": str(k)} for k in range(30)]
    (tmp_path / "b.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with FaultServer(replies=replies) as server:
        result = pipeline.run(
            {
                "schema": 1, "name": "r", "estimate": ["naive"], "design": {"labeled": 30},
                "benchmark": {"preset": "custom", "path": "b.jsonl", "grading": "numeric"},
                "models": {"t": {"model": "openai/t", "api_base": server.url, "transport": "direct"}},
                "roles": {"targets": ["t"]},
            },
            run_id="r", yes=True,
        )  # fmt: skip
    return RunDirectory(result.path)


def fill(sheet: Path, cells: dict[str, tuple[str, str]]) -> None:
    """Item id → (right, correct_answer)."""
    rows = list(csv.DictReader(sheet.open(encoding="utf-8-sig", newline="")))
    with sheet.open("w", encoding="utf-8-sig", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        for row in rows:
            row["right"], row["correct_answer"] = cells.get(row["item_id"], ("", ""))
            writer.writerow(row)


def document(directory: RunDirectory) -> dict[str, Any]:
    return dict(json.loads(directory.estimates_file.read_text()))


def test_unread_answers_are_counted_bounded_and_said_first(
    finished: RunDirectory, capsys: pytest.CaptureFixture[str]
) -> None:
    data = document(finished)
    entry = data["unread"]["t"]
    assert (entry["count"], entry["share"]) == (10, pytest.approx(1 / 3))
    assert (entry["value_low"], entry["value_high"]) == (pytest.approx(1 / 3), pytest.approx(2 / 3))
    assert entry["forms"] == [["=see the drawing 9", 10]]
    assert data["warnings"][0]["code"] == "unread_answers"
    assert "=see the drawing 9" in data["warnings"][0]["message"]
    assert finished.manifest()["unread"]["t"]["count"] == 10
    assert "Answers in which none could be read" in (finished.path / "report.html").read_text()
    with pytest.raises(SystemExit):
        main(["resume", str(finished.path)])
    assert "Answers in which none could be read" in capsys.readouterr().out


def test_corrections_are_kept_estimated_replayed_and_exported(finished: RunDirectory, tmp_path: Path) -> None:
    sheet = tmp_path / "audit.csv"
    assert export_audit(finished, sheet, sample=8, seed=3) == (10, 8)
    rows = list(csv.DictReader(sheet.open(encoding="utf-8-sig", newline="")))
    assert [row["why"] for row in rows] == ["unread"] * 10 + ["sample"] * 8
    assert rows[0]["reply_end"].startswith("I would")
    checked = {row["item_id"]: ("yes", "") for row in rows if row["why"] == "sample"}
    first = next(iter(checked))
    fill(sheet, {"00": ("", "0"), "03": ("", "none"), **checked, first: ("no", "")})
    was_right = int(first) % 3 == 1
    estimates, filled = import_audit(finished, sheet)
    assert filled == 10
    assert estimates["t"]["naive"].value == pytest.approx((11 + (-1 if was_right else 1)) / 30)
    assert estimates.unread["t"].count == 9
    assert (estimates.audit.checked, estimates.audit.wrong) == (8, 1)
    assert estimates.audit.low < 1 / 8 < estimates.audit.high
    assert set(stored_audit(finished.path).corrections) >= {rows[0]["request_key"]}
    assert "A person checked 8 answers at random: 1 were graded wrong" in (finished.path / "report.html").read_text()

    replayed = pipeline.replay(finished.path, out=tmp_path / "again")
    assert replayed.manifest["identical"] is True
    assert (tmp_path / "again" / "audit.json").read_bytes() == (finished.path / "audit.json").read_bytes()
    with pytest.raises(SystemExit) as caught:
        main(["export", str(finished.path), str(tmp_path / "r.cassette")])
    assert not caught.value.code
    (tmp_path / "b.jsonl").unlink()
    elsewhere = pipeline.replay(tmp_path / "r.cassette", out=tmp_path / "elsewhere")
    assert elsewhere.estimates.to_dict()["targets"] == document(finished)["targets"]


@pytest.mark.parametrize(
    ("cells", "says"),
    [({}, "nothing is filled in yet"), ({"00": ("maybe", "")}, "row 2: right is 'maybe'"),
     ({"00": ("", "a picture")}, "row 2: correct_answer 'a picture' cannot be graded")],
)  # fmt: skip
def test_a_sheet_that_cannot_be_used_changes_nothing(
    finished: RunDirectory, tmp_path: Path, cells: dict[str, tuple[str, str]], says: str
) -> None:
    sheet = tmp_path / "audit.csv"
    export_audit(finished, sheet)
    fill(sheet, cells)
    before = finished.estimates_file.read_bytes()
    with pytest.raises((InputError, DataError), match=says):
        import_audit(finished, sheet)
    assert finished.estimates_file.read_bytes() == before
    assert not (finished.path / "audit.json").exists()
    with pytest.raises(InputError, match="exists and may hold an audit"):
        export_audit(finished, sheet)


def test_the_command(finished: RunDirectory, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words in (
        ["audit", str(finished.path), "--sample", "2", "--out", "s.csv", "--json"],
        ["audit", str(finished.path)],
    ):
        with pytest.raises(SystemExit) as caught:
            main(words)
        assert not caught.value.code
    out = capsys.readouterr().out
    assert '"unread": 10' in out
    assert "r-audit.csv: 10 answers that could not be read, 0 read ones at random" in out
    text = Path("s.csv").read_text(encoding="utf-8-sig")
    assert "'=" not in text.split("\n")[0]


def test_forms_are_told_apart_by_shape() -> None:
    assert unread_form("x\nIt is B or C, 12.5 of 100") == "It is X or X, 9 of 9"
    assert unread_form(None) == "(thought without a reply)"
    assert len(unread_form("a " * 200)) <= 61
