"""The vectorised LACE against explicit loops, on random designs: every kernel, target, interval and rule."""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import lace_loops as loops
import numpy as np
import pytest

from pipeline.estimators import Categorical, Gaussian, Ordinal, lace_mean, lace_profile, rule_of_thumb_bandwidth

KERNELS = ("gaussian", "ordinal", "categorical")
DESIGNS = range(50)
CASES = list(itertools.product(KERNELS, ("pool", "population"), ("auto", "t", "wilson")))


def design(seed: int, kernel: str, rows: int, labels: int, *, binary: bool = True) -> dict[str, Any]:
    rng = np.random.default_rng(1000 * seed + KERNELS.index(kernel))
    count = int(rng.integers(1, 5))
    z = rng.uniform(0, 3, rows) if kernel == "gaussian" else rng.integers(1, 5, rows).astype(float)
    share = np.clip(rng.uniform(0.05, 0.95) + 0.2 * np.sin(z), 0.02, 0.98)
    y = (rng.random(rows) < share).astype(float) if binary else share + rng.standard_t(3, rows)
    signals = rng.normal(size=(rows, count)) + y[:, None] * rng.normal(size=count) + rng.normal(size=count)
    labeled = np.zeros(rows, dtype=bool)
    labeled[rng.choice(rows, labels, replace=False)] = True
    return {"z": z, "y": y, "signals": signals, "labeled": labeled}


def kernel_pair(kernel: str, z: np.ndarray, multiple: float = 1.0) -> tuple[Any, loops.Kernel]:
    if kernel == "gaussian":
        width = float(rule_of_thumb_bandwidth(z)) * multiple
        return Gaussian(width), loops.gaussian(width)
    if kernel == "ordinal":
        return Ordinal(2 * multiple), loops.ordinal(2 * multiple)
    return Categorical(), loops.categorical()


def assert_same(profile: Any, answer: loops.Answer) -> None:
    for name in ("value", "variance", "df", "low", "high", "n_effective", "r2"):
        np.testing.assert_allclose(getattr(profile, name), getattr(answer, name), rtol=1e-10, atol=1e-10, err_msg=name)


@pytest.mark.parametrize("seed", DESIGNS)
def test_fixed_rule(seed: int) -> None:
    kernel, target, interval = CASES[seed % len(CASES)]
    for kernel in KERNELS:
        case = design(seed, kernel, 80, 24)
        locality, log_kernel = kernel_pair(kernel, case["z"])
        at = np.linspace(0.4, 2.6, 5) if kernel == "gaussian" else np.unique(case["z"][case["labeled"]])
        ridge = (0.03, 0.3, 3.0)[seed % 3]
        for target, interval in itertools.product(("pool", "population"), ("auto", "t", "wilson")):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                profile = lace_profile(**case, at=at, locality=locality, ridge=ridge, target=target, interval=interval)
            answer = loops.fixed_rule(**case, at=at, kernel=log_kernel, ridge=ridge, target=target, interval=interval)
            assert_same(profile, answer)


@pytest.mark.parametrize("seed", range(12))
def test_other_coefficient_locality_and_unequal_labels(seed: int) -> None:
    kernel = KERNELS[seed % 2]
    case = design(seed, kernel, 70, 25)
    locality, log_kernel = kernel_pair(kernel, case["z"])
    wider, log_wider = kernel_pair(kernel, case["z"], 2.0)
    inclusion = np.random.default_rng(seed).uniform(0.2, 0.6, 70)
    at = np.array([1.0, 2.0, 2.5]) if kernel == "gaussian" else np.unique(case["z"][case["labeled"]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        profile = lace_profile(
            **case, at=at, locality=locality, coefficient_locality=wider, inclusion_probabilities=inclusion
        )
    assert_same(
        profile,
        loops.fixed_rule(**case, at=at, kernel=log_kernel, coefficient_kernel=log_wider, inclusion=inclusion),
    )


@pytest.mark.parametrize("seed", DESIGNS)
def test_adaptive_rule(seed: int) -> None:
    kernel, target, interval = CASES[seed % len(CASES)]
    binary = seed % 4 != 3
    interval = interval if binary or interval != "wilson" else "auto"
    case = design(seed, kernel, 60, 20, binary=binary)
    locality, _ = kernel_pair(kernel, case["z"])
    widths = (1.0,) if kernel == "categorical" else (1.0, 2.0, 4.0)
    kernels = [kernel_pair(kernel, case["z"], width)[1] for width in widths]
    if kernel == "gaussian":
        low, high = np.quantile(case["z"], (0.05, 0.95))
        references, at = np.linspace(low, high, 20), np.array([0.3, 1.1, 2.2])
    else:
        references = at = np.unique(case["z"][case["labeled"]])
    profile = lace_profile(**case, at=at, locality=locality, adapt="average", target=target, interval=interval)
    answer = loops.adaptive_rule(
        **case, at=at, kernels=kernels, references=references, own_level=kernel != "gaussian",
        target=target, interval=interval,
    )  # fmt: skip
    assert_same(profile, answer)


@pytest.mark.parametrize("seed", DESIGNS)
def test_adaptive_mean(seed: int) -> None:
    binary = seed % 3 != 2
    case = design(seed, "gaussian", 60, 20 + seed % 7, binary=binary)
    case.pop("z")
    interval = ("auto", "t")[seed % 2]
    estimate = lace_mean(**case, adapt="average", learner=None, interval=interval)
    value, variance, df, low, high = loops.adaptive_mean_rule(**case, interval=interval)
    if binary and interval == "t":
        low, high = max(low, 0.0), min(high, 1.0)
    found = (estimate.value, estimate.se**2, estimate.diagnostics["df"], estimate.low, estimate.high)
    np.testing.assert_allclose(found, (value, variance, df, low, high), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("seed", range(10))
def test_fixed_mean_is_one_category(seed: int) -> None:
    case = design(seed, "categorical", 60, 22)
    case["z"] = np.zeros(60)
    for target in ("pool", "population"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            estimate = lace_mean(case["y"], case["signals"], labeled=case["labeled"], target=target)
        answer = loops.fixed_rule(**case, at=np.array([0.0]), kernel=loops.categorical(), target=target)
        found = (estimate.value, estimate.se**2, estimate.low, estimate.high, estimate.diagnostics["r2"])
        wanted = (answer.value[0], answer.variance[0], answer.low[0], answer.high[0], answer.r2[0])
        np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-10)
