"""What a person says of how replies were read: a sheet out, corrections back by request key, kept with the run."""

from __future__ import annotations

import csv
import json
import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from pipeline.config import RunConfig
from pipeline.csv_guard import guard
from pipeline.errors import DataError, InputError
from pipeline.estimators.intervals import normal_quantile, wilson_interval
from pipeline.evaluation.document import EstimateSet
from pipeline.evaluation.reading import GradingError
from pipeline.foreign_json import read_json
from pipeline.runs.directory import RunDirectory, write_atomically
from pipeline.runs.frames import RunTables
from pipeline.runs.labels import item_of, run_grader
from pipeline.runs.manifest import Manifest
from pipeline.tables.schemas import TABLES
from pipeline.tables.store import read_table, write_frame
from pipeline.tables.user_table import read_user_table

SCHEMA = 1
AUDIT_FILE = "audit.json"
COLUMNS = ("request_key", "item_id", "target", "why", "reply_end", "read", "gold", "phi", "right", "correct_answer")
"""Of the sheet; ``right`` (yes, no) and ``correct_answer`` are for the person."""
_END_CHARS = 600
_LEVEL = 0.95
_NONE = frozenset({"none", "-", "no answer", "n/a"})
_YES = frozenset({"y", "yes", "1", "true", "x", "ok", "right", "correct"})
_NO = frozenset({"n", "no", "0", "false", "wrong", "incorrect"})


@dataclass(frozen=True, slots=True)
class Audit:
    """What a person said.

    Attributes:
        corrections: request key → ``answer`` (what the reply answers, None for nothing) and ``phi``.
        sample: request key of a randomly drawn read answer that was checked → whether its φ was wrong.
    """

    corrections: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    sample: Mapping[str, bool] = field(default_factory=dict)


def stored_audit(run: Path) -> Audit:
    """The corrections kept in a run directory; none if there are none.

    Raises:
        InputError: the file is damaged or newer.
    """
    path = run / AUDIT_FILE
    try:
        data = read_json(path.read_text(encoding="utf-8"))
        if data["schema"] > SCHEMA:
            raise InputError(f"{path}: schema {data['schema']} is newer than this program reads ({SCHEMA}); upgrade")
        corrections = {
            str(key): {"answer": entry["answer"], "phi": float(entry["phi"])}
            for key, entry in data["corrections"].items()
        }
        return Audit(corrections, {str(key): bool(wrong) for key, wrong in data["sample"].items()})
    except FileNotFoundError:
        return Audit()
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{path} is damaged ({type(error).__name__}); import the audit sheet again") from error


