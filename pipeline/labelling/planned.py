"""A plan at the desk: its sheets handed out, its looks taken, by the same steps whichever door labels came by."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from pipeline.errors import InputError
from pipeline.evaluation.plans.ledger import Ledger, Promise, Sheet, locked, read_ledger, write_ledger
from pipeline.evaluation.plans.order import with_imported
from pipeline.evaluation.plans.session import first_looks, hand_out, take_in
from pipeline.evaluation.plans.table_plans import TableLabels
from pipeline.evaluation.plans.words import look_lines, question
from pipeline.runs.directory import find_run
from pipeline.runs.label_plans import RunLabels
from pipeline.tables.column_roles import ColumnRoles


def open_planned(source: str, runs_dir: str, ledger: Ledger) -> Any:
    """The table or run as its plan sees it: a ``TableLabels`` or a ``RunLabels``.

    Raises:
        InputError: there is no such table or run.
    """
    promise = ledger.promised
    assert promise is not None
    if Path(source).is_file():
        stored = {name: value for name, value in promise.columns.items() if name != "shown"}
        return TableLabels(Path(source), ColumnRoles.from_dict(stored), promise.goal.models)
    return RunLabels(find_run(source, Path(runs_dir)), promise.goal.models)


@dataclass(frozen=True, slots=True)
class Taken:
    """What became of labels that came in.

    Attributes:
        ledger: after them.
        looked: whether that was a new look.
    """

    ledger: Ledger
    looked: bool


def take_labels(
    path: Path,
    reopen: Callable[[Ledger], Any],
    fill: Callable[[Any, Sequence[str]], tuple[Path, Any]],
    *,
    look: bool = True,
    peek: bool = False,
    follow: bool = True,
    finished: bool = False,
) -> Taken:
    """Take labels of the plan's sheets in, look, and keep them; what is refused changes no file.

    Args:
        path: of the ledger.
        reopen: the table or run under it.
        fill: (source, items that were handed out) → where its labels go, and the source with them.
        look, peek: as of :func:`take_in`.
        follow: whether the ledger goes to where the table is written.
        finished: whether every item of the sheets was seen, so that one without a label is left empty for good.

    Raises:
        InputError: labels out of order, or that cannot be used; another command works on the plan.
    """
    with locked(path):
        ledger = read_ledger(path)
        if ledger is None or ledger.promised is None:
            raise InputError(f"{path}: no plan is there any more")
        opened = reopen(ledger)
        ledger = first_looks(ledger, opened)
        looks = len(ledger.looks)
        handed = [item for sheet in ledger.sheets for item in sheet.items]
        target, fresh = fill(opened, handed)
        if finished:
            ledger = with_imported(ledger, handed)
        after = take_in(ledger, fresh, look=look, peek=peek)
        kept = fresh.keep(target)  # only now: an import that is refused changes no file
        write_ledger(path, after)
        if kept is None and not after.hidden and after.looks:
            fresh.seen()
        if follow and kept is not None and kept != path:
            write_ledger(kept, after)
    return Taken(after, len(after.looks) > looks)


@dataclass(frozen=True)
class PlanDesk:
    """The plan of a table or run that is labelled in the page.

    Attributes:
        path: of the ledger.
        reopen: the table or run under it.
        place: the table, which is written with its labels at each look, or the run.
    """

    path: Path
    reopen: Callable[[Ledger], Any]
    place: Path

    @property
    def ledger(self) -> Ledger:
        """As it is now.

        Raises:
            InputError: it is gone or damaged.
        """
        ledger = read_ledger(self.path)
        if ledger is None or ledger.promised is None:
            raise InputError(f"{self.path}: no plan is there any more")
        return ledger

    @staticmethod
    def waiting(ledger: Ledger) -> Sheet | None:
        """The sheet that is out."""
        return next((sheet for sheet in ledger.sheets if not sheet.imported), None)

    @cached_property
    def _promise(self) -> Promise:
        promise = self.ledger.promised
        assert promise is not None
        return promise

    @property
    def most(self) -> int:
        """Labels at most."""
        return self._promise.n_max

    def question(self) -> str:
        """What the plan asks, and at most how many labels."""
        return f"{question(self._promise.goal)} At most {self.most} labels."

    def begin(self) -> None:
        """Charge the labels that were there as a look, and hand out a first sheet."""
        with locked(self.path):
            ledger = self.ledger
            write_ledger(self.path, first_looks(ledger, self.reopen(ledger)))
        if self.waiting(ledger) is None and not ledger.sheets and ledger.state == "open":
            self.go_on()

    def go_on(self) -> None:
        """Hand the next sheet out.

        Raises:
            InputError: the plan has had its labels, or is closed.
        """
        with locked(self.path):
            ledger = self.ledger
            after, _ = hand_out(ledger, self.reopen(ledger))
            write_ledger(self.path, after)

    def look(self, gold: Callable[[Sequence[str]], Mapping[tuple[str, str], str]]) -> None:
        """Take the labels of all sheets that are out, and look.

        Args:
            gold: items → their labels in the store.
        """
        take_labels(
            self.path, self.reopen, lambda opened, handed: (self.place, opened.with_gold(gold(handed))), finished=True
        )

    def says(self) -> list[str]:
        """What the plan says after the last look; nothing before the first sheet came back."""
        ledger = self.ledger
        return look_lines(ledger) if any(sheet.imported for sheet in ledger.sheets) else []
