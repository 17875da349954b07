"""The ledger of a label plan: what was promised before the first label, and every look since, as one JSON file."""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from filelock import FileLock, Timeout

from pipeline.errors import InputError
from pipeline.foreign_json import read_json

SCHEMA = 1
PATIENCE = 2.0
"""Seconds to wait for another command on the same plan; two raters may look at once."""
State = Literal["open", "decided", "exhausted", "closed"]


@dataclass(frozen=True, slots=True)
class Goal:
    """What shall be decided.

    Attributes:
        kind: ``width`` (a mean to ±half_width), ``gap`` (two models), ``top`` (the best of several).
        half_width: w of a width plan. question: superior, noninferior or equivalent, of a gap plan.
        margin: δ ≥ 0. models: of the goal, a before b; empty for all of the source.
    """

    kind: Literal["width", "gap", "top"]
    half_width: float | None = None
    question: Literal["superior", "noninferior", "equivalent"] | None = None
    margin: float = 0.0
    models: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Promise:
    """What was declared before the first label; a change of any field is another plan.

    Attributes:
        goal: what shall be decided.
        target: about what.
        items: M, the size of the pool.
        alpha: two-sided error over all looks.
        spending: how it is spent.
        n_max: at most so many labeled items.
        first: labels before which nothing is shown.
        sheet: items of one sheet.
        blind: whether numbers stay hidden until the width is reached.
        design: uniform, or auto (strata from the second sheet on where they pay).
        columns: of a table, as ``ColumnRoles`` stores them.
        order_seed: of the order of items.
        labels_before: labels that were there.
        items_sha256: of the ids of the pool.
        estimator: which rule estimates from which signals.
        excluded: items labeled before that serve for planning only.
    """

    goal: Goal
    target: Literal["population", "pool"]
    items: int
    alpha: float
    spending: str
    n_max: int
    first: int
    sheet: int
    blind: bool
    design: Literal["uniform", "auto"]
    columns: Mapping[str, Any]
    order_seed: int
    labels_before: int
    items_sha256: str
    estimator: Mapping[str, Any]
    excluded: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        """First 12 hex digits of the SHA-256 of what was promised."""
        text = json.dumps(_plain(asdict(self)), sort_keys=True, ensure_ascii=True, allow_nan=False)
        return hashlib.sha256(text.encode()).hexdigest()[:12]


@dataclass(frozen=True, slots=True)
class StatisticEntry:
    """One number at one look.

    Attributes:
        name: a model, or a pair.
        value: the estimate.
        variance: its variance.
        df: degrees of freedom.
        naive: the labels' own mean.
        binary: whether it is a share.
        low: lower end of the interval at this look's critical value, −∞ where nothing can be decided.
        high: upper end of the same.
        low_all: lower end of what all looks together leave of it.
        high_all: upper end of the same.
    """

    name: str
    value: float
    variance: float
    df: float
    naive: float | None
    binary: bool
    low: float
    high: float
    low_all: float
    high_all: float


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a look says.

    Attributes:
        decided: whether that ends the question.
        says: in words.
        contradiction: whether two looks exclude each other, which has chance ≤ α.
    """

    decided: bool
    says: str
    contradiction: bool = False


@dataclass(frozen=True, slots=True)
class Look:
    """One look: a new number of labels.

    Attributes:
        look: its number.
        n: labeled items.
        at: when.
        information: of these labels; infinite where their variance is 0.
        t: time in the plan, in [0, 1].
        spent: error spent until now.
        critical: its critical value; ∞ where it can decide nothing.
        labels_sha256: of the labels.
        amended: labels that were corrected since the look before.
        skipped: items of earlier sheets that were left empty.
        estimates: empty while a plan is blind.
        verdict: what it says.
        state: of the plan after it.
        half_width: what a width plan has reached.
    """

    look: int
    n: int
    at: str
    information: float = 0.0
    t: float = 0.0
    spent: float = 0.0
    critical: float = math.inf
    labels_sha256: str = ""
    amended: int = 0
    skipped: int = 0
    estimates: tuple[StatisticEntry, ...] = ()
    verdict: Verdict = Verdict(False, "go on")
    state: State = "open"
    half_width: float | None = None


@dataclass(frozen=True, slots=True)
class Sheet:
    """One sheet that was handed out.

    Attributes:
        items: in the plan's order. imported: whether labels of it came back.
        strata: stratum of every item of the pool that was free then, sorted by id; empty for a uniform draw.
    """

    items: tuple[str, ...]
    imported: bool = False
    strata: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Ledger:
    """Everything that happened.

    Attributes:
        promised: the plan; None where looks are only counted.
        state: of the plan. declared: when. software: which version wrote it. opened: look from which a blind plan
            shows its numbers, or None.
        looks, sheets: so far. labels: item → digest of its label, to see corrections.
    """

    promised: Promise | None = None
    state: State = "open"
    declared: str = ""
    software: str = ""
    looks: tuple[Look, ...] = ()
    sheets: tuple[Sheet, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    opened: int | None = None

    @property
    def kind(self) -> str:
        """``label-plan``, or ``looks`` where nothing was promised."""
        return "looks" if self.promised is None else "label-plan"

    @property
    def hidden(self) -> bool:
        """Whether numbers may not be shown: a blind plan before its end that nobody has opened."""
        return self.promised is not None and self.promised.blind and self.opened is None and self.state == "open"

    @property
    def first_decision(self) -> Look | None:
        """The look that decided, if one has."""
        return next((look for look in self.looks if look.verdict.decided), None)

    def forgotten(self) -> Ledger:
        """The same looks without the plan: they stay counted."""
        return replace(self, promised=None, state="open", opened=None)


def now() -> str:
    """UTC, to the second."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def ledger_of_table(table: Path) -> Path:
    """Where the ledger of a table is kept."""
    return table.with_name(table.name + ".plan.json")


