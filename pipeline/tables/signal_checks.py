"""Looks over the signals of one target: constant, duplicated, leaking and missing ones are pointed out or left out."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

ALL = "all"
"""The target's name where a table has no model column."""
_MIN_LEAK_LABELS = 5


@dataclass(frozen=True, slots=True)
class Notice:
    """Something a user should know.

    Attributes:
        code: stable short name.
        message: one sentence.
        target: the target it is about; None if it is about the whole table.
    """

    code: str
    message: str
    target: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class CheckedSignals:
    """The signals that stay: (M, K), NaN where missing, and their names."""

    values: FloatArray
    names: tuple[str, ...]


def checked_signals(
    signals: FloatArray,
    names: Sequence[str],
    y: FloatArray,
    labeled: NDArray[np.bool_],
    target: str,
    notices: list[Notice],
    made: Collection[str] = (),
) -> CheckedSignals:
    """Leave out signals that carry nothing or give the gold away.

    Left out: empty, constant, an exact copy of an earlier one (or of one minus it), known on labeled rows only, and
    a copy of the gold that is constant elsewhere or copies a gold of many values. A 0/1 signal that merely agrees
    with a 0/1 gold on every label may be a good judge: it is kept and pointed out.

    Args:
        signals: (M, K), NaN where missing.
        names: (K,).
        y: (M,) outcomes, NaN where not labeled.
        labeled: (M,).
        target: for the notices.
        notices: grows.
        made: columns that were made from answers without gold: one that equals the gold is a good one, and one that is
            constant (a target's agreement with itself) is left out without a word.
    """
    kept: list[int] = []
    for column, name in enumerate(names):
        values = signals[:, column]
        if name in made:
            if np.ptp(values) != 0.0 and _copy_of(signals, kept, column, names) is None:
                kept.append(column)
            continue
        problem = _problem(values, y, labeled) or _copy_of(signals, kept, column, names)
        if problem is None:
            kept.append(column)
            if (share := float(np.isnan(values).mean())) > 0.0:
                notices.append(
                    Notice(
                        "missing_signal",
                        f"signal {name!r} is missing in {share:.1%} of the rows; filled by its mean",
                        target,
                    )
                )
            if _equals_gold(values, y, labeled):
                text = (
                    f"signal {name!r} equals the gold on every labeled row; if it was made from the gold, leave it out"
                )
                notices.append(Notice("leaking_signal", text, target))
            continue
        code, text = problem
        notices.append(Notice(code, f"signal {name!r} {text}; left out", target))
    return CheckedSignals(np.array(signals[:, kept]), tuple(names[column] for column in kept))


def _problem(values: FloatArray, y: FloatArray, labeled: NDArray[np.bool_]) -> tuple[str, str] | None:
    finite = np.isfinite(values)
    if not finite.any():
        return "empty_signal", "is empty in every row"
    if np.ptp(values[finite]) == 0.0 and finite.all():
        return "constant_signal", f"is constant ({values[finite][0]:g}), so it says nothing"
    outside = finite & ~labeled
    if not labeled.all() and not outside.any():
        return "leaking_signal", "is known on labeled rows only, so it cannot help the others"
    if np.ptp(values[finite]) == 0.0:
        return "constant_signal", f"is constant ({values[finite][0]:g}) where it is known"
    if _equals_gold(values, y, labeled) and not labeled.all():
        if np.ptp(values[outside]) == 0.0:
            return (
                "leaking_signal",
                "equals the gold on every labeled row and is constant elsewhere: it was made from the gold",
            )
        if len(np.unique(y[labeled])) > 5:
            return "leaking_signal", "equals the gold on every labeled row: it was made from the gold"
    return None


def _equals_gold(values: FloatArray, y: FloatArray, labeled: NDArray[np.bool_]) -> bool:
    if labeled.sum() < _MIN_LEAK_LABELS:
        return False
    gold, signal = y[labeled], values[labeled]
    return bool(np.ptp(gold) > 0.0 and np.array_equal(gold, signal))


def _copy_of(signals: FloatArray, kept: list[int], column: int, names: Sequence[str]) -> tuple[str, str] | None:
    """An earlier signal of which this one is an exact copy up to shift, scale and sign."""
    values = signals[:, column]
    for earlier in kept:
        other = signals[:, earlier]
        if not np.array_equal(np.isnan(values), np.isnan(other)):
            continue
        finite = np.isfinite(values)
        a, b = values[finite] - values[finite].mean(), other[finite] - other[finite].mean()
        scale = float(np.sqrt((a @ a) * (b @ b)))
        if scale > 0.0 and abs(abs(float(a @ b)) / scale - 1.0) < 1e-12:
            return "duplicated_signal", f"is a copy of {names[earlier]!r} (up to shift and scale)"
    return None


def merged_notices(notices: Sequence[Notice]) -> tuple[Notice, ...]:
    """The same notice about several targets becomes one."""
    targets: dict[tuple[str, str], list[str]] = {}
    for notice in notices:
        names = targets.setdefault((notice.code, notice.message), [])
        if notice.target is not None and notice.target not in names:
            names.append(notice.target)
    merged = []
    for (code, message), names in targets.items():
        examples = ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
        prefix = f"{examples}: " if names and names != [ALL] else ""
        merged.append(Notice(code, prefix + message))
    return tuple(merged)
