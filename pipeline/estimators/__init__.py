"""The mathematics: arrays in, frozen dataclasses out. NumPy, SciPy and scikit-learn only.

Names are loaded on first use, so that importing this package costs NumPy alone.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pipeline.estimators.all_gaps import ModelLabels as ModelLabels
    from pipeline.estimators.all_gaps import all_gaps as all_gaps
    from pipeline.estimators.all_gaps import gap_of as gap_of
    from pipeline.estimators.best_of_n_checks import ScoreWarning as ScoreWarning
    from pipeline.estimators.best_of_n_checks import best_of_n_warnings as best_of_n_warnings
    from pipeline.estimators.best_of_n_checks import critical_rho as critical_rho
    from pipeline.estimators.best_of_n_checks import drift_test as drift_test
    from pipeline.estimators.best_of_n_designs import Design as Design
    from pipeline.estimators.best_of_n_designs import Sensitivity as Sensitivity
    from pipeline.estimators.best_of_n_designs import compare_designs as compare_designs
    from pipeline.estimators.best_of_n_designs import dependence_sensitivity as dependence_sensitivity
    from pipeline.estimators.best_of_n_estimators import best_of_n as best_of_n
    from pipeline.estimators.best_of_n_estimators import best_of_n_batch as best_of_n_batch
    from pipeline.estimators.best_of_n_estimators import best_of_n_complete as best_of_n_complete
    from pipeline.estimators.best_of_n_estimators import best_of_n_fixed_split as best_of_n_fixed_split
    from pipeline.estimators.best_of_n_estimators import best_of_n_gold as best_of_n_gold
    from pipeline.estimators.best_of_n_estimators import best_of_n_plug_in as best_of_n_plug_in
    from pipeline.estimators.best_of_n_estimators import best_of_n_reuse as best_of_n_reuse
    from pipeline.estimators.best_of_n_estimators import two_candidate_umvu as two_candidate_umvu
    from pipeline.estimators.best_of_n_pass_at_k import pass_at_k as pass_at_k
    from pipeline.estimators.best_of_n_pass_at_k import pass_at_k_mean as pass_at_k_mean
    from pipeline.estimators.best_of_n_population import paired_difference as paired_difference
    from pipeline.estimators.best_of_n_population import population_mean as population_mean
    from pipeline.estimators.best_of_n_risks import bounded_risk_bound as bounded_risk_bound
    from pipeline.estimators.best_of_n_risks import gaussian_pair_risk as gaussian_pair_risk
    from pipeline.estimators.best_of_n_risks import holdout_pair_risk as holdout_pair_risk
    from pipeline.estimators.best_of_n_targets import bernoulli_target as bernoulli_target
    from pipeline.estimators.best_of_n_targets import gaussian_target as gaussian_target
    from pipeline.estimators.best_of_n_targets import lattice_target as lattice_target
    from pipeline.estimators.best_of_n_weights import winner_weights as winner_weights
    from pipeline.estimators.comparators import comparator_profile as comparator_profile
    from pipeline.estimators.components import VarianceComponents as VarianceComponents
    from pipeline.estimators.components import cluster_components as cluster_components
    from pipeline.estimators.components import variance_components as variance_components
    from pipeline.estimators.cross_fit import QuadraticLeastSquares as QuadraticLeastSquares
    from pipeline.estimators.cross_fit import cross_fit_pool_tau as cross_fit_pool_tau
    from pipeline.estimators.cross_fit import cross_fit_tau as cross_fit_tau
    from pipeline.estimators.draw_check import DrawCheck as DrawCheck
    from pipeline.estimators.draw_check import check_draw as check_draw
    from pipeline.estimators.feature_regression import PenalizedRegression as PenalizedRegression
    from pipeline.estimators.gap_decisions import FittedGap as FittedGap
    from pipeline.estimators.gap_decisions import fit_gap as fit_gap
    from pipeline.estimators.gap_decisions import joint_gaps as joint_gaps
    from pipeline.estimators.labels_mean import labels_mean as labels_mean
    from pipeline.estimators.lace import lace_profile as lace_profile
    from pipeline.estimators.lace_band import lace_profile_band as lace_profile_band
    from pipeline.estimators.lace_cascade import lace_cascade as lace_cascade
    from pipeline.estimators.lace_deployment import lace_deployment as lace_deployment
    from pipeline.estimators.lace_gap import lace_gap as lace_gap
    from pipeline.estimators.lace_gaps import lace_gaps as lace_gaps
    from pipeline.estimators.lace_mean import lace_mean as lace_mean
    from pipeline.estimators.lace_splits import lace_profile_splits as lace_profile_splits
    from pipeline.estimators.lace_stream import ProfilePool as ProfilePool
    from pipeline.estimators.lace_stream import lace_mean_from_pool as lace_mean_from_pool
    from pipeline.estimators.lace_stream import lace_profile_from_pool as lace_profile_from_pool
    from pipeline.estimators.localities import Categorical as Categorical
    from pipeline.estimators.localities import Gaussian as Gaussian
    from pipeline.estimators.localities import Ordinal as Ordinal
    from pipeline.estimators.localities import rule_of_thumb_bandwidth as rule_of_thumb_bandwidth
    from pipeline.estimators.means import naive_mean as naive_mean
    from pipeline.estimators.means import repeated_decoding_mean as repeated_decoding_mean
    from pipeline.estimators.one_step import one_step_mean as one_step_mean
    from pipeline.estimators.one_step import one_step_values as one_step_values
    from pipeline.estimators.paired_gap import mean_gap as mean_gap
    from pipeline.estimators.ranking import RankSet as RankSet
    from pipeline.estimators.ranking import exact_match as exact_match
    from pipeline.estimators.ranking import kendall_tau as kendall_tau
    from pipeline.estimators.ranking import rank_sets as rank_sets
    from pipeline.estimators.ranking import rank_sets_from_intervals as rank_sets_from_intervals
    from pipeline.estimators.results import Estimate as Estimate
    from pipeline.estimators.results import Profile as Profile
    from pipeline.estimators.sampling import Sampling as Sampling
    from pipeline.estimators.shrinkage import shrink_profile as shrink_profile
    from pipeline.estimators.signals import PreparedSignals as PreparedSignals
    from pipeline.estimators.signals import fill_missing_signals as fill_missing_signals
    from pipeline.estimators.signals import prepare_signals as prepare_signals
    from pipeline.estimators.signals import standardize_signals as standardize_signals
    from pipeline.estimators.simultaneous import PairedDifference as PairedDifference
    from pipeline.estimators.simultaneous import max_t_quantile as max_t_quantile
    from pipeline.estimators.simultaneous import paired_differences as paired_differences

_EXPORTS: dict[str, tuple[str, ...]] = {
    "all_gaps": ("ModelLabels", "all_gaps", "gap_of"),
    "best_of_n_checks": (
        "ScoreWarning",
        "best_of_n_warnings",
        "critical_rho",
        "drift_test",
    ),
    "best_of_n_designs": (
        "Design",
        "Sensitivity",
        "compare_designs",
        "dependence_sensitivity",
    ),
    "best_of_n_risks": (
        "bounded_risk_bound",
        "gaussian_pair_risk",
        "holdout_pair_risk",
    ),
    "best_of_n_targets": (
        "bernoulli_target",
        "gaussian_target",
        "lattice_target",
    ),
    "best_of_n_pass_at_k": (
        "pass_at_k",
        "pass_at_k_mean",
    ),
    "best_of_n_estimators": (
        "best_of_n",
        "best_of_n_batch",
        "best_of_n_complete",
        "best_of_n_fixed_split",
        "best_of_n_gold",
        "best_of_n_plug_in",
        "best_of_n_reuse",
        "two_candidate_umvu",
    ),
    "best_of_n_population": (
        "paired_difference",
        "population_mean",
    ),
    "best_of_n_weights": ("winner_weights",),
    "results": ("Estimate", "Profile"),
    "draw_check": ("DrawCheck", "check_draw"),
    "feature_regression": ("PenalizedRegression",),
    "cross_fit": ("QuadraticLeastSquares", "cross_fit_pool_tau", "cross_fit_tau"),
    "ranking": ("RankSet", "exact_match", "kendall_tau", "rank_sets", "rank_sets_from_intervals"),
    "simultaneous": ("PairedDifference", "max_t_quantile", "paired_differences"),
    "paired_gap": ("mean_gap",),
    "gap_decisions": ("FittedGap", "fit_gap", "joint_gaps"),
    "means": ("naive_mean", "repeated_decoding_mean"),
    "one_step": ("one_step_mean", "one_step_values"),
    "components": ("VarianceComponents", "cluster_components", "variance_components"),
    "comparators": ("comparator_profile",),
    "labels_mean": ("labels_mean",),
    "lace": ("lace_profile",),
    "lace_band": ("lace_profile_band",),
    "lace_cascade": ("lace_cascade",),
    "lace_deployment": ("lace_deployment",),
    "lace_gap": ("lace_gap",),
    "lace_gaps": ("lace_gaps",),
    "lace_stream": ("ProfilePool", "lace_mean_from_pool", "lace_profile_from_pool"),
    "lace_mean": ("lace_mean",),
    "lace_splits": ("lace_profile_splits",),
    "sampling": ("Sampling",),
    "shrinkage": ("shrink_profile",),
    "localities": ("Categorical", "Gaussian", "Ordinal", "rule_of_thumb_bandwidth"),
    "signals": ("PreparedSignals", "fill_missing_signals", "prepare_signals", "standardize_signals"),
}
_MODULE_OF = {name: module for module, names in _EXPORTS.items() for name in names}

__all__ = sorted(_MODULE_OF)


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__


class _Package(ModuleType):
    """Keeps a submodule, which Python sets here when it is imported, from hiding the function it is named after."""

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, ModuleType) and _MODULE_OF.get(name) == name:
            value = getattr(value, name)
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
