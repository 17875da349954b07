"""The tidy tables of a run: which columns they have, of what type, and which columns are the key."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from pipeline.tables.cast import NO_SIGNALS, PAPER_CAST
from pipeline.tables.column_roles import TEXT_AXES, ProfileKind

REASONS = ("not_asked", "refused", "truncated", "empty", "invalid", "no_answer", "failed", "missing_input")
"""Why a value is null: the closed list of every ``<column>_reason``."""


_NUMBERED = re.compile(r"(tau|answer)_\d+")
"""Predictions by draw, and outcomes by answer."""


@dataclass(frozen=True, slots=True)
class TableSchema:
    """One table: its key (rows are unique and sorted by it) and all its columns with their types."""

    name: str
    key: tuple[str, ...]
    columns: Mapping[str, pl.DataType]

    @property
    def reason_columns(self) -> tuple[str, ...]:
        """The columns that hold a reason of the closed list."""
        return tuple(c for c in self.columns if c.endswith("_reason") and c != "finish_reason")


_TEXT, _INT, _REAL, _FLAG = pl.String(), pl.Int32(), pl.Float64(), pl.Boolean()

TABLES: dict[str, TableSchema] = {
    schema.name: schema
    for schema in (
        TableSchema(
            "items",
            ("item_id",),
            {
                "item_id": _TEXT,
                "question": _TEXT,
                "gold": _TEXT,
                "choices": pl.List(pl.String()),
                "profile": _REAL,
                "labeled": _FLAG,
                "split": _TEXT,
                "cluster": _TEXT,
            },
        ),
        TableSchema(
            "responses",
            ("item_id", "model", "stage", "draw"),
            {
                "item_id": _TEXT,
                "model": _TEXT,
                "stage": _TEXT,
                "draw": _INT,
                "text": _TEXT,
                "reasoning": _TEXT,
                "answer": _TEXT,
                "confidence": _REAL,
                "confidence_reason": _TEXT,
                "phi": _REAL,
                "phi_reason": _TEXT,
                "outcome": _TEXT,
                "finish_reason": _TEXT,
                "request_key": _TEXT,
            },
        ),
        TableSchema(
            "preferences",
            ("item_id", "target", "rater", "pair", "draw", "order"),
            {
                "item_id": _TEXT,
                "target": _TEXT,
                "rater": _TEXT,
                "pair": _TEXT,
                "draw": _INT,
                "order": _TEXT,
                "verdict": _TEXT,
                "verdict_reason": _TEXT,
                "wins": _FLAG,
                "request_key": _TEXT,
            },
        ),
        TableSchema(
            "scores",
            ("item_id", "target", "rater", "prompt", "candidate", "draw"),
            {
                "item_id": _TEXT,
                "target": _TEXT,
                "rater": _TEXT,
                "prompt": _TEXT,
                "candidate": _INT,
                "draw": _INT,
                "score": _REAL,
                "score_reason": _TEXT,
                "repaired": _FLAG,
                "request_key": _TEXT,
            },
        ),
        TableSchema(
            "taus",
            ("item_id", "target", "variant", "draw"),
            {
                "item_id": _TEXT,
                "target": _TEXT,
                "variant": _TEXT,
                "draw": _INT,
                "tau": _REAL,
                "tau_reason": _TEXT,
                "request_key": _TEXT,
            },
        ),
        TableSchema(
            "candidates",
            ("item_id", "target", "candidate"),
            {
                "item_id": _TEXT,
                "target": _TEXT,
                "candidate": _INT,
                "answer": _TEXT,
                "phi": _REAL,
                "phi_reason": _TEXT,
                "request_key": _TEXT,
            },
        ),
    )
}


OWN = TableSchema(
    "own", ("item_id", "target", "signal"), {"item_id": _TEXT, "target": _TEXT, "signal": _TEXT, "value": _REAL}
)
"""The user's own numbers; written where a run has any. No target: every target's."""
PROBABILITIES = TableSchema(
    "probabilities",
    ("item_id", "target", "signal", "source"),
    {"item_id": _TEXT, "target": _TEXT, "signal": _TEXT, "source": _TEXT, "value": _REAL},
)
"""What token probabilities say; written where a run asked for them."""
GIVEN = TableSchema(
    "given",
    ("item_id", "target"),
    {"item_id": _TEXT, "target": _TEXT, "context": _TEXT, "reference": _TEXT},
)
"""What people and judges are shown beside given responses; written where the file has any."""
RATINGS = TableSchema(
    "ratings",
    ("item_id", "target", "criterion"),
    {"item_id": _TEXT, "target": _TEXT, "criterion": _TEXT, "rating": _REAL},
)
"""People's ratings of given responses; written where a run has any."""


def signal_columns(columns: Iterable[str]) -> tuple[str, ...]:
    """The signals among the columns of a signals table: all but its keys, outcomes and missing-reply indicators."""
    named = tuple(columns)
    return tuple(
        name
        for name in named
        if name not in NO_SIGNALS
        and not _NUMBERED.fullmatch(name)
        and not (name.endswith("_missing") and name[:-8] in named)
    )


def signals_schema(
    signals: Sequence[str] = PAPER_CAST.signal_names(), missing: Sequence[str] = (), kind: ProfileKind | None = None
) -> TableSchema:
    """The signals table of a run with these signals, and an indicator column per signal named in ``missing``."""
    columns: dict[str, pl.DataType] = {
        "item_id": _TEXT,
        "target": _TEXT,
        "y": _REAL,
        "labeled": _FLAG,
        "profile": _TEXT if kind in TEXT_AXES else _REAL,
        **dict.fromkeys(signals, _REAL),
        **{f"{name}_missing": _FLAG for name in missing},
    }
    return TableSchema("signals", ("item_id", "target"), columns)


def signals_table(frame: pl.DataFrame) -> TableSchema:
    """The signals table with every column that a run added to it."""
    return TableSchema("signals", ("item_id", "target"), dict(frame.schema))


def items_schema(kind: ProfileKind | None) -> TableSchema:
    """The items table with the profile as text where it is categorical."""
    schema = TABLES["items"]
    if kind not in TEXT_AXES:
        return schema
    return TableSchema(schema.name, schema.key, {**schema.columns, "profile": _TEXT})
