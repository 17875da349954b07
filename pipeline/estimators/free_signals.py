"""Signals that cost no call: which answers of a run agree with which, and how sure the other models are of an item.

Nothing here sees an outcome, a gold answer or which items are labeled, so that every column is a valid signal.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pipeline.estimators.floats import FloatArray, IntArray, as_floats
from pipeline.estimators.signals import prepare_signals

_VOTES_A_VOICE = 5  # nine chains of a weak model would outvote everybody
_STEPS = 30
_WRONG_ANSWERS = 10.0  # wrong answers to choose from; 3 and 30 change the squared error by less than 3 %
_LEAST_RELIABLE, _MOST_RELIABLE = 0.02, 0.98
_MISSING_SHARE = 0.005  # above this share of missing answers, being missing is a signal of its own
_TIE = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class FreeSignals:
    """Signals of T targets on M items; column k means the same thing for every target.

    Attributes:
        columns: (M, T, K).
        names, families: (K,) what each column is; families are vote, anchor, target, own and peer.
        reliability: one number in [.02, .98] for each answer that votes, in the order of the answers: how often it
            agrees with the consensus.
    """

    columns: FloatArray
    names: tuple[str, ...]
    families: tuple[str, ...]
    reliability: FloatArray


def answer_codes(
    answers: Sequence[Sequence[Any]] | NDArray[Any], equal: Callable[[int, Any, Any], bool] | None = None
) -> IntArray:
    """Clusters of equal answers, item by item: each answer joins the first cluster whose first answer it equals.

    A grader with a tolerance is not transitive, so that the order of the columns matters. An answer that was not
    found agrees with nothing, not even with another missing one.

    Args:
        answers: (M, J) answers, hashable; None, NaN and text without a character are missing.
        equal: ``equal(item, answer, head)`` says whether an answer equals the first one of a cluster. Identical
            answers are equal without asking, and each distinct pair is asked once an item. None means identical.

    Returns:
        (M, J): −1 where missing, else clusters numbered by first appearance.

    Raises:
        ValueError: rows of different length.
        TypeError: an answer that is not hashable.
    """
    rows = [list(row) for row in answers]
    width = len(rows[0]) if rows else 0
    codes = np.full((len(rows), width), -1, dtype=np.intp)
    for item, row in enumerate(rows):
        if len(row) != width:
            raise ValueError(f"answers must have {width} entries for every item, got {len(row)} for item {item}")
        codes[item] = _codes_of_item(item, row, equal)
    return codes


def _codes_of_item(item: int, row: list[Any], equal: Callable[[int, Any, Any], bool] | None) -> list[int]:
    code_of: dict[Any, int] = {}
    heads: list[Any] = []
    codes = []
    for answer in row:
        if answer is None or answer != answer or (isinstance(answer, str) and not answer.strip()):
            codes.append(-1)
            continue
        code = code_of.get(answer)
        if code is None:
            code = len(heads)
            if equal is not None:
                code = next((number for number, head in enumerate(heads) if equal(item, answer, head)), code)
            if code == len(heads):
                heads.append(answer)
            code_of[answer] = code
        codes.append(code)
    return codes


def free_signals(
    codes: ArrayLike,
    owner: ArrayLike,
    targets: int,
    *,
    own: ArrayLike | None = None,
    own_names: Sequence[str] = (),
    voice_names: Sequence[str] | None = None,
) -> FreeSignals:
    """Agreement of each target's graded answer with everybody else's, and the other targets' own signals.

    ``consensus`` is the posterior that an answer is right when every voter j is right with chance r_j and else picks
    one of ten wrong answers: 30 steps of r_j = mean of P over j's answers, P_c ∝ exp(Σ_{j in c} log(10 r_j/(1 − r_j)))
    beside 1 for "none of them".

    Args:
        codes: (M, J) of ``answer_codes``: −1 where missing; the graded answers of the T targets come first.
        owner: (J,) the voice (model) of each answer column, numbered from 0; ``owner[t]`` is t for the targets.
        targets: T ≥ 1.
        own: (M, T, Q) the targets' own signals, finite.
        own_names: (Q,) their names.
        voice_names: (V,) names of the voices; None means their numbers.

    Returns:
        FreeSignals with the columns share, top_share, entropy, plural, consensus, no_answer (more than .005 missing),
        self_consistency (every target has further draws), ``agrees_<name>`` for every voice that is no target,
        ``agrees_<target>`` (two targets: agrees_other), own, and ``<own>_others`` (two targets or more).
        Votes are those of the first five answers of each voice; one voter alone gives no vote columns.

    Raises:
        ValueError: shapes that do not fit, a voice without an answer, non-finite own signals, two equal names.
    """
    table, voices = _checked_codes(codes, owner, targets)
    count = int(voices.max()) + 1
    names = [str(voice) for voice in range(count)] if voice_names is None else [str(name) for name in voice_names]
    if len(names) != count:
        raise ValueError(f"voice_names must name {count} voices, got {len(names)}")
    votes = np.array([np.count_nonzero(voices[:j] == voices[j]) < _VOTES_A_VOICE for j in range(len(voices))])
    posterior, reliability = _consensus(table[:, votes])
    columns: list[tuple[str, str, FloatArray]] = []
    if reliability.size > 1:
        columns += _vote_columns(table[:, :targets], table[:, votes], posterior)
    missing = table[:, :targets] < 0
    if missing.mean() > _MISSING_SHARE:
        columns.append(("no_answer", "vote", missing.astype(np.float64)))
    columns += _agreements(table, voices, targets, names)
    columns += _own_columns(own, own_names, len(table), targets)
    labels = tuple(name for name, _, _ in columns)
    if len(set(labels)) < len(labels):
        twice = next(name for position, name in enumerate(labels) if name in labels[:position])
        raise ValueError(f"two signals would be named {twice!r}; rename one of them")
    values = np.stack([column for _, _, column in columns], axis=2) if columns else np.zeros((*missing.shape, 0))
    return FreeSignals(values, labels, tuple(family for _, family, _ in columns), reliability)


def _checked_codes(codes: ArrayLike, owner: ArrayLike, targets: int) -> tuple[IntArray, IntArray]:
    """Codes and owners, checked; codes of a row renumbered if they exceed the number of answers."""
    table, voices = np.asarray(codes), np.asarray(owner)
    if table.ndim != 2 or len(table) == 0 or not np.issubdtype(table.dtype, np.integer):
        raise ValueError(f"codes must be whole numbers of shape (M, J) with M >= 1, got {table.dtype} {table.shape}")
    if voices.shape != (table.shape[1],) or not np.issubdtype(voices.dtype, np.integer):
        raise ValueError(f"owner must be whole numbers of shape ({table.shape[1]},), got {voices.dtype} {voices.shape}")
    if targets < 1 or not np.array_equal(voices[:targets], np.arange(targets)):
        raise ValueError(f"the first {targets} answers must be those of voices 0 to {targets - 1}, one each")
    if not np.array_equal(np.unique(voices), np.arange(int(voices.max()) + 1)):
        raise ValueError("voices must be numbered from 0 without a gap, each with at least one answer")
    if table.min() < -1:
        raise ValueError(f"codes must be -1 (missing) or more, got {int(table.min())}")
    if table.max() >= table.shape[1]:
        order = np.argsort(table, axis=1, kind="stable")
        ordered = np.take_along_axis(table, order, axis=1)
        rank = np.cumsum((np.diff(ordered, axis=1, prepend=-1) > 0), axis=1) - 1
        renumbered = np.empty_like(table)
        np.put_along_axis(renumbered, order, np.where(ordered < 0, -1, rank), axis=1)
        table = renumbered
    return table.astype(np.intp), voices.astype(np.intp)


def _consensus(votes: IntArray) -> tuple[FloatArray, FloatArray]:
    """Posterior of every cluster (M, J) and reliability of every voter (J,), by 30 steps of EM."""
    rows, width = votes.shape
    item, voter = np.nonzero(votes >= 0)
    place = item * width + votes[item, voter]
    cast = np.bincount(place, minlength=rows * width).reshape(rows, width)
    exists = cast > 0
    posterior = cast / np.maximum(cast.sum(axis=1, keepdims=True), 1)
    reliability = np.zeros(width)
    for _ in range(_STEPS):
        right = np.bincount(voter, weights=posterior.ravel()[place], minlength=width) / rows
        reliability = np.clip(right, _LEAST_RELIABLE, _MOST_RELIABLE)
        weight = np.log(_WRONG_ANSWERS * reliability / (1.0 - reliability))
        score = np.bincount(place, weights=weight[voter], minlength=rows * width).reshape(rows, width)
        score = np.where(exists, score, -np.inf)
        most = np.maximum(score.max(axis=1, keepdims=True), 0.0)
        mass = np.exp(score - most)
        posterior = mass / (np.exp(-most) + mass.sum(axis=1, keepdims=True))
    return posterior, reliability


def _vote_columns(graded: IntArray, votes: IntArray, posterior: FloatArray) -> list[tuple[str, str, FloatArray]]:
    """share, top_share, entropy, plural and consensus: (M, T) each; all but the last leave the own answer out."""
    rows, width = votes.shape
    lines = np.arange(rows)
    place = (lines[:, None] * width + votes)[votes >= 0]
    cast = np.bincount(place, minlength=rows * width).reshape(rows, width)
    share, top, entropy, consensus = (np.zeros(graded.shape) for _ in range(4))
    for target, answer in enumerate(graded.T):
        answered = answer >= 0
        line, code = lines[answered], answer[answered]
        others = cast.copy()
        others[line, code] -= 1
        share[answered, target] = others[line, code] / (width - 1)
        top[:, target] = others.max(axis=1) / (width - 1)
        part = others / np.maximum(others.sum(axis=1, keepdims=True), 1)
        entropy[:, target] = -(part * np.log(np.where(part > 0.0, part, 1.0))).sum(axis=1) + 0.0
        consensus[answered, target] = posterior[line, code]
    plural = ((share >= top - _TIE) & (share > 0.0)).astype(np.float64)
    columns = {"share": share, "top_share": top, "entropy": entropy, "plural": plural, "consensus": consensus}
    return [(name, "vote", column) for name, column in columns.items()]


def _agreements(
    table: IntArray, voices: IntArray, targets: int, names: Sequence[str]
) -> list[tuple[str, str, FloatArray]]:
    """Agreement with own further draws, with every voice that is no target, and with the other targets."""
    graded = table[:, :targets]

    def agreement(answers: IntArray, target: int) -> FloatArray:
        """(M,) share of a model's answers equal to the target's; missing ones stay in the denominator."""
        answer = graded[:, target, None]
        return np.asarray(((answers == answer) & (answer >= 0)).mean(axis=1))

    columns = []
    further = [table[:, targets:][:, voices[targets:] == target] for target in range(targets)]
    if all(draws.shape[1] for draws in further):
        consistency = [agreement(draws, target) for target, draws in enumerate(further)]
        columns.append(("self_consistency", "vote", np.stack(consistency, axis=1)))
    for voice in range(targets, int(voices.max()) + 1):
        answers = table[:, voices == voice]
        shares = [agreement(answers, target) for target in range(targets)]
        columns.append((f"agrees_{names[voice]}", "anchor", np.stack(shares, axis=1)))
    with_target = [
        np.stack([agreement(graded[:, [other]], target) for target in range(targets)], axis=1)
        for other in range(targets)
    ]
    if targets == 2:
        columns.append(("agrees_other", "vote", np.stack([with_target[1][:, 0], with_target[0][:, 1]], axis=1)))
    if targets > 2:
        for other, column in enumerate(with_target):
            column[:, other] = 0.0  # the own slot is a constant, so that the column keeps its meaning
            columns.append((f"agrees_{names[other]}", "target", column))
    return columns


def _own_columns(
    own: ArrayLike | None, own_names: Sequence[str], rows: int, targets: int
) -> list[tuple[str, str, FloatArray]]:
    """The own signals, then for each the mean standardised mid-rank of the other targets' on the item."""
    values = np.zeros((rows, targets, 0)) if own is None else as_floats(own, "own")
    if values.shape != (rows, targets, len(own_names)):
        raise ValueError(f"own must have shape {(rows, targets, len(own_names))}, got {values.shape}")
    if not np.isfinite(values).all():
        raise ValueError("own has non-finite values; use fill_missing_signals first")
    columns = [(str(name), "own", values[:, :, position]) for position, name in enumerate(own_names)]
    if targets < 2 or not own_names:
        return columns
    ranks = np.stack([prepare_signals(values[:, target]).ranks for target in range(targets)], axis=1)
    others = (ranks.sum(axis=1, keepdims=True) - ranks) / (targets - 1)
    return columns + [(f"{name}_others", "peer", others[:, :, place]) for place, name in enumerate(own_names)]
