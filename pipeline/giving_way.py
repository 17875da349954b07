"""Which file that is there gives way to what a command writes: one that such a command wrote, and no other."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from pipeline.errors import DataError

_LOOKED_AT = 4_096


def refuse_to_replace(path: Path, ours: Callable[[bytes], bool], what: str) -> None:
    """Leave alone what a person made: ``export RUN table.csv`` once put a cassette in the place of the table.

    Args:
        path: what is about to be written.
        ours: whether the first bytes of a file, at most 4,096, are those of what the command writes.
        what: that it writes, for the message.

    Raises:
        DataError: something else is there.
    """
    if not path.exists():
        return
    try:
        with path.open("rb") as file:
            beginning = file.read(_LOOKED_AT)
    except OSError as error:
        raise DataError(f"{path} exists and cannot be read: {error.strerror or error}") from None
    if beginning and not ours(beginning):
        raise DataError(f"{path} exists and is no {what}; give another name, or remove it first")
