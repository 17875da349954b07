"""From a finished run: labels that a wanted half-width needs, and what each family of signals is worth."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from pipeline.config import RunConfig
from pipeline.estimators import Estimate, Profile, lace_mean
from pipeline.estimators.planning import family_worth, plan_mean, plan_profile
from pipeline.evaluation.document import read_estimates
from pipeline.evaluation.signal_families import FAMILIES, family_costs, family_of
from pipeline.runs.arrays import TargetArrays, generator, target_arrays
from pipeline.runs.directory import RunDirectory
from pipeline.runs.frames import RunTables

__all__ = ["families_worth", "plan_labels"]


def plan_labels(directory: RunDirectory, width: float | None) -> dict[str, Any]:
    """Plans for the mean and the worst profile point of every target, and the worth of the signal families.

    Args:
        directory: a finished run.
        width: wanted half-width; None plans nothing and says only what the families are worth.
    """
    config = directory.config()
    estimates = read_estimates(directory.estimates_file)
    tables = RunTables(directory.tables)
    costs, unit = family_costs(directory.manifest())
    plans: list[dict[str, Any]] = []
    worth: list[dict[str, Any]] = []
    for target, methods in estimates.items():
        arrays = target_arrays(tables.signals, target)
        if width is not None:
            plans += _plans(target, methods, arrays, width)
        worth += families_worth(target, arrays, config, costs, unit)
    return {"half_width": width, "plans": plans, "worth": worth}


def _plans(
    target: str, methods: Mapping[str, Estimate | Profile], arrays: TargetArrays, width: float
) -> list[dict[str, Any]]:
    phi = arrays.y[arrays.labeled]
    pool = len(arrays.y)
    found = []
    lace = methods.get("lace")
    if isinstance(lace, Estimate) and len(phi) > 1:
        for kind, what in (("pool", "mean of these items"), ("population", "mean of such items")):
            plan = plan_mean(lace, pool, width, outcome_variance=float(np.var(phi, ddof=1)), target=kind)  # type: ignore[arg-type]
            found.append({**plan.to_dict(), "target": target, "what": what, "note": plan.reason or ""})
    profile = methods.get("lace_profile")
    if isinstance(profile, Profile):
        plan = plan_profile(profile, len(phi), pool, width)
        note = plan.reason or f"decided at {plan.at}"
        found.append({**plan.to_dict(), "target": target, "what": "worst profile point", "note": note})
    return [{**entry, "at": _text(entry.get("at"))} for entry in found]


def _text(at: Any) -> Any:
    return at if at is None or isinstance(at, str | int | float) else str(at)


def families_worth(
    target: str, arrays: TargetArrays, config: RunConfig, costs: Mapping[str, float] | None = None, unit: str = ""
) -> list[dict[str, Any]]:
    """Leave-one-family-out: effective labels of the LACE mean with and without each family of signals."""
    present = {
        family: [k for k, name in enumerate(arrays.signal_names) if family_of(name) == family] for family in FAMILIES
    }
    present = {family: columns for family, columns in present.items() if columns}
    if len(present) < 2 or arrays.labeled.sum() < 3:
        return []
    everything = list(range(len(arrays.signal_names)))
    effective = _effective(arrays, everything, config)
    without = {
        family: _effective(arrays, [k for k in everything if k not in columns], config)
        for family, columns in present.items()
    }
    named = {family: costs.get(family, 0.0) for family in present} if costs else None
    found = family_worth(effective, without, named)
    return [
        {**entry.to_dict(), "target": target, "unit": unit, "sentence": f"{target}: {_in_unit(entry.sentence, unit)}"}
        for entry in found
    ]


def _in_unit(sentence: str, unit: str) -> str:
    return sentence.replace("of the money", f"of the {unit}")


def _effective(arrays: TargetArrays, columns: list[int], config: RunConfig) -> float:
    """Labels that the plain mean of the pool would need for the same standard error."""
    phi = arrays.y[arrays.labeled]
    n, pool = len(phi), len(arrays.y)
    estimate = lace_mean(
        arrays.y,
        arrays.signals[:, columns],
        labeled=arrays.labeled,
        adapt="average",
        learner=None,
        rng=generator(config.seed, "worth", arrays.name),
    )
    plain = math.sqrt(float(np.var(phi, ddof=1)) / n * (1 - n / pool))
    return n * (plain / estimate.se) ** 2 if estimate.se > 0 else float(n)
