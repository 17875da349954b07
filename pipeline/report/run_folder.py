"""What a report needs of a run directory: manifest, configuration, estimates, tables, prompts, the log of calls."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl
import yaml

from pipeline.errors import DataError
from pipeline.evaluation.document import EstimateSet, read_estimates
from pipeline.foreign_json import read_json
from pipeline.report.document_tables import with_axis
from pipeline.tables.store import read_table, scan_table

_MOST_LOG = 800_000_000
"""Bytes of a log of calls (about two million of them) beyond which it is not read: repairs and drift are left out."""
_TEXTS = 8_192
"""Replies whose texts are in memory at once."""


@dataclass(frozen=True, slots=True)
class CallLog:
    """What the log of calls says beyond the manifest's counts.

    Attributes:
        repairs: (stage, model) → requests for a repair.
        score_times: request key of a pointwise score → time it was asked, where it was asked for this run.
        read: whether there was a log and it was short enough to read.
    """

    repairs: Mapping[tuple[str, str], int] = field(default_factory=dict)
    score_times: Mapping[str, str] = field(default_factory=dict)
    read: bool = False


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
        try:
            manifest: dict[str, Any] = read_json(self._text("manifest.json"))
        except ValueError:
            raise DataError(
                f"{self.path / 'manifest.json'}: damaged; start the run again with its config.yaml"
            ) from None
        return manifest

    @cached_property
    def config(self) -> dict[str, Any]:
        """config.yaml as plain values."""
        config: dict[str, Any] = yaml.load(self._text("config.yaml"), getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        return config

    def _text(self, name: str) -> str:
        try:
            return (self.path / name).read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            raise DataError(f"{self.path / name}: cannot be read ({error}); is this a run directory?") from None

    @cached_property
    def estimates(self) -> EstimateSet:
        """estimates.json."""
        return with_axis(read_estimates(self.path / "estimates.json"), self.axis)

    def rows(self, name: str, items: Sequence[str], columns: Sequence[str]) -> dict[Any, list[tuple[Any, ...]]]:
        """Item → its rows of one table, as tuples of these columns."""
        without = ("reasoning", "request_key", "finish_reason")
        frame = read_table(self.path / "tables", name, without=without, items=items)
        return frame.select("item_id", *columns).rows_by_key("item_id")

    def table(self, name: str, *, without: Collection[str] = (), packed: Collection[str] = ()) -> pl.DataFrame:
        """One table of the run."""
        return read_table(self.path / "tables", name, without=without, packed=packed)

    def forget(self) -> None:
        """Let go of the tables that were read; they are read again when looked at."""
        for name in ("responses", "preferences", "scores", "taus", "candidates", "signals", "call_log"):
            self.__dict__.pop(name, None)

    @cached_property
    def items(self) -> pl.DataFrame:
        """The items table."""
        return self.table("items")

    @cached_property
    def responses(self) -> pl.DataFrame:
        """The responses table with the ``length`` of each text in the place of texts, which memory need not hold."""
        frame = self.table("responses", without=("text", "reasoning", "request_key", "finish_reason"))
        lengths = scan_table(self.path / "tables", "responses").select(pl.col("text").str.len_chars().alias("length"))
        parts = [lengths.slice(start, _TEXTS).collect() for start in range(0, max(frame.height, 1), _TEXTS)]
        return frame.hstack(pl.concat(parts))

    @cached_property
    def preferences(self) -> pl.DataFrame:
        """The preferences table; names and verdicts are categories, since it is the longest table of a run."""
        packed = ("item_id", "target", "rater", "pair", "order", "verdict")
        return self.table("preferences", without=("request_key",), packed=packed)

    @cached_property
    def scores(self) -> pl.DataFrame:
        """The scores table."""
        return self.table("scores")

    @cached_property
    def signals(self) -> pl.DataFrame:
        """The signals table."""
        return self.table("signals")

    @cached_property
    def taus(self) -> pl.DataFrame:
        """The taus table."""
        return self.table("taus", without=("request_key",), packed=("item_id", "target"))

    @cached_property
    def candidates(self) -> pl.DataFrame:
        """The candidates table."""
        return self.table("candidates", without=("request_key",))

    @property
    def targets(self) -> tuple[str, ...]:
        """The evaluated models, as the run lists them."""
        named = self.manifest.get("targets")
        return tuple(named) if named else tuple(self.estimates)

    @property
    def anchors(self) -> tuple[str, ...]:
        """The anchors, weakest first, that are no targets."""
        named = (self.config.get("roles") or {}).get("anchors") or {}
        models = dict.fromkeys(model for model in named.values() if isinstance(model, str))
        return tuple(model for model in models if model not in self.targets)

    @property
    def simulated(self) -> tuple[str, ...]:
        """The models whose replies are simulated."""
        entries = self.manifest.get("simulated") or ()
        return tuple(entries) if isinstance(entries, list | tuple) else ()

    @property
    def benchmark(self) -> Mapping[str, Any]:
        """What the manifest says of the benchmark."""
        return self.manifest.get("benchmark") or {}

    @property
    def axis(self) -> str:
        """Name of the profile axis."""
        return str(self.benchmark.get("profile") or "profile")

    @cached_property
    def prompts(self) -> Mapping[str, str]:
        """File of a prompt, relative to the run → its text, as kept with the run."""
        folder = self.path / "prompts"
        files = sorted(path for path in folder.rglob("*") if path.is_file()) if folder.is_dir() else []
        return {
            path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8", errors="replace") for path in files
        }

    @cached_property
    def call_log(self) -> CallLog:
        """Repairs and times of scores from calls.jsonl; only lines of interest are parsed."""
        path = self.path / "calls.jsonl"
        if not path.exists() or path.stat().st_size > _MOST_LOG:
            return CallLog()
        repairs: Counter[tuple[str, str]] = Counter()
        times: dict[str, str] = {}
        with path.open("rb") as file:
            for line in file:
                repaired = b'repair"' in line
                if not repaired and b'"pointwise"' not in line:
                    continue
                try:
                    call = read_json(line)
                except ValueError:
                    continue
                if repaired and str(call.get("part") or "").endswith("repair"):
                    repairs[call["stage"], call["model"]] += 1
                elif call.get("stage") == "pointwise" and call.get("state") == "answered":
                    times[call["key"]] = call["at"]
        return CallLog(repairs, times, read=True)
