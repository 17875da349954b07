"""Kernels, default points, levels of any type, and the bandwidth rule."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.estimators import Categorical, Gaussian, Ordinal, lace_profile, rule_of_thumb_bandwidth
from pipeline.estimators.lace.kernel_blocks import ExpandedBlock, GeneralBlock, best_block, uniform_block
from pipeline.estimators.lace.localities import encode_like, linear_quantile, resolve_axis
from pipeline.estimators.lace.pool import pool_moments


def test_bandwidth_rule() -> None:
    z = np.array([[0.0, 5.0], [2.0, 5.5], [4.0, 9.0]])
    expected = 1.5 * 1.06 * z.std(axis=0) * 3**-0.2
    np.testing.assert_allclose(rule_of_thumb_bandwidth(z), expected)
    assert rule_of_thumb_bandwidth(z[:, 0]) == pytest.approx(expected[0])
    assert rule_of_thumb_bandwidth(z[:, 0], 3.0) == pytest.approx(2 * expected[0])
    for bad in ([np.nan, 1.0], [], [2.0, 2.0]):
        with pytest.raises(ValueError, match="z "):
            rule_of_thumb_bandwidth(bad)


def test_default_points_and_localities() -> None:
    z = np.random.default_rng(0).normal(size=101)
    axis = resolve_axis(z)
    np.testing.assert_array_equal(axis.at, np.linspace(*np.quantile(z, (0.05, 0.95)), 20))
    assert axis.localities == (Gaussian(rule_of_thumb_bandwidth(z)),)
    assert resolve_axis(["b", "a", "b"]).localities == (Categorical(),)
    assert list(resolve_axis(["b", "a", "b"]).at) == ["a", "b"]
    assert list(resolve_axis([True, False]).at) == [False, True]
    assert list(resolve_axis([3, 1, 3], locality=Ordinal()).at) == [1, 3]


def test_weights_sum_to_one_or_are_zero() -> None:
    axis = resolve_axis([1.0, 2.0, 2.0, 9.0], [2.0, 5.0], Ordinal(2))
    np.testing.assert_allclose(axis.weights(axis.z), [[0.2, 0.4, 0.4, 0.0], [0.0, 0.0, 0.0, 0.0]])
    axis = resolve_axis(["x", "y", "x"], ["y", "x", "z"], Categorical())
    np.testing.assert_allclose(axis.weights(axis.z), [[0, 1, 0], [0.5, 0, 0.5], [0, 0, 0]])


def test_a_mixed_profile_multiplies_kernels() -> None:
    z = np.empty((4, 2), dtype=object)
    z[:, 0], z[:, 1] = ["a", "a", "b", "a"], [0.0, 1.0, 0.0, 3.0]
    at = np.array([["a", 0.0], ["b", 2.0], ["c", 1.0]], dtype=object)
    axis = resolve_axis(z, at, (Categorical(), Gaussian(1.0)))
    raw = np.exp(-0.5 * np.array([0.0, 1.0, 9.0]))
    np.testing.assert_allclose(axis.weights(axis.z)[0], np.array([raw[0], raw[1], 0.0, raw[2]]) / raw.sum())
    np.testing.assert_allclose(axis.weights(axis.z)[1:], [[0, 0, 1, 0], [0, 0, 0, 0]])
    np.testing.assert_array_equal(encode_like(axis, z), axis.z)
    y = np.array([1.0, 0.0, 1.0, np.nan])
    profile = lace_profile(z, y, np.zeros((4, 0)), at=at, locality=(Categorical(), Gaussian(1.0)))
    np.testing.assert_allclose(profile.value[:2], [raw[0] / raw[:2].sum(), 1.0])
    assert np.isnan(profile.value[2])


@pytest.mark.parametrize(
    ("z", "options", "message"),
    [
        (np.zeros((5, 2)) + np.arange(5)[:, None], {}, "needs explicit points"),
        ([1.0, np.nan], {}, "non-finite"),
        (["a", None], {}, "missing"),
        (["a", "b"], {"locality": Gaussian(1.0)}, "Categorical"),
        ([1.0, 2.0], {"locality": (Gaussian(1.0), Gaussian(1.0))}, "1 of them"),
        (["a", "b"], {"at": [1.0]}, "levels of z"),
        ([1.0, 2.0], {"at": ["a"], "locality": Gaussian(1.0)}, "strings"),
        (np.zeros((3, 2)), {"at": [[0.0, 0.0, 0.0]], "locality": Categorical()}, "at must have shape"),
    ],
)
def test_refusals(z: object, options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        resolve_axis(z, **options)


@pytest.mark.parametrize("width", [0.0, -1.0, np.nan, np.inf])
def test_widths_must_be_positive(width: float) -> None:
    with pytest.raises(ValueError, match="positive"):
        Gaussian(width)
    with pytest.raises(ValueError, match="positive"):
        Ordinal(width)


@given(st.integers(2, 400), st.integers(0, 2**31), st.sampled_from(["normal", "levels", "heavy"]))
@settings(max_examples=60, deadline=None)
def test_quantiles_are_numpys(size: int, seed: int, kind: str) -> None:
    rng = np.random.default_rng(seed)
    values = {
        "normal": rng.normal(size=size),
        "levels": rng.integers(0, 4, size).astype(float),
        "heavy": rng.standard_cauchy(size),
    }[kind]
    for probability in (0.05, 0.5, 0.95):
        assert linear_quantile(values, probability) == np.quantile(values, probability)


@pytest.mark.parametrize("kind", ["random", "sorted", "levels", "half constant"])
def test_quantiles_of_long_arrays_are_numpys(kind: str) -> None:
    rng = np.random.default_rng(0)
    values = rng.normal(size=300_001)
    values = {
        "random": values,
        "sorted": np.sort(values),
        "levels": np.round(values),
        "half constant": np.where(np.arange(300_001) % 2, values, 0.0),
    }[kind]
    for probability in (0.05, 0.5, 0.95):
        assert linear_quantile(values, probability) == np.quantile(values, probability)


@pytest.mark.parametrize(
    ("bandwidth", "at", "block"),
    [
        (0.3, np.linspace(-1.5, 1.5, 20), ExpandedBlock),
        (0.3, np.array([-2.0, 0.1, 1.7]), ExpandedBlock),
        (0.001, np.linspace(-1.5, 1.5, 20), GeneralBlock),
        (0.3, np.linspace(3.0, -40.0, 5), ExpandedBlock),
    ],
)
def test_quick_pool_moments_equal_the_weights(bandwidth: float, at: np.ndarray, block: type) -> None:
    rng = np.random.default_rng(1)
    z, signals = rng.normal(size=30_000), rng.normal(size=(30_000, 2)) + 50.0
    axis = resolve_axis(z, at, Gaussian(bandwidth))
    assert type(best_block(axis)) is block
    moments = pool_moments(axis, signals)
    weights = axis.weights(axis.z)
    centred = signals - moments.centre
    mean = weights @ centred
    np.testing.assert_allclose(moments.mean, mean, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(moments.square, (weights**2).sum(axis=1), rtol=1e-10)
    second = np.einsum("gm,mk,ml->gkl", weights, centred, centred) - mean[:, :, None] * mean[:, None, :]
    np.testing.assert_allclose(moments.gram, second, rtol=1e-9, atol=1e-11)


def test_the_recursion_is_for_even_grids_of_moderate_length_only() -> None:
    z = np.random.default_rng(2).normal(size=100)
    assert uniform_block(resolve_axis(z, np.linspace(-1, 1, 20), Gaussian(0.2))) is not None
    assert uniform_block(resolve_axis(z, np.array([0.0, 1.0, 2.0, 4.0]), Gaussian(0.2))) is None
    assert uniform_block(resolve_axis(z, np.linspace(-1, 1, 20), Gaussian(0.01))) is None
    assert uniform_block(resolve_axis(z, np.linspace(-1, 1, 20), Ordinal(2))) is None
