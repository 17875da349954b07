"""Who labels a table or run and what they see: kept beside it, so that it is said once."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pipeline.errors import InputError
from pipeline.foreign_json import read_json
from pipeline.runs.directory import write_atomically

SCHEMA = 1


@dataclass(frozen=True, slots=True)
class Desk:
    """How a table or run is labelled.

    Attributes:
        raters: those that items are dealt to; empty where everybody takes the next.
        overlap: share of the items that two of them label, in [0, 1].
        seed: of the order of items, without a plan.
        columns: of a table without a plan, as ``ColumnRoles`` stores them.
        visible: of a table: answer, question, context, null where there is none; empty for a run.
        bounds: least and most of a table's score.
    """

    raters: tuple[str, ...] = ()
    overlap: float = 0.0
    seed: int = 0
    columns: Mapping[str, Any] = field(default_factory=dict)
    visible: tuple[str | None, ...] = ()
    bounds: tuple[float, float] = (0.0, 1.0)

    def check(self) -> None:
        """Refuse a deal that makes no sense.

        Raises:
            InputError: an overlap out of range, or without a second rater.
        """
        if not 0.0 <= self.overlap <= 1.0:
            raise InputError(f"--overlap {self.overlap:g}: a share of the items, from 0 to 1")
        if self.overlap and len(self.raters) < 2:
            raise InputError(f"--overlap {self.overlap:g} needs a second rater: --raters NAME,NAME")

    def dealt(self, items: Iterable[str], rater: str) -> list[str]:
        """The items of one rater, in order; at every point of the order the overlap is what it should be.

        Raises:
            InputError: nothing is dealt to this rater.
        """
        if not self.raters:
            return list(items)
        if rater not in self.raters:
            raise InputError(f"--as {rater}: items are dealt to {', '.join(self.raters)}; --raters deals them anew")
        mine = []
        for place, item in enumerate(items):
            turn = place % len(self.raters)
            # int of the sum counts how many of the first places are shared: evenly spread, whatever the share.
            twice = int((place + 1) * self.overlap + 1e-9) > int(place * self.overlap + 1e-9)
            if self.raters[turn] == rater or (twice and self.raters[(turn + 1) % len(self.raters)] == rater):
                mine.append(item)
        return mine


def desk_beside(source: Path) -> Path:
    """Where the desk of a run directory or table is kept."""
    return source / "label_desk.json" if source.is_dir() else source.with_name(source.name + ".desk.json")


def read_desk(path: Path) -> Desk | None:
    """The desk; None where nobody has labelled in the page yet.

    Raises:
        InputError: damaged or newer.
    """
    try:
        data = read_json(path.read_text(encoding="utf-8"))
        if data.pop("schema") > SCHEMA:
            raise InputError(f"{path} was written by a newer version; upgrade auxeval")
        low, high = data["bounds"]
        desk = Desk(
            _names(data["raters"]), float(data["overlap"]), int(data["seed"]), dict(data["columns"]),
            tuple(data["visible"]), (float(low), float(high)),
        )  # fmt: skip
        desk.check()
        return desk
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{path} is damaged ({type(error).__name__}); remove it and say the options again") from None


def _names(names: Sequence[Any]) -> tuple[str, ...]:
    if not all(isinstance(name, str) for name in names):
        raise TypeError
    return tuple(names)


def write_desk(path: Path, desk: Desk) -> None:
    """Keep the desk."""
    write_atomically(path, json.dumps({"schema": SCHEMA, **asdict(desk)}, indent=1, allow_nan=False) + "\n")
