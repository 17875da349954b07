"""Gaps, deployment, cascade, many draws, pools in chunks and bands."""

from __future__ import annotations

import warnings
from itertools import combinations

import numpy as np
import pytest
from scipy.stats import norm

from pipeline.estimators import (
    Categorical,
    Gaussian,
    Ordinal,
    ProfilePool,
    lace_cascade,
    lace_deployment,
    lace_gap,
    lace_gaps,
    lace_mean,
    lace_mean_from_pool,
    lace_profile,
    lace_profile_band,
    lace_profile_from_pool,
    lace_profile_splits,
    standardize_signals,
)


def pool(seed: int, rows: int = 300, labels: int = 70) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    z = rng.uniform(0, 3, rows)
    y = (rng.random(rows) < 0.5 + 0.3 * np.sin(2 * z)).astype(float)
    signals = standardize_signals(rng.normal(size=(rows, 3)) + y[:, None])
    labeled = np.zeros(rows, dtype=bool)
    labeled[rng.choice(rows, labels, replace=False)] = True
    return {"z": z, "y": y, "signals": signals, "labeled": labeled}


class TestGap:
    def test_is_lace_on_the_difference(self) -> None:
        first, second = pool(0), pool(1)
        pairwise = np.random.default_rng(2).normal(size=300)
        features = np.column_stack(
            [first["signals"], second["signals"], first["signals"] - second["signals"], pairwise]
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            gap = lace_gap(
                first["z"], first["y"], second["y"], first["signals"], second["signals"], pairwise=pairwise,
                labeled=first["labeled"], at=[1.0, 2.0],
            )  # fmt: skip
            same = lace_profile(
                first["z"], first["y"] - second["y"], features, labeled=first["labeled"], at=[1.0, 2.0], interval="t"
            )
        np.testing.assert_allclose(gap.value, same.value, rtol=1e-12)
        np.testing.assert_allclose(gap.low, same.low, rtol=1e-12)
        assert gap.beta.shape == (2, 10)
        assert gap.diagnostics["contrast"] == "a - b"

    @pytest.mark.parametrize("adapt", [None, "average"])
    def test_swapping_the_models_flips_the_sign(self, adapt: str | None) -> None:
        a, b = pool(3), pool(4)
        options = {"labeled": a["labeled"], "at": [1.0, 2.0], "adapt": adapt}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            forward = lace_gap(a["z"], a["y"], b["y"], a["signals"], b["signals"], **options)
            backward = lace_gap(a["z"], b["y"], a["y"], b["signals"], a["signals"], **options)
        np.testing.assert_allclose(forward.value, -backward.value, atol=1e-12)
        np.testing.assert_allclose(forward.low, -backward.high, atol=1e-12)

    def test_a_model_that_is_never_worse_is_no_share(self) -> None:
        case = pool(5)
        worse = case["y"] * (np.random.default_rng(0).random(300) < 0.7)
        for adapt in (None, "average"):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                gap = lace_gap(
                    case["z"], case["y"], worse, case["signals"], case["signals"][:, ::-1], labeled=case["labeled"],
                    adapt=adapt,
                )  # fmt: skip
            assert set(gap.diagnostics["interval"]) == {"t"}
            assert not gap.diagnostics["binary"]

    def test_labels_default_to_where_both_are_known(self) -> None:
        a, b = pool(6), pool(7)
        y_a, y_b = np.where(a["labeled"], a["y"], np.nan), np.where(b["labeled"], b["y"], np.nan)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            gap = lace_gap(a["z"], y_a, y_b, a["signals"], b["signals"], at=[1.0])
        assert gap.diagnostics["n_labeled"] == int((a["labeled"] & b["labeled"]).sum())

    def test_signals_of_different_width_are_refused(self) -> None:
        a = pool(8)
        with pytest.raises(ValueError, match="same shape"):
            lace_gap(a["z"], a["y"], a["y"], a["signals"], a["signals"][:, :2])

    @pytest.mark.parametrize("locality", [None, Ordinal(2), Categorical()])
    def test_all_pairs_from_one_set_of_moments(self, locality: object) -> None:
        rng = np.random.default_rng(9)
        z = rng.uniform(0, 3, 200) if locality is None else rng.integers(0, 4, 200)
        y = (rng.random((200, 4)) < 0.5).astype(float)
        cube = rng.normal(size=(200, 4, 2)) + y[:, :, None]
        cube = (cube - cube.mean(axis=0)) / cube.std(axis=0)
        y[80:] = np.nan
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = dict(lace_gaps(z, y, cube, locality=locality))
            assert list(found) == list(combinations(range(4), 2))
            for (a, b), profile in found.items():
                one = lace_gap(z, y[:, a], y[:, b], cube[:, a], cube[:, b], locality=locality)
                np.testing.assert_allclose(profile.value, one.value, atol=1e-11)
                np.testing.assert_allclose(profile.variance, one.variance, atol=1e-11)
                np.testing.assert_allclose(profile.low, one.low, atol=1e-11)


class TestDeployment:
    def test_follows_equation_4_by_loops(self) -> None:
        case = pool(10)
        ratio = np.exp(0.4 * case["z"])
        ratio /= ratio.mean()
        found = lace_deployment(case["y"], case["signals"], ratio, labeled=case["labeled"])
        label = np.flatnonzero(case["labeled"])
        y, s = case["y"], case["signals"]
        pool_mean = sum(ratio[i] * s[i] for i in range(300)) / ratio.sum()
        total = ratio[label].sum()
        y_mean = sum(ratio[i] * y[i] for i in label) / total
        s_mean = sum(ratio[i] * s[i] for i in label) / total
        gram = sum(ratio[i] ** 2 * np.outer(s[i] - pool_mean, s[i] - pool_mean) for i in range(300)) / 300
        cross = sum(ratio[i] ** 2 * (s[i] - pool_mean) * (y[i] - y_mean) for i in label) / len(label)
        beta = np.linalg.solve(gram + 0.3 * np.eye(3), cross)
        assert found.value == pytest.approx(y_mean - beta @ (s_mean - pool_mean), abs=1e-12)
        np.testing.assert_allclose(found.diagnostics["beta"], beta, atol=1e-12)

    def test_its_linear_weights_are_its_derivative(self) -> None:
        # V is built from θ̂ = Σ c_i Y_i: moving one label by δ must move the estimate by c_i δ.
        case = pool(11)
        ratio = np.exp(0.4 * case["z"]) / np.exp(0.4 * case["z"]).mean()
        y = case["y"] + np.random.default_rng(0).normal(size=300)
        base = lace_deployment(y, case["signals"], ratio, labeled=case["labeled"])
        moved = [
            lace_deployment(y + 1.0 * (np.arange(300) == i), case["signals"], ratio, labeled=case["labeled"]).value
            for i in np.flatnonzero(case["labeled"])
        ]
        linear = np.array(moved) - base.value
        assert linear @ y[case["labeled"]] == pytest.approx(base.value, abs=1e-10)
        assert linear.sum() == pytest.approx(1.0, abs=1e-10)

    @pytest.mark.parametrize("adapt", [None, "average"])
    def test_equal_ratios_give_the_mean(self, adapt: str | None) -> None:
        case = pool(12)
        found = lace_deployment(case["y"], case["signals"], np.ones(300), labeled=case["labeled"], adapt=adapt)
        mean = lace_mean(case["y"], case["signals"], labeled=case["labeled"])
        assert found.value == pytest.approx(mean.value, abs=1e-10 if adapt is None else 0.05)
        if adapt is None:
            assert found.se == pytest.approx(mean.se, rel=1e-9)

    @pytest.mark.parametrize("adapt", [None, "average"])
    def test_coverage(self, adapt: str | None) -> None:
        rng = np.random.default_rng(13)
        hits = []
        for _ in range(200):
            case = pool(int(rng.integers(1 << 30)))
            ratio = np.exp(0.6 * case["z"])
            ratio /= ratio.mean()
            found = lace_deployment(case["y"], case["signals"], ratio, labeled=case["labeled"], adapt=adapt)
            hits.append(found.low <= np.average(case["y"], weights=ratio) <= found.high)
        assert np.mean(hits) > 0.95 - 3.5 * np.sqrt(0.95 * 0.05 / 200)

    def test_ratios_are_checked(self) -> None:
        case = pool(14)
        with pytest.raises(ValueError, match="ratio"):
            lace_deployment(case["y"], case["signals"], -np.ones(300), labeled=case["labeled"])
        with pytest.warns(UserWarning, match="average 7"):
            lace_deployment(case["y"], case["signals"], np.full(300, 7.0), labeled=case["labeled"])


class TestCascade:
    def make(self, seed: int) -> tuple[dict[str, np.ndarray], np.ndarray]:
        case = pool(seed)
        rng = np.random.default_rng(seed + 1)
        rated = case["labeled"] | (rng.random(300) < 0.4)
        expensive = np.where(rated, case["y"] + 0.5 * rng.normal(size=300), np.nan)
        return case, expensive

    def test_follows_appendix_f(self) -> None:
        case, expensive = self.make(20)
        found = lace_cascade(
            case["z"], case["y"], expensive, case["signals"], labeled=case["labeled"], at=[1.5], locality=Gaussian(0.5)
        )
        rated = np.isfinite(expensive)
        kernel = np.exp(-0.5 * ((case["z"] - 1.5) / 0.5) ** 2)

        def local(rows: np.ndarray, values: np.ndarray) -> np.ndarray:
            return kernel[rows] @ values[rows] / kernel[rows].sum()

        everything = np.ones(300, dtype=bool)
        both = np.column_stack([np.where(rated, expensive, 0.0), case["signals"]])
        label = case["labeled"]

        def coefficient(columns: np.ndarray, over: np.ndarray) -> np.ndarray:
            centre = columns - local(over, columns)
            gram = (centre[over] * kernel[over, None]).T @ centre[over] / kernel[over].sum()
            around = columns - local(label, columns)
            residual = case["y"] - local(label, case["y"])
            cross = (kernel[label] * residual[label]) @ around[label] / kernel[label].sum()
            return np.linalg.solve(gram + 0.3 * np.eye(columns.shape[1]), cross)

        beta1, beta0 = coefficient(both, rated), coefficient(case["signals"], everything)
        wanted = (
            local(label, case["y"])
            - beta1 @ (local(label, both) - local(rated, both))
            - beta0 @ (local(rated, case["signals"]) - local(everything, case["signals"]))
        )
        assert found.value[0] == pytest.approx(wanted, abs=1e-12)
        np.testing.assert_allclose(found.beta[0], beta1, atol=1e-12)
        np.testing.assert_allclose(found.diagnostics["beta0"][0], beta0, atol=1e-12)

    def test_everything_rated_is_lace_on_all_signals(self) -> None:
        case = pool(21)
        expensive = case["y"] + np.random.default_rng(0).normal(size=300)
        found = lace_cascade(case["z"], case["y"], expensive, case["signals"], labeled=case["labeled"], at=[1.5])
        both = np.column_stack([expensive, case["signals"]])
        same = lace_profile(case["z"], case["y"], both, labeled=case["labeled"], at=[1.5])
        np.testing.assert_allclose(found.value, same.value, atol=1e-12)
        np.testing.assert_allclose(found.variance, same.variance, rtol=1e-9)

    def test_labels_must_be_rated(self) -> None:
        case, expensive = self.make(22)
        expensive[np.flatnonzero(case["labeled"])[:3]] = np.nan
        with pytest.raises(ValueError, match="3 labeled items have no expensive rating"):
            lace_cascade(case["z"], case["y"], expensive, case["signals"], labeled=case["labeled"])

    def test_coverage_and_gain(self) -> None:
        hits, shorter = [], []
        for seed in range(150):
            case, expensive = self.make(1000 + seed)
            options = {"labeled": case["labeled"], "at": [0.7, 1.5, 2.3], "locality": Gaussian(0.4)}
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = lace_cascade(case["z"], case["y"], expensive, case["signals"], **options)
                truth = lace_profile(
                    case["z"], case["y"], np.empty((300, 0)), at=[0.7, 1.5, 2.3], locality=Gaussian(0.4)
                ).value
                plain = lace_profile(case["z"], case["y"], case["signals"], **options)
            hits.append(np.mean((found.low <= truth) & (truth <= found.high)))
            shorter.append(np.mean(found.se < plain.se))
        assert np.mean(hits) > 0.95 - 3.5 * np.std(hits) / np.sqrt(150) - 0.01
        assert np.mean(shorter) > 0.5


class TestManyDraws:
    @pytest.mark.parametrize("locality", [None, Ordinal(2), Categorical()])
    @pytest.mark.parametrize("standardize", [False, True])
    def test_equals_a_loop(self, locality: object, standardize: bool) -> None:
        case = pool(30)
        z = case["z"] if locality is None else np.floor(case["z"] * 2)
        rng = np.random.default_rng(0)
        sets = np.stack([rng.choice(300, 25, replace=False) for _ in range(12)])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            many = lace_profile_splits(z, case["y"], case["signals"], sets, locality=locality, standardize=standardize)
            for row, chosen in zip(many, sets, strict=True):
                labeled = np.isin(np.arange(300), chosen)
                one = lace_profile(
                    z, case["y"], case["signals"], labeled=labeled, locality=locality, standardize=standardize
                )
                np.testing.assert_allclose(row, one.value, atol=1e-11)

    def test_far_labels_and_the_adaptive_rule(self) -> None:
        case = pool(31)
        near = np.argsort(case["z"])[:40]
        member = np.zeros((2, 300), dtype=bool)
        member[0, near], member[1, np.argsort(case["z"])[-40:]] = True, True
        for adapt in (None, "average"):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                many = lace_profile_splits(
                    case["z"], case["y"], case["signals"], member, locality=Gaussian(0.02), at=[0.1, 2.9], adapt=adapt
                )
                for row, labeled in zip(many, member, strict=True):
                    one = lace_profile(
                        case["z"], case["y"], case["signals"], labeled=labeled, locality=Gaussian(0.02),
                        at=[0.1, 2.9], adapt=adapt,
                    )  # fmt: skip
                    np.testing.assert_allclose(row, one.value, atol=1e-9)

    @pytest.mark.parametrize(
        ("sets", "message"),
        [
            (np.array([[0, 300]]), "indices in 0..299"),
            (np.array([[0, 0]]), "twice"),
            (np.zeros((2, 300), dtype=bool), "empty"),
            (np.array([0, 1]), "labeled_sets must have shape"),
            (np.array([[0.5]]), "indices or booleans"),
        ],
    )
    def test_refusals(self, sets: np.ndarray, message: str) -> None:
        case = pool(32)
        with pytest.raises(ValueError, match=message):
            lace_profile_splits(case["z"], case["y"], case["signals"], sets)


class TestPoolInChunks:
    @pytest.mark.parametrize("locality", [Gaussian(0.3), Ordinal(2), Categorical()])
    @pytest.mark.parametrize("standardize", [False, True])
    def test_equals_the_pool_in_memory(self, locality: object, standardize: bool) -> None:
        case = pool(40, rows=3000)
        z = case["z"] if isinstance(locality, Gaussian) else np.floor(case["z"] * 2)
        at = [0.5, 2.5] if isinstance(locality, Gaussian) else [0.0, 2.0, 3.0]
        signals = case["signals"] * np.array([1.0, 2.0, 0.5]) + np.array([0.0, 100.0, 0.0])
        chunks = ((z[start : start + 701], signals[start : start + 701]) for start in range(0, 3000, 701))
        prepared = ProfilePool.from_chunks(chunks, at=at, locality=locality)
        label = case["labeled"]
        for target in ("pool", "population"):
            options = {"standardize": standardize, "target": target}
            found = lace_profile_from_pool(prepared, z[label], case["y"][label], signals[label], **options)
            whole = lace_profile(z, case["y"], signals, labeled=label, at=at, locality=locality, **options)
            for name in ("value", "variance", "low", "high", "beta"):
                np.testing.assert_allclose(getattr(found, name), getattr(whole, name), rtol=1e-9, atol=1e-11)
            mean = lace_mean_from_pool(prepared, case["y"][label], signals[label], **options)
            other = lace_mean(case["y"], signals, labeled=label, **options)
            assert (mean.value, mean.se, mean.low) == pytest.approx((other.value, other.se, other.low), rel=1e-9)

    def test_a_pool_is_used_again_and_far_points_do_not_underflow(self) -> None:
        case = pool(41, rows=2000)
        prepared = ProfilePool.from_arrays(case["z"], case["signals"], at=[-500.0, 1.5], locality=Gaussian(0.3))
        label = case["labeled"]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = lace_profile_from_pool(prepared, case["z"][label], case["y"][label], case["signals"][label])
            whole = lace_profile(
                case["z"], case["y"], case["signals"], labeled=label, at=[-500.0, 1.5], locality=Gaussian(0.3)
            )
        np.testing.assert_allclose(found.value, whole.value, rtol=1e-9)

    def test_refusals(self) -> None:
        with pytest.raises(ValueError, match="no pool row"):
            ProfilePool.from_chunks([], at=[0.0], locality=Gaussian(1.0))
        with pytest.raises(ValueError, match="2 signals each"):
            ProfilePool.from_chunks(
                [(np.zeros(3), np.zeros((3, 2))), (np.zeros(3), np.zeros((3, 1)))], at=[0.0], locality=Gaussian(1.0)
            )


class TestBand:
    def test_is_wider_than_pointwise_and_names_its_level(self) -> None:
        case = pool(50)
        band = lace_profile_band(**case, rng=1)
        point = lace_profile(**case)
        assert band.level == 0.95
        assert 0.95 < band.diagnostics["pointwise_level"] < 1 - 0.05 / 20 + 0.001  # no more than Bonferroni's
        assert np.all(band.high - band.low >= point.high - point.low - 1e-12)
        np.testing.assert_array_equal(band.value, point.value)
        again = lace_profile_band(**case, rng=1)
        np.testing.assert_array_equal(band.low, again.low)

    def test_one_point_needs_no_more_than_its_own_interval(self) -> None:
        case = pool(51)
        band = lace_profile_band(**case, at=[1.5], rng=2, draws=20_000)
        # The maximum over one point is |N(0, 1)|: its simulated 95 % quantile has a standard error of about 0.015.
        assert band.diagnostics["critical_value"] == pytest.approx(norm.ppf(0.975), abs=0.06)

    @pytest.mark.slow
    def test_simultaneous_coverage(self) -> None:
        rng = np.random.default_rng(52)
        hits = {None: [], "average": []}
        for _ in range(120):
            case = pool(int(rng.integers(1 << 30)))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                truth = lace_profile(case["z"], case["y"], np.empty((300, 0))).value
                for adapt, found in hits.items():
                    band = lace_profile_band(**case, adapt=adapt, rng=rng, draws=500)
                    found.append(np.all((band.low <= truth) & (truth <= band.high)))
        for found in hits.values():
            assert np.mean(found) > 0.95 - 3.5 * np.sqrt(0.95 * 0.05 / 120)
