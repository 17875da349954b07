"""Ties are exact on score lattices: no rounding, sign of zero, order of candidates or held-out score decides them."""

from __future__ import annotations

import numpy as np
import pytest

from pipeline.estimators import best_of_n, best_of_n_batch, best_of_n_fixed_split, best_of_n_reuse, winner_weights
from pipeline.estimators.best_of_n.lattice import STEPS, lattice_steps


def test_minus_zero_ties_with_zero() -> None:
    np.testing.assert_array_equal(winner_weights([-0.0, 0.0, -1.0], 2), [0.5, 0.5, 0.0])
    np.testing.assert_array_equal(winner_weights(np.array([0.0, -0.0, -0.0]), 2), [1 / 3] * 3)
    signed = np.array([[0.0, 0.3, 1.7], [-0.0, 2.9, -1.1], [-5.0, 0.2, 0.9]])
    unsigned = np.array([[0.0, 0.3, 1.7], [0.0, 2.9, -1.1], [-5.0, 0.2, 0.9]])
    for lattice in ("auto", None):
        assert best_of_n(signed, 2, 1, lattice=lattice) == best_of_n(unsigned, 2, 1, lattice=lattice)


def test_tenths_tie_although_their_floating_sums_differ() -> None:
    assert 0.1 + 0.2 != 0.3 + 0.0
    scores = np.array([[0.1, 0.2, 0.9], [0.3, 0.0, 0.5]])
    integers = np.array([[1, 2, 9], [3, 0, 5]])
    assert best_of_n(scores, 2) == pytest.approx(best_of_n(integers, 2) / 10, abs=1e-15)
    assert best_of_n_fixed_split(scores, 2, 2) == pytest.approx(0.7, abs=1e-15)


@pytest.mark.parametrize("step", STEPS)
def test_auto_finds_every_listed_step(step: float) -> None:
    integers = np.random.default_rng(2).integers(0, 12, (6, 4))
    integers[0, 0], integers[1, 0] = 1, 7  # keeps the values off every coarser step
    scores = integers * step
    assert best_of_n(scores, 3) == pytest.approx(best_of_n(integers, 3) * step, abs=1e-13)
    assert best_of_n(scores, 3, lattice=step) == pytest.approx(best_of_n(integers, 3) * step, abs=1e-13)


def test_the_coarsest_fitting_step_is_chosen_and_continuous_scores_have_none() -> None:
    grid = np.array([[[0.0, 0.5], [1.0, 1.5]]])
    assert lattice_steps(grid, "auto")[0][0] == 0.5
    assert lattice_steps(grid * 2, "auto")[0][0] == 1.0
    assert np.isnan(lattice_steps(np.random.default_rng(0).standard_normal((1, 5, 5)), "auto")[0][0])


@pytest.mark.parametrize("scale", [1e-9, 1e-12, 1e-30])
def test_tiny_scores_are_not_taken_for_zeros(scale: float) -> None:
    scores = np.random.default_rng(4).standard_normal((6, 4))
    assert best_of_n(scores * scale, 3) == pytest.approx(best_of_n(scores, 3) * scale, rel=1e-9)
    near_one = 1.0 + scores * 1e-8
    assert best_of_n(near_one, 3) == pytest.approx(1.0 + best_of_n(scores, 3) * 1e-8, abs=1e-14)


def test_huge_scores_do_not_overflow() -> None:
    scores = np.random.default_rng(4).standard_normal((6, 4))
    assert best_of_n(scores * 1e300, 3) == pytest.approx(best_of_n(scores, 3) * 1e300, rel=1e-12)
    large = np.array([[2**61, 1, 2**61], [1, 2**61, 2**60], [5, 6, 7]])
    assert best_of_n(large, 2) == pytest.approx(best_of_n(large / 2**40, 2) * 2**40, rel=1e-12)


def test_close_keys_are_ordered_exactly_in_large_pools() -> None:
    """Keys that agree in their leading bits: the packed sort must fall back on the keys themselves."""
    rng = np.random.default_rng(8)
    keys = 1.0 + rng.integers(0, 400, (2, 5000)) * 2.0**-50
    scores = np.stack([keys[0], rng.standard_normal(5000)], axis=1)
    expected = (winner_weights(keys[0], 5) @ scores[:, 1] + winner_weights(scores[:, 1], 5) @ keys[0]) / 2
    assert best_of_n(scores, 5, 1, lattice=None) == pytest.approx(float(expected), abs=1e-12)


