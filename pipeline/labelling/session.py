"""The session of one rater: which item is next, what was said of it, taken back or skipped, and what the plan says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

from pipeline.errors import InputError
from pipeline.evaluation.plans.ledger import now
from pipeline.evaluation.plans.order import order_of
from pipeline.labelling.asked import LONGEST_ANSWER, Asked, Gold, ItemToLabel, LabelSource
from pipeline.labelling.desk import Desk
from pipeline.labelling.planned import PlanDesk
from pipeline.tables.label_store import Label, Labels

Phase = Literal["label", "waiting", "look", "looked", "end"]
NO_REASON = "cannot tell"
"""Why an item was skipped where the rater gives no reason."""


class StaleError(InputError):
    """What came is about an item that is no longer in front of this rater: another tab, or another program, went on."""


@dataclass(frozen=True, slots=True)
class View:
    """What the page shows.

    Attributes:
        phase: label an item; wait for another rater; the sheet is full and can be looked at; a look was taken; the end.
        item: in phase ``label``.
        said: (unit, criterion) → what this rater said of the item until now.
        done, total: items of this rater's part.
        says: what the plan says, or what there is to do; lines.
        undo: whether there is a word to take back.
        more: whether the plan has further labels to ask for.
    """

    phase: Phase
    item: ItemToLabel | None
    said: dict[tuple[str, str], Label]
    done: int
    total: int
    says: tuple[str, ...] = ()
    undo: bool = False
    more: bool = False


class Session:
    """One rater at one desk; everything that counts is in the store and the ledger, so that a new one goes on there.

    Args:
        source: what is labelled.
        rater: who.
        desk: who else.
        plan: None without one.
    """

    def __init__(self, source: LabelSource, rater: str, desk: Desk, plan: PlanDesk | None = None) -> None:
        self.source, self.rater, self.desk, self.plan = source, rater, desk, plan
        self._asked: dict[str, tuple[Asked, ...]] = {}
        self._shown: ItemToLabel | None = None
        self._free: list[str] | None = None
        self._queue: list[str] = []
        self._place = 0
        desk.dealt((), rater)
        if plan is not None:
            plan.begin()
        self.view()

    # ---- what is next

    def view(self) -> View:
        """What is to be shown now; other programs' labels and looks are taken into account."""
        labels = self.source.store.read()
        ledger = None if self.plan is None else self.plan.ledger
        sheet = None if ledger is None else PlanDesk.waiting(ledger)
        if ledger is None:
            pool: Sequence[str] = self._unplanned(labels)
        else:
            pool = sheet.items if sheet is not None else ()
        queue = self.desk.dealt(pool, self.rater)
        if queue != self._queue:
            self._queue, self._place = queue, 0
        while self._place < len(queue) and self._done(queue[self._place], labels, self.rater):
            self._place += 1
        view = partial(View, done=self._place, total=len(queue), undo=self._last(labels) is not None)
        if self._place < len(queue):
            item = self._item(queue[self._place])
            words = {
                (asked.unit, asked.criterion): labels.words[asked.unit, asked.criterion, self.rater]
                for asked in item.asked
                if (asked.unit, asked.criterion, self.rater) in labels.words
            }
            return view("label", item, words)
        if self.plan is None or ledger is None:
            return view("end", None, {}, says=("Every item of yours is labelled or skipped.",))
        if sheet is None:
            going = ledger.state == "open"
            more = ledger.state in ("open", "decided") and len(ledger.labels) < self.plan.most
            return view("looked" if going and more else "end", None, {}, says=tuple(self.plan.says()), more=more)
        left = {name: self._open(sheet.items, labels, name) for name in self.desk.raters}
        if any(left.values()):
            who = ", ".join(f"{name}: {count}" for name, count in left.items() if count)
            return view("waiting", None, {}, says=(f"Your part is done. Still to be labelled by {who}.",))
        return view("look", None, {}, says=self._contradictions(sheet.items, labels))

    def _unplanned(self, labels: Labels) -> list[str]:
        """All items in their random order, without those that had labels before anybody came to this desk."""
        if self._free is None:
            about = {(unit, criterion) for unit, criterion, _ in labels.words}
            before = {
                name
                for name in self.source.labelled()
                if not any((asked.unit, asked.criterion) in about for asked in self._asked_of(name))
            }
            self._free = [name for name in order_of(self.source.ids, self.desk.seed) if name not in before]
        return self._free

    def _item(self, name: str) -> ItemToLabel:
        """An item, the last one kept: a response of a megabyte was read and hashed four times a key."""
        if self._shown is None or self._shown.name != name:
            self._shown = self.source.item(name)
            self._asked[name] = self._shown.asked
        return self._shown

    def _asked_of(self, name: str) -> tuple[Asked, ...]:
        return self._asked[name] if name in self._asked else self._item(name).asked

    def _done(self, name: str, labels: Labels, rater: str) -> bool:
        """Whether nothing is left to ask this rater about an item; without a deal, anybody's labels will do."""
        asked = self._asked_of(name)
        if all((one.unit, one.criterion, rater) in labels.words for one in asked):
            return True
        about = ((one.unit, one.criterion) for one in asked)
        return not self.desk.raters and all(key in labels.by_rater or key in labels.texts for key in about)

    def _open(self, items: Sequence[str], labels: Labels, rater: str) -> int:
        return sum(not self._done(name, labels, rater) for name in self.desk.dealt(items, rater))

    def _contradictions(self, items: Sequence[str], labels: Labels) -> tuple[str, ...]:
        mine = {(asked.unit, asked.criterion) for name in items for asked in self._asked_of(name)}
        count = len(mine & set(labels.contradictions()))
        return (f"Raters disagree on {count} answers; one of the two counts, drawn by lot.",) if count else ()

    # ---- what a rater does

    def say(self, unit: str, criterion: str, typed: str, note: str = "") -> None:
        """Keep an answer about the item that is shown; it is on disk when this returns. Said twice it counts once.

        Raises:
            StaleError: the item is not shown any more.
            InputError: no answer to this question, or one that cannot be used.
        """
        item = self.view().item
        asked = (
            None if item is None else next((a for a in item.asked if (a.unit, a.criterion) == (unit, criterion)), None)
        )
        if item is None or asked is None:
            raise StaleError("that item was answered already, here or in another tab; this is the next one")
        value = asked.read(typed)
        self.source.check(item, value)
        self.source.store.add([Label(unit, criterion, value, self.rater, now(), note=note[:LONGEST_ANSWER].strip())])

    def skip(self, key: str, reason: str, note: str = "") -> None:
        """Leave what is open of the item that is shown without an answer.

        Raises:
            StaleError: the item is not shown any more.
        """
        view = self.view()
        if view.item is None or view.item.key != key:
            raise StaleError("that item was answered already, here or in another tab; this is the next one")
        why, beside, at = reason.strip()[:LONGEST_ANSWER] or NO_REASON, note[:LONGEST_ANSWER].strip(), now()
        self.source.store.add(
            Label(asked.unit, asked.criterion, None, self.rater, at, skipped=why, note=beside)
            for asked in view.item.asked
            if (asked.unit, asked.criterion) not in view.said
        )

    def undo(self) -> None:
        """Take this rater's last word back, of a skipped item all of them; a look is not taken back.

        Raises:
            StaleError: there is nothing to take back.
        """
        labels = self.source.store.read()
        last = self._last(labels)
        if last is None:
            raise StaleError("nothing to take back: a look that was taken stays")
        name = self._name_of(last)
        about = {(asked.unit, asked.criterion) for asked in self._asked_of(name)} if last.skipped else {last.about}
        gone = [
            word
            for word in labels.words.values()
            if word.rater == self.rater and word.about in about and (word is last or word.skipped)
        ]
        self.source.store.add(Label(*word.about, None, self.rater, now()) for word in gone)
        self._place = 0

    def look(self) -> None:
        """Look, as the plan says it is done.

        Raises:
            StaleError: the sheet is not full, or the look was taken elsewhere.
        """
        if self.plan is None or self.view().phase != "look":
            raise StaleError("there is nothing to look at now")
        self.plan.look(self.gold)

    def go_on(self) -> None:
        """Take the plan's next items.

        Raises:
            StaleError: there are none, or they are out already.
        """
        if self.plan is None or not self.view().more:
            raise StaleError("the plan asks for no more labels now")
        self.plan.go_on()

    def gold(self, items: Sequence[str]) -> Gold:
        """What the store says of items."""
        return self.source.gold(items, self.source.store.read())

    def counted(self) -> tuple[int, int]:
        """Answers and skipped questions of this rater."""
        words = [word for word in self.source.store.read().words.values() if word.rater == self.rater]
        return sum(not word.skipped for word in words), sum(bool(word.skipped) for word in words)

    def _last(self, labels: Labels) -> Label | None:
        """The last word of this rater on an item of the queue up to where it is; looked-at sheets are no part of it."""
        mine = {
            (asked.unit, asked.criterion) for name in self._queue[: self._place + 1] for asked in self._asked_of(name)
        }
        return next(
            (w for w in reversed(list(labels.words.values())) if w.rater == self.rater and w.about in mine), None
        )

    def _name_of(self, word: Label) -> str:
        return next(
            name
            for name in self._queue[: self._place + 1]
            if any((asked.unit, asked.criterion) == word.about for asked in self._asked_of(name))
        )
