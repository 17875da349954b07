"""The store of replies: nothing lost, nothing evicted, nothing unpickled, damage found."""

from __future__ import annotations

import asyncio
import pickle
import sqlite3
import stat
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.errors import DataError
from pipeline.models import ReplyCache
from pipeline.models.entries import DamagedEntry, Entry, decode, encode, entry_from_json, entry_to_json
from pipeline.models.identity import request_key
from pipeline.models.journal import Journal
from pipeline.models.store import CacheWriteError
from pipeline.models.types import Reply, Request, Usage


def make_entry(number: int = 0, text: str = "reply") -> Entry:
    request = Request("openai/x", None, ({"role": "user", "content": f"question {number}"},), {"temperature": 0.5}, 0)
    reply = Reply(text, "stop", "ok", Usage(3, 4, 1, 2), "thinking", "x-2026", 0.25, 0.001, "2026-01-01T00:00:00.000Z")
    return Entry(request_key(request), request, reply, {"max_completion_tokens": 5})


def rows(cache: ReplyCache, statement: str, *values: object) -> None:
    with sqlite3.connect(cache.directory / "cache.db") as connection:
        connection.execute(statement, values)


@settings(max_examples=60, deadline=None)
@given(st.text(st.characters(), max_size=60), st.text(max_size=10))
def test_entries_survive_the_way_to_disk_and_back(text: str, reasoning: str) -> None:
    entry = make_entry(0, text + "\ud835\x00\u202e")
    assert entry_from_json(decode("k", encode("k", entry_to_json(entry)))) == entry


def test_reopened_directory_keeps_everything(tmp_path: Path) -> None:
    with ReplyCache(tmp_path / "c") as cache:
        assert cache.add_many([make_entry(i) for i in range(1000)]) == [True] * 1000
    with ReplyCache(tmp_path / "c") as cache:
        assert len(cache) == 1000
        assert cache.get(make_entry(7).key) == make_entry(7)
        assert [entry.key for entry in cache.entries()] == [make_entry(i).key for i in range(1000)]
        assert cache.stats().entries == 1000
        assert cache.verify().ok
        settings_kept = dict(sqlite3.connect(tmp_path / "c" / "cache.db").execute("SELECT key, value FROM Settings"))
    assert (settings_kept["eviction_policy"], settings_kept["size_limit"], settings_kept["cull_limit"]) == (
        "none", 2**62, 0,
    )  # fmt: skip


def test_the_first_writer_wins(tmp_path: Path) -> None:
    with ReplyCache(tmp_path) as cache:
        assert cache.add(make_entry(1, "first"))
        assert not cache.add(make_entry(1, "second"))
        found = cache.get(make_entry(1).key)
        assert found is not None
        assert found.reply.text == "first"


def test_the_directory_is_private(tmp_path: Path) -> None:
    with ReplyCache(tmp_path / "a" / "b"):
        assert stat.S_IMODE((tmp_path / "a" / "b").stat().st_mode) == 0o700