@pytest.mark.parametrize("lattice", ["auto", None])
def test_order_of_candidates_never_matters(lattice: str | None) -> None:
    rng = np.random.default_rng(6)
    for scores in (rng.integers(0, 2, (8, 4)) / 10, rng.standard_normal((8, 4))):
        order = rng.permutation(8)
        assert best_of_n(scores, 3, 2, lattice=lattice) == pytest.approx(  # type: ignore[arg-type]
            best_of_n(scores[order], 3, 2, lattice=lattice),  # type: ignore[arg-type]
            abs=1e-14,
        )


def test_the_held_out_score_does_not_leak_into_continuous_keys() -> None:
    """Changing the held-out column of one candidate by any amount leaves that block's selection unchanged."""
    rng = np.random.default_rng(9)
    base = rng.choice([1 / 7, 2 / 7, 3 / 7], (6, 5))
    for held_out in range(5):
        for value in (1e-3, np.pi, 1e6):
            changed = base.copy()
            changed[2, held_out] += value
            blocks = [block_weights(matrix, held_out) for matrix in (base, changed)]
            np.testing.assert_array_equal(blocks[0], blocks[1])


def block_weights(scores: np.ndarray, held_out: int) -> np.ndarray:
    """Winner weights of the Holdout block that evaluates on ``held_out``."""
    from pipeline.estimators.best_of_n.blocks import cyclic_sums

    draws = scores.shape[1]
    sums = cyclic_sums(np.ascontiguousarray(scores.T), draws - 1, draws - 1)
    return winner_weights(sums[held_out], 3)


def test_declared_steps_and_bad_lattices() -> None:
    rounded = np.array([[0.33, 0.67, 1.0], [0.67, 0.33, 0.0], [0.0, 1.0, 0.33]])
    thirds = np.rint(rounded * 3) / 3
    keys_equal = best_of_n_reuse(rounded, 2, lattice=1 / 3)
    assert keys_equal == pytest.approx(best_of_n_reuse(thirds, 2), abs=0.01)
    with pytest.raises(ValueError, match="declared lattice step"):
        best_of_n(np.array([[0.1, 0.45], [0.2, 0.7]]), 2, lattice=0.1)
    for bad in ("thirds", 0.0, -1.0, float("nan"), True):
        with pytest.raises(ValueError, match="lattice"):
            best_of_n(rounded, 2, lattice=bad)  # type: ignore[arg-type]


def test_prompts_of_one_batch_keep_their_own_lattices() -> None:
    rng = np.random.default_rng(1)
    prompts = np.stack([rng.integers(0, 3, (5, 4)) / 10, rng.standard_normal((5, 4)), rng.integers(0, 3, (5, 4)) / 3])
    np.testing.assert_array_equal(best_of_n_batch(prompts, 3), [best_of_n(matrix, 3) for matrix in prompts])


@pytest.mark.parametrize("steps", [2, 3, 10, 20, 100])
def test_scores_in_a_short_float_type_tie_as_their_lattice_does(steps: int) -> None:
    rng = np.random.default_rng(steps)
    for _ in range(40):
        exact = rng.integers(0, 101, (6, 4)) / steps
        short = exact.astype(np.float32)
        assert best_of_n(short, 3, 2) == pytest.approx(best_of_n(exact, 3, 2), abs=2e-5)
        assert best_of_n_batch([short, exact], 4)[0] == pytest.approx(best_of_n(exact, 4), abs=2e-5)


def test_masked_scores_are_missing_and_object_columns_are_numbers() -> None:
    scores = np.arange(12.0).reshape(4, 3)
    holes = np.ma.masked_array(scores, mask=scores > 10)
    for refused in (lambda: best_of_n(holes, 2), lambda: best_of_n_batch(np.ma.stack([holes, holes]), 2)):
        with pytest.raises(ValueError, match="finite"):
            refused()
    assert best_of_n(scores.astype(object), 2) == best_of_n(scores, 2)


@pytest.mark.parametrize("offset", [0, 10**6, 2**30 // 12, 2**31 // 3, 2**31 - 20, 2**33, 2**40])
@pytest.mark.parametrize("sign", [1, -1])
def test_integers_near_the_width_of_a_word_neither_wrap_nor_lose_ties(offset: int, sign: int) -> None:
    levels = np.random.default_rng(5).integers(1, 6, (40, 3))
    expected = best_of_n(levels, 3) + sign * offset
    assert best_of_n(levels + sign * offset, 3) == pytest.approx(expected, rel=1e-12)
    assert best_of_n((levels + sign * offset).astype(float), 3) == pytest.approx(expected, rel=1e-12)
