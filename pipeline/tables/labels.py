"""Label sheets: the CSV that a person fills in, and the design file that remembers how its items were drawn."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pipeline.csv_guard import guarded_row
from pipeline.errors import DataError, InputError
from pipeline.foreign_json import read_json
from pipeline.tables.cells import label_column, number_column
from pipeline.tables.user_table import nearest_names, read_user_table

SCHEMA = 1
GoldKind = Literal["score", "answer"]
_INSTRUCTIONS: Mapping[GoldKind, str] = {
    "score": "gold: how good the answer is, as a number (1 = correct, 0 = wrong); leave empty if you cannot tell",
    "answer": "gold: the right answer to the question; leave empty if you cannot tell",
}


@dataclass(frozen=True, slots=True)
class SheetRow:
    """One line of a sheet: what is to be labeled, and its label where it was given elsewhere."""

    id: str
    question: str = ""
    answer: str = ""
    gold: str = ""


@dataclass(frozen=True, slots=True)
class LabelDesign:
    """How the items of a sheet were drawn; kept beside the sheet.

    Attributes:
        kind: uniform or stratified.
        seed: of the draw.
        source: name of the run or table.
        gold: whether the sheet asks for a score of the answer or for the right answer.
        ids: every item of the pool.
        strata: (M,) the stratum of each.
        before: items that were labeled before.
        drawn: items in the sheet.
        allocation: labels to draw per stratum.
        roles: the columns of a table; empty for a run.
        rounds: (M,) round in which each item was labeled before, 0 where it was not; empty where there was one round.
        prior: (M,) chance that each item had to be labeled before, where those chances differed; else empty.
    """

    kind: Literal["uniform", "stratified"]
    seed: int
    source: str
    gold: GoldKind
    ids: tuple[str, ...]
    strata: tuple[int, ...]
    before: tuple[str, ...]
    drawn: tuple[str, ...]
    allocation: tuple[int, ...]
    roles: Mapping[str, Any] = field(default_factory=dict)
    prior: tuple[float, ...] = ()
    rounds: tuple[int, ...] = ()

    @property
    def unequal(self) -> bool:
        """Whether labels need weights: chances differ, or did before."""
        return self.kind == "stratified" or bool(self.prior)

    def to_json(self) -> str:
        """As stored."""
        return json.dumps({"schema": SCHEMA, **asdict(self)}, ensure_ascii=True, allow_nan=False) + "\n"


@dataclass(frozen=True, slots=True)
class FilledLabels:
    """What a person filled in.

    Attributes:
        gold: id → text of the gold cell (a score is its number as text).
        empty: ids left empty.
        notes: what was mended, one line each.
    """

    gold: Mapping[str, str]
    empty: tuple[str, ...]
    notes: tuple[str, ...]


def design_path(sheet: Path) -> Path:
    """Where the design of a sheet is kept."""
    return sheet.with_name(sheet.name + ".design.json")


def write_label_sheet(
    sheet: Path, rows: Sequence[SheetRow], design: LabelDesign, instructions: str | None = None
) -> None:
    """Write the sheet as CSV with a byte order mark (spreadsheets then read it as UTF-8), and its design.

    Text that a spreadsheet would run as a formula gets a leading apostrophe.

    Raises:
        InputError: the file exists (it may hold someone's work) or cannot be written.
    """
    if sheet.exists():
        raise InputError(f"{sheet} exists and may hold labels; choose another name or remove it")
    heading = instructions or _INSTRUCTIONS[design.gold]
    try:
        sheet.parent.mkdir(parents=True, exist_ok=True)
        with sheet.open("w", encoding="utf-8-sig", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["id", "question", "answer", "gold", "instructions"])
            for row in rows:
                writer.writerow(guarded_row([row.id, row.question, row.answer, row.gold, heading]))
        design_path(sheet).write_text(design.to_json(), encoding="utf-8")
    except OSError as error:
        raise InputError(f"{sheet} cannot be written: {error.strerror or error}") from error


def write_plan_design(sheet: Path, plan: str, items: Sequence[str]) -> None:
    """Say beside a sheet which plan it belongs to and which items it holds."""
    design = {"schema": SCHEMA, "kind": "plan-sheet", "plan": plan, "items": list(items)}
    design_path(sheet).write_text(json.dumps(design, ensure_ascii=True) + "\n", encoding="utf-8")


def read_design(sheet: Path) -> LabelDesign:
    """The design beside a sheet.

    Raises:
        InputError: it is missing, damaged, or of a newer schema.
    """
    path = design_path(sheet)
    try:
        data = read_json(path.read_text(encoding="utf-8"))
        if data.pop("schema") > SCHEMA:
            raise InputError(f"{path} was written by a newer version; upgrade auxeval")
        fields: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in data.items()}
        return LabelDesign(**fields)
    except FileNotFoundError:
        raise InputError(f"{path} is missing: it says how the items were drawn; keep it beside the sheet") from None
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path} is damaged ({error})") from error


def read_label_sheet(sheet: Path, design: LabelDesign, *, allowed: Sequence[str] | None = None) -> FilledLabels:
    """Read and check a filled sheet.

    Args:
        sheet: CSV as a spreadsheet saves it (any delimiter, encoding).
        design: of this sheet.
        allowed: gold values that are right for ``answer`` sheets (choice letters); None means any text.

    Raises:
        DataError: unknown or duplicate ids, stray values, nothing filled in; the rows are named.
    """
    table = read_user_table(sheet, ["id", "gold"]) if _has_gold(sheet) else None
    if table is None:
        raise DataError(f"{sheet}: no gold is filled in yet")
    ids, mended = _known_ids(sheet, label_column(table, "id"), design.drawn, table.place)
    if design.gold == "score":
        number_column(table, "gold", "gold column")
        values = number_column(table, "gold", "gold column").values
        texts = ["" if np.isnan(value) else score_text(float(value)) for value in values]
    else:
        texts = label_column(table, "gold").tolist()
        _check_allowed(sheet, texts, allowed, table.place)
    twice = [k for k, item in enumerate(ids) if item in ids[:k]] if len(set(ids)) < len(ids) else []
    if twice:
        places = ", ".join(f"{ids[k]!r} in {table.place(k)}" for k in twice[:5])
        raise DataError(f"{sheet}: ids occur twice: {places}; keep one row of each")
    gold = {item: text for item, text in zip(ids, texts, strict=True) if text}
    if not gold:
        raise DataError(f"{sheet}: no gold is filled in yet")
    empty = tuple(item for item in design.drawn if item not in gold)
    notes = [f"{mended} ids that a spreadsheet had changed were recognised"] if mended else []
    if empty:
        notes.append(f"{len(gold)} of {len(design.drawn)} labels are filled in; {len(empty)} are still empty")
    return FilledLabels(gold, empty, tuple(notes))


def score_text(value: float) -> str:
    """A score as a table holds it: 1, not 1.0, so that a column of 0 and 1 stays one."""
    return str(int(value)) if value.is_integer() else repr(value)


def _has_gold(sheet: Path) -> bool:
    """Whether any gold cell is filled; a sheet whose gold column is empty is not an error of reading."""
    try:
        read_user_table(sheet, ["gold"])
    except DataError as error:
        if "empty in every row" in str(error):
            return False
        raise
    return True


def _known_ids(sheet: Path, given_ids: NDArray[np.str_], drawn: Sequence[str], place: Any) -> tuple[list[str], int]:
    """Ids as they were written; what spreadsheets do to them (leading zeros, apostrophes, 1E+05) is undone."""
    drawn_ids = set(drawn)
    by_number: dict[float, list[str]] = {}
    for item in drawn:
        value = _number(item)
        if value is not None:
            by_number.setdefault(value, []).append(item)
    ids: list[str] = []
    unknown: list[int] = []
    mended = 0
    for row, cell in enumerate(given_ids):
        text = str(cell)
        match: str | None = next((form for form in (text, text.removeprefix("'")) if form in drawn_ids), None)
        number = _number(text) if match is None else None
        candidates = by_number.get(number, []) if number is not None else []
        if len(candidates) == 1:
            match = candidates[0]
            mended += 1
        if match is None:
            unknown.append(row)
        ids.append(match or text)
    if unknown:
        first = unknown[0]
        close = nearest_names(ids[first], list(drawn), 1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        places = ", ".join(f"{ids[row]!r} in {place(row)}" for row in unknown[:5])
        raise DataError(f"{sheet}: {len(unknown)} ids are not in this draw: {places}{hint}")
    return ids, mended


def _number(text: str) -> float | None:
    try:
        return float(text.replace(",", "."))
    except ValueError:
        return None


def _check_allowed(sheet: Path, texts: Sequence[str], allowed: Sequence[str] | None, place: Any) -> None:
    if allowed is None:
        return
    stray = [row for row, text in enumerate(texts) if text and text not in allowed]
    if stray:
        cells = ", ".join(f"{texts[row]!r} in {place(row)}" for row in stray[:5])
        raise DataError(f"{sheet}: gold values that are none of {', '.join(allowed)}: {cells}")


def realised_inclusion(design: LabelDesign, labeled: Sequence[str]) -> NDArray[np.float64]:
    """(M,) chance of each item to be labeled, given how many labels came back, in the order of ``design.ids``.

    Within a stratum every item had the same chance: the labeled share of the stratum. Where the labels from before had
    unequal chances p, it is p + (1 − p)·k with k the share of the stratum's other items that was labeled now. Labels
    left empty are taken as missing at random within the stratum.

    Raises:
        InputError: a stratum without a single label: it would not be represented.
    """
    strata = np.asarray(design.strata, dtype=np.intp)
    sizes = np.bincount(strata)
    have, before = set(labeled), set(design.before)
    mask = np.array([item in have for item in design.ids])
    if design.prior:
        old = np.array([item in before for item in design.ids])
        drawn = np.bincount(strata[mask & ~old], minlength=len(sizes))
        free = np.bincount(strata[~old], minlength=len(sizes))
        prior = np.asarray(design.prior, dtype=np.float64)
        return np.asarray(prior + (1.0 - prior) * (drawn / np.maximum(free, 1))[strata])
    counts = np.bincount(strata[mask], minlength=len(sizes))
    bare = np.flatnonzero((counts == 0) & (sizes > 0))
    if len(bare):
        raise InputError(
            f"{len(bare)} of {len(sizes)} strata have no label yet ({int(sizes[bare].sum())} items would not be "
            "represented); fill in more of the sheet"
        )
    return np.asarray((counts / sizes)[strata], dtype=np.float64)
