"""The table of methods: one value per estimator. Nothing else in the house spells a method's name.

A new method is a function in the file of its kind (means, profiles, gaps) and one entry here: what it is called, what
it needs, and, for every feature that data can have and it cannot use, whether it is refused or left out and why.
``enforce`` is the one place that holds data against it; ``docs/methods/matrix.md`` is printed from it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from pipeline.errors import InputError
from pipeline.estimators import Estimate, Profile
from pipeline.evaluation import gaps, means, profiles
from pipeline.evaluation.features import HANDLED, Feature, Support, left_out, refused
from pipeline.evaluation.options import Options
from pipeline.evaluation.pool import Pool, TargetPool
from pipeline.tables.user_table import nearest_names

Kind = Literal["mean", "profile", "gap", "gap profile"]
Run = Callable[[Pool, Any, Options], Estimate | Profile]


@dataclass(frozen=True, slots=True)
class Need:
    """Data without which a method cannot be had.

    Attributes:
        name: the data.
        there: whether a target has them.
        mend: the line to add.
    """

    name: str
    there: Callable[[TargetPool, Options], bool]
    mend: str


SIGNALS = Need("signals", lambda target, options: target.signals.shape[1] > 0, "give --signals COL,…")
TAUS = Need(
    "predictions τ",
    lambda target, options: target.taus is not None and target.taus.shape[1] >= 2,
    "give --tau COL,COL,…: draw 0, then the independent draws",
)
UNLABELED = Need("items without a label", lambda target, options: not target.complete, "it is about those")
AXIS = Need("a profile axis", lambda target, options: bool(target.profiles), "give --profile COL")
MIX = Need(
    "deployment weights",
    lambda target, options: target.weights is not None or bool(options.distribution),
    "give --weights COL or --weights VALUE=SHARE,…",
)
RATINGS = Need(
    "an expensive rater's scores on some items",
    lambda target, options: target.ratings is not None,
    "give --rated COL,…",
)
ANSWERS = Need("several answers to an item", lambda target, options: target.repeats is not None, "collect them")
TRUTH = Need("every item's outcome", lambda target, options: target.truth is not None, "label every item")
SHRINK = Need("--shrink", lambda target, options: options.shrink, "give --shrink")


@dataclass(frozen=True, slots=True)
class Method:
    """One estimator as the house knows it.

    Attributes:
        name: its key in documents.
        label: how it is called where a person reads.
        kind: what it estimates: a mean, a profile, the gap of two targets, the profile of a gap.
        group: what ``--methods`` and ``estimate:`` call it, alone or with its relatives.
        about: what it does, in a few words.
        needs: the data without which it cannot be had.
        run: from (pool, target, options) to its result; of a gap, from (pool, pair, options).
        support: of the features that data can have, those it does not handle.
        compared: whether it is one of several methods that stand beside the recommended number.
    """

    name: str
    label: str
    kind: Kind
    group: str
    about: str
    needs: tuple[Need, ...]
    run: Run
    support: Mapping[Feature, Support] = field(default_factory=dict)
    compared: bool = True

    def on(self, feature: Feature) -> Support:
        """What it does with a feature."""
        return self.support.get(feature, HANDLED)

    def lacking(self, target: TargetPool, options: Options) -> Need | None:
        """The first of its needs that this target's data do not meet."""
        return next((need for need in self.needs if not need.there(target, options)), None)


_EQUAL = "it takes every item for equally likely to be labeled; naive and LACE weight for the chances"
_INDEPENDENT = "it takes items for independent; naive and LACE know clusters"
_LIKE_THESE = "it is about items like these; leave --target pool out"
_ONE_STEP: dict[Feature, Support] = {
    Feature.MISSING_TAUS: refused("the tau columns must be complete; fill or remove missing predictions"),
}
_RANDOM_LAYERS: dict[Feature, Support] = {
    **{feature: left_out(_EQUAL) for feature in (Feature.CHANCES, Feature.STRATA, Feature.STAGES)},
    Feature.CLUSTERS: left_out(_INDEPENDENT),
}
_DISTANCES = left_out("it measures distances on the profile, so it needs a numeric one")
_NUMERIC = {Feature.CATEGORICAL: _DISTANCES, Feature.TAGS: _DISTANCES}