class Payload:
    """Unpickling it creates a file: the proof that code ran."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[str, str]]:
        return (open, (str(self.path), "w"))


@pytest.mark.parametrize("where", ["value", "key", "file"])
def test_a_planted_pickle_never_runs(tmp_path: Path, where: str) -> None:
    marker = tmp_path / "ran"
    bomb = pickle.dumps(Payload(marker))
    entry = make_entry(1)
    with ReplyCache(tmp_path / "c") as cache:
        cache.add(entry)
        if where == "value":
            rows(cache, "UPDATE Cache SET mode = 4, value = ?", bomb)
        elif where == "key":
            rows(cache, "UPDATE Cache SET raw = 0, key = ?", bomb)
        else:
            (tmp_path / "c" / "bomb.val").write_bytes(bomb)
            rows(cache, "UPDATE Cache SET mode = 4, value = NULL, filename = 'bomb.val'")
        report = cache.verify()
        assert not report.ok
        assert cache.get(entry.key) is None
        assert list(cache.entries()) == []
    assert not marker.exists()
    with ReplyCache(tmp_path / "c") as cache:
        assert cache.get(entry.key) is None
    assert not marker.exists()


def test_a_planted_setting_is_refused(tmp_path: Path) -> None:
    with ReplyCache(tmp_path) as cache:
        rows(cache, "INSERT INTO Settings VALUES ('disk_anything', 1)")
    with pytest.raises(DataError, match="disk_anything"):
        ReplyCache(tmp_path)


def test_another_file_in_place_of_the_database_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "cache.db").write_bytes(b"not a database at all" * 100)
    with pytest.raises(DataError, match=r"cache\.db"):
        ReplyCache(tmp_path)


def test_damage_is_reported_quarantined_and_a_miss(tmp_path: Path) -> None:
    whole, hurt = make_entry(1), make_entry(2)
    with ReplyCache(tmp_path) as cache:
        cache.add_many([whole, hurt])
        value = encode(hurt.key, entry_to_json(hurt))
        flipped = value[:-5] + bytes([value[-5] ^ 1]) + value[-4:]
        rows(cache, "UPDATE Cache SET value = ? WHERE key = ?", flipped, hurt.key)
        assert [key for key, _ in cache.verify().damaged] == [hurt.key]
        assert cache.get(hurt.key) is None
        assert hurt.key in cache.damaged
        assert [file.read_bytes() for file in cache.quarantine.iterdir()] == [flipped]
        assert cache.get(whole.key) == whole
        assert cache.verify().ok
        assert cache.add(hurt)


def test_every_truncation_and_a_swapped_entry_are_found() -> None:
    entry = make_entry(1)
    value = encode(entry.key, entry_to_json(entry))
    for length in range(len(value)):
        with pytest.raises(DamagedEntry):
            decode(entry.key, value[:length])
    with pytest.raises(DamagedEntry):
        decode(make_entry(2).key, value)


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d.pop("reply"),
        lambda d: d.update(schema=2),
        lambda d: d["reply"].update(outcome="error"),
        lambda d: d["reply"].update(text=None),
        lambda d: d["reply"]["usage"].update(prompt=-1),
        lambda d: d["request"].update(messages=[{"role": 1}]),
        lambda d: d["request"].update(draw=1),
        lambda d: d.update(key="0" * 64),
    ],
)
def test_untrusted_json_is_checked_field_by_field(change: object) -> None:
    data = entry_to_json(make_entry(1))
    change(data)  # type: ignore[operator]
    with pytest.raises(DamagedEntry):
        entry_from_json(data, check_key=True)


async def test_a_locked_database_is_an_error_and_not_a_lost_reply(tmp_path: Path) -> None:
    with ReplyCache(tmp_path, timeout_s=0.2) as cache:
        writer = Journal(cache)
        assert await writer.add(make_entry(1))
        holder = sqlite3.connect(tmp_path / "cache.db", isolation_level=None)
        holder.execute("BEGIN IMMEDIATE")
        with pytest.raises(CacheWriteError, match="locked"):
            await writer.add(make_entry(2))
        assert cache.get(make_entry(1).key) is not None  # reading goes on
        holder.execute("ROLLBACK")
        holder.close()
        assert await writer.add(make_entry(2))
        await writer.close()


async def test_the_event_loop_runs_on_while_the_database_is_locked(tmp_path: Path) -> None:
    with ReplyCache(tmp_path, timeout_s=5) as cache:
        writer = Journal(cache)
        await writer.add(make_entry(1))
        holder = sqlite3.connect(tmp_path / "cache.db", isolation_level=None)
        holder.execute("BEGIN IMMEDIATE")
        adding = asyncio.create_task(writer.add(make_entry(2)))
        ticks = 0
        for _ in range(20):
            await asyncio.sleep(0.01)
            ticks += 1
        assert not adding.done()
        holder.execute("ROLLBACK")
        holder.close()
        assert await adding
        await writer.close()
    assert ticks == 20


async def test_a_caller_that_goes_away_does_not_take_the_batch_with_it(tmp_path: Path) -> None:
    with ReplyCache(tmp_path) as cache:
        writer = Journal(cache)
        tasks = [asyncio.create_task(writer.add(make_entry(i))) for i in range(20)]
        await asyncio.sleep(0)
        tasks[0].cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        assert results[1:] == [True] * 19
        await writer.close()
        assert len(cache) == 20


def test_notes_are_not_entries(tmp_path: Path) -> None:
    with ReplyCache(tmp_path) as cache:
        cache.add(make_entry(1))
        cache.set_note("n", {"a": 1})
        cache.set_note("n", {"a": 2})
        assert cache.note("n") == {"a": 2}
        assert cache.note("other") is None
        assert (len(cache), cache.verify().entries, len(list(cache.entries()))) == (1, 1, 1)
        assert cache.remove([make_entry(1).key, make_entry(2).key]) == 1
        assert len(cache) == 0


@pytest.mark.slow
def test_many_processes_open_and_write_one_directory_at_once(tmp_path: Path) -> None:
    code = textwrap.dedent(
        f"""
        import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})
        from test_cache import make_entry
        from pipeline.models import ReplyCache
        start = int(sys.argv[1])
        with ReplyCache({str(tmp_path)!r}) as cache:
            for i in range(start, start + 60):
                cache.add(make_entry(i))
        """
    )
    started = [subprocess.Popen([sys.executable, "-c", code, str(20 * n)], stderr=subprocess.PIPE) for n in range(4)]
    for process in started:
        _, errors = process.communicate(timeout=60)
        assert process.returncode == 0, errors
    with ReplyCache(tmp_path) as cache:
        assert len(cache) == 120
        assert cache.verify().ok
