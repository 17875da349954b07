"""Gold labels that come after a run: the sheet of items to label, and the run estimated again with them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl

from pipeline.benchmark.grading import Grader
from pipeline.benchmark.items import Item
from pipeline.code_permission import require_permission
from pipeline.config import RunConfig, load_config
from pipeline.errors import InputError
from pipeline.evaluation.document import EstimateSet
from pipeline.evaluation.label_draw import draw_labels, pilot_of, realised_draw
from pipeline.evaluation.plans.doors import RUN_LEDGER, count_look
from pipeline.foreign_json import read_json
from pipeline.runs.directory import RunDirectory, write_atomically
from pipeline.runs.exported import run_pool
from pipeline.runs.frames import RunTables
from pipeline.runs.manifest import Manifest
from pipeline.runs.ratings import letter, question_shown
from pipeline.tables.labels import (
    LabelDesign,
    SheetRow,
    read_design,
    read_label_sheet,
    write_label_sheet,
    write_plan_design,
)
from pipeline.tables.schemas import TABLES, items_schema
from pipeline.tables.store import read_table, write_frame

__all__ = [
    "LABELS_FILE",
    "StoredLabels",
    "allowed_letters",
    "answers_given",
    "apply_stored_labels",
    "export_run_labels",
    "import_run_labels",
    "item_of",
    "keep_plan_labels",
    "plan_sheet",
    "read_plan_labels",
    "run_grader",
    "stored_labels",
    "take_gold",
]

SCHEMA = 1
LABELS_FILE = "labels.json"


@dataclass(frozen=True, slots=True)
class StoredLabels:
    """Labels that were imported into a run.

    Attributes:
        gold: item id → right answer.
        inclusion: item id → chance to be labeled; empty where all had the same.
        rounds: item id → (round of its label or 0, stratum); empty where labels were drawn in one round.
    """

    gold: Mapping[str, str] = field(default_factory=dict)
    inclusion: Mapping[str, float] = field(default_factory=dict)
    rounds: Mapping[str, Sequence[int]] = field(default_factory=dict)


def stored_labels(run: Path) -> StoredLabels:
    """The labels kept in a run directory; none if there are none.

    Raises:
        InputError: the file is damaged or newer.
    """
    path = run / LABELS_FILE
    try:
        data = read_json(path.read_text(encoding="utf-8"))
        if data["schema"] > SCHEMA:
            raise InputError(f"{path}: schema {data['schema']} is newer than this program reads ({SCHEMA}); upgrade")
        return StoredLabels(data["gold"], data["inclusion"], data.get("rounds", {}))
    except FileNotFoundError:
        return StoredLabels()
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path} is damaged ({error}); import the label sheet again") from error


def export_run_labels(
    directory: RunDirectory,
    sheet: Path,
    labels: int | None = None,
    *,
    kind: Literal["uniform", "stratified"] = "uniform",
    seed: int = 0,
) -> LabelDesign:
    """Draw items of a finished run that are not labeled yet, and write the sheet that asks for their right answers.

    Raises:
        InputError: the run has no tables yet, too few items, the sheet exists.
    """
    config = load_config(directory.config_file)
    items = read_table(directory.tables, "items").sort("item_id")
    pilots = [pilot_of(target) for target in run_pool(config, RunTables(directory.tables)).targets]
    ids = items["item_id"].to_list()
    before = stored_labels(directory.path)
    rounds, strata = zip(*(before.rounds[item] for item in ids), strict=True) if before.rounds else ((), ())
    design = draw_labels(
        ids, labels, pilots, kind=kind, seed=seed, source=directory.path.name, gold="answer",
        strata=np.unique(strata, return_inverse=True)[1].astype(np.intp) if rounds else None,
        prior=[before.inclusion[item] for item in ids] if before.inclusion else (), rounds=rounds,
    )  # fmt: skip
    answers = _answers(directory, config)
    by_id = {row["item_id"]: row for row in items.iter_rows(named=True)}
    rows = [SheetRow(item, question_shown(by_id[item]), answers.get(item, "")) for item in design.drawn]
    write_label_sheet(sheet, rows, design, _asked(directory))
    return design


def plan_sheet(
    directory: RunDirectory, sheet: Path, items: Sequence[str], plan: str, gold: Mapping[str, str] | None = None
) -> int:
    """Write the sheet of a plan: these items, in order, asking for their right answers; how many.

    Args:
        directory, sheet, items, plan: the run, the file, what to ask and for which plan.
        gold: item → right answer that was given elsewhere; it stands in the sheet already.

    Raises:
        InputError: the sheet exists or cannot be written.
    """
    config = load_config(directory.config_file)
    by_id = {row["item_id"]: row for row in read_table(directory.tables, "items").iter_rows(named=True)}
    answers = _answers(directory, config)
    rows = [
        SheetRow(item, question_shown(by_id[item]), answers.get(item, ""), (gold or {}).get(item, "")) for item in items
    ]
    write_label_sheet(sheet, rows, _plan_design(directory, items), _asked(directory))
    write_plan_design(sheet, plan, items)
    return len(rows)


def _plan_design(directory: RunDirectory, items: Sequence[str]) -> LabelDesign:
    return LabelDesign(
        "uniform", 0, directory.path.name, "answer", tuple(items), (0,) * len(items), (), tuple(items), (0,)
    )


def _asked(directory: RunDirectory) -> str:
    return "gold: the right answer" + (" (its letter)" if _is_choice(directory) else "") + "; leave empty if unsure"


def read_plan_labels(directory: RunDirectory, sheet: Path, items: Sequence[str]) -> Mapping[str, str]:
    """Item → right answer of a plan's filled sheet.

    Raises:
        InputError: cells that cannot be used; ids or rows are named.
    """
    return read_label_sheet(sheet, _plan_design(directory, items), allowed=allowed_letters(directory)).gold


def keep_plan_labels(directory: RunDirectory, config: RunConfig, gold: Mapping[str, str]) -> None:
    """Keep right answers with the run and grade with them; nothing is estimated or reported.

    Raises:
        InputError: a right answer that cannot be graded.
    """
    from pipeline.runs.finish import assemble_run

    _keep(directory, config, gold)
    assemble_run(directory, config, Manifest(directory))


def take_gold(directory: RunDirectory, gold: Mapping[str, str], *, anytime: bool = False) -> EstimateSet:
    """Right answers of items drawn uniformly: kept with the run, counted as a look, graded and estimated with.

    Raises:
        InputError: labels from before were drawn by strata; a right answer that cannot be graded.
    """
    if stored_labels(directory.path).inclusion:
        raise InputError(
            f"{directory.path}: its labels were drawn by strata; further ones come from auxeval labels export"
        )
    return _kept_and_estimated(directory, gold, {}, {}, anytime)


def _keep(
    directory: RunDirectory,
    config: RunConfig,
    gold: Mapping[str, str],
    inclusion: Mapping[str, float] | None = None,
    rounds: Mapping[str, Sequence[int]] | None = None,
) -> None:
    _check_gradable(directory, config, read_table(directory.tables, "items").sort("item_id"), gold)
    before = stored_labels(directory.path)
    document = {
        "schema": SCHEMA,
        "gold": {**before.gold, **gold},
        "inclusion": dict(before.inclusion if inclusion is None else inclusion),
        "rounds": dict(rounds or {}),
    }
    write_atomically(
        directory.path / LABELS_FILE, json.dumps(document, indent=1, sort_keys=True, allow_nan=False) + "\n"
    )


def _kept_and_estimated(
    directory: RunDirectory,
    gold: Mapping[str, str],
    inclusion: Mapping[str, float],
    rounds: Mapping[str, Sequence[int]],
    anytime: bool,
) -> EstimateSet:
    from pipeline.runs.finish import finish_run

    config = load_config(directory.config_file)
    items = read_table(directory.tables, "items")
    had = set(items.filter(pl.col("labeled") & pl.col("gold").is_not_null())["item_id"].to_list())
    _keep(directory, config, gold, inclusion, rounds)
    count_look(directory.path / RUN_LEDGER, len(had), len(had | set(gold)))
    return finish_run(directory, config, Manifest(directory), anytime=anytime)


def answers_given(directory: RunDirectory, config: RunConfig) -> dict[str, list[tuple[str, str]]]:
    """Item → (target, what it answered), by target."""
    responses = read_table(directory.tables, "responses").filter((pl.col("stage") == "answer") & (pl.col("draw") == 0))
    answers: dict[str, list[tuple[str, str]]] = {}
    for item, model, answer in responses.sort("item_id", "model").select("item_id", "model", "answer").iter_rows():
        if model in config.roles.targets:
            answers.setdefault(item, []).append((model, "no answer" if answer is None else str(answer)))
    return answers


def _answers(directory: RunDirectory, config: RunConfig) -> dict[str, str]:
    """What every target answered, for the person's eyes."""
    several = len(config.roles.targets) > 1
    return {
        item: " · ".join(f"{model}: {text}" if several else text for model, text in answers)
        for item, answers in answers_given(directory, config).items()
    }


