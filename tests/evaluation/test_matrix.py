"""The matrix of methods and features, walked: what is handled gives numbers, what is not is refused or said."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pipeline.errors import InputError
from pipeline.estimators import Estimate, Profile, Sampling
from pipeline.evaluation.document import EstimateSet
from pipeline.evaluation.evaluate import evaluate
from pipeline.evaluation.features import Feature, features_of
from pipeline.evaluation.methods import METHODS, Method, check_names
from pipeline.evaluation.options import Options
from pipeline.evaluation.pool import Axis, Pool, TargetPool

ITEMS, LABELS = 150, 60
AXES = {
    Feature.CONTINUOUS: ("continuous", lambda rng: rng.random(ITEMS)),
    Feature.ORDINAL: ("ordinal", lambda rng: rng.integers(1, 6, ITEMS).astype(float)),
    Feature.CATEGORICAL: ("categorical", lambda rng: rng.choice(["a", "b", "c", "d"], ITEMS)),
    Feature.TAGS: ("tags", lambda rng: rng.choice(["a", "a;b", "b;c", "c;d", ""], ITEMS)),
}


def target(name: str, feature: Feature | None, seed: int) -> TargetPool:
    """A pool with everything a method may need, and the feature."""
    rng = np.random.default_rng(seed)
    skill = rng.normal(size=ITEMS)
    truth = (rng.random(ITEMS) < 1 / (1 + np.exp(-1.5 * skill))).astype(float)
    order = np.random.default_rng(9 if feature is not Feature.OTHER_ITEMS else seed).permutation(ITEMS)
    labeled = np.zeros(ITEMS, dtype=bool)
    labeled[order[: {Feature.FEW: 8, Feature.CENSUS: ITEMS}.get(feature, LABELS) if feature else LABELS]] = True  # type: ignore[call-overload]
    if feature is Feature.CONSTANT:
        truth[:] = 1.0
    signals = np.stack([skill + rng.normal(size=ITEMS), rng.normal(size=ITEMS)], axis=1)
    taus = np.clip(0.5 + 0.2 * skill[:, None] + 0.1 * rng.normal(size=(ITEMS, 4)), 0, 1)
    if feature is Feature.MISSING_SIGNALS:
        signals[::9, 0] = np.nan
    if feature is Feature.MISSING_TAUS:
        taus[::9, 1] = np.nan
    kind, values = AXES.get(feature, AXES[Feature.ORDINAL]) if feature else AXES[Feature.ORDINAL]
    sampling = Sampling()
    strata = np.arange(ITEMS) % 3
    if feature is Feature.CHANCES:
        sampling = Sampling(probabilities=np.where(skill > 0, 0.6, 0.3))
    elif feature is Feature.STRATA:
        sampling = Sampling.stratified(strata)
    elif feature is Feature.STAGES:
        stage = np.zeros(ITEMS, dtype=int)
        stage[order[:20]] = 1
        stage[order[20:LABELS]] = 2
        sampling = Sampling.staged(stage, strata)
    return TargetPool(
        name, np.where(labeled, truth, np.nan), labeled, signals, ("judge", "t"), (Axis("z", kind, values(rng)),),  # type: ignore[arg-type]
        np.array([f"i{k:03d}" for k in range(ITEMS)]),
        np.array([f"c{k // 3}" for k in range(ITEMS)]) if feature is Feature.CLUSTERS else None,
        rng.uniform(0.5, 2.0, ITEMS), sampling, taus,
        np.where(labeled[:, None], rng.integers(0, 2, (ITEMS, 3)).astype(float), np.nan), truth,
        ratings=np.where(labeled | (np.arange(ITEMS) % 2 == 0), truth + rng.normal(size=ITEMS), np.nan)[:, None],
    )  # fmt: skip


def pool_with(feature: Feature | None) -> Pool:
    return Pool(tuple(target(name, feature, seed) for seed, name in enumerate("ab")))


def options_for(method: Method, feature: Feature | None, *, by_name: bool) -> Options:
    about: Any = "pool" if feature is Feature.POOL else "population"
    return Options((method.name,), by_name=by_name, target=about, shrink=True, seed=1)


def results(found: EstimateSet, method: Method) -> list[Estimate | Profile]:
    own = [result for methods in found.values() for name, result in methods.items() if name == method.name]
    return [*own, *(gap.estimate for gap in found.gaps if gap.method == method.name)]


CELLS = [(method, feature) for method in METHODS for feature in Feature]


@pytest.mark.parametrize(("method", "feature"), CELLS, ids=lambda value: getattr(value, "name", value))
def test_a_cell_does_what_the_table_says(method: Method, feature: Feature) -> None:
    pool = pool_with(feature)
    options = options_for(method, feature, by_name=False)
    check_names((method.name,))
    if any(method.lacking(entry, options) for entry in pool.targets):
        assert feature is Feature.CENSUS  # nothing is unlabeled then, which is what the method is about
        return
    if feature is not Feature.REPEATS:
        assert all(feature in features_of(pool, entry, options) for entry in pool.targets)
    support = method.on(feature)
    beside = replace(options, methods=("naive", method.name))
    found = evaluate(pool, options if support.how == "handled" else beside)
    said = [entry for entry in found.left_out if entry.method == method.name]
    if support.how == "handled":
        assert not said, said
        assert results(found, method)
        for result in results(found, method):
            value, low, high = (np.atleast_1d(getattr(result, part)) for part in ("value", "low", "high"))
            assert np.isfinite(value).any()
            known = np.isfinite(low)
            if not any(gap.estimate is result for gap in found.gaps):
                value = np.clip(value, 0.0, 1.0)  # a value is never clipped, the ends of a share's interval are
            assert ((low <= value + 1e-9) & (value <= high + 1e-9))[known].all()
        return
    assert not results(found, method)
    assert said
    features = [other for other in Feature if method.on(other).how != "handled"]
    assert all(any(entry.reason.startswith(other.value) for other in features) for entry in said)
    by_name = replace(beside, by_name=True)
    if support.how == "refused":
        with pytest.raises(InputError, match=feature.value):
            evaluate(pool, by_name)
    else:
        assert [entry.method for entry in evaluate(pool, by_name).left_out if entry.method == method.name]


def test_what_a_method_needs_is_said_where_it_was_asked_for_by_name() -> None:
    bare = replace(target("a", None, 0), signals=np.empty((ITEMS, 0)), signal_names=(), taus=None, profiles=())
    for method in ("lace", "one_step", "lace_profile"):
        with pytest.raises(InputError, match=f"--methods {method} needs"):
            evaluate(Pool((bare,)), Options((method,), by_name=True))
    assert set(evaluate(Pool((bare,)))["a"]) >= {"naive"}
