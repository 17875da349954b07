"""One rater at a desk: what is next, undo, skips, plans, two raters, and the same estimate by both doors."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path

import polars as pl
import pytest
from labelling.by_hand import ROLES, auxeval, label_all, right_by_text, session_of, write_table

from pipeline.benchmark.given import Criterion
from pipeline.errors import InputError
from pipeline.evaluation.plans.ledger import ledger_of_table, read_ledger
from pipeline.labelling.asked import asked_of
from pipeline.labelling.desk import Desk
from pipeline.labelling.opening import Wanted
from pipeline.labelling.session import Session, StaleError


def _answer(session: Session) -> tuple[str, str]:
    view = session.view()
    assert view.item is not None
    asked = next(one for one in view.item.asked if (one.unit, one.criterion) not in view.said)
    text = next(response.text for response in view.item.responses if response.unit == asked.unit)
    session.say(asked.unit, asked.criterion, right_by_text(text))
    return asked.unit, asked.criterion


def _fill(sheet: Path, source: Path) -> None:
    """What a person writes into a sheet who goes by the same text as the one in the page."""
    answers = {(row["id"], row["model"]): row["answer"] for row in pl.read_ndjson(source).iter_rows(named=True)}
    with sheet.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        text = answers[row["id"], row["model"]] if "model" in row else row["answer"]
        row["gold"] = row["gold"] or ("1" if right_by_text(text) == "yes" else "0")
    with sheet.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def _numbers(table: Path, capsys: pytest.CaptureFixture[str]) -> object:
    capsys.readouterr()
    columns = ["--gold", "gold", "--signals", "judge", "--id", "id", "--model", "model"]
    assert auxeval("estimate", str(table), *columns, "--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert document["targets"]
    return {name: value for name, value in document.items() if name != "source"}


def test_undo_goes_back_word_by_word_also_in_a_new_session(table: Path) -> None:
    session = session_of(table)
    first = session.view().item
    said = [_answer(session) for _ in range(5)]
    again = session_of(table)  # a server that was killed and started again
    for about in reversed(said):
        assert again.view().undo
        again.undo()
        item = again.view().item
        assert item is not None
        assert about in {(one.unit, one.criterion) for one in item.asked}
        assert about not in again.view().said
    assert again.view().item == first
    with pytest.raises(StaleError, match="nothing to take back"):
        again.undo()


def test_a_skip_with_its_reason_is_kept_and_undone_as_one(table: Path) -> None:
    session = session_of(table)
    first = session.view().item
    assert first is not None
    session.skip(first.key, "the question is broken", "see the mail")
    words = session.source.store.read().words
    assert {(word.skipped, word.note, word.value) for word in words.values()} == {
        ("the question is broken", "see the mail", None)
    }
    assert session.view().item != first
    with pytest.raises(StaleError):
        session.skip(first.key, "twice")
    session.undo()
    assert session.view().item == first
    assert not session.source.store.read().words


def test_what_is_no_answer_is_refused_and_a_repeated_answer_counts_once(table: Path) -> None:
    session = session_of(table)
    unit, criterion = _answer(session)
    item = session.view().item
    assert item is not None
    with pytest.raises(InputError, match="is none of yes, no"):
        session.say(item.asked[-1].unit, criterion, "perhaps")
    session.say(unit, criterion, "yes" if session.source.store.read().by_rater[unit, criterion]["ann"] else "no")
    assert len(session.source.store.path.read_bytes().splitlines()) == 1
    label_all(session)
    with pytest.raises(StaleError, match="answered already"):
        session.say(unit, criterion, "no")


@pytest.mark.parametrize(
    ("scale", "kind", "good", "bad"),
    [((0, 1), "yes-no", "yes", "2"), ((1, 5), "scale", "5", "6"), ((5, 1), "scale", "1", "0"),
     ((0, 100), "number", "55.5", "101")],
)  # fmt: skip
def test_every_scale_has_its_answers(scale: tuple[float, float], kind: str, good: str, bad: str) -> None:
    asked = asked_of("u", Criterion("tone", "Is it kind?", *map(float, scale)))
    assert asked.kind == kind
    assert isinstance(asked.read(good), float)
    for wrong in (bad, "", "x" * 3_000, "nan"):
        with pytest.raises(InputError, match="tone"):
            asked.read(wrong)


def test_the_plan_hands_out_looks_and_stops(planned: Path) -> None:
    session = session_of(planned)
    looks = 0
    while (view := session.view()).phase != "end":
        if view.phase == "label":
            assert label_all(session)
            assert session.view().phase == "look"
        elif view.phase == "look":
            session.look()
            looks += 1
            assert any("look" in line for line in session.view().says)
            assert not session.view().undo, "a look is not taken back"
        else:
            session.go_on()
    ledger = read_ledger(ledger_of_table(planned))
    assert ledger is not None
    assert ledger.state in ("decided", "exhausted")
    assert len(ledger.looks) == looks <= 4
    if ledger.state == "decided":
        assert "You can stop" in " ".join(session.view().says)
    gold = pl.read_ndjson(planned)["gold"].drop_nulls()
    assert len(gold) == 2 * len(ledger.labels)


def test_a_blind_plan_says_no_number_before_its_end(table: Path) -> None:
    words = "--half-width 0.02 --max 100 --sheet 25 --gold gold --signals judge --id id --model model"
    assert auxeval("labels", "plan", str(table), *words.split(), "--question", "question", "--answer", "answer") == 0
    session = session_of(table)
    label_all(session)
    session.look()
    ledger = read_ledger(ledger_of_table(table))
    assert ledger is not None
    assert ledger.hidden
    assert not ledger.looks[-1].estimates
    assert "The number is shown when it is that precise" in " ".join(session.view().says)


def test_both_doors_of_a_plan_give_the_same_ledger(
    planned: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The page labels one sheet and half of the next, which goes on as CSV; the other table sees sheets alone."""
    other = tmp_path / "sheets" / "answers.jsonl"
    other.parent.mkdir()
    for file in (planned, ledger_of_table(planned)):
        shutil.copy(file, other.parent / file.name)
    session = session_of(planned)
    label_all(session)
    session.look()
    session.go_on()
    label_all(session, 13)
    assert auxeval("labels", "next", str(planned), "half.csv") == 0
    assert "of them were labelled in the page" in capsys.readouterr().out
    _fill(Path("half.csv"), planned)
    assert auxeval("labels", "import", str(planned), "half.csv", "--out", str(planned)) == 0
    for name in ("one.csv", "two.csv"):
        assert auxeval("labels", "next", str(other), name) == 0
        _fill(Path(name), other)
        assert auxeval("labels", "import", str(other), name, "--out", str(other)) == 0
    page, sheets = (read_ledger(ledger_of_table(path)) for path in (planned, other))
    assert page is not None
    assert sheets is not None
    assert [look.estimates for look in page.looks] == [look.estimates for look in sheets.looks]
    assert page.labels == sheets.labels
    assert _numbers(planned, capsys) == _numbers(other, capsys)


