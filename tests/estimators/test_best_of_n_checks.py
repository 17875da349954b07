"""Warnings fire on what they name and stay silent on sound scores."""

from __future__ import annotations

import numpy as np
import pytest

from pipeline.estimators import best_of_n_warnings, critical_rho, drift_test


def sound(seed: int = 0, prompts: int = 40, m: int = 8, k: int = 5) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.normal(0, 1, (prompts, m, 1)) + rng.normal(0, 0.5, (prompts, m, k))


def codes(scores: object, n: int | None = 4, j: int | None = 2) -> set[str]:
    return {warning.code for warning in best_of_n_warnings(scores, n, j)}  # type: ignore[arg-type]


def test_sound_scores_give_no_warning() -> None:
    assert codes(sound()) == set()
    assert codes(np.clip(np.rint(sound() * 2 + 5), 1, 10)) == set()
    assert best_of_n_warnings([]) == ()


def test_too_few_scores_name_the_fresh_score_design() -> None:
    warnings = best_of_n_warnings([*sound(), sound()[0][:, :2]], 4, 2)
    assert [warning.code for warning in warnings] == ["too_few_scores"]
    assert "1 of 41 prompts" in warnings[0].message
    assert "once more" in warnings[0].message


@pytest.mark.parametrize("rounding", [None, 0])
def test_repeated_replies_are_noticed(rounding: int | None) -> None:
    scores = np.repeat(sound()[:, :, :1] * 3, 5, axis=2)
    assert "repeated_scores" in codes(scores if rounding is None else scores.round(rounding))


def test_a_draw_stored_twice_is_noticed() -> None:
    scores = sound().copy()
    scores[:, :, 3] = scores[:, :, 1]
    assert codes(scores) == {"repeated_draws"}


def test_few_levels_are_noticed() -> None:
    assert "few_levels" in codes((sound() > 0).astype(float))


def test_drift_over_draws_is_noticed_and_rarely_seen_without() -> None:
    drifting = sound() + np.linspace(0, 0.4, 5)
    assert codes(drifting) == {"drift"}
    p = [drift_test(list(sound(seed, prompts=10)))[1] for seed in range(400)]
    assert np.mean(np.array(p) < 0.05) == pytest.approx(0.05, abs=0.035)
    assert np.isnan(drift_test([np.ones((4, 3))])[1])
    assert np.isnan(drift_test([np.ones((4, 1))])[1])


def test_fragile_gains_are_noticed() -> None:
    rng = np.random.default_rng(3)
    noisy = rng.normal(0, 0.25, (300, 8, 1)) + rng.normal(0, 1, (300, 8, 5))
    assert critical_rho(list(noisy), 4, 2) < critical_rho(list(sound()), 4, 2)
    assert codes(noisy) == {"dependence"}
    assert "dependence" not in codes(noisy, n=None)


def test_bad_scores_are_refused() -> None:
    with pytest.raises(ValueError, match=r"scores\[1\]"):
        best_of_n_warnings([np.ones((3, 3)), np.ones(3)])