def _comparator(name: str, label: str, about: str, support: Mapping[Feature, Support] | None = None) -> Method:
    """A method of the paper's comparison."""
    run = profiles.comparator(name)
    return Method(name, label, "profile", "comparators", about, (AXIS, SIGNALS), run, support or {})


METHODS: tuple[Method, ...] = (
    Method(
        "gold_all", "gold, all items", "mean", "gold_all",
        "every item's gold answer is known: the mean itself, not an estimate", (TRUTH,), means.known_mean,
        compared=False,
    ),
    Method("naive", "naive", "mean", "naive", "plain mean of the labeled items", (), means.naive),
    Method(
        "repeated_decoding", "repeated decoding", "mean", "repeated_decoding", "several answers to each labeled item",
        (ANSWERS,), means.repeated,
        {
            Feature.CHANCES: left_out(_EQUAL),
            Feature.STRATA: left_out(_EQUAL),
            Feature.STAGES: left_out(_EQUAL),
            Feature.CLUSTERS: left_out(_INDEPENDENT),
            Feature.POOL: left_out(_LIKE_THESE),
        },
    ),
    Method(
        "one_step", "one-step", "mean", "one_step", "labeled items, corrected within each item; λ tuned", (TAUS,),
        means.one_step, {**_ONE_STEP, Feature.POOL: left_out("it is about items like these; one_step_pool is not")},
    ),
    Method(
        "one_step_paper", "one-step, λ = 1", "mean", "one_step", "the same with λ = 1", (TAUS,), means.plain_one_step,
        {**_ONE_STEP, Feature.POOL: left_out(_LIKE_THESE)},
    ),
    Method(
        "one_step_pool", "one-step, pool", "mean", "one_step",
        "labeled items, corrected by the predictions τ for all items", (TAUS, UNLABELED), means.one_step_pool,
        _ONE_STEP,
    ),
    Method(
        "lace", "LACE mean", "mean", "lace", "labeled items, corrected by the signals of all items; averaged rule",
        (SIGNALS,), means.lace,
    ),
    Method(
        "lace_deployment", "LACE, deployment", "mean", "lace_deployment",
        "the mean of the mix of items that deployment will meet", (MIX,), means.lace_deployment,
    ),
    Method(
        "lace_cascade", "LACE, three layers", "mean", "lace_cascade",
        "labels, corrected by an expensive rater's scores on more items and by the signals of all",
        (RATINGS, SIGNALS), means.lace_cascade, _RANDOM_LAYERS,
    ),
    Method(
        "lace_profile", "LACE profile", "profile", "lace_profile", "performance along an axis, corrected by signals",
        (AXIS,), profiles.lace,
    ),
    Method(
        "lace_profile_band", "LACE profile, joint band", "profile", "lace_profile",
        "the same with intervals that hold for the whole curve", (AXIS,), profiles.banded,
    ),
    Method(
        "naive_profile", "labels alone", "profile", "lace_profile", "the labels alone along the axis", (AXIS,),
        profiles.naive,
    ),
    Method(
        "lace_profile_shrunk", "LACE profile, shrunk (option)", "profile", "lace_profile",
        "tiny groups moved towards their common mean", (AXIS, SHRINK), profiles.shrunk,
        {
            Feature.CONTINUOUS: left_out("it needs a profile by groups"),
            Feature.TAGS: left_out("groups that overlap are not independent"),
        },
    ),
    Method(
        "lace_cascade_profile", "LACE profile, three layers", "profile", "lace_cascade", "the same along an axis",
        (AXIS, RATINGS, SIGNALS), profiles.cascade, _RANDOM_LAYERS,
    ),
    _comparator("plugin_judge", "judge alone", "predictions from the judge's score alone"),
    _comparator("plugin_multi", "predictor alone", "predictions from all signals"),
    _comparator("aug_plugin", "corrected predictor", "predictions corrected by the labels"),
    _comparator("strat_ppi", "stratified PPI", "corrected within strata of the axis", _NUMERIC),
    _comparator("scalar_cv", "scalar control variate", "one prediction as the control variate"),
    _comparator("local_ppi", "local PPI", "two local-linear smoothers", _NUMERIC),
    _comparator("ppci", "PPCI", "kernel weights by cross-fitting", _NUMERIC),
    _comparator("global_cv", "global control variate", "one coefficient for the whole axis"),
    _comparator("per_signal_cv", "single-signal control variate", "the primary signal alone"),
    _comparator("residual_only", "residual only", "signals centred by the labels alone"),
    Method("lace_gap", "LACE", "gap", "gaps", "paired difference, corrected by both targets' signals", (), gaps.lace),
    Method(
        "one_step_gap", "one-step", "gap", "one_step", "paired difference, corrected within each item", (TAUS,),
        gaps.one_step, {**_ONE_STEP, Feature.POOL: left_out(_LIKE_THESE)},
    ),
    Method(
        "lace_gap_profile", "LACE gap profile", "gap profile", "gaps", "paired difference along an axis", (AXIS,),
        gaps.along,
    ),
)  # fmt: skip
"""Every method, in the order in which they stand on a page."""

