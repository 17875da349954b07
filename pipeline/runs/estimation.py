"""From the tables of a run to its estimates: which estimator, with which options, on which arrays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from pipeline.config import RunConfig
from pipeline.errors import InputError
from pipeline.estimators import (
    Estimate,
    Profile,
    comparator_profile,
    lace_mean,
    lace_profile,
    lace_profile_band,
    naive_mean,
    one_step_mean,
    repeated_decoding_mean,
)
from pipeline.evaluation.document import EstimateSet, Warned
from pipeline.evaluation.joint_decisions import joint_decisions
from pipeline.evaluation.shrunk_groups import SHRUNK, shrunk_beside
from pipeline.runs.arrays import (
    TargetArrays,
    generator,
    repeated_outcomes,
    target_arrays,
    tau_matrix,
)
from pipeline.runs.axis import Axis, profile_axis
from pipeline.runs.frames import RunTables
from pipeline.runs.gaps import gap_fits, paired_gaps
from pipeline.runs.refusals import named_refusals

__all__ = ["estimate_run"]

FloatArray = NDArray[np.float64]
Estimates: TypeAlias = dict[str, dict[str, Estimate | Profile]]
PROFILE_LEARNER_FROM = 200
"""Labeled items from which the logistic learner helps a profile of a binary outcome (below, it does not)."""
TAU_MISSING_SHARE = 0.01
"""Share of missing τ predictions from which the reader is told (each is filled so that it corrects nothing)."""
COMPARATORS = (
    "naive", "plugin_judge", "plugin_multi", "aug_plugin", "strat_ppi", "scalar_cv", "local_ppi", "ppci",
    "global_cv", "per_signal_cv", "residual_only",
)  # fmt: skip


def estimate_run(config: RunConfig, tables: RunTables) -> EstimateSet:
    """Every estimate that the configuration asks for.

    Raises:
        InputError: no labeled item, or an estimator refuses the data; names target and estimator.
    """
    warnings: list[Warned] = []
    pool = {name: target_arrays(tables.signals, name, tables.inclusion) for name in config.roles.targets}
    for name, arrays in pool.items():
        if not arrays.labeled.any() and set(config.estimate) != {"best_of_n"}:
            raise InputError(f"target {name}: no labeled item with a gold answer; nothing can be estimated")
    estimates: Estimates = {name: {} for name in pool}
    wanted = config.estimate
    _add_gold(estimates, tables, config)
    if "naive" in wanted:
        _each(estimates, pool, "naive", _naive)
    if "repeated_decoding" in wanted:
        _each(estimates, pool, "repeated_decoding", lambda arrays: _repeated(arrays, config, tables))
    taus: dict[str, FloatArray] = {}
    if "one_step" in wanted and tables.inclusion:
        message = "labels were drawn with unequal chances; naive, LACE and gaps weight for that, one-step does not"
        warnings.append(Warned("one_step_unweighted", message))
    if "one_step" in wanted:
        taus = _feature_taus(config, tables, pool) or _taus(tables, pool, warnings)
        _add_one_step(estimates, pool, taus, config)
    if "lace" in wanted:
        _each(estimates, pool, "lace", lambda arrays: _lace_mean(arrays, config))
    axes = {name: profile_axis(arrays, config) for name, arrays in pool.items()}
    if "lace_profile" in wanted:
        _add_profiles(estimates, pool, axes, config, warnings)
    if "comparators" in wanted:
        _add_comparators(estimates, pool, axes, config, warnings)
    fits = gap_fits(pool, config) if "gaps" in wanted else []
    gaps = paired_gaps(pool, fits, axes, taus, config)
    best_of_n: tuple[Any, ...] = ()
    extra: dict[str, Any] = {}
    decided = joint_decisions(fits, _leading_values(estimates, pool)) if fits else None
    extra |= {"decisions": decided} if decided else {}
    if "best_of_n" in wanted:
        from pipeline.runs.best_of_n import best_of_n_estimates

        best_of_n, curves, noticed = best_of_n_estimates(config, tables)
        extra |= curves
        warnings.extend(noticed)
    return EstimateSet(estimates, gaps, best_of_n, tuple(warnings), extra)


def _leading_values(estimates: Estimates, pool: dict[str, TargetArrays]) -> dict[str, float]:
    """The best estimate of each target's mean that the run has."""
    leading = {}
    for name, arrays in pool.items():
        found = next((estimates[name][m] for m in ("lace", "one_step_pool", "naive") if m in estimates[name]), None)
        leading[name] = found.value if isinstance(found, Estimate) else float(np.mean(arrays.y[arrays.labeled]))
    return leading


