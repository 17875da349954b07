"""What a ledger beside a table or run means to everyone who prints its numbers: blind, or looked at how often."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from pipeline.errors import InputError
from pipeline.evaluation.options import Options
from pipeline.evaluation.plans.ledger import Ledger, Look, ledger_of_table, locked, now, read_ledger, write_ledger
from pipeline.evaluation.plans.order import sampling_of
from pipeline.evaluation.pool import Pool, TargetPool

RUN_LEDGER = "label_plan.json"


def ledger_beside(source: Path) -> Path:
    """Where the ledger of a run directory, of a table of a run, or of any other table is kept."""
    if source.is_dir():
        return source / RUN_LEDGER
    of_run = source.parent.parent / RUN_LEDGER
    return of_run if source.parent.name == "tables" and of_run.is_file() else ledger_of_table(source)


def ledger_at_door(source: Path, *, forget: bool = False) -> Ledger | None:
    """The ledger beside a source whose numbers somebody is about to see; None where there is none.

    Every command that prints or writes an estimate of a table or run asks here first: a blind plan that one command
    keeps and another tells is not blind.

    Args:
        source: a run directory or a table.
        forget: the numbers are wanted although a blind plan hides them.

    Raises:
        InputError: a blind plan hides them; the ledger is damaged.
    """
    ledger = read_ledger(ledger_beside(source))
    if ledger is not None and ledger.hidden and not forget:
        assert ledger.promised is not None
        raise InputError(
            f"{source}: plan {ledger.promised.id} is blind: its numbers are shown when they are precise enough, or at "
            "its end; auxeval labels import … --peek opens it for good, --forget-plan goes on without it"
        )
    return ledger


def at_door(ledger: Ledger | None, pool: Pool, options: Options) -> tuple[Pool, Options]:
    """The pool with the draw of the plan's sheets, and the options with the looks until now.

    Args:
        ledger: beside the source, or None.
        pool: with all labels. options: as chosen.

    Returns:
        Both unchanged where there is no ledger.
    """
    if ledger is None or not pool.targets:
        return pool, options
    if any(sheet.strata for sheet in ledger.sheets):
        pool = replace(pool, targets=tuple(_as_drawn(ledger, target) for target in pool.targets))
    n = max(target.n for target in pool.targets)
    return pool, replace(options, looks=looks_until(ledger, n), plan=_said_by(ledger))


def _said_by(ledger: Ledger) -> str:
    if ledger.promised is None or ledger.hidden or not (ledger.looks or ledger.sheets):
        return ""
    # Imported where a plan is: the forecast brings scipy.optimize, which estimate starts without.
    from pipeline.evaluation.plans.words import look_lines

    lines = [line for line in look_lines(ledger) if not line.startswith("  ")]
    return f"Plan {ledger.promised.id}: {lines[-1]}"


def looks_until(ledger: Ledger | None, n: int) -> tuple[int, ...]:
    """Numbers of labels that were looked at, n last; empty where nothing was counted."""
    if ledger is None:
        return ()
    return tuple(sorted({*(look.n for look in ledger.looks), n}))


def _as_drawn(ledger: Ledger, target: TargetPool) -> TargetPool:
    if target.ids is None or target.drawn == "known":
        return target
    sampling = sampling_of(ledger, target.ids, target.labeled)
    return target if sampling is None else replace(target, sampling=sampling, drawn="known")


def count_look(path: Path, before: int, n: int, to: Path | None = None) -> Ledger:
    """Count a look at n labels without a plan, in the file; the same number of labels again is none.

    Labels that were there before the first counted one are a look too: their estimates could be seen.

    Args:
        path: of the ledger, which need not be there.
        before: labels of a target before these came.
        n: labels now.
        to: where the table with these labels has its ledger, if elsewhere: the other one keeps its own count.
    """
    with locked(path):
        ledger = read_ledger(path) or Ledger(declared=now())
        sizes = [*([before] if not ledger.looks and before >= 2 else []), n]
        for size in sizes:
            if not ledger.looks or ledger.looks[-1].n != size:
                look = Look(len(ledger.looks) + 1, size, now(), float(size))
                ledger = replace(ledger, looks=(*ledger.looks, look))
        write_ledger(to or path, ledger)
    return ledger
