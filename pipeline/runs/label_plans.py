"""Label plans of a run: its items, its labels, and sheets that ask for the right answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import polars as pl

from pipeline.config import RunConfig, load_config
from pipeline.errors import InputError
from pipeline.evaluation.document import EstimateSet
from pipeline.evaluation.plans.table_plans import plan_of_sheet
from pipeline.evaluation.pool import Pool
from pipeline.runs.directory import RunDirectory
from pipeline.runs.exported import exported
from pipeline.runs.frames import RunTables
from pipeline.runs.labels import keep_plan_labels, plan_sheet, read_plan_labels
from pipeline.tables.store import read_table


@dataclass(frozen=True)
class RunLabels:
    """A finished run as a plan sees it; one right answer serves all of its models.

    Attributes:
        directory: the run. models: of the goal; empty for all targets.
    """

    directory: RunDirectory
    models: tuple[str, ...] = ()

    @cached_property
    def config(self) -> RunConfig:
        """The run's configuration."""
        return load_config(self.directory.config_file)

    @cached_property
    def items(self) -> pl.DataFrame:
        """The items table, by id."""
        return read_table(self.directory.tables, "items").sort("item_id")

    @property
    def ids(self) -> list[str]:
        """Every item."""
        ids: list[str] = self.items["item_id"].to_list()
        return ids

    @property
    def wanted(self) -> tuple[str, ...]:
        """The models of the goal.

        Raises:
            InputError: a model of the goal is no target of the run.
        """
        targets = self.config.roles.targets
        missing = [name for name in self.models if name not in targets]
        if missing:
            raise InputError(f"{self.directory.path} has no target {missing[0]!r}; it has {', '.join(targets)}")
        return self.models or tuple(targets)

    def labels(self) -> dict[str, str]:
        """Item → its right answer, where it is labeled."""
        rows = self.items.filter(pl.col("labeled") & pl.col("gold").is_not_null())
        return dict(rows.select("item_id", "gold").iter_rows())

    def pool(self) -> Pool:
        """What the run is estimated from."""
        pool = exported(self.config, RunTables(self.directory.tables)).pool()
        kept = tuple(target for target in pool.targets if target.name in self.wanted)
        return Pool(kept, pool.notices)

    def write_sheet(
        self,
        sheet: Path,
        items: Sequence[str],
        _visible: Sequence[str],
        plan: str,
        gold: Mapping[tuple[str, str], str] | None = None,
    ) -> int:
        """Write the sheet that asks for the right answers, in order, with those given elsewhere; how many rows."""
        return plan_sheet(self.directory, sheet, items, plan, {item: text for (item, _), text in (gold or {}).items()})

    def filled(self, sheet: Path, items: Sequence[str], out: Path | None) -> tuple[Path, RunLabels]:
        """Keep the labels of a sheet and grade with them; the run with them, not estimated yet.

        Raises:
            InputError: the sheet is of no plan, or its rows are not of this plan's sheets.
        """
        if out is not None:
            raise InputError("--out is for tables; a run keeps its labels itself")
        if plan_of_sheet(sheet) is None:
            raise InputError(f"{sheet} is no sheet of a plan: take the items from auxeval labels next")
        gold = read_plan_labels(self.directory, sheet, items)
        return self.directory.path, self.with_gold({(item, ""): text for item, text in gold.items()})

    def with_gold(self, gold: Mapping[tuple[str, str], str]) -> RunLabels:
        """The run with right answers of (item, "") kept and graded with, not estimated yet.

        Raises:
            InputError: a right answer that cannot be graded.
        """
        keep_plan_labels(self.directory, self.config, {item: text for (item, _), text in gold.items()})
        return RunLabels(self.directory, self.models)

    def keep(self, _place: Path) -> None:
        """The labels are kept already; estimates follow when the ledger lets them be seen."""

    def seen(self) -> EstimateSet:
        """Write estimates and report, of which the ledger says that they may be seen.

        Raises:
            InputError: a blind plan hides them.
        """
        from pipeline.runs.finish import finish_run
        from pipeline.runs.manifest import Manifest

        return finish_run(self.directory, self.config, Manifest(self.directory))

    def hide(self) -> None:
        """Take estimates and report away, which a blind plan hides: they are made again when it ends."""
        for file in (self.directory.estimates_file, self.directory.report_file):
            file.unlink(missing_ok=True)
        for figure in (self.directory.path / "figures").glob("*.*"):
            figure.unlink()
