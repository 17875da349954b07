"""What a report needs of a run directory: manifest, configuration, estimates, tables, times of calls."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl
import yaml

from pipeline.report.document import EstimateSet, read_estimates
from pipeline.tables.store import read_table

__all__ = ["RunFolder"]

_MOST_CALLS_FOR_DRIFT = 2_000_000


@dataclass(frozen=True)
class RunFolder:
    """A finished run, read when looked at.

    Raises:
        InputError: on access, where a file is missing or damaged.
    """

    path: Path

    @cached_property
    def manifest(self) -> dict[str, Any]:
        """manifest.json."""
        found: dict[str, Any] = json.loads((self.path / "manifest.json").read_text(encoding="utf-8"))
        return found

    @cached_property
    def config(self) -> dict[str, Any]:
        """config.yaml as plain values."""
        found: dict[str, Any] = yaml.load((self.path / "config.yaml").read_text(encoding="utf-8"), yaml.CSafeLoader)
        return found

    @cached_property
    def estimates(self) -> EstimateSet:
        """estimates.json."""
        return read_estimates(self.path / "estimates.json")

    def table(self, name: str) -> pl.DataFrame:
        """One table of the run."""
        return read_table(self.path / "tables", name)

    @cached_property
    def items(self) -> pl.DataFrame:
        """The items table."""
        return self.table("items")

    @cached_property
    def responses(self) -> pl.DataFrame:
        """The responses table."""
        return self.table("responses")

    @cached_property
    def preferences(self) -> pl.DataFrame:
        """The preferences table."""
        return self.table("preferences")

    @cached_property
    def scores(self) -> pl.DataFrame:
        """The scores table."""
        return self.table("scores")

    @cached_property
    def signals(self) -> pl.DataFrame:
        """The signals table."""
        return self.table("signals")

    @property
    def targets(self) -> tuple[str, ...]:
        """The evaluated models, as the configuration lists them."""
        return tuple(self.estimates)

    @property
    def simulated(self) -> bool:
        """Whether any reply is simulated."""
        return bool(self.manifest.get("simulated"))

    def score_times(self) -> Mapping[str, str]:
        """Request key → time asked, of pointwise scores; empty where the log is absent or too long to read."""
        path = self.path / "calls.jsonl"
        calls = (self.manifest.get("calls") or {}).get("calls") or 0
        if not path.exists() or not calls or calls > _MOST_CALLS_FOR_DRIFT:
            return {}
        times = {}
        with path.open(encoding="ascii", errors="replace") as file:
            for line in file:
                if '"stage":"pointwise"' in line:
                    call = json.loads(line)
                    times[call["key"]] = call["at"]
        return times
