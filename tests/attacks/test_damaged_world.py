"""Which file is damaged, how, and which command meets it: what is wrong is told, nothing is lost or paid again."""

from __future__ import annotations

import json
import logging
import os
import random
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml
from fault_server import FaultServer

import pipeline
from pipeline.cli import main
from pipeline.errors import ConfigError, DataError, StoppedEarly
from pipeline.models.cache import ReplyCache
from pipeline.models.ledger import spent_by
from pipeline.runs.cache_repair import repair_cache
from pipeline.runs.directory import RunDirectory
from tests.attacks.conftest import one_target

Damage = Callable[[Path], None]
ITEMS = 30
FILES = ["cache/cache.db", "runs/r/manifest.json", "runs/r/calls.jsonl", "runs/r/config.yaml",
         "runs/r/tables/items.parquet", "runs/r/tables/responses.parquet", "runs/r/tables/signals.parquet",
         "runs/r/estimates.json", "runs/r/prompts/repair.md", "runs/r/.ledger"]  # fmt: skip
COMMANDS = ["report r", "plan r", "export r out.gz", "runs list", "compare r r", "labels export r sheet.csv -n 2",
            "audit r", "cache stats", "cache verify", "estimate runs/r/tables/signals.parquet", "replay r",
            "resume r --quiet", "run c.yaml --run-id r --quiet"]  # fmt: skip


def _middle(path: Path) -> None:
    data = bytearray(path.read_bytes())
    part = slice(len(data) // 3, len(data) // 3 + len(data) // 4)
    data[part] = random.Random(1).randbytes(len(data[part]))
    path.write_bytes(bytes(data))


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


HOWS: dict[str, Damage] = {
    "gone": Path.unlink,
    "empty": lambda path: path.write_bytes(b"") and None,  # type: ignore[func-returns-value]
    "cut off": lambda path: os.truncate(path, path.stat().st_size * 5 // 6),
    "overwritten": lambda path: path.write_bytes(random.Random(0).randbytes(path.stat().st_size)) and None,  # type: ignore[func-returns-value]
    "its middle overwritten": _middle,
    "another document": lambda path: path.write_text("[1, 2]\n", encoding="utf-8") and None,  # type: ignore[func-returns-value]
    "zeros": lambda path: path.write_bytes(bytes(path.stat().st_size)) and None,  # type: ignore[func-returns-value]
    "a folder": _folder,
}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, FaultServer]]:
    """A finished run whose replies were paid for, and the server that would be paid again."""
    place = tmp_path_factory.mktemp("world")
    with FaultServer() as server, pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        patch.setenv("XDG_STATE_HOME", str(place / "state"))
        (place / "c.yaml").write_text(yaml.safe_dump(one_target(server.url, items=ITEMS)), encoding="utf-8")
        pipeline.run("c.yaml", run_id="r", cache_dir="cache", yes=True)
        assert server.seen.requests == ITEMS
        yield place, server


