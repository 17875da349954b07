"""From a finished run: labels that a wanted half-width needs, and what each family of signals is worth."""

from __future__ import annotations

from typing import Any

from pipeline.evaluation.planning import advise, families_worth, paid_families
from pipeline.evaluation.signal_families import family_costs
from pipeline.runs.directory import RunDirectory
from pipeline.runs.exported import run_pool
from pipeline.runs.frames import RunTables


def plan_labels(directory: RunDirectory, width: float | None) -> dict[str, Any]:
    """Plans for the mean and the worst profile point of every target, and the worth of the signal families.

    Args:
        directory: a finished run.
        width: wanted half-width; None plans nothing and says only what the families are worth.
    """
    pool = run_pool(directory.config(), RunTables(directory.tables))
    costs, unit = family_costs(directory.manifest())
    families = paid_families(pool, costs)
    plans: list[dict[str, Any]] = []
    worth: list[dict[str, Any]] = []
    for target in pool.targets:
        if width is not None and not target.complete:
            advice = advise(pool, target, (width,), families, unit=unit)
            plans += advice.plan_rows()
            worth += [
                {**row, "sentence": row["sentence"] + w.advice}
                for row, w in zip(advice.worth_rows(), advice.worth, strict=True)
            ]
        elif len(families) > 1:
            for entry in families_worth(pool, target, families, unit=unit):
                worth.append(
                    {
                        **entry.to_dict(),
                        "target": target.name,
                        "sentence": f"{target.name}: {entry.sentence}{entry.advice}",
                    }
                )
    return {"half_width": width, "plans": [_plain(entry) for entry in plans], "worth": worth}


def _plain(entry: dict[str, Any]) -> dict[str, Any]:
    at = entry.get("at")
    return {**entry, "at": at if at is None or isinstance(at, str | int | float) else str(at)}
