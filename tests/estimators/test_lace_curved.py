"""The curved averaging rule: its gain on curves, what it leaves alone, where it is refused, what it says of tails."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from pipeline.estimators import (
    fit_gap,
    lace_deployment,
    lace_gap,
    lace_mean,
    lace_profile,
    lace_profile_band,
    prepare_signals,
    standardize_signals,
)
from pipeline.estimators.lace.adaptive.rules import ridge_blocks

M = 500


def _sigmoid(values: np.ndarray) -> np.ndarray:
    return np.asarray(1.0 / (1.0 + np.exp(-values)))


def _labels(y: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    seen = np.full(len(y), np.nan)
    rows = rng.permutation(len(y))[:n]
    seen[rows] = y[rows]
    return seen


def _u_shape(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    signal = rng.normal(size=(M, 1))
    return (rng.random(M) < _sigmoid(3.0 * signal[:, 0] ** 2 - 2.5)).astype(float), signal


def test_a_signal_shaped_like_a_u_is_used() -> None:
    errors = np.empty((120, 2))
    for seed in range(len(errors)):
        rng = np.random.default_rng(seed)
        y, signals = _u_shape(rng)
        seen = _labels(y, 50, rng)
        errors[seed] = [
            lace_mean(seen, signals, adapt=rule, rng=seed).value - y.mean() for rule in ("average", "curved")
        ]
    average, curved = (errors**2).mean(axis=0)
    assert curved < 0.7 * average


def test_noise_costs_nothing_and_intervals_are_those_of_the_labels_or_shorter() -> None:
    errors, inside, width = [], [], []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        y = (rng.random(M) < 0.9).astype(float)
        seen = _labels(y, 30, rng)
        fit = lace_mean(seen, rng.normal(size=(M, 8)), adapt="curved", rng=seed)
        plain = lace_mean(seen, np.empty((M, 0)), adapt="curved")
        errors.append([(fit.value - y.mean()) ** 2, (plain.value - y.mean()) ** 2])
        inside.append(fit.low <= y.mean() <= fit.high)
        width.append(np.log((fit.high - fit.low) / (plain.high - plain.low)))
    noise, none = np.mean(errors, axis=0)
    assert noise < 1.1 * none
    assert np.mean(inside) > 0.92
    assert np.exp(np.mean(width)) < 1.03


def test_right_and_wrong_answers_have_the_degrees_of_their_plain_mean() -> None:
    rng = np.random.default_rng(3)
    y, signals = _u_shape(rng)
    assert lace_mean(_labels(y, 40, rng), signals, adapt="curved").df == pytest.approx(39.0)
    ratings = np.round(3.0 + rng.normal(size=M))
    assert lace_mean(_labels(ratings, 40, rng), signals, adapt="curved").df != pytest.approx(39.0)


@pytest.mark.parametrize("change", [lambda s: 3.0 * s - 7.0, lambda s: s + 1e8])
def test_scale_and_offset_of_a_signal_do_not_matter(change: object) -> None:
    rng = np.random.default_rng(5)
    y, signals = _u_shape(rng)
    signals = np.round(signals, 2)
    seen = _labels(y, 60, rng)
    base = lace_mean(seen, signals, adapt="curved", rng=1)
    moved = lace_mean(seen, change(signals), adapt="curved", rng=1)  # type: ignore[operator]
    assert moved.value == pytest.approx(base.value, abs=1e-6)


def test_hard_signals_and_few_labels_stay_finite() -> None:
    rng = np.random.default_rng(8)
    y = (rng.random(60) < 0.5).astype(float)
    heavy, same = rng.standard_cauchy((60, 2)), np.ones((60, 1))
    signals = np.column_stack([heavy, heavy, same, rng.integers(0, 2, 60)])
    for n in (1, 2, 5, 30, 60):
        fit = lace_mean(_labels(y, n, rng), signals, adapt="curved", rng=0)
        assert np.isfinite(fit.value)
        assert 0.0 <= fit.low <= fit.high <= 1.0


def test_order_of_signals_and_prepared_signals_give_the_same() -> None:
    rng = np.random.default_rng(9)
    y, signal = _u_shape(rng)
    signals = np.column_stack([signal, rng.normal(size=(M, 3))])
    seen = _labels(y, 50, rng)
    base = lace_mean(seen, signals, adapt="curved", learner=None)
    assert lace_mean(seen, signals[:, ::-1], adapt="curved", learner=None).value == pytest.approx(base.value, abs=1e-12)
    assert lace_mean(seen, prepare_signals(signals), adapt="curved", learner=None).value == base.value


def test_bases_have_pool_mean_zero() -> None:
    rng = np.random.default_rng(4)
    signals = np.column_stack([rng.standard_cauchy(300), rng.integers(0, 2, 300), np.ones(300), rng.normal(size=300)])
    pool = prepare_signals(signals)
    both = np.stack(pool.scales(slice(None)))
    assert np.abs(pool.curves.squares(both).mean(axis=1)).max() < 1e-9
    assert np.abs(pool.curves.cubes(both[1]).mean(axis=0)).max() < 1e-9
    bins = pool.curves.indicators(both[1])
    assert np.abs(bins.mean(axis=1)).max() < 1e-12
    assert bins[3].sum(axis=1) == pytest.approx(0.0)
    assert pool.curves.bins[:, 3] == pytest.approx(0.25)


def test_a_block_is_the_ridge_of_refitting_without_each_label() -> None:
    rng = np.random.default_rng(2)
    n, penalty = 25, 0.1
    block = rng.normal(size=(n, 3))
    y = rng.normal(size=n)
    shares = np.full(n, 1.0 / n)
    fit = ridge_blocks(block[None], np.array([penalty]), y - y.mean(), float(y.mean()), shares, ())
    around = block - block.mean(axis=0)
    slope = np.linalg.solve(around.T @ around / n + penalty * np.eye(3), around.T @ (y - y.mean()) / n)
    assert fit.value[0] == pytest.approx(y.mean() - slope @ block.mean(axis=0))
    assert fit.linear[0] @ y == pytest.approx(fit.value[0])
    for left in range(n):  # the left-out error of a ridge whose penalty n·λ stays as it was
        kept = np.arange(n) != left
        around = block[kept] - block[kept].mean(axis=0)
        refit = np.linalg.solve(around.T @ around + n * penalty * np.eye(3), around.T @ (y[kept] - y[kept].mean()))
        expected = y[left] - y[kept].mean() - refit @ (block[left] - block[kept].mean(axis=0))
        assert fit.error[0, left] == pytest.approx(expected)


def test_gaps_take_the_rule_and_profiles_refuse_it_naming_average() -> None:
    rng = np.random.default_rng(7)
    y, signals = _u_shape(rng)
    other = (rng.random(M) < 0.5).astype(float)
    z = rng.normal(size=M)
    seen = _labels(y, 80, rng)
    partner = np.where(np.isfinite(seen), other, np.nan)
    gap = fit_gap(seen - partner, signals, adapt="curved")
    assert gap.variance < fit_gap(seen - partner, signals).variance
    profile = lace_gap(z, seen, partner, signals, signals**2, adapt="curved", at=[0.0, 1.0])
    assert profile.method == "lace_curved"
    assert np.isfinite(profile.value).all()
    assert profile.beta.shape == (2, 3)
    for call in (lace_profile, lace_profile_band):
        with pytest.raises(ValueError, match="average"):
            call(z, seen, signals, adapt="curved", rng=0)  # type: ignore[operator]
    with pytest.raises(ValueError, match="average"):
        lace_deployment(seen, signals, np.ones(M), adapt="curved")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="curved"):
        lace_mean(seen, signals, adapt="wavy")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="average"):
        fit_gap(seen - partner, signals, adapt="wavy")  # type: ignore[arg-type]


def test_curved_gap_profile_uses_a_u() -> None:
    errors = np.empty((40, 2))
    for seed in range(len(errors)):
        rng = np.random.default_rng(seed)
        y, signals = _u_shape(rng)
        z = rng.normal(size=M)
        zero = np.zeros(M)
        seen = _labels(y, 80, rng)
        partner = np.where(np.isfinite(seen), zero, np.nan)
        empty = np.zeros((M, 1))
        truth = lace_profile(z, y, np.empty((M, 0)), at=[0.0]).value[0]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            errors[seed] = [
                lace_gap(z, seen, partner, signals, empty, adapt=rule, at=[0.0]).value[0] - truth
                for rule in ("average", "curved")
            ]
    average, curved = (errors**2).mean(axis=0)
    assert curved < 0.8 * average


@pytest.mark.parametrize("n", [20, 100])
def test_heavy_tails_are_said_and_light_ones_are_not(n: int) -> None:
    def share_said(outcome: object) -> float:
        said = []
        for seed in range(80):
            rng = np.random.default_rng(seed)
            z = rng.normal(size=M)
            signals = standardize_signals(z[:, None] + rng.normal(size=(M, 2)))
            fit = lace_mean(_labels(outcome(z, rng), n, rng), signals, adapt="curved")  # type: ignore[operator]
            assert fit.largest_share is not None
            said.append(fit.heavy_tailed)
        return float(np.mean(said))

    assert share_said(lambda z, rng: np.exp(z + 0.5 * rng.normal(size=M))) >= 0.9
    assert share_said(lambda z, rng: np.where(rng.random(M) < 0.7, 0.0, np.exp(z))) >= 0.9
    if n == 100:
        assert share_said(lambda z, rng: z + rng.normal(size=M)) <= 0.1
    rng = np.random.default_rng(0)
    right = (rng.random(M) < 0.99).astype(float)
    assert lace_mean(_labels(right, n, rng), rng.normal(size=(M, 1)), adapt="curved").heavy_tailed is False
