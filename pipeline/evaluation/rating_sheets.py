"""Sheets on which people rate responses, blind: dealt to raters with an overlap, read back, and their agreement."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pipeline.benchmark.given import Criterion, read_rating
from pipeline.benchmark.presets import BadRow
from pipeline.csv_guard import guarded_row
from pipeline.errors import DataError, InputError
from pipeline.estimators.raters import Agreement, rater_agreement
from pipeline.foreign_json import read_json
from pipeline.tables.label_store import ADJUDICATOR, Labels
from pipeline.tables.labels import SCHEMA, design_path
from pipeline.tables.table_source import inspect_source
from pipeline.tables.user_table import whole_csv

_TEXTS = ("question", "context", "reference", "response")
_NAMED = 5
"""Cells that an error names; the others are counted."""


@dataclass(frozen=True, slots=True)
class RatedUnit:
    """One response to rate: its name in the store, and what a person sees. No model and no score is in it."""

    unit: str
    question: str
    response: str
    context: str = ""
    reference: str = ""

    @property
    def row(self) -> str:
        """What a sheet calls it; a letter first, so that no spreadsheet takes it for a number."""
        return f"r{self.unit[:12]}"


@dataclass(frozen=True, slots=True)
class SheetDesign:
    """What stands beside a sheet of ratings; as blind as the sheet.

    Attributes:
        source: the run.
        rater: whose sheet it is.
        units: row → unit.
        criteria: the columns, in order.
    """

    source: str
    rater: str
    units: Mapping[str, str]
    criteria: tuple[str, ...]


def deal(units: Sequence[RatedUnit], raters: Sequence[str], overlap: float, seed: int) -> dict[str, list[RatedUnit]]:
    """Whose sheet each unit stands on: the overlap on those of two raters, the rest in turn; each in its own order.

    Args:
        units: to be rated.
        raters: their names.
        overlap: share of the units that two rate, in [0, 1]; rounded up.
        seed: of the draw, and of the orders.

    Raises:
        InputError: an overlap without a second rater, or out of range.
    """
    if not 0.0 <= overlap <= 1.0:
        raise InputError(f"--overlap {overlap:g}: a share of the responses, from 0 to 1")
    if overlap and len(raters) < 2:
        raise InputError(f"--overlap {overlap:g} needs a second rater; add --raters 2")
    rng = np.random.default_rng([seed, 5])
    order = rng.permutation(len(units)).tolist()
    shared = int(np.ceil(overlap * len(units) - 1e-9))
    sheets: dict[str, list[RatedUnit]] = {name: [] for name in raters}
    for place, k in enumerate(order):
        turn = place % len(raters)
        sheets[raters[turn]].append(units[k])
        if place < shared:
            sheets[raters[(turn + 1) % len(raters)]].append(units[k])
    return {name: [sheet[k] for k in rng.permutation(len(sheet))] for name, sheet in sheets.items()}


def write_rating_sheet(
    sheet: Path,
    units: Sequence[RatedUnit],
    criteria: Sequence[Criterion],
    *,
    source: str,
    rater: str,
    ratings: Mapping[tuple[str, str], str] | None = None,
) -> None:
    """Write one rater's sheet and its design.

    Args:
        sheet: the CSV file.
        units: in the order of the sheet.
        criteria: one column each, which the rater fills in.
        source: the run.
        rater: whose sheet it is.
        ratings: (unit, criterion) → what raters disagree on, for a sheet that settles it.

    Raises:
        InputError: the file exists (it may hold someone's work), or cannot be written.
    """
    if sheet.exists():
        raise InputError(f"{sheet} exists and may hold ratings; choose another name or remove it")
    texts = [name for name in _TEXTS if name in ("question", "response") or any(getattr(u, name) for u in units)]
    names = [part.name for part in criteria]
    told = [f"{name} so far" for name in names] if ratings is not None else []
    how = "; ".join([part.asked for part in criteria]) + "; leave empty if you cannot tell"
    design = SheetDesign(source, rater, {unit.row: unit.unit for unit in units}, tuple(names))
    try:
        sheet.parent.mkdir(parents=True, exist_ok=True)
        with sheet.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(guarded_row(["row", *texts, *told, *names, "instructions"]))
            for unit in units:
                before = [(ratings or {}).get((unit.unit, name), "") for name in names] if told else []
                cells = [unit.row, *(getattr(unit, name) for name in texts), *before, *("" for _ in names), how]
                writer.writerow(guarded_row(cells))
        text = json.dumps({"schema": SCHEMA, "kind": "ratings", **asdict(design)}, ensure_ascii=True, allow_nan=False)
        design_path(sheet).write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise InputError(f"{sheet} cannot be written: {error.strerror or error}") from None


def read_sheet_design(sheet: Path) -> SheetDesign:
    """The design beside a sheet of ratings.

    Raises:
        InputError: it is missing, damaged, newer, or of another kind of sheet.
    """
    path = design_path(sheet)
    try:
        data = read_json(path.read_text(encoding="utf-8"))
        if data.pop("schema") > SCHEMA:
            raise InputError(f"{path} was written by a newer version; upgrade auxeval")
        if data.pop("kind") != "ratings":
            raise InputError(f"{sheet} is no sheet of ratings; this run's responses are rated: auxeval labels export")
        return SheetDesign(
            str(data["source"]), str(data["rater"]), {str(k): str(v) for k, v in data["units"].items()},
            tuple(str(name) for name in data["criteria"]),
        )  # fmt: skip
    except FileNotFoundError:
        raise InputError(f"{path} is missing: it says what each row is about; keep it beside the sheet") from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{path} is damaged ({type(error).__name__})") from None


def read_rating_sheet(sheet: Path, design: SheetDesign, criteria: Sequence[Criterion]) -> dict[tuple[str, str], float]:
    """(unit, criterion) → rating of every filled cell.

    Args:
        sheet: CSV as a spreadsheet saves it.
        design: of this sheet.
        criteria: with the scales that bound the cells.

    Raises:
        DataError: unknown or repeated rows, a column that is gone, cells that are no rating or outside the scale.
    """
    frame = whole_csv(inspect_source(sheet))
    gone = [name for name in ("row", *design.criteria) if name not in frame.columns]
    if gone:
        raise DataError(f"{sheet}: has no column {gone[0]!r}; it has {', '.join(frame.columns)}")
    scales = {part.name: part for part in criteria}
    ratings: dict[tuple[str, str], float] = {}
    wrong: list[str] = []
    seen: dict[str, int] = {}
    for number, cells in enumerate(frame.iter_rows(named=True), 2):
        row = (cells["row"] or "").strip()
        filled = [name for name in design.criteria if (cells[name] or "").strip()]
        if not row and not filled:
            continue
        if row not in design.units:
            wrong.append(f"row {number}: {row[:20]!r} is not in this sheet")
        elif row in seen:
            wrong.append(f"row {number}: {row!r} stands in row {seen[row]} already; keep one")
        seen.setdefault(row, number)
        for name in filled:
            scale = scales[name]
            try:
                value = read_rating(cells[name].strip().replace(",", "."), name, (scale.worst, scale.best))
            except BadRow as error:
                wrong.append(f"row {number}: {str(error).removeprefix('field ')}")
                continue
            if value is not None and row in design.units:
                ratings[design.units[row], name] = value
    if wrong:
        more = f", and {len(wrong) - _NAMED} more" if len(wrong) > _NAMED else ""
        raise DataError(f"{sheet}: {'; '.join(wrong[:_NAMED])}{more}")
    if not ratings:
        raise DataError(f"{sheet}: no rating is filled in yet")
    return ratings


@dataclass(frozen=True, slots=True)
class RaterAgreement:
    """How far two people agree on one criterion.

    Attributes:
        criterion: what they rated.
        raters: the two.
        agreement: None with fewer than two responses that both rated.
        n: responses that both rated.
    """

    criterion: str
    raters: tuple[str, str]
    n: int
    agreement: Agreement | None

    @property
    def told(self) -> str:
        """One line."""
        who = f"{self.criterion}: raters {self.raters[0]} and {self.raters[1]}"
        if self.agreement is None:
            return f"{who} rated {self.n} response in common; agreement needs 2"
        raw, alpha = self.agreement.raw, self.agreement.alpha
        return (
            f"{who} agree on {raw.value:.0%} [{raw.low:.0%}, {raw.high:.0%}] of {self.n} responses that both rated,"
            f" Krippendorff's alpha {alpha.value:.2f} [{alpha.low:.2f}, {alpha.high:.2f}]"
        )

    def to_dict(self) -> dict[str, Any]:
        """Field names to JSON values."""
        inner = None if self.agreement is None else self.agreement.to_dict()
        return {"criterion": self.criterion, "raters": list(self.raters), "n": self.n, "agreement": inner}


def agreements(labels: Labels, criteria: Sequence[Criterion]) -> Iterator[RaterAgreement]:
    """Every two people who rated something in common, criterion by criterion; an adjudicator is no rater."""
    for part in criteria:
        for pair, both in labels.pairs(part.name).items():
            first, second = zip(*both, strict=True)
            yield RaterAgreement(part.name, pair, len(both), rater_agreement(first, second) if len(both) > 1 else None)


def adjudication_sheet(
    sheet: Path,
    labels: Labels,
    units: Mapping[str, RatedUnit],
    criteria: Sequence[Criterion],
    source: str,
) -> int:
    """Write what raters disagree on as a sheet for a third look; the number of its rows, 0 for no sheet.

    Raises:
        InputError: the file exists, or cannot be written.
    """
    open_ = [about for about in labels.contradictions() if about[0] in units]
    if not open_:
        return 0
    ratings = {
        about: " / ".join(f"{value:g}" for _, value in sorted(labels.by_rater[about].items())) for about in open_
    }
    rows = [units[unit] for unit in dict.fromkeys(unit for unit, _ in open_)]
    write_rating_sheet(sheet, rows, criteria, source=source, rater=ADJUDICATOR, ratings=ratings)
    return len(rows)
