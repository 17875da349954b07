"""What Best-of-N refuses, and that the message says what to do."""

from __future__ import annotations

import numpy as np
import pytest

from pipeline.estimators import (
    best_of_n,
    best_of_n_batch,
    best_of_n_complete,
    best_of_n_fixed_split,
    best_of_n_gold,
    best_of_n_plug_in,
    best_of_n_reuse,
    two_candidate_umvu,
    winner_weights,
)

SCORES = np.arange(12.0).reshape(4, 3)


@pytest.mark.parametrize("estimate", [best_of_n, best_of_n_complete, best_of_n_fixed_split, best_of_n_reuse])
@pytest.mark.parametrize("j", [3, 4])
def test_selecting_on_all_scores_is_refused_with_the_reason(estimate, j: int) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ValueError, match=r"no unbiased estimator.*fresh score"):
        estimate(SCORES, 2, j)


@pytest.mark.parametrize(
    ("scores", "n", "j", "words"),
    [
        (SCORES, 5, 1, "1..M = 1..4"),
        (SCORES, 0, 1, "1..M = 1..4"),
        (SCORES, 2, 0, "1..K−1"),
        (SCORES[:, :1], 2, None, r"2 scores per candidate.*\(4, 1\)"),
        (SCORES[0], 2, 1, r"shape \(M, K\).*\(3,\)"),
        (np.where(SCORES == 5, np.nan, SCORES), 2, 1, "finite"),
        (np.where(SCORES == 5, np.inf, SCORES), 2, 1, "finite"),
        (np.empty((0, 3)), 1, 1, "at least 1 candidate"),
    ],
)
def test_bad_input_is_refused(scores: np.ndarray, n: int, j: int | None, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        best_of_n(scores, n, j)


@pytest.mark.parametrize(("n", "j"), [(2.0, 1), (True, 1), ("2", 1), (2, 1.0), (2, False)])
def test_sizes_must_be_integers(n: object, j: object) -> None:
    with pytest.raises(TypeError, match="integer"):
        best_of_n(SCORES, n, j)  # type: ignore[arg-type]


def test_text_scores_are_a_type_error() -> None:
    with pytest.raises(TypeError, match="numbers"):
        best_of_n([["a", "b"], ["c", "d"]], 2)  # type: ignore[list-item]
    with pytest.raises(TypeError, match="numbers"):
        winner_weights(["a", "b"], 1)  # type: ignore[list-item]


def test_a_batch_names_the_prompt() -> None:
    with pytest.raises(ValueError, match=r"scores\[1\].*finite"):
        best_of_n_batch([SCORES, SCORES * np.nan], 2)
    with pytest.raises(ValueError, match=r"scores\[2\].*1..M = 1..2"):
        best_of_n_batch([SCORES, SCORES, SCORES[:2]], 3)
    with pytest.raises(ValueError, match=r"\(P, M, K\)"):
        best_of_n_batch(SCORES, 2)


def test_other_estimators_refuse_too() -> None:
    with pytest.raises(ValueError, match=r"\(2, K\)"):
        two_candidate_umvu(SCORES, 1, 1.0)
    with pytest.raises(ValueError, match="sigma"):
        two_candidate_umvu(SCORES[:2], 1, 0.0)
    with pytest.raises(ValueError, match="too many"):
        best_of_n_complete(np.zeros((3, 40)), 2, 20)
    with pytest.raises(ValueError, match="gold"):
        best_of_n_gold(SCORES, [1, 0, 1], 2)
    with pytest.raises(ValueError, match="gold"):
        best_of_n_gold(SCORES, [1, 0, 1, np.nan], 2)
    with pytest.raises(ValueError, match="finite"):
        winner_weights([1.0, np.nan], 1)
    with pytest.raises(ValueError, match=r"shape \(M,\)"):
        winner_weights(SCORES, 1)
    assert best_of_n_plug_in(SCORES[:, :1], 4) == 9.0
    assert best_of_n_gold(SCORES[:, :1], [0, 0, 0, 1], 4) == 1.0