def _each(
    estimates: Estimates,
    pool: dict[str, TargetArrays],
    method: str,
    estimator: Callable[[TargetArrays], Estimate | Profile],
) -> None:
    for name, arrays in pool.items():
        with named_refusals(name, method):
            estimates[name][method] = estimator(arrays)


def _add_gold(estimates: Estimates, tables: RunTables, config: RunConfig) -> None:
    """The plain accuracy over all items where every gold answer is known: what the other numbers try to reach."""
    if tables.items["gold"].is_null().any():
        return
    for name in estimates:
        answers = tables.responses.filter(
            (pl.col("model") == name) & (pl.col("stage") == "answer") & (pl.col("draw") == 0)
        )
        phi = answers["phi"]
        phi = phi.fill_null(0.0) if config.missing_reply == "wrong" else phi.drop_nulls()
        if not phi.len():
            continue
        value = float(phi.mean())  # type: ignore[arg-type]
        estimates[name]["gold_all"] = Estimate(
            value,
            0.0,
            value,
            value,
            0.95,
            phi.len(),
            "gold_all",
            {"items": phi.len(), "note": "every item's gold is known"},
        )


def _repeated(arrays: TargetArrays, config: RunConfig, tables: RunTables) -> Estimate:
    items = tables.items.sort("item_id")["item_id"].to_numpy()[arrays.labeled].tolist()
    if config.missing_reply == "wrong":
        return repeated_decoding_mean(repeated_outcomes(tables.responses, arrays.name, items, 0.0))
    outcomes = repeated_outcomes(tables.responses, arrays.name, items, np.nan)
    answered = ~np.isnan(outcomes)
    outcomes, answered = outcomes[answered.any(axis=1)], answered[answered.any(axis=1)]
    filled = np.where(answered, outcomes, np.nanmean(outcomes, axis=1, keepdims=True))
    shares = bool(np.isin(outcomes[answered], (0.0, 1.0)).all())  # an item's mean over its answers is no outcome
    return repeated_decoding_mean(filled, interval="wilson" if shares else "t")


def _feature_taus(config: RunConfig, tables: RunTables, pool: dict[str, TargetArrays]) -> dict[str, FloatArray]:
    """Predictions by Algorithm 1 from the texts of the run; empty where a regressor model predicts."""
    if config.design.algorithm != "features":
        return {}
    from pipeline.runs.text_taus import text_taus

    return text_taus(config, tables, pool)


def _taus(tables: RunTables, pool: dict[str, TargetArrays], warnings: list[Warned]) -> dict[str, FloatArray]:
    items = tables.items.sort("item_id")["item_id"].to_list()
    taus = {}
    for name in pool:
        taus[name], missing = tau_matrix(tables.taus, name, items)
        share = missing / taus[name].size
        if share >= TAU_MISSING_SHARE:
            warnings.append(
                Warned(
                    "tau_missing",
                    f"{name}: {missing} of {taus[name].size} predictions ({share:.1%}) are missing; each was filled by"
                    " the item's mean over its other draws, so that the item is not corrected by it",
                )
            )
    return taus


def _add_one_step(
    estimates: Estimates, pool: dict[str, TargetArrays], taus: dict[str, FloatArray], config: RunConfig
) -> None:
    """``one_step``: within-item correction with tuned power; ``one_step_paper``: power 1; ``one_step_pool``: the pool.

    The power is pooled from the other targets where there are three or more, else leave-one-out below 50 labels,
    else cross-fitted.
    """
    for name, arrays in pool.items():
        labeled = arrays.labeled
        phi, tau = arrays.y[labeled], taus[name][labeled]
        others = [(pool[o].y[pool[o].labeled], taus[o][pool[o].labeled]) for o in pool if o != name]
        options: dict[str, Any] = {"power": "pooled", "power_from": others}
        if len(pool) < 3:
            options = {"power": "loo" if len(phi) < 50 else "cross-fit"}
        variants = {"one_step": options, "one_step_paper": {"power": 1.0}}
        if len(labeled) > len(phi):
            variants["one_step_pool"] = {**options, "pool_tau": taus[name]}
        for method, chosen in variants.items():
            with named_refusals(name, method):
                estimate = one_step_mean(phi, tau, rng=generator(config.seed, "one_step", name), **chosen)
            rule = {**estimate.diagnostics, "power_rule": str(chosen["power"])}
            estimates[name][method] = replace(estimate, method=method, diagnostics=rule)


