"""Long tables of scores to matrices: order, ragged tables, counts and refusals."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from pipeline.errors import DataError
from pipeline.tables.score_matrices import score_matrices

ROWS = [
    # prompt, candidate, draw, score, gold
    ("q2", "b", 0, 0.5, 1.0),
    ("q2", "b", 10, 0.7, 1.0),
    ("q2", "b", 2, 0.6, 1.0),
    ("q2", "a", 0, 0.1, 0.0),
    ("q2", "a", 2, 0.2, 0.0),
    ("q2", "a", 10, 0.3, 0.0),
    ("q1", "x", 0, 1.0, None),
    ("q1", "x", 2, 2.0, None),
    ("q1", "y", 0, 3.0, 1.0),
    ("q1", "y", 2, None, 1.0),
    ("q1", "y", 10, 5.0, 1.0),
    ("q1", "z", 0, 9.0, 0.0),
]


def long(rows: list[tuple[object, ...]] = ROWS) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=["prompt", "candidate", "draw", "score", "gold"], orient="row")


def test_matrices_keep_the_order_of_the_table_and_sort_draws_as_numbers() -> None:
    result = score_matrices(long(), gold="gold")
    assert result.prompts == ("q2", "q1")
    assert result.candidates == (("b", "a"), ("x", "y"))
    np.testing.assert_array_equal(result.matrices[0], [[0.5, 0.6, 0.7], [0.1, 0.2, 0.3]])
    np.testing.assert_array_equal(result.matrices[1], [[1.0, 2.0], [3.0, 5.0]])
    assert result.gold is not None
    np.testing.assert_array_equal(result.gold[1], [np.nan, 1.0])


def test_everything_left_out_is_counted() -> None:
    counts = score_matrices(long()).counts
    assert counts.to_dict() == {
        "prompts": 2, "candidates": 4, "scores": 10, "draws": 3, "missing_scores": 4,
        "dropped_candidates": 1, "dropped_prompts": 0, "unused_scores": 1,
    }  # fmt: skip
    assert len(counts.notes()) == 3


def test_a_prompt_without_enough_candidates_is_left_out_and_counted() -> None:
    result = score_matrices(long(), min_scores=3)
    assert result.prompts == ("q2",)
    assert result.counts.dropped_prompts == 1
    assert result.counts.dropped_candidates == 3
    assert result.counts.scores + result.counts.unused_scores == 11


def test_rows_in_any_order_give_the_same_scores() -> None:
    shuffled = long().sample(fraction=1.0, shuffle=True, seed=3)
    straight, mixed = score_matrices(long()), score_matrices(shuffled)
    for name, names, matrix in zip(straight.prompts, straight.candidates, straight.matrices, strict=True):
        at = mixed.prompts.index(name)
        rows = [mixed.candidates[at].index(entry) for entry in names]
        np.testing.assert_array_equal(mixed.matrices[at][rows], matrix)


def test_without_a_draw_column_rows_are_numbered() -> None:
    result = score_matrices(long().drop("draw"), draw=None)
    np.testing.assert_array_equal(result.matrices[0], [[0.5, 0.7, 0.6], [0.1, 0.2, 0.3]])


def test_scores_written_as_text_are_read() -> None:
    result = score_matrices(long().with_columns(pl.col("score").cast(pl.String)))
    np.testing.assert_array_equal(result.matrices[0], [[0.5, 0.6, 0.7], [0.1, 0.2, 0.3]])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda t: pl.concat([t, t[:1]]), "draw 0"),
        (lambda t: t.drop("score"), "no column 'score'"),
        (
            lambda t: t.with_columns(candidate=pl.when(pl.col("draw") == 10).then(None).otherwise("candidate")),
            "empty in",
        ),
        (lambda t: t.with_columns(score=pl.lit("good")), "holds no number in row 1: 'good'"),
        (lambda t: t.with_columns(score=pl.lit(float("inf"))), "infinite in row 1"),
        (lambda t: t.with_columns(gold=pl.col("score")), "differs between rows of one candidate"),
        (lambda t: t.with_columns(score=pl.lit(None, pl.Float64)), "no prompt has 2 candidates"),
        (lambda t: t[:0], "no rows"),
    ],
)
def test_tables_that_cannot_be_used_are_refused_with_the_place(change, words: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(DataError, match=words):
        score_matrices(change(long()), gold="gold")