COMPARATORS = tuple(method.name for method in METHODS if method.group == "comparators")
_RECOMMENDED = ("lace", "one_step_pool", "one_step", "naive")
_EXTRA_LABELS = {
    "win_rate": "win rate",
    "bradley_terry": "Bradley–Terry",
    "truth": "simulated truth",
    "lace_gap_profile": "LACE gap profile",
}
SHRUNK = next(method.name for method in METHODS if method.run is profiles.shrunk)
SHRUNK_NOTE = (
    "shrunk: the same groups moved towards their common mean, the more the noisier each is (empirical Bayes). Its"
    " intervals are right on average over the groups, not for each one: an option for tiny groups, no replacement."
)


def method_of(name: str) -> Method | None:
    """The method of a document's key; of one axis among several, ``name:column``. None: none of ours, or no longer."""
    plain = name.partition(":")[0]
    return next((method for method in METHODS if method.name == plain), None)


def method_about(name: str) -> str:
    """What a method does, in a few words; empty for one that is none of ours."""
    method = method_of(name)
    return "" if method is None else method.about


def decides(name: str) -> bool:
    """Whether decisions are made by this method."""
    method = method_of(name)
    return method is not None and method.run is gaps.lace


def leads(name: str) -> bool:
    """Whether a page shows this profile by itself; bands and labels alone stand beside it."""
    method = method_of(name)
    return method is not None and method.run in (profiles.lace, profiles.shrunk)


def method_label(name: str) -> str:
    """How a method is called where a person reads; a key that is none of ours stays as it is."""
    plain = name.partition(":")[0]
    return next((method.label for method in METHODS if method.name == plain), _EXTRA_LABELS.get(plain, name))


def leading(estimates: Mapping[str, Estimate | Profile]) -> Estimate | None:
    """The recommended number of a target: LACE's mean, else the best that is there. With nothing to gain from signals
    LACE equals the mean of the labels."""
    candidates = (estimates.get(name) for name in _RECOMMENDED)
    return next((estimate for estimate in candidates if isinstance(estimate, Estimate)), None)


def check_names(names: Sequence[str]) -> None:
    """InputError for a name that is neither a method nor a group of them; the nearest are given."""
    choices = list(dict.fromkeys([*(method.group for method in METHODS), *(method.name for method in METHODS)]))
    for name in names:
        if name not in choices:
            close = nearest_names(name, choices)
            hint = f"did you mean {' or '.join(close)}?" if close else f"there are {', '.join(choices)}"
            raise InputError(f"--methods: no method {name!r}; {hint}")


def chosen(options: Options, kind: Kind) -> tuple[Method, ...]:
    """The methods of a kind that the options ask for, by their name or their group's; known means always."""
    wanted = set(options.methods)
    return tuple(
        method
        for method in METHODS
        if method.kind == kind and (method.name in wanted or method.group in wanted or method.group == "gold_all")
    )
