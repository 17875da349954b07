"""From the tables of a run to its estimates: its exported table evaluated, and its candidates."""

from __future__ import annotations

from dataclasses import replace

from pipeline.config import RunConfig
from pipeline.errors import InputError
from pipeline.evaluation.document import EstimateSet, LeftOut, Warned
from pipeline.evaluation.evaluate import evaluate
from pipeline.evaluation.options import Options
from pipeline.evaluation.plans.doors import at_door
from pipeline.evaluation.plans.ledger import Ledger
from pipeline.evaluation.pool import Pool
from pipeline.runs.exported import Exported, by_criterion, exported
from pipeline.runs.frames import RunTables

_LEAST_RATED = 2


def estimate_run(
    config: RunConfig,
    tables: RunTables,
    table: Exported | None = None,
    *,
    ledger: Ledger | None = None,
    anytime: bool = False,
) -> EstimateSet:
    """Every estimate that the configuration asks for.

    Args:
        config: of the run.
        tables: its tables.
        table: what it exports, where that was made before.
        ledger: of its label plan or looks, where there is one.
        anytime: decide by intervals that hold however often one looks, also at the first look.

    Raises:
        InputError: no labeled item, or nothing can be estimated from these tables.
    """
    table = exported(config, tables) if table is None else table
    estimates = EstimateSet({name: {} for name in config.roles.targets})
    if table.options.methods and (unrated := _unrated(config, table)):
        estimates = replace(estimates, warnings=(Warned("no_ratings", unrated),))
    elif table.options.methods:
        _check_labels(config, table)
        estimates = evaluate(*_at_door(ledger, table, anytime))
        none = [name for name in config.roles.targets if name not in estimates]
        missing = tuple(LeftOut(name, method, "no label") for name in none for method in table.options.methods)
        further = by_criterion(config, tables, table)
        criteria = {
            name: evaluate(*_at_door(ledger, part, anytime)) for name, part in further.items() if _rated_enough(part)
        }
        estimates = replace(estimates, left_out=(*estimates.left_out, *missing), criteria=criteria)
    if "best_of_n" not in config.estimate:
        return estimates
    from pipeline.runs.best_of_n import best_of_n_estimates

    values, curves, noticed = best_of_n_estimates(config, tables)
    warnings = (*estimates.warnings, *noticed)
    return replace(estimates, best_of_n=values, warnings=warnings, extra={**estimates.extra, **curves})


def _at_door(ledger: Ledger | None, table: Exported, anytime: bool) -> tuple[Pool, Options]:
    return at_door(ledger, table.pool(), replace(table.options, anytime=anytime))


def _rated_enough(part: Exported) -> bool:
    """Whether each target with a rating of a further criterion has the two that anything can be said from."""
    counts = part.frame.filter(part.frame["labeled"])["target"].value_counts()["count"]
    return bool(counts.len()) and bool(counts.min() >= 2)  # type: ignore[operator]


def _unrated(config: RunConfig, table: Exported) -> str:
    """Why a run whose responses people rate says nothing yet; empty where it can."""
    counts = dict.fromkeys(config.roles.targets, 0)
    for (name,), part in table.frame.filter(table.frame["labeled"]).group_by("target"):
        counts[str(name)] = part.height
    short = [f"{name} {count}" for name, count in counts.items() if count < _LEAST_RATED]
    if config.benchmark.grading != "rating" or not short:
        return ""
    return (
        f"rated responses: {', '.join(short)}; a target needs {_LEAST_RATED}, and 20 or more are advisable: auxeval"
        " labels export RUN FILE writes sheets for the people who rate"
    )


def _check_labels(config: RunConfig, table: Exported) -> None:
    labeled = set(table.frame.filter(table.frame["labeled"])["target"].unique().to_list())
    for name in config.roles.targets:
        if name not in labeled:
            raise InputError(f"target {name}: no labeled item with a gold answer; nothing can be estimated")