# ---- the file


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): _plain(entry) for key, entry in value.items()}
    return [_plain(entry) for entry in value] if isinstance(value, list | tuple) else value


def document_of(ledger: Ledger) -> dict[str, Any]:
    """The ledger as its file holds it."""
    plain = _plain(asdict(ledger))
    head = {"schema": SCHEMA, "kind": ledger.kind, "id": ledger.promised.id if ledger.promised else None}
    return {**head, "state": plain.pop("state"), "promised": plain.pop("promised"), **plain}


def write_ledger(path: Path, ledger: Ledger) -> None:
    """Replace the file in one step.

    Raises:
        InputError: it cannot be written.
    """
    text = json.dumps(document_of(ledger), indent=1, ensure_ascii=True, allow_nan=False) + "\n"
    draft = path.with_name(path.name + ".draft")
    try:
        with draft.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror or error}") from error


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Nobody else changes the ledger meanwhile; the lock goes with its holder, however that ends.

    Raises:
        InputError: someone does.
    """
    lock = FileLock(f"{path}.lock", timeout=PATIENCE)
    try:
        lock.acquire()
    except Timeout:
        raise InputError(f"{path}: another command works on this plan; try again when it is done") from None
    except OSError as error:
        raise InputError(f"{lock.lock_file} cannot be written: {error.strerror or error}") from error
    try:
        yield
    finally:
        lock.release()


def read_ledger(path: Path) -> Ledger | None:
    """The ledger, or None where there is none.

    Raises:
        InputError: damaged, newer, or its promise was changed.
    """
    try:
        data = read_json(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise InputError(f"{path} is damaged ({error})") from error
    try:
        if data["schema"] > SCHEMA:
            raise InputError(f"{path} was written by a newer version; upgrade auxeval")
        ledger = _ledger(data)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"{path} is damaged ({type(error).__name__}: {error})") from error
    if ledger.promised is not None and ledger.promised.id != data["id"]:
        raise InputError(
            f"{path}: the promise was changed after it was made ({data['id']} is now {ledger.promised.id}); a changed "
            "promise is another plan: restore it, or go on without it (--forget-plan)"
        )
    return ledger


def _ledger(data: Mapping[str, Any]) -> Ledger:
    promised = data["promised"]
    if promised is not None:
        goal = Goal(**{**promised["goal"], "models": tuple(promised["goal"]["models"])})
        promised = Promise(**{**promised, "goal": goal, "excluded": tuple(promised.get("excluded", ()))})
    return Ledger(
        promised, data["state"], data["declared"], data["software"], tuple(_look(entry) for entry in data["looks"]),
        tuple(Sheet(tuple(s["items"]), s["imported"], dict(s["strata"])) for s in data["sheets"]),
        dict(data["labels"]), data["opened"],
    )  # fmt: skip


def _look(entry: Mapping[str, Any]) -> Look:
    estimates = tuple(
        StatisticEntry(**{
            **row, "df": _or(row["df"], math.inf), "low": _or(row["low"], -math.inf),
            "high": _or(row["high"], math.inf), "low_all": _or(row["low_all"], -math.inf),
            "high_all": _or(row["high_all"], math.inf),
        })
        for row in entry["estimates"]
    )  # fmt: skip
    fixed = {
        "critical": _or(entry["critical"], math.inf), "information": _or(entry["information"], math.inf),
        "estimates": estimates, "verdict": Verdict(**entry["verdict"]),
    }  # fmt: skip
    return Look(**{**entry, **fixed})


def _or(value: float | None, instead: float) -> float:
    return instead if value is None else float(value)
