"""People rate a run's responses: sheets out, ratings back into its store of labels, and from there into its tables."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from pipeline.benchmark.given import Criterion
from pipeline.collection.stages import rated_criteria
from pipeline.config import RunConfig
from pipeline.errors import InputError
from pipeline.estimators.labels.strata import Pilot
from pipeline.evaluation.document import EstimateSet, Warned
from pipeline.evaluation.label_draw import draw_labels
from pipeline.evaluation.methods import leading
from pipeline.evaluation.rater_errors import (
    RaterErrors,
    correction_told,
    measured_errors,
    parse_errors,
    without_errors,
)
from pipeline.evaluation.rating_sheets import (
    RatedUnit,
    RaterAgreement,
    adjudication_sheet,
    agreements,
    deal,
    read_rating_sheet,
    read_sheet_design,
    write_rating_sheet,
)
from pipeline.foreign_json import read_json
from pipeline.runs.directory import RunDirectory, write_atomically
from pipeline.runs.frames import RunTables
from pipeline.runs.manifest import Manifest
from pipeline.tables.label_store import Label, Labels, LabelStore, label_unit
from pipeline.tables.schemas import RATINGS, TABLES, items_schema
from pipeline.tables.store import read_table, write_frame, write_rows

ERRORS_FILE = "rater_errors.json"
"""How often raters err, where an import said so."""
STORE_FILE = "labels.jsonl"
"""The store of labels in a run directory."""
_MAX_CHOICES = 26
_RATERS = re.compile(r"\w[\w .-]{0,39}")


@dataclass(frozen=True, slots=True)
class RatingSheets:
    """Sheets that were written.

    Attributes:
        files: one a rater.
        items, responses: how many were drawn.
        twice: responses that stand on two sheets.
    """

    files: tuple[Path, ...]
    items: int
    responses: int
    twice: int


@dataclass(frozen=True, slots=True)
class TakenRatings:
    """What an import did.

    Attributes:
        estimates: the run's, with the ratings.
        added: ratings that were not there before.
        agreements: of every two raters, by criterion.
        notes: one line each.
    """

    estimates: EstimateSet
    added: int
    agreements: tuple[RaterAgreement, ...]
    notes: tuple[str, ...]


def question_shown(row: Mapping[str, Any]) -> str:
    """A row of the items table as a person reads it: the question, and its choices by letter."""
    choices = row["choices"] or []
    return "\n".join([str(row["question"]), *(f"{letter(k)}. {choice}" for k, choice in enumerate(choices))])


def letter(position: int) -> str:
    """What a choice is called: A, B, …, then numbers."""
    return chr(ord("A") + position) if position < _MAX_CHOICES else str(position + 1)


def run_labels_store(directory: RunDirectory) -> LabelStore:
    """Where the ratings of a run are kept."""
    return LabelStore(directory.path / STORE_FILE)


class RunUnits:
    """What people rate of a run: every response that has a text, made when it is asked for.

    Attributes:
        criteria: what is asked of each. ids: items with a response, sorted.
    """

    def __init__(self, directory: RunDirectory, config: RunConfig) -> None:
        self.criteria = rated_criteria(config)
        self._directory, self._config = directory, config
        self._items = {row["item_id"]: row for row in read_table(directory.tables, "items").iter_rows(named=True)}
        self._given = _given(directory)
        some = _answers(config) & (pl.col("text").str.len_bytes() > 0)
        self._texts = read_table(directory.tables, "responses").filter(some).select("item_id", "model", "text")
        self._rows: dict[str, list[tuple[str, int]]] = {}
        for row, (item, target) in enumerate(self._texts.select("item_id", "model").iter_rows()):
            self._rows.setdefault(item, []).append((target, row))
        self.ids = sorted(self._rows)

    def of(self, item: str) -> dict[str, RatedUnit]:
        """Target → what a person rates of it, by target."""
        question, units = question_shown(self._items[item]), {}
        for target, row in sorted(self._rows[item]):
            text = self._texts["text"][row]
            context, reference = self._given.get((item, target), ("", ""))
            units[target] = RatedUnit(label_unit(question, text, context), question, text, context, reference)
        return units

    def rated(self) -> set[str]:
        """Items with a response that carries a rating by the first criterion."""
        return _rated_items(self._directory, self._config)


def run_units(directory: RunDirectory, config: RunConfig) -> dict[tuple[str, str], RatedUnit]:
    """(item, target) → what a person rates, for every response that has a text; sorted."""
    units = RunUnits(directory, config)
    return {(item, target): unit for item in units.ids for target, unit in units.of(item).items()}


def _answers(config: RunConfig) -> pl.Expr:
    targets = pl.col("model").is_in(list(config.roles.targets))
    return (pl.col("stage") == "answer") & (pl.col("draw") == 0) & targets


def _given(directory: RunDirectory) -> dict[tuple[str, str], tuple[str, str]]:
    """(item, target) → context and reference of the file."""
    frame = RunTables(directory.tables).given
    rows = () if frame is None else frame.select("item_id", "target", "context", "reference").iter_rows()
    return {(item, target): (context or "", reference or "") for item, target, context, reference in rows}


def export_ratings(
    directory: RunDirectory,
    sheet: Path,
    labels: int | None = None,
    *,
    raters: str = "1",
    overlap: float = 0.0,
    seed: int = 0,
) -> RatingSheets:
    """Draw items none of whose responses is rated yet, and write the sheets that ask people to rate them, blind.

    Args:
        directory: a finished run.
        sheet: the file; with several raters each gets one of its own, named by rater.
        labels: how many items; None means 50 or all that are left. Every target's response to an item is asked for.
        raters: how many, or their names with commas.
        overlap: share of the responses that two people rate.
        seed: of the draw, the deal and the orders.

    Raises:
        InputError: nothing is left, a sheet exists, raters or overlap make no sense.
    """
    config = directory.config()
    criteria, units = rated_criteria(config), run_units(directory, config)
    names = _raters(raters)
    rated = {about[0] for about in run_labels_store(directory).read().by_rater if about[1] == criteria[0].name}
    before = _rated_items(directory, config) | {item for (item, _), unit in units.items() if unit.unit in rated}
    ids = sorted({item for item, _ in units})
    y = np.array([1.0 if item in before else np.nan for item in ids])
    design = draw_labels(ids, labels, [Pilot(y, np.zeros((len(ids), 1)))], seed=seed, source=directory.path.name)
    drawn = set(design.drawn)
    wanted = {unit.unit: unit for (item, _), unit in units.items() if item in drawn}
    dealt = deal(list(wanted.values()), names, overlap, seed)
    files = [sheet] if len(names) == 1 else [sheet.with_name(f"{sheet.stem}-{name}{sheet.suffix}") for name in names]
    taken = next((file for file in files if file.exists()), None)
    if taken is not None:
        raise InputError(f"{taken} exists and may hold ratings; choose another name or remove it")
    for file, (rater, rows) in zip(files, dealt.items(), strict=True):
        write_rating_sheet(file, rows, criteria, source=directory.path.name, rater=rater)
    twice = sum(map(len, dealt.values())) - len(wanted)
    return RatingSheets(tuple(files), len(drawn), len(wanted), twice)


def _raters(text: str) -> tuple[str, ...]:
    names = tuple(str(k + 1) for k in range(int(text))) if text.isdecimal() and 0 < int(text) < 10 else ()
    names = names or tuple(part.strip() for part in text.split(","))
    if len(set(names)) < len(names) or not all(_RATERS.fullmatch(name) and name != "adjudicator" for name in names):
        raise InputError(f"--raters {text[:40]}: how many (1 to 9), or their names with commas, each once")
    if len(names) == 1 and text.isdecimal() and names[0] != "1":
        raise InputError(f"--raters {text[:40]}: 1 to 9")
    return names


def _rated_items(directory: RunDirectory, config: RunConfig) -> set[str]:
    """Items with a response that carries a rating by the first criterion."""
    phi = read_table(directory.tables, "responses").filter(_answers(config) & pl.col("phi").is_not_null())
    return set(phi["item_id"].to_list())


def import_ratings(directory: RunDirectory, sheets: Sequence[Path], *, errors: str | None = None) -> TakenRatings:
    """Check filled sheets, keep their ratings with the run, and estimate again; nothing is asked, or kept of bad input.

    Without a sheet: estimate with the ratings that are kept already, from a page.

    What two people disagree on goes to a sheet beside the first, to be settled by a third look; until then the rating
    of one of the two, drawn by lot, counts.

    Args:
        directory: the run.
        sheets: filled.
        errors: ``measured`` or ``SENSITIVITY,SPECIFICITY`` of a yes-or-no rater, to be taken out beside the estimates.

    Raises:
        InputError: a sheet of another run, rows or cells that cannot be used; they are named.
    """
    from pipeline.runs.finish import finish_run

    config = directory.config()
    criteria, units = rated_criteria(config), run_units(directory, config)
    by_unit = {unit.unit: unit for unit in units.values()}
    at, taken = datetime.now(UTC).isoformat(timespec="seconds"), []
    for sheet in sheets:
        design = read_sheet_design(sheet)
        if not set(design.units.values()) <= set(by_unit) or not set(design.criteria) <= {c.name for c in criteria}:
            raise InputError(
                f"{sheet} was drawn from the run {design.source!r}, whose responses are not those of {directory.path}"
            )
        ratings = read_rating_sheet(sheet, design, criteria)
        taken += [Label(*about, value, design.rater, at) for about, value in ratings.items()]
    store = run_labels_store(directory)
    if errors is not None and (criteria[0].worst, criteria[0].best) != (0.0, 1.0):
        raise InputError(f"--rater-errors is for yes or no; {criteria[0].name} has the scale {criteria[0].asked}")
    told = None if errors in (None, "measured") else parse_errors(str(errors))
    with directory.locked():
        added = store.add(taken)
        if errors is not None:
            try:
                told = told or measured_errors(store.read(), criteria[0].name)
            except InputError:  # the ratings are good, and stay
                finish_run(directory, config, Manifest(directory))
                raise
            write_atomically(directory.path / ERRORS_FILE, json.dumps({"schema": 1, **asdict(told)}) + "\n")
        estimates = finish_run(directory, config, Manifest(directory))
    labels = store.read()
    agreed = tuple(agreements(labels, criteria))
    notes = [entry.told for entry in agreed]
    first = sheets[0] if sheets else directory.path / "ratings.csv"
    notes += _settling(labels, first, by_unit, criteria, directory.path.name)
    return TakenRatings(estimates, added, agreed, tuple(notes))


def _settling(
    labels: Labels,
    first: Path,
    units: Mapping[str, RatedUnit],
    criteria: Sequence[Criterion],
    source: str,
) -> list[str]:
    """What raters disagree on, and the sheet that settles it."""
    open_ = [about for about in labels.contradictions() if about[0] in units]
    if not open_:
        return []
    listed = "; ".join(
        f"{units[unit].row} {name}: "
        + " / ".join(f"{value:g}" for _, value in sorted(labels.by_rater[unit, name].items()))
        for unit, name in open_[:5]
    )
    more = f"; and {len(open_) - 5} more" if len(open_) > 5 else ""
    sheet = first.with_name(f"{first.stem}-adjudicate{first.suffix}")
    where = f"{sheet} is there already: fill it in, or remove it for a new one"
    if not sheet.exists():
        adjudication_sheet(sheet, labels, units, criteria, source)
        where = f"{sheet} asks for them: fill it in and import it; what it says wins"
    return [
        f"raters disagree on {len(open_)} ratings ({listed}{more}); until they are settled one of the two counts, drawn"
        f" by lot: {where}"
    ]


def rater_warnings(directory: RunDirectory, config: RunConfig, estimates: EstimateSet) -> tuple[Warned, ...]:
    """What the rates are without the rater's errors, where an import asked for it.

    Raises:
        InputError: the file of the errors is damaged.
    """
    path = directory.path / ERRORS_FILE
    try:
        data = read_json(path.read_text(encoding="utf-8"))
        errors = RaterErrors(**{name: value for name, value in data.items() if name != "schema"})
    except FileNotFoundError:
        return ()
    except (ValueError, TypeError, AttributeError) as error:
        raise InputError(f"{path} is damaged ({type(error).__name__}); import with --rater-errors again") from None
    labels, name = run_labels_store(directory).read(), rated_criteria(config)[0].name
    open_ = any(about[1] == name for about in labels.contradictions())
    twice = {about[0] for about, ratings in labels.by_rater.items() if about[1] == name and len(ratings) > 1}
    shares: dict[str, list[bool]] = {}
    answers = read_table(directory.tables, "responses").filter(_answers(config) & pl.col("phi").is_not_null())
    units = run_units(directory, config)
    for item, target in answers.select("item_id", "model").iter_rows():
        shares.setdefault(target, []).append(
            not open_ and (item, target) in units and units[item, target].unit in twice
        )
    rates = {}
    for target, by_method in estimates.items():
        rate = leading(by_method)
        if rate is not None and target in shares:
            rates[target] = (rate, without_errors(rate, errors, float(np.mean(shares[target]))))
    return (Warned("rater_errors", correction_told(rates, errors)),) if rates else ()


def apply_stored_ratings(directory: RunDirectory, config: RunConfig, manifest: Manifest) -> None:
    """Put imported ratings into the tables: ratings, φ of the answers, and which items are labeled."""
    settled = run_labels_store(directory).read().settled()
    if not settled:
        return
    criteria, units = rated_criteria(config), run_units(directory, config)
    first = next(iter(config.benchmark.fields.gold_columns), criteria[0].name)
    before = RunTables(directory.tables).ratings
    rows: dict[tuple[str, str, str], float] = {}
    if before is not None:
        rows = {(row[0], row[1], row[2]): row[3] for row in before.select(list(RATINGS.columns)).iter_rows()}
    phi: dict[tuple[str, str], float] = {}
    for (item, target), unit in units.items():
        for place, part in enumerate(criteria):
            rating = settled.get((unit.unit, part.name))
            if rating is not None:
                rows[item, target, first if place == 0 else part.name] = rating
                phi |= {(item, target): rating} if place == 0 else {}
    write_rows(directory.tables, RATINGS, (dict(zip(RATINGS.columns, (*k, v), strict=True)) for k, v in rows.items()))
    if not phi:
        return
    _write_outcomes(directory, config, phi, manifest.values.get("benchmark", {}).get("profile_kind"))


def _write_outcomes(
    directory: RunDirectory, config: RunConfig, phi: Mapping[tuple[str, str], float], kind: Any
) -> None:
    responses = read_table(directory.tables, "responses")
    rated = pl.DataFrame(
        [(item, target, value) for (item, target), value in phi.items()],
        schema={"item_id": pl.String, "model": pl.String, "rated": pl.Float64}, orient="row",
    )  # fmt: skip
    joined = responses.join(rated, on=["item_id", "model"], how="left", maintain_order="left")
    mine = _answers(config) & pl.col("rated").is_not_null()
    joined = joined.with_columns(
        pl.when(mine).then("rated").otherwise("phi").alias("phi"),
        pl.when(mine).then(None).otherwise("phi_reason").alias("phi_reason"),
    )
    write_frame(directory.tables, TABLES["responses"], joined.drop("rated"))
    items = read_table(directory.tables, "items")
    labeled = pl.col("labeled") | pl.col("item_id").is_in(rated["item_id"].implode())
    write_frame(directory.tables, items_schema(kind), items.with_columns(labeled.alias("labeled")))
