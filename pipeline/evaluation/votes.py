"""Votes on pairs of models: from a table of comparisons to win rates, Bradley–Terry scores, gaps and ranks."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr

from pipeline.errors import DataError
from pipeline.estimators import Estimate, rank_sets_from_intervals
from pipeline.estimators.floats import FloatArray
from pipeline.estimators.gaps.pairwise import PairwiseScores, Votes, bradley_terry, check_votes, win_rate
from pipeline.estimators.gaps.simultaneous import PairedDifference, holm
from pipeline.estimators.intervals import t_quantile
from pipeline.evaluation.document import Decisions, EstimateSet, Gap, PairDecision, Warned, verdict_of
from pipeline.tables.cells import MISSING_SPELLINGS, label_column
from pipeline.tables.user_table import UserTable

_FIRST = frozenset(["a", "model_a", "model a", "model_1", "first", "left", "1", "1.0", "a>b", "a>>b", "win"])
_SECOND = frozenset(["b", "model_b", "model b", "model_2", "second", "right", "0", "0.0", "b>a", "b>>a", "loss"])
_TIE = frozenset(["tie", "tie (bothbad)", "bothbad", "both", "neither", "draw", "equal", "0.5", "a=b", "c"])
_MOST_MODELS = 200


@dataclass(frozen=True, slots=True)
class VoteColumns:
    """Which column of a table of comparisons holds what.

    Attributes:
        a, b: the models of the two sides.
        gold: who won by people's votes; empty where nobody voted.
        signals: who won by judges' votes, or numbers that turn over with the sides.
        id: the prompt; rows of one prompt and pair are one comparison.
        cluster: a coarser unit than the prompt.
    """

    a: str
    b: str
    gold: str
    signals: tuple[str, ...] = ()
    id: str | None = None
    cluster: str | None = None

    def columns(self) -> list[str]:
        """Every named column, once."""
        named = (self.a, self.b, self.gold, *self.signals, self.id, self.cluster)
        return list(dict.fromkeys(name for name in named if name is not None))


def estimate_votes(table: UserTable, columns: VoteColumns, *, level: float = 0.95, seed: int = 0) -> EstimateSet:
    """Win rates of every model and pair, and with three models or more Bradley–Terry scores with joint decisions.

    Both orders of one comparison are one: their votes, turned to one order, are averaged. Ties count half.

    Raises:
        DataError: a word that names no side, a row that compares a model with itself, too few votes.
    """
    notes = [Warned("table", note) for note in table.notes]
    names, votes, merged = _votes(table, columns, seed)
    if merged:
        text = (
            f"{merged} rows repeat a comparison of their prompt (in this or the other order) and were averaged with it"
        )
        notes.append(Warned("orders_reconciled", text))
    targets: dict[str, dict[str, Estimate]] = {}
    for index, name in enumerate(names):
        rows = (votes.first == index) | (votes.second == index)
        field = win_rate(votes, rows, np.where(votes.first == index, 1.0, -1.0), level=level)
        targets[name] = {} if field is None else {"win_rate": field}
    gaps = list(_pair_rates(names, votes, level))
    decisions = None
    try:
        scores = bradley_terry(votes, level=level, seed=seed)
    except ValueError as error:
        notes.append(Warned("no_bradley_terry", f"no Bradley–Terry scores: {error}; win rates are given"))
    else:
        for index, name in enumerate(names):
            targets[name]["bradley_terry"] = _score(scores, index, votes)
        decisions = _decided(names, scores)
        gaps += [Gap(pair.a, pair.b, "bradley_terry", _difference(pair, scores)) for pair in decisions.pairs]
    return EstimateSet(
        targets, tuple(gaps), (), tuple(notes), decisions=decisions, headline=_headline(targets, decisions)
    )


def _votes(table: UserTable, columns: VoteColumns, seed: int) -> tuple[list[str], Votes, int]:
    left, right = label_column(table, columns.a), label_column(table, columns.b)
    names = sorted(set(left.tolist()) | set(right.tolist()))
    if "" in names:
        raise DataError(f"columns {columns.a!r} and {columns.b!r} must name two models in every row")
    if len(names) > _MOST_MODELS:
        raise DataError(f"columns {columns.a!r} and {columns.b!r} hold {len(names)} names; do they name models?")
    if (same := np.flatnonzero(left == right)).size:
        raise DataError(f"{table.place(int(same[0]))} compares {left[same[0]]} with itself; remove such rows")
    index = {name: number for number, name in enumerate(names)}
    first = np.array([index[name] for name in left.tolist()], dtype=np.intp)
    second = np.array([index[name] for name in right.tolist()], dtype=np.intp)
    parts = [_shares(table, name, left, right) for name in (columns.gold, *columns.signals)]
    turned = first > second
    centred = np.column_stack(parts) - 0.5
    centred[turned] *= -1.0
    low, high = np.minimum(first, second), np.maximum(first, second)
    count = len(low)
    prompts = label_column(table, columns.id) if columns.id else np.arange(count).astype(str)
    _, keys = np.unique(
        np.array([f"{p}\x00{x}\x00{y}" for p, x, y in zip(prompts, low, high, strict=True)]), return_inverse=True
    )
    rows, start = int(keys.max()) + 1, np.unique(keys, return_index=True)[1]
    finite = np.isfinite(centred)
    sums = np.column_stack(
        [np.bincount(keys, np.where(finite[:, k], centred[:, k], 0.0), rows) for k in range(len(parts))]
    )
    counts = np.column_stack([np.bincount(keys, finite[:, k], rows) for k in range(len(parts))])
    means = np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
    clusters = label_column(table, columns.cluster) if columns.cluster else prompts
    try:
        votes = check_votes(
            low[start], high[start], means[:, 0] + 0.5, np.nan_to_num(means[:, 1:]), clusters=clusters[start], seed=seed
        )
    except ValueError as error:
        raise DataError(f"{table.source.path}: {error} (votes in column {columns.gold!r})") from error
    return names, votes, count - rows


def _shares(table: UserTable, name: str, left: NDArray[np.str_], right: NDArray[np.str_]) -> FloatArray:
    """(rows,) what side a won by a column of votes; NaN where it is empty."""
    words = label_column(table, name)
    lowered = [word.strip().lower() for word in words.tolist()]
    two = set(lowered) - MISSING_SPELLINGS - {""} <= {"1", "2", "1.0", "2.0", "tie", "0", "0.0"} and "2" in set(lowered)
    shares = np.full(len(words), np.nan)
    stray = []
    for row, (word, a, b) in enumerate(zip(lowered, left.tolist(), right.tolist(), strict=True)):
        if word in MISSING_SPELLINGS or not word:
            continue
        if two and word in ("1", "1.0", "2", "2.0", "0", "0.0"):
            shares[row] = {"1": 1.0, "2": 0.0, "0": 0.5}[word[0]]
        elif word == a.lower() or (word in _FIRST and word != b.lower()):
            shares[row] = 1.0
        elif word == b.lower() or word in _SECOND:
            shares[row] = 0.0
        elif word in _TIE:
            shares[row] = 0.5
        else:
            try:
                shares[row] = float(word)
            except ValueError:
                stray.append(row)
    if stray:
        raise DataError(
            f"column {name!r} holds {str(words[stray[0]])!r} in {table.place(stray[0])}, which names no side; votes "
            f"are A, B or tie, the models' names, or numbers: --map '{name}: VALUE=NUMBER, …' (1 a wins, 0.5 a "
            "tie, 0 b wins)"
        )
    return shares


def _pair_rates(names: Sequence[str], votes: Votes, level: float) -> list[Gap]:
    gaps = []
    for a, b in sorted(set(zip(votes.first.tolist(), votes.second.tolist(), strict=True))):
        rows = (votes.first == a) & (votes.second == b)
        rate = win_rate(votes, rows, np.ones(len(rows)), level=level)
        if rate is not None:
            gaps.append(Gap(names[a], names[b], "win_rate", rate))
    return gaps


def _score(scores: PairwiseScores, index: int, votes: Votes) -> Estimate:
    value, se = float(scores.scores[index]), math.sqrt(float(scores.covariance[index, index]))
    half = float(t_quantile(scores.df, scores.level)) * se
    return Estimate(
        value, se, value - half, value + half, scores.level, scores.n, "bradley_terry", df=scores.df,
        pool_size=len(votes.first),
    )  # fmt: skip


def _difference(pair: PairDecision, scores: PairwiseScores) -> Estimate:
    return Estimate(
        pair.value, pair.se, pair.low_single, pair.high_single, scores.level, scores.n, "bradley_terry", df=scores.df
    )


def _decided(names: Sequence[str], scores: PairwiseScores) -> Decisions:
    """Every pair of scores together: max-t intervals, verdicts and rank sets."""
    single = float(t_quantile(scores.df, scores.level))
    rows = []
    for a, b in itertools.combinations(range(len(names)), 2):
        value, se = scores.difference(a, b)
        p = float(2.0 * stdtr(scores.df, -abs(value) / se)) if se > 0.0 else 1.0
        rows.append((names[a], names[b], value, se, p))
    adjusted = holm([row[4] for row in rows])
    gaps = [
        PairedDifference(
            a, b, value, se, value - scores.quantile * se, value + scores.quantile * se, value - single * se,
            value + single * se, p, float(q), scores.level, scores.n,
        )
        for (a, b, value, se, p), q in zip(rows, adjusted, strict=True)
    ]  # fmt: skip
    pairs = tuple(
        PairDecision(
            a=gap.a, b=gap.b, value=gap.value, se=gap.se, low=gap.low, high=gap.high, low_single=gap.low_single,
            high_single=gap.high_single, p=gap.p, p_adjusted=gap.p_adjusted, level=gap.level, n=gap.n, margin=None,
            target="population", verdict=verdict_of(gap.low, gap.high, None),
        )
        for gap in gaps
    )  # fmt: skip
    ranks = rank_sets_from_intervals(names, scores.scores, gaps, level=scores.level)
    return Decisions("bradley_terry", "max-t", scores.level, None, "population", pairs, ranks)


def _headline(targets: dict[str, dict[str, Estimate]], decisions: Decisions | None) -> str:
    rates = {name: methods["win_rate"].value for name, methods in targets.items() if "win_rate" in methods}
    best = max(rates, key=lambda name: rates[name], default=None)
    if best is None:
        return "Too few votes for any win rate."
    text = f"*{best}* wins {100 * rates[best]:.0f} % of its comparisons (ties half)"
    if decisions is None:
        return f"{text}; nothing is decided."
    first = [entry.name for entry in decisions.rank_sets if entry.best == 1]
    if len(first) == 1:
        return f"*{first[0]}* is best, {100 * decisions.level:g} % jointly; {text}."
    listed = ", ".join(f"*{name}*" for name in first)
    return f"{text}; first could be {listed}, {100 * decisions.level:g} % jointly."
