"""Free signals: values by hand, an independent loop, and laws of clusters, missing answers and order."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.estimators.free_signals import FreeSignals, answer_codes, free_signals


def _within(tolerance: float) -> Any:
    return lambda item, answer, head: abs(answer - head) <= tolerance + 1e-12


def column(signals: FreeSignals, name: str) -> np.ndarray:
    return signals.columns[:, :, signals.names.index(name)]


def test_an_answer_joins_the_first_cluster_whose_head_it_equals() -> None:
    assert answer_codes([[1.0, None, 1.05, 1.1, ""]], _within(0.05)).tolist() == [[0, -1, 0, 1, -1]]
    # Not transitive: in another order 1.05 is the head and takes both neighbours.
    assert answer_codes([[1.05, 1.0, 1.1]], _within(0.05)).tolist() == [[0, 0, 0]]


def test_identical_texts_are_equal_without_asking_and_each_pair_is_asked_once() -> None:
    asked: list[tuple[int, str, str]] = []

    def never(item: int, answer: str, head: str) -> bool:
        asked.append((item, answer, head))
        return False

    codes = answer_codes([["a", "b", "a", "b", "c"], ["a", "a", float("nan"), "  ", "a"]], never)
    assert codes.tolist() == [[0, 1, 0, 1, 2], [0, 0, -1, -1, 0]]
    assert asked == [(0, "b", "a"), (0, "c", "a"), (0, "c", "b")]


def test_ragged_answers_are_refused() -> None:
    with pytest.raises(ValueError, match="item 1"):
        answer_codes([["a", "b"], ["a"]])


def test_values_by_hand() -> None:
    #        t0 t1 t2 anchor, second draw of t0
    codes = [[0, 0, 1, 0, 0], [0, 1, 2, 1, 2], [-1, 0, 0, -1, 0], [-1, -1, -1, -1, -1]]
    signals = free_signals(codes, [0, 1, 2, 3, 0], 3, voice_names=["a", "b", "c", "weak"])
    assert signals.names == (
        "share", "top_share", "entropy", "plural", "consensus", "no_answer",
        "agrees_weak", "agrees_a", "agrees_b", "agrees_c",
    )  # fmt: skip
    assert signals.families == ("vote",) * 6 + ("anchor",) + ("target",) * 3
    assert column(signals, "share").tolist() == [[0.75, 0.75, 0], [0, 0.25, 0.25], [0, 0.5, 0.5], [0, 0, 0]]
    assert column(signals, "top_share").tolist() == [
        [0.75, 0.75, 1.0], [0.5, 0.5, 0.5], [0.75, 0.5, 0.5], [0, 0, 0],
    ]  # fmt: skip
    assert column(signals, "plural").tolist() == [[1, 1, 0], [0, 0, 0], [0, 1, 1], [0, 0, 0]]
    by_hand = -(0.75 * math.log(0.75) + 0.25 * math.log(0.25))
    assert column(signals, "entropy")[0].tolist() == pytest.approx([by_hand, by_hand, 0.0])
    split = -(0.5 * math.log(0.25) + 0.5 * math.log(0.5))
    assert column(signals, "entropy")[1].tolist() == pytest.approx([math.log(2), split, split])
    assert column(signals, "entropy")[3].tolist() == [0, 0, 0]
    assert column(signals, "no_answer").tolist() == [[0, 0, 0], [0, 0, 0], [1, 0, 0], [1, 1, 1]]
    assert column(signals, "agrees_weak").tolist() == [[1, 1, 0], [0, 1, 0], [0, 0, 0], [0, 0, 0]]
    assert column(signals, "agrees_b").tolist() == [[1, 0, 0], [0, 0, 0], [0, 0, 1], [0, 0, 0]]


def _consensus_by_loops(codes: np.ndarray) -> tuple[list[dict[int, float]], list[float]]:
    rows, width = codes.shape
    clusters = [sorted({int(code) for code in row if code >= 0}) for row in codes]
    posterior = []
    for row, present in zip(codes, clusters, strict=True):
        cast = sum(int(code >= 0) for code in row)
        posterior.append({code: float(np.sum(row == code)) / cast for code in present})
    right: list[float] = []
    for _ in range(30):
        right = [
            min(max(sum(posterior[i][int(codes[i, j])] for i in range(rows) if codes[i, j] >= 0) / rows, 0.02), 0.98)
            for j in range(width)
        ]
        weight = [math.log(10 * r / (1 - r)) for r in right]
        for i, present in enumerate(clusters):
            mass = {c: math.exp(sum(weight[j] for j in range(width) if codes[i, j] == c)) for c in present}
            posterior[i] = {c: mass[c] / (1 + sum(mass.values())) for c in present}
    return posterior, right


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_consensus_is_the_one_of_plain_loops(seed: int) -> None:
    codes = np.random.default_rng(seed).integers(-1, 4, (6, 4))
    signals = free_signals(codes, [0, 1, 2, 3], 2)
    posterior, reliability = _consensus_by_loops(codes)
    assert signals.reliability.tolist() == pytest.approx(reliability, abs=1e-6)
    expected = [
        [posterior[i].get(int(codes[i, t]), 0.0) if codes[i, t] >= 0 else 0.0 for t in (0, 1)] for i in range(6)
    ]
    assert column(signals, "consensus").tolist() == [pytest.approx(row, abs=1e-6) for row in expected]


def test_at_most_five_answers_of_one_model_vote_and_all_count_for_its_own_column() -> None:
    codes = [[0, 1, *[1] * 5, *[0] * 4]]
    signals = free_signals(codes, [0, 1, *[2] * 9], 2, voice_names=["a", "b", "chain"])
    assert signals.reliability.shape == (7,)
    assert column(signals, "share").tolist() == [[0, 5 / 6]]
    assert column(signals, "agrees_chain").tolist() == [[4 / 9, 5 / 9]]


def test_two_targets_have_one_column_for_each_other() -> None:
    signals = free_signals([[0, 0], [0, 1], [-1, -1]], [0, 1], 2)
    assert (signals.names[-1], signals.families[-1]) == ("agrees_other", "vote")
    assert column(signals, "agrees_other").tolist() == [[1, 1], [0, 0], [0, 0]]


def test_self_consistency_needs_further_draws_of_every_target() -> None:
    codes = [[0, 1, 0, 1, -1, 1], [-1, 0, 1, 1, 0, 0]]
    both = free_signals(codes, [0, 1, 0, 0, 0, 1], 2)
    assert column(both, "self_consistency").tolist() == [[1 / 3, 1], [0, 1]]
    assert "self_consistency" not in free_signals(codes, [0, 1, 0, 0, 0, 0], 2).names


def test_one_voter_has_no_vote_columns() -> None:
    lone = free_signals([[0], [0]], [0], 1)
    assert (lone.names, lone.columns.shape, lone.reliability.shape) == ((), (2, 1, 0), (1,))
    assert free_signals([[0], [-1]], [0], 1).names == ("no_answer",)


def test_missing_answers_are_a_column_above_half_a_percent() -> None:
    codes = np.zeros((200, 1), dtype=int)
    codes[0] = -1
    assert free_signals(codes, [0], 1).names == ()
    codes[1] = -1
    assert free_signals(codes, [0], 1).names == ("no_answer",)


def test_all_missing_gives_constant_columns() -> None:
    signals = free_signals(np.full((5, 4), -1), [0, 1, 2, 3], 3)
    assert np.ptp(signals.columns, axis=0).max() == 0.0


def test_own_and_peer_columns() -> None:
    own = np.random.default_rng(0).normal(size=(9, 3, 2))
    own[:, 2, 1] = 4.0  # a constant column is a column of zeros for the others
    signals = free_signals(np.zeros((9, 3), dtype=int), [0, 1, 2], 3, own=own, own_names=["judge", "length"])
    assert signals.names[-4:] == ("judge", "length", "judge_others", "length_others")
    assert signals.families[-4:] == ("own", "own", "peer", "peer")
    assert np.array_equal(column(signals, "length"), own[:, :, 1])
    ranks = np.argsort(np.argsort(own, axis=0), axis=0).astype(float)
    standard = (ranks - ranks.mean(0)) / ranks.std(0)
    assert column(signals, "judge_others")[:, 0] == pytest.approx(standard[:, 1:, 0].mean(axis=1))
    assert column(signals, "length_others")[:, 0] == pytest.approx(standard[:, 1, 1] / 2)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 4))
def test_order_of_items_targets_and_names_of_codes_does_not_matter(seed: int, targets: int) -> None:
    rng = np.random.default_rng(seed)
    width = targets + 3
    codes = rng.integers(-1, 5, (8, width))
    owner = np.r_[np.arange(targets), targets, targets, targets + 1]
    names = [f"m{voice}" for voice in range(targets + 2)]
    own = rng.normal(size=(8, targets, 1))
    base = free_signals(codes, owner, targets, own=own, own_names=["s"], voice_names=names)
    items, order = rng.permutation(8), rng.permutation(targets)
    shuffled = codes[items][:, np.r_[order, np.arange(targets, width)]]
    renamed = np.where(shuffled < 0, -1, 1000 - shuffled)
    moved = free_signals(
        renamed, owner, targets, own=own[items][:, order], own_names=["s"],
        voice_names=[names[t] for t in order] + names[targets:],
    )  # fmt: skip
    assert set(moved.names) == set(base.names)
    for name in base.names:
        assert column(moved, name) == pytest.approx(column(base, name)[items][:, order], abs=1e-12)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"owner": [1, 0, 2]}, "first 2"),
        ({"owner": [0, 1, 3]}, "without a gap"),
        ({"owner": [0, 1]}, "owner"),
        ({"codes": [[0, 1, -2]]}, "-1"),
        ({"codes": [[0.5, 1.0, 2.0]]}, "whole numbers"),
        ({"own": np.full((1, 2, 1), np.nan), "own_names": ["s"]}, "non-finite"),
        ({"own": np.zeros((1, 2, 1)), "own_names": []}, "own must have shape"),
        ({"own": np.zeros((1, 2, 1)), "own_names": ["share"]}, "'share'"),
        ({"voice_names": ["a", "b"]}, "3 voices"),
    ],
)
def test_what_does_not_fit_is_refused(change: dict[str, Any], message: str) -> None:
    given_values: dict[str, Any] = {"codes": [[0, 0, 1]], "owner": [0, 1, 2], **change}
    with pytest.raises(ValueError, match=message):
        free_signals(given_values.pop("codes"), given_values.pop("owner"), 2, **given_values)