@pytest.fixture
def place(world: tuple[Path, FaultServer], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, FaultServer]:
    """A copy of it to damage."""
    _again(world[0], tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("AUXEVAL_CACHE_DIR", "cache")
    return tmp_path, world[1]


def _again(original: Path, place: Path) -> None:
    for entry in place.iterdir():
        shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
    shutil.copytree(original, place, dirs_exist_ok=True)
    records = place / "state" / "auxeval" / "runs.jsonl"  # the copy is the same author's
    records.write_text(records.read_text("utf-8").replace(str(original.resolve()), str(place.resolve())), "utf-8")


def _ends(command: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    capsys.readouterr()
    with pytest.raises(SystemExit) as end:
        main(command.split())
    return int(end.value.code or 0), capsys.readouterr().err


def _tables(place: Path) -> dict[str, bytes]:
    run = place / "runs" / "r"
    return {file.name: file.read_bytes() for file in [*(run / "tables").glob("*.parquet"), run / "estimates.json"]}


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("name", FILES)
def test_no_command_fails_without_a_word_or_pays_again(
    name: str, how: str, world: tuple[Path, FaultServer], place: tuple[Path, FaultServer],
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    folder, server = place
    before = server.seen.requests
    for command in COMMANDS:
        if command.startswith(("report", "run ")):  # after resume has mended it
            _again(world[0], folder)
            HOWS[how](folder / name)
        code, told = _ends(command, capsys)
        assert code in (0, 2), (command, told)
        assert "Traceback" not in told
        own = [line for line in told.splitlines() if line.startswith("auxeval: ")]
        assert len(own) == (code == 2), (command, told)
        assert server.seen.requests == before, command


MENDED = {
    "cache/cache.db": ["cut off", "its middle overwritten"],
    "runs/r/manifest.json": list(HOWS),
    "runs/r/calls.jsonl": [h for h in HOWS if h != "a folder"],
    "runs/r/tables/items.parquet": [h for h in HOWS if h != "a folder"],
    "runs/r/estimates.json": [h for h in HOWS if h != "a folder"],
    "runs/r/.ledger": [h for h in HOWS if h != "a folder"],
}  # fmt: skip


@pytest.mark.parametrize(("name", "how"), [(name, how) for name, hows in MENDED.items() for how in hows])
def test_resume_makes_again_what_is_lost(
    name: str, how: str, world: tuple[Path, FaultServer], place: tuple[Path, FaultServer],
    capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    folder, server = place
    spent = spent_by(folder / "cache", RunDirectory(folder / "runs" / "r").ledger_name or "")
    cost = json.loads((folder / "runs/r/manifest.json").read_text())["cost_usd"]
    log = (folder / "runs/r/calls.jsonl").read_text()
    HOWS[how](folder / name)
    before = server.seen.requests
    code, told = _ends("resume r --quiet", capsys)
    if name == "runs/r/manifest.json" and how != "gone":
        assert code == 2
        assert "auxeval resume runs/r --rebuild" in told
        code, told = _ends("resume r --quiet --rebuild", capsys)
    if name == "cache/cache.db":
        if code == 2:
            assert "auxeval cache repair --cache-dir cache" in told
            assert _ends("cache repair --cache-dir cache", capsys)[0] == 0
            with ReplyCache("cache") as cache:
                saved = len(cache)
            assert saved >= ITEMS // 3
        code, told = _ends("resume r --quiet --yes", capsys)
        assert server.seen.requests - before <= 2 * ITEMS // 3
    else:
        assert server.seen.requests == before
    assert code == 0, told
    if name == "cache/cache.db":
        return
    assert _tables(folder) == _tables(world[0])
    manifest = json.loads((folder / "runs/r/manifest.json").read_text())
    assert manifest["state"] == "done"
    assert manifest["cost_usd"] == pytest.approx(cost)
    assert spent_by(folder / "cache", RunDirectory(folder / "runs" / "r").ledger_name or "") == spent
    assert len((folder / "runs/r/calls.jsonl").read_text().splitlines()) == len(log.splitlines())
    assert manifest["calls"]["answered"] == ITEMS
    if name == "runs/r/manifest.json":
        assert "manifest.json" in caplog.text
        assert _ends("replay r", capsys)[0] == 0


def test_an_empty_database_beside_its_log_keeps_the_log(
    place: tuple[Path, FaultServer], capsys: pytest.CaptureFixture[str]
) -> None:
    """SQLite deletes the log of an empty database as it opens it: every reply in it was lost."""
    folder, server = place
    with ReplyCache("another") as into, ReplyCache("cache") as cache:
        into.add_many(list(cache.entries()))
        shutil.copytree("another", "live")  # while it is open: what was written stands in the log alone
    assert (folder / "live" / "cache.db-wal").stat().st_size > 32
    for spoil in ("empty", "gone"):
        shutil.rmtree("cache", ignore_errors=True)
        shutil.copytree("live", "cache")
        HOWS[spoil](Path("cache/cache.db"))
        for command in ("resume r", "replay r", "cache stats", "cache verify", "runs list", "plan r"):
            _ends(command, capsys)
        assert (folder / "cache" / "cache.db-wal").stat().st_size > 32
        with pytest.raises(DataError, match="auxeval cache repair"):
            ReplyCache("cache")
        assert repair_cache(Path("cache")).replies == ITEMS
        with ReplyCache("cache") as cache:
            assert cache.verify().ok
    before = server.seen.requests
    assert _ends("resume r --quiet", capsys)[0] == 0
    assert server.seen.requests == before


def test_every_whole_reply_is_saved_wherever_the_damage_is(place: tuple[Path, FaultServer]) -> None:
    """A page overwritten anywhere costs what stood on it, and no more; the first page included."""
    whole = Path("cache/cache.db").read_bytes()
    pages = len(whole) // 4096
    for page in range(pages):
        spoilt = bytearray(whole)
        spoilt[page * 4096 : (page + 1) * 4096] = random.Random(page).randbytes(4096)
        shutil.rmtree("cache")
        Path("cache").mkdir()
        Path("cache/cache.db").write_bytes(bytes(spoilt))
        report = repair_cache(Path("cache"))
        assert report.replies >= ITEMS - 12, page
        assert (report.kept / "cache.db").read_bytes() == bytes(spoilt)


def test_a_repaired_ledger_says_no_less_than_the_log(place: tuple[Path, FaultServer]) -> None:
    """Rows lost with their page would have given the run its budget back."""
    name = RunDirectory(Path("runs/r")).ledger_name or ""
    before = spent_by(Path("cache"), name)
    assert before is not None
    with sqlite3.connect("cache/cache.db") as connection:
        connection.execute("DELETE FROM Ledger WHERE rowid IN (SELECT rowid FROM Ledger LIMIT 10)")
    connection.close()
    repair_cache(Path("cache"))
    pipeline.resume("r")
    after = spent_by(Path("cache"), name)
    assert after is not None
    assert after.calls == before.calls
    assert after.usd == pytest.approx(before.usd)


def test_a_cache_in_use_is_not_repaired(place: tuple[Path, FaultServer]) -> None:
    from filelock import FileLock

    (Path("cache") / "holders").mkdir(exist_ok=True)
    with FileLock("cache/holders/another"), pytest.raises(pipeline.InputError, match="stop its run first"):
        repair_cache(Path("cache"))


def test_a_finished_run_pays_nothing_again_unasked(place: tuple[Path, FaultServer]) -> None:
    folder, server = place
    before = server.seen.requests
    with pytest.raises(ConfigError, match=rf"{ITEMS} of the {ITEMS} replies .* are not in the cache .*--yes"):
        pipeline.resume("r", cache_dir=folder / "another-cache")
    with pytest.raises(ConfigError, match="--yes"):
        pipeline.run("c.yaml", run_id="r", cache_dir=folder / "another-cache")
    file = folder / "runs" / "r" / "config.yaml"
    file.write_text(file.read_text("utf-8").replace(f"limit: {ITEMS}", f"limit: {ITEMS + 3}"), "utf-8")
    manifest = json.loads((folder / "runs/r/manifest.json").read_text())
    del manifest["benchmark"]
    (folder / "runs/r/manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(ConfigError, match="asks 3 more calls"):
        pipeline.resume("r")
    assert server.seen.requests == before


def test_what_was_lost_is_asked_again_once_somebody_says_yes(place: tuple[Path, FaultServer]) -> None:
    folder, server = place
    before = server.seen.requests
    assert pipeline.resume("r", cache_dir=folder / "another-cache", yes=True).state == "done"
    assert server.seen.requests == before + ITEMS


def test_a_log_of_damaged_lines_is_mended_and_kept(
    place: tuple[Path, FaultServer], caplog: pytest.LogCaptureFixture
) -> None:
    folder, _ = place
    file = folder / "runs/r/calls.jsonl"
    lines = file.read_text().splitlines(keepends=True)
    spoilt = "".join(
        ["not json\n", *lines[:10], lines[10][:40] + "\n", '{"key": 1, "stage": [], "state": "x"}\n', *lines[20:]]
    )
    file.write_text(spoilt)
    with caplog.at_level(logging.WARNING):
        pipeline.resume("r")
    assert "3 lines could not be read" in caplog.text
    (kept,) = folder.glob("runs/r/calls.jsonl.damaged-*")
    assert kept.read_text() == spoilt
    assert sorted(json.loads(line)["key"] for line in file.read_text().splitlines()) == sorted(
        json.loads(line)["key"] for line in lines
    )
    caplog.clear()
    pipeline.resume("r")
    assert "could not be read" not in caplog.text


def test_a_stopped_run_whose_manifest_is_lost_goes_on_under_its_budget(tmp_path: Path) -> None:
    with FaultServer() as server:
        config = one_target(server.url, items=40, budget={"calls": 15})
        with pytest.raises(StoppedEarly):
            pipeline.run(config, run_id="r", runs_dir=tmp_path / "runs", cache_dir=tmp_path / "cache", yes=True)
        for name in ("manifest.json", ".ledger"):
            (tmp_path / "runs" / "r" / name).unlink()
        with pytest.raises(StoppedEarly, match="15"):
            pipeline.resume(tmp_path / "runs" / "r", cache_dir=tmp_path / "cache")
        assert server.seen.requests == 15
