"""Cassettes: written the same every time, read line by line, nothing of them trusted."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from test_cache import make_entry

from pipeline.errors import DataError
from pipeline.models import ReplyCache
from pipeline.models.cassette import CassetteHead, import_cassette, read_cassette, write_cassette
from pipeline.models.entries import Entry
from pipeline.models.types import Failed

FAILED = Failed("f" * 64, "context_too_long", "too long", 400)


def write(path: Path, entries: int = 3) -> Path:
    write_cassette(path, {"config": {"name": "demo"}}, [make_entry(i, f"\ud835 {i}") for i in range(entries)], [FAILED])
    return path


def test_there_and_back_between_two_caches(tmp_path: Path) -> None:
    path = write(tmp_path / "c.jsonl.gz")
    with ReplyCache(tmp_path / "other machine") as cache:
        cache.add(make_entry(1, "known before"))
        report = import_cassette(path, cache)
        assert (report.added, report.known) == (2, 1)
        assert report.failures == {FAILED.key: FAILED}
        assert report.head.facts["config"] == {"name": "demo"}
        assert cache.get(make_entry(2).key) == make_entry(2, "\ud835 2")
        known = cache.get(make_entry(1).key)
        assert known is not None
        assert known.reply.text == "known before"
        assert import_cassette(path, cache).added == 0


def test_the_same_content_gives_the_same_bytes(tmp_path: Path) -> None:
    assert write(tmp_path / "a.gz").read_bytes() == write(tmp_path / "b.gz").read_bytes()


def test_plain_jsonl_is_read_too(tmp_path: Path) -> None:
    path = write(tmp_path / "c.jsonl.gz")
    plain = tmp_path / "c.jsonl"
    plain.write_bytes(gzip.decompress(path.read_bytes()))
    kinds = [type(line) for line in read_cassette(plain)]
    assert kinds == [CassetteHead, Entry, Entry, Entry, Failed]


@pytest.mark.parametrize("length", [0, 1, 2, 10, 100, -1, -9])
def test_every_truncation_is_a_clear_error(tmp_path: Path, length: int) -> None:
    data = write(tmp_path / "c.jsonl.gz").read_bytes()
    cut = tmp_path / "cut.jsonl.gz"
    cut.write_bytes(data[:length])
    with pytest.raises(DataError, match="cut"):
        list(read_cassette(cut))


def edited(path: Path, line: int, change: Any) -> Path:
    lines = gzip.decompress(path.read_bytes()).splitlines()
    document = json.loads(lines[line])
    lines[line] = json.dumps(change(document)).encode() if callable(change) else change
    path.write_bytes(gzip.compress(b"\n".join(lines) + b"\n"))
    return path


HOSTILE: list[tuple[int, Any, str]] = [
    (0, b"[]", "line 1"),
    (0, b'{"kind": "something else"}', "no cassette"),
    (0, lambda d: {**d, "schema": 99}, "newer"),
    (2, b"not json", "line 3"),
    (2, b"[" * 100_000, "line 3"),
    (2, lambda d: {**d, "key": "0" * 64}, "line 3"),
    (2, lambda d: {**d, "request": {**d["request"], "draw": 7}}, "line 3"),
    (2, lambda d: {**d, "reply": {**d["reply"], "text": 5}}, "line 3"),
    (2, lambda d: {**d, "reply": {**d["reply"], "outcome": "error"}}, "line 3"),
    (2, lambda d: {k: v for k, v in d.items() if k != "reply"}, "line 3"),
    (4, lambda d: {**d, "failed": {"kind": "rm -rf", "message": ""}}, "line 5"),
]


@pytest.mark.parametrize(("line", "change", "message"), HOSTILE)
def test_hostile_lines_are_named_and_end_the_import(tmp_path: Path, line: int, change: Any, message: str) -> None:
    path = edited(write(tmp_path / "c.jsonl.gz"), line, change)
    with ReplyCache(tmp_path / "cache") as cache:
        with pytest.raises(DataError, match=message):
            import_cassette(path, cache)
        assert cache.verify().ok


def test_no_file_and_another_file(tmp_path: Path) -> None:
    other = tmp_path / "other.bin"
    other.write_bytes(b"\x1f\x8bgarbage")
    for path in (tmp_path / "missing", other):
        with pytest.raises(DataError, match=path.name):
            list(read_cassette(path))
