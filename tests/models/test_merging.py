"""Merging caches is idempotent, verified, and leaves the first reply in place."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from pathlib import Path

from pipeline.models.cache import ReplyCache
from pipeline.models.entries import Entry
from pipeline.models.identity import request_key
from pipeline.models.merging import MergeReport, merge_encoded
from pipeline.models.types import Reply, Request, Usage


def entry(draw: int, text: str = "42") -> Entry:
    request = Request("openai/m", None, ({"role": "user", "content": "six by seven"},), {}, draw)
    reply = Reply(text, "stop", "ok", Usage(3, 1), None, "m", 0.1, 0.001, "2026-01-01T00:00:00.000Z")
    return Entry(request_key(request), request, reply, {})


def filled(folder: Path, draws: range, text: str = "42") -> Path:
    with ReplyCache(folder) as cache:
        cache.add_many([entry(draw, text) for draw in draws])
    return folder


def merge(folder: Path, into: ReplyCache) -> MergeReport:
    """Everything a cache's file holds, as its repair reads it."""
    with sqlite3.connect(folder / "cache.db") as connection:
        return merge_encoded(connection.execute("SELECT key, value FROM Cache ORDER BY rowid").fetchall(), into)


def test_a_second_merge_adds_nothing_and_the_first_reply_stays(tmp_path: Path) -> None:
    first, second = filled(tmp_path / "a", range(5), "first"), filled(tmp_path / "b", range(3, 8), "second")
    with ReplyCache(tmp_path / "all") as merged:
        assert merge(first, merged) == MergeReport(5, 5)
        assert merge(second, merged) == MergeReport(5, 3)
        assert [merge(folder, merged) for folder in (first, second)] == [MergeReport(5, 0)] * 2
        assert merged.verify().ok
        assert [found.reply.text for found in merged.entries()] == ["first"] * 5 + ["second"] * 3


def test_a_damaged_entry_is_named_and_left_out(tmp_path: Path) -> None:
    source = filled(tmp_path / "a", range(3))
    with sqlite3.connect(source / "cache.db") as connection:
        connection.execute("UPDATE Cache SET value = ? WHERE key = ?", (b"AX1" + bytes(40), entry(1).key))
    with ReplyCache(tmp_path / "all") as merged:
        report = merge(source, merged)
        assert (report.read, report.added) == (3, 2)
        assert [key for key, _ in report.damaged] == [entry(1).key]


def test_an_entry_under_a_foreign_key_is_refused(tmp_path: Path) -> None:
    forged = replace(entry(0), key=entry(1).key)
    with ReplyCache(tmp_path / "a") as source:
        source.add(forged)
    with ReplyCache(tmp_path / "all") as merged:
        assert merge(tmp_path / "a", merged).added == 0
        assert len(merged) == 0


def test_notes_are_carried_over_once(tmp_path: Path) -> None:
    source = filled(tmp_path / "a", range(3))
    with ReplyCache(source) as cache, ReplyCache(tmp_path / "all") as merged:
        cache.set_note("negotiated m", {"rung": "json_object"})
        assert merge(source, merged).added == 3
        assert merged.note("negotiated m") == {"rung": "json_object"}
        merged.set_note("negotiated m", {"rung": "json_schema"})
        merge(source, merged)
        assert merged.note("negotiated m") == {"rung": "json_schema"}
