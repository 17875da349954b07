"""Keeps what is read and written for a folder inside it: a folder from elsewhere may hold links that lead out."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from pipeline.errors import DataError

MAX_DOCUMENT_BYTES = 1 << 28
"""The largest document (JSON, YAML, Markdown) that is read whole, in bytes."""
_MOST_ENTRIES = 1_000_000
_DOCUMENTS = (".json", ".yaml", ".yml", ".md", ".ledger")


def refuse_ways_out(folder: Path) -> None:
    """Refuse a folder whose entries lead out of it, or are no files that can be read.

    An archive can hold ``tables -> /home/me`` or ``manifest.json.draft -> ~/.bashrc``: what is written into its folder
    then lands elsewhere. The folder itself may be a link: its owner made that one.

    Raises:
        DataError: names the entry: a link that leads out, a pipe, a device, or a document beyond
            ``MAX_DOCUMENT_BYTES``.
    """
    root = folder.resolve()
    for number, entry in enumerate(_entries(root)):
        if number >= _MOST_ENTRIES:
            raise DataError(f"{folder}: holds more than {_MOST_ENTRIES:,} files")
        path = Path(entry.path)
        if entry.is_symlink():
            if root not in path.resolve().parents:
                raise DataError(f"{path}: is a link that leads out of its folder, which is not followed; remove it")
            continue
        try:
            state = entry.stat(follow_symlinks=False)
        except FileNotFoundError:  # another process tidied up
            continue
        if not stat.S_ISREG(state.st_mode) and not stat.S_ISDIR(state.st_mode):
            raise DataError(f"{path}: is a pipe, a socket or a device, and no file; remove it")
        if path.suffix in _DOCUMENTS and state.st_size > MAX_DOCUMENT_BYTES and stat.S_ISREG(state.st_mode):
            raise DataError(f"{path}: is larger than {MAX_DOCUMENT_BYTES >> 20} MiB, which no document of ours is")


def _entries(folder: Path) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                yield entry
                if entry.is_dir(follow_symlinks=False):
                    yield from _entries(Path(entry.path))
    except FileNotFoundError:
        return
