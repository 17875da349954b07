"""Merging caches: the replies of one store into another, each verified, in pages, as often as one likes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline.models.cache import ReplyCache
from pipeline.models.entries import DamagedEntry, Entry, decode, entry_from_json
from pipeline.models.store import rows_after

_NOTE = "note:"
Encoded = tuple[int, str, bytes]
"""Row number in its store, request key, and the entry's checksummed bytes."""


@dataclass(frozen=True, slots=True)
class MergeReport:
    """What a merge did.

    Attributes:
        read: entries seen.
        added: those that were new; of two replies to one request the first merged stays.
        damaged: (key, what is wrong) of entries left out.
    """

    read: int = 0
    added: int = 0
    damaged: tuple[tuple[str, str], ...] = ()

    def __add__(self, other: MergeReport) -> MergeReport:
        return MergeReport(self.read + other.read, self.added + other.added, self.damaged + other.damaged)


def merge_encoded(rows: Iterable[Encoded], into: ReplyCache) -> MergeReport:
    """Add entries that pass verification: checksum, form, and the key computed again from the request.

    What models were found to take (notes) is carried over where ``into`` does not know it yet: it is part of the keys.

    Raises:
        CacheWriteError: the store cannot be written.
    """
    whole: list[Entry] = []
    damaged: list[tuple[str, str]] = []
    for _, key, value in rows:
        try:
            if key.startswith(_NOTE):
                _carry_over(key.removeprefix(_NOTE), decode(key, value), into)
                continue
            entry = entry_from_json(decode(key, value), check_key=True)
            if entry.key != key:
                raise DamagedEntry("stored under the key of another request")
        except DamagedEntry as error:
            damaged.append((key, str(error)))
            continue
        whole.append(entry)
    added = into.add_many(whole) if whole else []
    return MergeReport(len(whole) + len(damaged), sum(added), tuple(damaged))


def _carry_over(name: str, document: Any, into: ReplyCache) -> None:
    if isinstance(document, dict) and into.note(name) is None:
        into.set_note(name, document)


def merge_cache(source: Path, into: ReplyCache, *, page: int = 500) -> MergeReport:
    """Every entry of the store under ``source``; a second time adds nothing."""
    report, row = MergeReport(), 0
    while rows := rows_after(source, row, page):
        report += merge_encoded(rows, into)
        row = rows[-1][0]
    return report
