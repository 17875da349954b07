"""Columns that an import suggests: those that can help, for a gold that they can help."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from pipeline.tables.imports.imported import ImportedTable
from pipeline.tables.imports.suggested_roles import suggested_roles

ROWS = 6


def imported(scores: dict[str, list[Any]], **more: list[Any]) -> ImportedTable:
    items = [f"q{row}" for row in range(ROWS)]
    known = {"task": ["t"] * ROWS, "model": ["m"] * ROWS, "item_id": items, "epoch": [1] * ROWS, "cluster": items}
    return ImportedTable(pl.DataFrame({**known, **more, **scores}), tuple(scores))


GOLD = [1.0, 0.0, 1.0, 0.0, None, None]
FULL = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]


def test_other_scores_come_before_facts() -> None:
    roles = suggested_roles(imported({"gold": GOLD, "judge": FULL}, answer_chars=FULL[::-1]))
    assert roles is not None
    assert (roles.gold, roles.signals, roles.id) == ("gold", ("judge", "answer_chars"), "item_id")
    assert (roles.model, roles.cluster) == (None, None)


@pytest.mark.parametrize(
    "useless",
    [
        [0.5] * ROWS,  # constant
        [0.1, 0.2, 0.3, 0.4, None, None],  # known on labeled rows only
        [None, None, None, None, 0.1, 0.2],  # never known beside the gold
        GOLD,  # a copy of the gold
    ],
)
def test_what_cannot_help_is_left_out(useless: list[Any]) -> None:
    roles = suggested_roles(imported({"gold": GOLD, "useless": useless, "judge": FULL}))
    assert roles is not None
    assert (roles.gold, roles.signals) == ("gold", ("judge",))


def test_the_gold_is_one_that_a_signal_can_help() -> None:
    roles = suggested_roles(imported({"other_task": [None] * 5 + [1.0], "gold": GOLD, "judge": FULL}))
    assert roles is not None
    assert (roles.gold, roles.signals) == ("gold", ("judge",))


def test_epochs_are_clusters_and_models_targets() -> None:
    repeated = ["a", "a", "b", "b", "c", "c"]
    table = imported({"gold": FULL, "judge": FULL[::-1]}, cluster=repeated, item_id=repeated)
    roles = suggested_roles(table)
    assert roles is not None
    assert (roles.model, roles.cluster) == (None, "cluster")
    roles = suggested_roles(imported({"gold": FULL, "judge": FULL[::-1]}, model=["x", "y"] * 3))
    assert roles is not None
    assert (roles.model, roles.cluster) == ("model", None)


def test_without_items_or_scores_there_is_nothing_to_suggest() -> None:
    assert suggested_roles(ImportedTable(pl.DataFrame({"a": [1.0]}), ("a",))) is None
    assert suggested_roles(imported({})) is None
