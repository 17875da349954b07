"""Merging: replies saved from elsewhere into a cache, each verified, as often as one likes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from pipeline.models.cache import ReplyCache
from pipeline.models.entries import DamagedEntry, Entry, decode, entry_from_json

_NOTE = "note:"
Encoded = tuple[str, bytes]
"""Request key, and the entry's checksummed bytes."""


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


def merge_encoded(rows: Iterable[Encoded], into: ReplyCache) -> MergeReport:
    """Add entries that pass verification: checksum, form, and the key computed again from the request.

    What models were found to take (notes) is carried over where ``into`` does not know it yet: it is part of the keys.

    Raises:
        CacheWriteError: the store cannot be written.
    """
    whole: list[Entry] = []
    damaged: list[tuple[str, str]] = []
    for key, value in rows:
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