def test_both_doors_give_the_same_estimate_without_a_plan(
    table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = Path(shutil.copy(table, tmp_path / "other.jsonl"))
    session = session_of(table)
    from pipeline.labelling.desk import write_desk

    write_desk(
        tmp_path / "answers.jsonl.desk.json", Desk(columns=ROLES.to_dict(), visible=("answer", "question", None))
    )
    for _ in range(30):
        before = session.view().item
        while session.view().item == before:
            _answer(session)
    assert auxeval("labels", "import", str(table), "--out", "page.jsonl") == 0
    columns = "--gold gold --signals judge --id id --model model --question question --answer answer -n 60"
    assert auxeval("labels", "export", str(other), "sheet.csv", *columns.split()) == 0
    with Path("sheet.csv").open(encoding="utf-8-sig", newline="") as file:
        ids = {row["id"].split(" ")[0] for row in csv.DictReader(file)}
    assert len(ids) == 30
    _fill(Path("sheet.csv"), other)
    assert auxeval("labels", "import", str(other), "sheet.csv", "--out", "csv.jsonl") == 0
    assert _numbers(Path("page.jsonl"), capsys) == _numbers(Path("csv.jsonl"), capsys)


def test_two_raters_get_their_deal_and_the_plan_waits_for_both(planned: Path) -> None:
    wanted = Wanted(raters=("ann", "bob"), overlap=0.25)
    ann, bob = session_of(planned, "ann", wanted), session_of(planned, "bob", wanted)
    with pytest.raises(InputError, match="dealt to ann, bob"):
        session_of(planned, "eve", wanted)
    label_all(ann)
    assert ann.view().phase == "waiting"
    assert "bob: " in ann.view().says[0]
    label_all(bob)
    assert ann.view().phase == bob.view().phase == "look"
    words = ann.source.store.read().by_rater.values()
    assert sum(len(by_rater) == 2 for by_rater in words) == pytest.approx(10, abs=3)
    bob.look()
    assert ann.view().phase == bob.view().phase
    with pytest.raises(StaleError):
        ann.look()


@pytest.mark.parametrize("overlap", [0.0, 0.1, 1 / 3, 1.0])
@pytest.mark.parametrize("raters", [("a",), ("a", "b"), ("a", "b", "c")])
def test_a_deal_reaches_everything_and_shares_what_it_should(raters: tuple[str, ...], overlap: float) -> None:
    overlap = overlap if len(raters) > 1 else 0.0
    items = [str(k) for k in range(60)]
    desk = Desk(raters, overlap)
    parts = [desk.dealt(items, name) for name in raters]
    assert set().union(*map(set, parts)) == set(items)
    assert sum(map(len, parts)) - 60 == int(60 * overlap + 1e-9)
    for part in parts:
        assert part == sorted(part, key=int), "in the common order, so that a part is a random one at any point"


def test_raters_without_a_deal_share_the_work(table: Path) -> None:
    ann, bob = session_of(table, "ann"), session_of(table, "bob")
    for _ in range(4):
        _answer(ann)
    assert bob.view().item == ann.view().item
    assert bob.view().item is not None


def test_five_thousand_long_items_are_read_one_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted, not timed: an answer reads one item's texts and one line of the store, however many there are."""
    monkeypatch.chdir(tmp_path)
    table = write_table(tmp_path / "big.jsonl", 2_500, lambda k, model: f"{k}{model} good " + "x" * 2_000)
    session = session_of(table)
    reads: list[str] = []
    item = type(session.source).item
    monkeypatch.setattr(type(session.source), "item", lambda self, name: reads.append(name) or item(self, name))
    for _ in range(40):
        _answer(session)
    reads.clear()
    lines = session.source.store.lines_read
    _answer(session)
    session.view()
    assert session.source.store.lines_read == lines + 1
    assert len(reads) <= 1


def test_a_table_whose_answers_cannot_be_seen_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("id,judge,gold\n" + "".join(f"q{k},{k},\n" for k in range(30)))
    with pytest.raises(InputError, match="--answer COL is needed"):
        session_of(path)
