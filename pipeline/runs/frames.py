"""The tables of one run, read from its directory when they are first looked at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.foreign_json import read_json
from pipeline.tables.column_roles import ProfileKind

if TYPE_CHECKING:
    import polars as pl


class RunTables:
    """The tables of a run as polars frames, each sorted by its key (``spec``: docs/formats.md).

    Raises:
        DataError: on first access, where a table is not there or is damaged.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @property
    def folder(self) -> Path:
        """Where the tables are."""
        return self._folder

    def __repr__(self) -> str:
        return f"RunTables({str(self._folder)!r})"

    def _read(self, table: str) -> pl.DataFrame:
        from pipeline.tables.store import read_table  # with polars, which a run that is only planned never needs

        return read_table(self._folder, table)

    @cached_property
    def inclusion(self) -> Mapping[str, float] | None:
        """Chance of each item to be labeled, where labels were drawn with unequal ones; else None."""
        from pipeline.runs.labels import stored_labels

        return stored_labels(self._folder.parent).inclusion or None

    @cached_property
    def _benchmark(self) -> Mapping[str, Any]:
        """What the manifest says of the benchmark; nothing where there is none."""
        try:
            manifest = read_json((self._folder.parent / "manifest.json").read_text(encoding="utf-8"))
            return dict(manifest["benchmark"])
        except (OSError, ValueError, KeyError, TypeError):
            return {}

    @property
    def profile_kind(self) -> ProfileKind | None:
        """What the manifest says of the profile axis; None: find out."""
        kind: ProfileKind | None = self._benchmark.get("profile_kind")
        return kind

    @property
    def grading(self) -> str | None:
        """The metric that the items were graded by, as the benchmark decided it; None: not known."""
        grading: str | None = self._benchmark.get("grading")
        return grading

    @cached_property
    def rounds(self) -> Mapping[str, Sequence[int]]:
        """Item → (round of its label or 0, its stratum), where labels were drawn in rounds; else empty."""
        from pipeline.runs.labels import stored_labels

        return stored_labels(self._folder.parent).rounds

    @cached_property
    def items(self) -> pl.DataFrame:
        """One row per item: question, gold, choices, profile, labeled."""
        return self._read("items")

    @cached_property
    def responses(self) -> pl.DataFrame:
        """One row per answer, anchor or auxiliary chain."""
        return self._read("responses")

    @cached_property
    def preferences(self) -> pl.DataFrame:
        """One row per pairwise verdict and order."""
        return self._read("preferences")

    @cached_property
    def scores(self) -> pl.DataFrame:
        """One row per judge score."""
        return self._read("scores")

    @cached_property
    def taus(self) -> pl.DataFrame:
        """One row per predicted probability of correctness."""
        return self._read("taus")

    @cached_property
    def candidates(self) -> pl.DataFrame:
        """One row per best-of-N candidate."""
        return self._read("candidates")

    @cached_property
    def probabilities(self) -> pl.DataFrame | None:
        """What token probabilities say; None where the run asked for none."""
        return self._read("probabilities") if (self._folder / "probabilities.parquet").exists() else None

    @cached_property
    def own(self) -> pl.DataFrame | None:
        """The user's own numbers about items and responses; None where the run has none."""
        return self._read("own") if (self._folder / "own.parquet").exists() else None

    @cached_property
    def given(self) -> pl.DataFrame | None:
        """Context and reference of given responses; None where the run has none."""
        return self._read("given") if (self._folder / "given.parquet").exists() else None

    @cached_property
    def ratings(self) -> pl.DataFrame | None:
        """People's ratings of given responses, by criterion; None where the run has none."""
        return self._read("ratings") if (self._folder / "ratings.parquet").exists() else None

    @cached_property
    def signals(self) -> pl.DataFrame:
        """One row per item and target: the label and the signals."""
        return self._read("signals")