def export_audit(directory: RunDirectory, sheet: Path, *, sample: int = 0, seed: int = 0) -> tuple[int, int]:
    """Write the targets' unread answers, and a random sample of the read ones, as a sheet for a person.

    Text that a spreadsheet would run as a formula gets a leading apostrophe.

    Returns:
        How many unread and how many sampled rows it has.

    Raises:
        InputError: the run has no tables yet, or the sheet exists (it may hold someone's work).
    """
    if sheet.exists():
        raise InputError(f"{sheet} exists and may hold an audit; choose another name with --out, or remove it")
    answers = _answers(directory, directory.config())
    unread = [row for row in answers if row["outcome"] == "no_answer"]
    read = [row for row in answers if row["outcome"] == "ok"]
    drawn = random.Random(seed).sample(read, min(sample, len(read)))
    try:
        sheet.parent.mkdir(parents=True, exist_ok=True)
        with sheet.open("w", encoding="utf-8-sig", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(COLUMNS)
            for why, rows in (("unread", unread), ("sample", drawn)):
                for row in sorted(rows, key=lambda row: (row["model"], row["item_id"])):
                    writer.writerow(_sheet_row(row, why))
    except OSError as error:
        raise InputError(f"{sheet} cannot be written: {error.strerror or error}") from error
    return len(unread), len(drawn)


def _answers(directory: RunDirectory, config: RunConfig) -> list[dict[str, Any]]:
    """The targets' replies that were graded, each request once, with the gold of their item."""
    items = read_table(directory.tables, "items").select("item_id", "gold")
    responses = read_table(directory.tables, "responses").filter(
        (pl.col("stage") == "answer")
        & pl.col("model").is_in(list(config.roles.targets))
        & pl.col("outcome").is_in(["ok", "no_answer"])
        & pl.col("request_key").is_not_null()
    )
    joined = responses.join(items, on="item_id", how="left").sort("model", "item_id", "draw")
    return joined.unique("request_key", keep="first", maintain_order=True).to_dicts()


def _sheet_row(row: Mapping[str, Any], why: str) -> list[str]:
    end = (row["text"] or "")[-_END_CHARS:]
    cells = [row["item_id"], row["model"], why, end, row["answer"] or "", row["gold"] or ""]
    phi = "" if row["phi"] is None else f"{row['phi']:g}"
    return [row["request_key"], *(guard(str(text)) for text in cells), phi, "", ""]


def import_audit(directory: RunDirectory, sheet: Path) -> tuple[EstimateSet, int]:
    """Check a filled sheet, keep its corrections with the run, and estimate again. Nothing is asked.

    Returns:
        The new estimates and how many rows were filled in.

    Raises:
        InputError: rows do not belong to this run, or a cell cannot be used; rows are named.
    """
    from pipeline.runs.finish import finish_run

    config, manifest = directory.config(), Manifest(directory)
    before = stored_audit(directory.path)
    table = read_user_table(sheet, ["request_key", "why", "right", "correct_answer"])
    answers = {row["request_key"]: row for row in _answers(directory, config)}
    corrections, sample = dict(before.corrections), dict(before.sample)
    grader, filled = run_grader(directory, config), 0
    items = {row["item_id"]: row for row in read_table(directory.tables, "items").iter_rows(named=True)}
    try:
        for place, cells in enumerate(table.frame.iter_rows(named=True), start=2):
            right, answer = _cell(cells["right"]).casefold(), _cell(cells["correct_answer"])
            if not right and not answer:
                continue
            key = _cell(cells["request_key"])
            if key not in answers:
                raise DataError(f"{sheet}: row {place} has the request key {key[:16]!r}, which this run does not hold")
            if right and right not in _YES | _NO:
                raise DataError(f"{sheet}: row {place}: right is {right[:20]!r}; write yes or no, or leave it empty")
            row, filled = answers[key], filled + 1
            phi = _corrected_phi(row, right, answer, grader, items[row["item_id"]], f"{sheet}: row {place}")
            wrong = phi != row["phi"]
            if _cell(cells["why"]) == "sample":
                sample[key] = wrong
            if wrong or (answer and answer != row["answer"]):
                corrections[key] = {
                    "answer": None if answer.casefold() in _NONE else answer or row["answer"],
                    "phi": phi,
                }
    finally:
        grader.close()
    if not filled:
        raise InputError(
            f"{sheet}: nothing is filled in yet; write yes or no in right, or the answer in correct_answer"
        )
    document = {"schema": SCHEMA, "corrections": corrections, "sample": sample}
    write_atomically(
        directory.path / AUDIT_FILE, json.dumps(document, indent=1, sort_keys=True, allow_nan=False) + "\n"
    )
    return finish_run(directory, config, manifest), filled


def _corrected_phi(
    row: Mapping[str, Any], right: str, answer: str, grader: Any, item: Mapping[str, Any], place: str
) -> float:
    """φ as the person says it is."""
    if answer:
        if answer.casefold() in _NONE:
            return 0.0
        grade = grader.grade(f"Answer: {answer}", item_of(item))
        if grade.answer is None or grade.phi is None:
            raise DataError(f"{place}: correct_answer {answer[:40]!r} cannot be graded as {grader.grading}")
        return float(grade.phi)
    if row["phi"] is None:
        raise DataError(f"{place}: this answer has no φ; write what it answers in correct_answer")
    if right in _YES:
        return float(row["phi"])
    if row["phi"] not in (0.0, 1.0):
        raise DataError(f"{place}: right is no; write what the reply answers in correct_answer")
    return 1.0 - float(row["phi"])


def _cell(value: Any) -> str:
    return "" if value is None else str(value).strip()


def apply_stored_audit(directory: RunDirectory) -> None:
    """Put a person's corrections into the answers, and whatever shares their requests; nothing where there are none."""
    corrections = stored_audit(directory.path).corrections
    if not corrections:
        return
    for name in ("responses", "candidates"):
        frame = read_table(directory.tables, name)
        if not frame.height:
            continue
        write_frame(directory.tables, TABLES[name], _corrected(frame, corrections))


def _corrected(frame: pl.DataFrame, corrections: Mapping[str, Mapping[str, Any]]) -> pl.DataFrame:
    rows = frame.to_dict(as_series=False)
    for place, key in enumerate(rows["request_key"]):
        correction = corrections.get(key) if key is not None else None
        if correction is None:
            continue
        rows["answer"][place] = correction["answer"]
        rows["phi"][place], rows["phi_reason"][place] = correction["phi"], None
        if "outcome" in rows and rows["outcome"][place] in ("ok", "no_answer"):
            rows["outcome"][place] = "no_answer" if correction["answer"] is None else "ok"
    return pl.DataFrame(rows, schema=frame.schema)


def grading_error(tables: RunTables) -> GradingError | None:
    """How often the checked sample's φ was wrong; None where nothing of a sample was checked."""
    sample = stored_audit(tables.folder.parent).sample
    if not sample:
        return None
    wrong = sum(sample.values())
    low, high = wilson_interval(wrong / len(sample), len(sample), normal_quantile(_LEVEL))
    return GradingError(len(sample), wrong, wrong / len(sample), float(low), float(high), _LEVEL)
