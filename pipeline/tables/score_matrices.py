"""A long table of repeated scores (prompt, candidate, draw, score) as one matrix per prompt, with what was missing."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from pipeline.errors import DataError

FloatArray = NDArray[np.float64]

_PROMPT, _CANDIDATE, _DRAW, _SCORE, _GOLD = "prompt", "candidate", "draw", "score", "gold"


@dataclass(frozen=True, slots=True)
class ScoreCounts:
    """What a table of scores held, and what could not be used.

    Attributes:
        prompts: prompts kept.
        candidates: candidates kept.
        scores: scores kept, the sum of the matrices' sizes.
        draws: K asked, the largest number of draws of any candidate.
        missing_scores: empty or absent scores, against K for every candidate in the table.
        dropped_candidates: candidates with fewer than ``min_scores`` scores.
        dropped_prompts: prompts left with fewer than ``min_candidates`` candidates.
        unused_scores: scores that are there but not kept, because a candidate of the same prompt has fewer, or
            because their candidate or prompt was dropped.
    """

    prompts: int
    candidates: int
    scores: int
    draws: int
    missing_scores: int
    dropped_candidates: int
    dropped_prompts: int
    unused_scores: int

    def to_dict(self) -> dict[str, int]:
        """Field names to counts."""
        return asdict(self)

    def notes(self) -> tuple[str, ...]:
        """One line per kind of loss; empty where the table was complete."""
        lines = []
        if self.missing_scores:
            lines.append(f"{self.missing_scores} scores are missing")
        if self.dropped_candidates:
            lines.append(f"{self.dropped_candidates} candidates with too few scores were left out")
        if self.dropped_prompts:
            lines.append(f"{self.dropped_prompts} prompts with too few scored candidates were left out")
        if self.unused_scores:
            lines.append(f"{self.unused_scores} scores were not used, to give each prompt's candidates equally many")
        return tuple(lines)


@dataclass(frozen=True, slots=True, eq=False)
class ScoreMatrices:
    """One score matrix per prompt, prompts and candidates in the order in which the table first names them.

    Attributes:
        prompts: P prompt names.
        candidates: per prompt the names of its M_p candidates.
        matrices: per prompt (M_p, K_p) finite scores, draws in ascending order.
        gold: per prompt (M_p,) gold values, NaN where unknown; None without a gold column.
        counts: what was missing.
    """

    prompts: tuple[str, ...]
    candidates: tuple[tuple[str, ...], ...]
    matrices: tuple[FloatArray, ...]
    gold: tuple[FloatArray, ...] | None
    counts: ScoreCounts


def score_matrices(
    table: pl.DataFrame,
    *,
    prompt: str = _PROMPT,
    candidate: str = _CANDIDATE,
    draw: str | None = _DRAW,
    score: str = _SCORE,
    gold: str | None = None,
    min_scores: int = 2,
    min_candidates: int = 2,
) -> ScoreMatrices:
    """Turn a long table into score matrices.

    Matrices need as many scores for every candidate. The rule where scores are missing: a candidate with fewer
    than ``min_scores`` scores is left out; then a prompt with fewer than ``min_candidates`` candidates is left out;
    then each prompt keeps, of every candidate, its first K_p scores in order of draw, K_p being the fewest that any
    of its candidates has. Draws are independent by assumption, so which draw a score came from does not matter.
    Everything left out is counted. Ask for ``min_scores`` = J + 1 to estimate a J-score policy in every prompt.

    Args:
        table: one row per score; an empty score is a missing one.
        prompt, candidate, draw, score: its columns; draw=None numbers a candidate's rows in file order.
        gold: column with the candidate's gold value, the same in all its rows.
        min_scores: ≥ 1.
        min_candidates: ≥ 1.

    Raises:
        DataError: a column is missing, a name is empty, a (prompt, candidate, draw) occurs twice, scores or gold are
            no finite numbers, gold differs within a candidate, or nothing is left.
        ValueError: min_scores or min_candidates below 1.
    """
    if min_scores < 1 or min_candidates < 1:
        raise ValueError("min_scores and min_candidates must be at least 1")
    names = {_PROMPT: prompt, _CANDIDATE: candidate, _SCORE: score}
    names |= {_DRAW: draw} if draw is not None else {}
    names |= {_GOLD: gold} if gold is not None else {}
    long = _long(table, names)
    per_candidate = _per_candidate(long, gold)
    counted = _kept(per_candidate, min_scores, min_candidates)
    kept = counted.filter(pl.col("kept"))
    if kept.height == 0:
        raise DataError(
            f"no prompt has {min_candidates} candidates with {min_scores} scores each: "
            f"the table holds {len(long)} scores of {counted.height} candidates"
        )
    return _assemble(long, counted, kept, gold is not None)


def _long(table: pl.DataFrame, names: dict[str, str]) -> pl.DataFrame:
    """The columns by their role, checked; scores with their order of draw."""
    for role, name in names.items():
        if name not in table.columns:
            raise DataError(f"the table has no column {name!r} for the {role}: it has {', '.join(table.columns)}")
    if table.height == 0:
        raise DataError("the table of scores has no rows")
    columns: list[pl.Expr | pl.Series] = [
        pl.col(names[role]).cast(pl.String).alias(role) for role in (_PROMPT, _CANDIDATE)
    ]
    columns += [_number(table, names[role], role).alias(role) for role in (_SCORE, _GOLD) if role in names]
    long = table.select(columns)
    if _DRAW in names:
        long = long.with_columns(_draw_order(table[names[_DRAW]], names[_DRAW]))
    else:
        long = long.with_columns(pl.int_range(pl.len()).over(_PROMPT, _CANDIDATE).alias(_DRAW))
    for role in (_PROMPT, _CANDIDATE, _DRAW):
        empty = long[role].null_count()
        if empty:
            row = int(long[role].is_null().arg_max() or 0) + 1
            raise DataError(f"column {names[role]!r} ({role}) is empty in {empty} rows, first in row {row}")
    twice = long.select(_PROMPT, _CANDIDATE, _DRAW).is_duplicated()
    if twice.any():
        first = long.filter(twice).row(0, named=True)
        raise DataError(
            f"{int(twice.sum())} rows share their prompt, candidate and draw, first {first[_PROMPT]!r}, "
            f"{first[_CANDIDATE]!r}, draw {table[names[_DRAW]].filter(twice)[0]!r}: remove copies, or number the draws"
        )
    return long


def _number(table: pl.DataFrame, name: str, role: str) -> pl.Series:
    column = table[name]
    numbers = column.cast(pl.Float64, strict=False).fill_nan(None)
    unread = numbers.is_null() & column.is_not_null()
    if column.dtype.is_float():
        unread &= column.is_not_nan()
    if unread.any():
        row = int(unread.arg_max() or 0)
        raise DataError(f"column {name!r} ({role}) holds no number in row {row + 1}: {str(column[row])[:40]!r}")
    if numbers.is_infinite().any():
        row = int(numbers.is_infinite().fill_null(False).arg_max() or 0)
        raise DataError(f"column {name!r} ({role}) is infinite in row {row + 1}; leave unknown cells empty")
    return numbers


def _draw_order(column: pl.Series, name: str) -> pl.Series:
    """Draws as ranks: by number where all are numbers, else as text."""
    numbers = column.cast(pl.Float64, strict=False)
    order = numbers if numbers.null_count() == column.null_count() else column.cast(pl.String)
    return order.rank("dense").cast(pl.Int64).alias(_DRAW)


def _per_candidate(long: pl.DataFrame, gold: str | None) -> pl.DataFrame:
    """One row per candidate: how many scores it has, and its gold value."""
    counts = [pl.col(_SCORE).is_not_null().sum().cast(pl.Int64).alias("filled"), pl.len().cast(pl.Int64).alias("rows")]
    if gold is not None:
        values = pl.col(_GOLD).drop_nulls()
        counts += [values.first().alias(_GOLD), values.n_unique().alias("golds")]
    grouped = long.group_by(_PROMPT, _CANDIDATE, maintain_order=True).agg(counts)
    if gold is not None and (several := grouped.filter(pl.col("golds") > 1)).height:
        first = several.row(0, named=True)
        raise DataError(
            f"column {gold!r} (gold) differs between rows of one candidate, first prompt {first[_PROMPT]!r}, candidate "
            f"{first[_CANDIDATE]!r}: gold belongs to the candidate, not to the draw"
        )
    return grouped


def _kept(candidates: pl.DataFrame, min_scores: int, min_candidates: int) -> pl.DataFrame:
    """Marks candidates and prompts with enough scores; ``width`` is K_p."""
    enough = pl.col("filled") >= min_scores
    return (
        candidates.with_columns(enough.alias("enough"))
        .with_columns((pl.col("enough").sum().over(_PROMPT) >= min_candidates).alias("whole"))
        .with_columns((pl.col("enough") & pl.col("whole")).alias("kept"))
        .with_columns(pl.col("filled").filter("kept").min().over(_PROMPT).alias("width"))
    )


def _assemble(long: pl.DataFrame, counted: pl.DataFrame, kept: pl.DataFrame, with_gold: bool) -> ScoreMatrices:
    place = kept.select(_PROMPT, _CANDIDATE, "width").with_row_index("place")
    first_of = place.group_by(_PROMPT, maintain_order=True).agg(pl.col("place").first().alias("prompt_place"))
    ordered = (
        long.filter(pl.col(_SCORE).is_not_null())
        .join(place.join(first_of, on=_PROMPT), on=[_PROMPT, _CANDIDATE], how="inner")
        .sort("prompt_place", "place", _DRAW)
        .with_columns(pl.int_range(pl.len()).over("place").alias("position"))
        .filter(pl.col("position") < pl.col("width"))
    )
    scores = ordered[_SCORE].to_numpy()
    prompts = kept.group_by(_PROMPT, maintain_order=True).agg(
        pl.col(_CANDIDATE), pl.col("width").first(), *([pl.col(_GOLD)] if with_gold else [])
    )
    matrices, gold, start = [], [], 0
    for row in prompts.iter_rows(named=True):
        shape = (len(row[_CANDIDATE]), int(row["width"]))
        size = shape[0] * shape[1]
        matrices.append(np.array(scores[start : start + size], dtype=np.float64).reshape(shape))
        start += size
        if with_gold:
            gold.append(np.array([np.nan if value is None else value for value in row[_GOLD]], dtype=np.float64))
    draws = int(counted["rows"].max())  # type: ignore[arg-type]
    filled = int(counted["filled"].sum())
    counts = ScoreCounts(
        prompts=prompts.height,
        candidates=kept.height,
        scores=start,
        draws=draws,
        missing_scores=draws * counted.height - filled,
        dropped_candidates=counted.height - int(counted["enough"].sum()),
        dropped_prompts=counted.filter(~pl.col("whole"))[_PROMPT].n_unique(),
        unused_scores=filled - start,
    )
    return ScoreMatrices(
        tuple(prompts[_PROMPT].to_list()),
        tuple(tuple(names) for names in prompts[_CANDIDATE].to_list()),
        tuple(matrices),
        tuple(gold) if with_gold else None,
        counts,
    )
