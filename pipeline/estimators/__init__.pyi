"""What `pipeline.estimators` offers and where each name lives: the one list, read by type checkers and at run time."""

from pipeline.estimators import free_signals as free_signals
from pipeline.estimators import looks as looks
from pipeline.estimators.best_of_n.checks import ScoreWarning as ScoreWarning
from pipeline.estimators.best_of_n.checks import best_of_n_warnings as best_of_n_warnings
from pipeline.estimators.best_of_n.checks import critical_rho as critical_rho
from pipeline.estimators.best_of_n.checks import drift_test as drift_test
from pipeline.estimators.best_of_n.designs import Design as Design
from pipeline.estimators.best_of_n.designs import Sensitivity as Sensitivity
from pipeline.estimators.best_of_n.designs import compare_designs as compare_designs
from pipeline.estimators.best_of_n.designs import dependence_sensitivity as dependence_sensitivity
from pipeline.estimators.best_of_n.estimators import best_of_n as best_of_n
from pipeline.estimators.best_of_n.estimators import best_of_n_batch as best_of_n_batch
from pipeline.estimators.best_of_n.estimators import best_of_n_complete as best_of_n_complete
from pipeline.estimators.best_of_n.estimators import best_of_n_fixed_split as best_of_n_fixed_split
from pipeline.estimators.best_of_n.estimators import best_of_n_gold as best_of_n_gold
from pipeline.estimators.best_of_n.estimators import best_of_n_plug_in as best_of_n_plug_in
from pipeline.estimators.best_of_n.estimators import best_of_n_reuse as best_of_n_reuse
from pipeline.estimators.best_of_n.estimators import two_candidate_umvu as two_candidate_umvu
from pipeline.estimators.best_of_n.pass_at_k import pass_at_k as pass_at_k
from pipeline.estimators.best_of_n.pass_at_k import pass_at_k_mean as pass_at_k_mean
from pipeline.estimators.best_of_n.population import paired_difference as paired_difference
from pipeline.estimators.best_of_n.population import population_mean as population_mean
from pipeline.estimators.best_of_n.risks import bounded_risk_bound as bounded_risk_bound
from pipeline.estimators.best_of_n.risks import gaussian_pair_risk as gaussian_pair_risk
from pipeline.estimators.best_of_n.risks import holdout_pair_risk as holdout_pair_risk
from pipeline.estimators.best_of_n.targets import bernoulli_target as bernoulli_target
from pipeline.estimators.best_of_n.targets import gaussian_target as gaussian_target
from pipeline.estimators.best_of_n.targets import lattice_target as lattice_target
from pipeline.estimators.best_of_n.weights import winner_weights as winner_weights
from pipeline.estimators.comparators import comparator_profile as comparator_profile
from pipeline.estimators.components import cluster_components as cluster_components
from pipeline.estimators.components import variance_components as variance_components
from pipeline.estimators.gaps.all_gaps import ModelLabels as ModelLabels
from pipeline.estimators.gaps.all_gaps import all_gaps as all_gaps
from pipeline.estimators.gaps.all_gaps import gap_of as gap_of
from pipeline.estimators.gaps.decisions import FittedGap as FittedGap
from pipeline.estimators.gaps.decisions import fit_gap as fit_gap
from pipeline.estimators.gaps.decisions import joint_gaps as joint_gaps
from pipeline.estimators.gaps.mean_gap import mean_gap as mean_gap
from pipeline.estimators.gaps.ranking import RankSet as RankSet
from pipeline.estimators.gaps.ranking import exact_match as exact_match
from pipeline.estimators.gaps.ranking import kendall_tau as kendall_tau
from pipeline.estimators.gaps.ranking import rank_sets as rank_sets
from pipeline.estimators.gaps.ranking import rank_sets_from_intervals as rank_sets_from_intervals
from pipeline.estimators.gaps.simultaneous import PairedDifference as PairedDifference
from pipeline.estimators.gaps.simultaneous import max_t_quantile as max_t_quantile
from pipeline.estimators.gaps.simultaneous import paired_differences as paired_differences
from pipeline.estimators.labels.draw_check import DrawCheck as DrawCheck
from pipeline.estimators.labels.draw_check import check_draw as check_draw
from pipeline.estimators.lace.band import lace_profile_band as lace_profile_band
from pipeline.estimators.lace.cascade import lace_cascade as lace_cascade
from pipeline.estimators.lace.deployment import lace_deployment as lace_deployment
from pipeline.estimators.lace.gap import lace_gap as lace_gap
from pipeline.estimators.lace.gaps import lace_gaps as lace_gaps
from pipeline.estimators.lace.labels_mean import labels_mean as labels_mean
from pipeline.estimators.lace.localities import Categorical as Categorical
from pipeline.estimators.lace.localities import Gaussian as Gaussian
from pipeline.estimators.lace.localities import Ordinal as Ordinal
from pipeline.estimators.lace.localities import rule_of_thumb_bandwidth as rule_of_thumb_bandwidth
from pipeline.estimators.lace.mean import lace_mean as lace_mean
from pipeline.estimators.lace.profile import lace_profile as lace_profile
from pipeline.estimators.lace.splits import lace_profile_splits as lace_profile_splits
from pipeline.estimators.lace.stream import ProfilePool as ProfilePool
from pipeline.estimators.lace.stream import lace_mean_from_pool as lace_mean_from_pool
from pipeline.estimators.lace.stream import lace_profile_from_pool as lace_profile_from_pool
from pipeline.estimators.means import naive_mean as naive_mean
from pipeline.estimators.means import repeated_decoding_mean as repeated_decoding_mean
from pipeline.estimators.one_step.cross_fit import QuadraticLeastSquares as QuadraticLeastSquares
from pipeline.estimators.one_step.cross_fit import cross_fit_pool_tau as cross_fit_pool_tau
from pipeline.estimators.one_step.cross_fit import cross_fit_tau as cross_fit_tau
from pipeline.estimators.one_step.feature_regression import PenalizedRegression as PenalizedRegression
from pipeline.estimators.one_step.mean import one_step_mean as one_step_mean
from pipeline.estimators.one_step.mean import one_step_values as one_step_values
from pipeline.estimators.results import Estimate as Estimate
from pipeline.estimators.results import Profile as Profile
from pipeline.estimators.results import VarianceComponents as VarianceComponents
from pipeline.estimators.sampling import Sampling as Sampling
from pipeline.estimators.shrinkage import shrink_profile as shrink_profile
from pipeline.estimators.signals import PreparedSignals as PreparedSignals
from pipeline.estimators.signals import fill_missing_signals as fill_missing_signals
from pipeline.estimators.signals import prepare_signals as prepare_signals
from pipeline.estimators.signals import standardize_signals as standardize_signals

__all__ = [
    "Categorical",
    "Estimate",
    "Gaussian",
    "ModelLabels",
    "Ordinal",
    "PairedDifference",
    "PreparedSignals",
    "Profile",
    "ProfilePool",
    "RankSet",
    "Sampling",
    "all_gaps",
    "best_of_n",
    "best_of_n_gold",
    "comparator_profile",
    "cross_fit_tau",
    "fill_missing_signals",
    "fit_gap",
    "joint_gaps",
    "labels_mean",
    "lace_deployment",
    "lace_gap",
    "lace_mean",
    "lace_profile",
    "lace_profile_band",
    "mean_gap",
    "naive_mean",
    "one_step_mean",
    "pass_at_k_mean",
    "prepare_signals",
]