def _is_choice(directory: RunDirectory) -> bool:
    return bool(directory.manifest().get("benchmark", {}).get("grading") == "choice")


def import_run_labels(
    directory: RunDirectory, sheet: Path, *, anytime: bool = False
) -> tuple[EstimateSet, tuple[str, ...]]:
    """Check a filled sheet, keep its labels with the run, grade again and estimate again. Nothing is asked.

    Returns:
        The new estimates (also written to estimates.json and the report) and what was noticed.

    Raises:
        InputError: the sheet does not belong to this run, or its cells cannot be used; ids or rows are named.
    """
    design = read_design(sheet)
    if design.roles:
        raise InputError(f"{sheet} was drawn from the table {design.source}; give that table")
    items = read_table(directory.tables, "items").sort("item_id")
    if tuple(items["item_id"].to_list()) != design.ids:
        raise InputError(
            f"{sheet} was drawn from the run {design.source!r}, whose items are not those of {directory.path}"
        )
    filled = read_label_sheet(sheet, design, allowed=allowed_letters(directory))
    inclusion: dict[str, float] = {}
    rounds: dict[str, list[int]] = {}
    if design.unequal:
        labeled = [*design.before, *filled.gold]
        draw = realised_draw(design, labeled)
        inclusion = {item: float(chance) for item, chance in zip(design.ids, draw.chances, strict=True)}
        if draw.stage is not None and draw.strata is not None:
            parts = zip(design.ids, draw.stage.tolist(), draw.strata.tolist(), strict=True)
            rounds = {item: [stage, stratum] for item, stage, stratum in parts}
    return _kept_and_estimated(directory, filled.gold, inclusion, rounds, anytime), filled.notes


