"""Which item next: the plan's order, its sheets, strata where they pay, and how the labels so far were drawn."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from pipeline.errors import InputError
from pipeline.estimators import Sampling
from pipeline.estimators.labels.planning import neyman_allocation
from pipeline.estimators.labels.strata import Pilot, residual_strata
from pipeline.estimators.sampling import Round
from pipeline.evaluation.label_draw import permanent_number
from pipeline.evaluation.plans.ledger import Ledger, Sheet

LEAST_PILOT, STRATA, LEAST_GAIN = 30, 5, 1.06
"""Labels, strata and predicted gain from which a sheet is drawn by strata."""


def order_of(ids: Iterable[str], seed: int) -> list[str]:
    """The items by their permanent random numbers."""
    return sorted(ids, key=permanent_number(seed))


def items_digest(ids: Iterable[str]) -> str:
    """SHA-256 of the pool's ids, whatever their order."""
    return hashlib.sha256("\n".join(sorted(ids)).encode("utf-8", "backslashreplace")).hexdigest()


@dataclass(frozen=True, slots=True)
class NextSheet:
    """The items of the next sheet, in order.

    Attributes:
        sheet: as the ledger keeps it. reason: how it was drawn and why, one line; "" where nothing was weighed.
        again: whether it is a sheet that was handed out already and never came back.
    """

    sheet: Sheet
    reason: str = ""
    again: bool = False


def next_sheet(
    ledger: Ledger, ids: Sequence[str], labeled: frozenset[str], count: int, pilots: Sequence[Pilot]
) -> NextSheet:
    """The next ``count`` items that are neither labeled nor skipped.

    Args:
        ledger: with a plan.
        ids: the pool, sorted.
        labeled: items with a label.
        count: wanted.
        pilots: outcomes and signals on ``ids``, for strata; empty draws uniformly.

    Raises:
        InputError: nothing is left.
    """
    promise = ledger.promised
    assert promise is not None
    waiting = next((sheet for sheet in ledger.sheets if not sheet.imported), None)
    if waiting is not None:
        return NextSheet(waiting, "this sheet was handed out before and has not come back", again=True)
    gone = {item for sheet in ledger.sheets for item in sheet.items} | labeled | set(promise.excluded)
    free = [item for item in order_of(ids, promise.order_seed) if item not in gone]
    if not free:
        raise InputError("every item is labeled, or was in a sheet and left empty")
    count = min(count, len(free))
    if promise.design == "uniform" or not ledger.sheets or not pilots or len(labeled) < LEAST_PILOT:
        return NextSheet(Sheet(tuple(free[:count])))
    return _by_strata(ids, free, count, pilots)


def _by_strata(ids: Sequence[str], free: Sequence[str], count: int, pilots: Sequence[Pilot]) -> NextSheet:
    groups = residual_strata(pilots, groups=STRATA)
    weight = groups.sizes / groups.sizes.sum()
    gain = float(weight @ groups.deviations**2) / max(float(weight @ groups.deviations) ** 2, 1e-300)
    stratum = dict(zip(ids, groups.strata.tolist(), strict=True))
    left = np.bincount([stratum[item] for item in free], minlength=len(groups.sizes))
    there = np.flatnonzero(left)
    if gain < LEAST_GAIN or int(np.minimum(left[there], 2).sum()) > count:
        return NextSheet(Sheet(tuple(free[:count])), f"uniform: strata would gain {100 * (gain - 1):.0f} %")
    allocation = dict(
        zip(there.tolist(), neyman_allocation(left[there], groups.deviations[there], count).tolist(), strict=True)
    )
    drawn = []
    for item in free:  # the permanent number orders the items inside each stratum
        if allocation[stratum[item]] > 0:
            allocation[stratum[item]] -= 1
            drawn.append(item)
    sheet = Sheet(tuple(drawn), strata={item: int(stratum[item]) for item in sorted(free)})
    return NextSheet(sheet, f"stratified: predicted {gain:.2f} × the labels")


def skipped_items(ledger: Ledger, labeled: frozenset[str]) -> list[str]:
    """Items of sheets that came back that were left empty."""
    return [item for sheet in ledger.sheets if sheet.imported for item in sheet.items if item not in labeled]


def check_order(ledger: Ledger, ids: Sequence[str], labeled: frozenset[str], before: frozenset[str]) -> None:
    """Refuse labels that are not next in the plan's order: a chosen label is no random one.

    Args:
        ledger: with a plan.
        ids: the pool.
        labeled: items with a label now; before: those that had one when the plan was declared.

    Raises:
        InputError: labels out of order, or fewer than at the last look.
    """
    promise = ledger.promised
    assert promise is not None
    if ledger.looks and len(labeled) < ledger.looks[-1].n:
        raise InputError(
            f"{len(labeled)} labels are fewer than the {ledger.looks[-1].n} of look {len(ledger.looks)}; "
            "a label that was seen stays: put it back"
        )
    sheets = {item for sheet in ledger.sheets for item in sheet.items}
    new = labeled - before - sheets - set(promise.excluded)
    if not new:
        return
    rest = [item for item in order_of(ids, promise.order_seed) if item not in before | sheets | set(promise.excluded)]
    chosen = new - set(rest[: len(new)])
    if chosen:
        raise InputError(
            f"{len(chosen)} labels are not next in the plan's order (first {min(chosen)!r}); a chosen label is no "
            "random one: take the items from auxeval labels next, or go on without the plan (--forget-plan)"
        )


def sampling_of(ledger: Ledger, ids: NDArray[np.str_], labeled: NDArray[np.bool_]) -> Sampling | None:
    """How the labels of a plan were drawn, where some sheet was stratified; None for one simple random draw.

    Args:
        ledger: with a plan.
        ids: (M,) items of one target.
        labeled: (M,) which have a label.
    """
    if not any(sheet.strata for sheet in ledger.sheets):
        return None
    names = ids.tolist()
    later: list[tuple[set[str], Mapping[str, int]]] = []
    for sheet in ledger.sheets:
        if sheet.strata or later:
            later.append((set(sheet.items), sheet.strata))
    in_later: set[str] = set().union(*(items for items, _ in later))
    rounds = [Round(labeled & np.array([item not in in_later for item in names]))]
    for items, strata in later:
        drawn = labeled & np.array([item in items for item in names])
        if drawn.any():
            kinds = np.array([strata.get(item, -1) for item in names]) if strata else None
            rounds.append(Round(drawn, kinds))
    return Sampling(tuple(rounds))


def with_sheet(ledger: Ledger, sheet: Sheet) -> Ledger:
    """The ledger with one more sheet handed out."""
    return replace(ledger, sheets=(*ledger.sheets, sheet))


def with_imported(ledger: Ledger, items: Iterable[str]) -> Ledger:
    """The ledger with the sheets marked of which labels came back."""
    back = set(items)
    return replace(
        ledger,
        sheets=tuple(
            replace(sheet, imported=True) if not sheet.imported and back & set(sheet.items) else sheet
            for sheet in ledger.sheets
        ),
    )