def _binary(arrays: TargetArrays) -> bool:
    return bool(np.isin(arrays.y[arrays.labeled], (0.0, 1.0)).all())


def _naive(arrays: TargetArrays) -> Estimate:
    """The plain mean of the labels; with unequal inclusion probabilities their Hájek mean."""
    if arrays.inclusion is None:
        return naive_mean(arrays.y[arrays.labeled])
    weighted = lace_mean(
        arrays.y,
        np.empty((len(arrays.y), 0)),
        labeled=arrays.labeled,
        adapt="average",
        learner=None,
        inclusion_probabilities=arrays.inclusion,
    )
    return replace(weighted, method="naive")


def _lace_mean(arrays: TargetArrays, config: RunConfig) -> Estimate:
    return lace_mean(
        arrays.y,
        arrays.signals,
        labeled=arrays.labeled,
        inclusion_probabilities=arrays.inclusion,
        adapt="average",
        learner="logistic" if _binary(arrays) else None,
        rng=generator(config.seed, "lace", arrays.name),
    )


def _add_profiles(
    estimates: Estimates,
    pool: dict[str, TargetArrays],
    axes: dict[str, Axis | None],
    config: RunConfig,
    warnings: list[Warned],
) -> None:
    for name, arrays in pool.items():
        axis = axes[name]
        if axis is None:
            warnings.append(
                Warned("no_profile", f"{name}: no profile: the benchmark has no profile field, or only one value of it")
            )
            continue
        learner: Any = "logistic" if _binary(arrays) and arrays.labeled.sum() >= PROFILE_LEARNER_FROM else None
        shared: dict[str, Any] = {
            "labeled": arrays.labeled,
            "at": axis.at,
            "locality": axis.locality,
            "inclusion_probabilities": arrays.inclusion,
        }
        with named_refusals(name, "lace_profile"):
            rule: dict[str, Any] = {**shared, "adapt": "average", "learner": learner}
            profile = lace_profile(
                axis.z, arrays.y, arrays.signals, rng=generator(config.seed, "lace_profile", name), **rule
            )
            estimates[name]["lace_profile"] = profile
            shrunk = shrunk_beside(profile)
            if shrunk is not None:
                estimates[name][SHRUNK] = replace(shrunk, method=SHRUNK)
            band = lace_profile_band(
                axis.z, arrays.y, arrays.signals, rng=generator(config.seed, "lace_profile", name), **rule
            )
            estimates[name]["lace_profile_band"] = replace(band, method="lace_profile_band")
            nothing = np.zeros((len(arrays.y), 0))
            plain = lace_profile(axis.z, arrays.y, nothing, **shared)
            estimates[name]["naive_profile"] = replace(plain, method="naive_profile")


def _add_comparators(
    estimates: Estimates,
    pool: dict[str, TargetArrays],
    axes: dict[str, Axis | None],
    config: RunConfig,
    warnings: list[Warned],
) -> None:
    """Every comparator's profile; one that cannot work on this axis is left out with a warning."""
    for name, arrays in pool.items():
        axis = axes[name]
        if axis is None:
            continue
        primary = arrays.signal_names.index("judge") if "judge" in arrays.signal_names else 0
        for method in COMPARATORS:
            try:
                estimates[name][f"profile_{method}"] = comparator_profile(
                    method,
                    axis.z,
                    arrays.y,
                    arrays.signals,
                    labeled=arrays.labeled,
                    primary=primary,
                    at=axis.at,
                    locality=axis.locality,
                    standardize=True,
                    rng=generator(config.seed, "comparators", name),
                )
            except (ValueError, TypeError) as refusal:
                warnings.append(Warned("comparator_refused", f"{name}: comparator {method} is left out: {refusal}"))