def allowed_letters(directory: RunDirectory) -> list[str] | None:
    """What a right answer can be where items have choices; None for any text."""
    if not _is_choice(directory):
        return None
    items = read_table(directory.tables, "items")
    widest = items["choices"].list.len().max()
    return [letter(k) for k in range(int(widest))] if isinstance(widest, int) and widest else None


def _check_gradable(directory: RunDirectory, config: RunConfig, items: pl.DataFrame, gold: Mapping[str, str]) -> None:
    """Grade a reply against every new label once, so that a gold that cannot be graded is refused before it is kept."""
    grader = run_grader(directory, config)
    try:
        for row in items.filter(pl.col("item_id").is_in(list(gold))).iter_rows(named=True):
            grader.grade("Answer: 0", item_of({**row, "gold": gold[row["item_id"]]}))
    finally:
        grader.close()


def run_grader(directory: RunDirectory, config: RunConfig) -> Grader:
    grading = directory.manifest().get("benchmark", {}).get("grading") or config.benchmark.grading
    require_permission(grading)  # a manifest from elsewhere can name a module too
    return Grader(grading or "exact", tolerance=config.benchmark.tolerance)


def item_of(row: Mapping[str, Any]) -> Item:
    choices = None if row["choices"] is None else tuple(row["choices"])
    return Item(row["item_id"], row["question"], row["gold"], choices, row["profile"])


def apply_stored_labels(directory: RunDirectory, config: RunConfig, manifest: Manifest) -> None:
    """Put imported labels into the items and grade the answers of these items again; nothing where there are none."""
    labels = stored_labels(directory.path)
    if not labels.gold:
        return
    items = read_table(directory.tables, "items")
    given = pl.Series(list(labels.gold), dtype=pl.String)
    mine = pl.col("item_id").is_in(given.implode())
    items = items.with_columns(
        pl.when(mine)
        .then(pl.col("item_id").replace_strict(dict(labels.gold), default=None, return_dtype=pl.String))
        .otherwise(pl.col("gold"))
        .alias("gold"),
        (pl.col("labeled") | mine).alias("labeled"),
    )
    kind = manifest.values.get("benchmark", {}).get("profile_kind")
    write_frame(directory.tables, items_schema(kind), items)
    lookup = {row["item_id"]: item_of(row) for row in items.filter(mine).iter_rows(named=True)}
    grader = run_grader(directory, config)
    try:
        for name, text in (("responses", "text"), ("candidates", "answer")):
            frame = read_table(directory.tables, name)
            write_frame(directory.tables, TABLES[name], _graded(frame, text, lookup, grader))
    finally:
        grader.close()


def _graded(frame: pl.DataFrame, text: str, lookup: Mapping[str, Item], grader: Grader) -> pl.DataFrame:
    """φ of every reply to a newly labeled item."""
    phi, reasons = frame["phi"].to_list(), frame["phi_reason"].to_list()
    columns = [frame["item_id"].to_list(), frame[text].to_list()]
    for row, (item_id, reply) in enumerate(zip(*columns, strict=True)):
        if item_id in lookup and reply is not None and reasons[row] == "missing_input":
            text_to_grade = reply if text == "text" else f"Answer: {reply}"
            grade = grader.grade(text_to_grade, lookup[item_id])
            phi[row], reasons[row] = grade.phi, grade.reason
    return frame.with_columns(
        pl.Series("phi", phi, dtype=pl.Float64), pl.Series("phi_reason", reasons, dtype=pl.String)
    )
