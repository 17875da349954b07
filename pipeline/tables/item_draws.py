"""From the tables of a run to the texts that Algorithm 1 regresses on."""

from __future__ import annotations

import polars as pl

from pipeline.tables.draw_features import ItemDraws

Chain = tuple[str, str | None]


def item_draws(
    items: pl.DataFrame, responses: pl.DataFrame, preferences: pl.DataFrame, *, target: str, auxiliary: tuple[str, str]
) -> tuple[ItemDraws, ...]:
    """(x, w1, w2, v) of every item in the order of item_id, for one target.

    Chain s of draw j is the auxiliary response with draw 2j + s of model ``auxiliary[s]``. v is the mean over the
    orders asked of 1 (w1 won), ½ (tie) or 0; ½ where no verdict is there. A chain that is missing is an empty text.

    Args:
        items, responses, preferences: the run's tables.
        target: whose verdicts count.
        auxiliary: the models of w1 and w2.
    """
    chains = _chains(responses, auxiliary)
    verdicts = _verdicts(preferences, target)
    draws = 1 + max((draw for _, draw, _ in chains), default=0)
    absent: Chain = ("", None)
    result = []
    for item, question in items.sort("item_id").select("item_id", "question").iter_rows():
        first = [chains.get((item, draw, 0), absent) for draw in range(draws)]
        second = [chains.get((item, draw, 1), absent) for draw in range(draws)]
        result.append(
            ItemDraws(
                question=question,
                first=tuple(text for text, _ in first),
                second=tuple(text for text, _ in second),
                preference=tuple(verdicts.get((item, draw), 0.5) for draw in range(draws)),
                first_answers=tuple(answer for _, answer in first),
                second_answers=tuple(answer for _, answer in second),
            )
        )
    return tuple(result)


def _chains(responses: pl.DataFrame, auxiliary: tuple[str, str]) -> dict[tuple[str, int, int], Chain]:
    """(item, draw, side) to (text, answer)."""
    chains = {}
    rows = responses.filter(pl.col("stage") == "auxiliary")
    for item, model, number, text, reasoning, answer in rows.select(
        "item_id", "model", "draw", "text", "reasoning", "answer"
    ).iter_rows():
        draw, side = divmod(number, 2)
        if auxiliary[side] == model:
            chains[item, draw, side] = (text or reasoning or "", answer)
    return chains


def _verdicts(preferences: pl.DataFrame, target: str) -> dict[tuple[str, int], float]:
    """(item, draw) to v."""
    points = pl.when(pl.col("verdict") == "tie").then(0.5).otherwise(pl.col("wins").cast(pl.Float64))
    mean = (
        preferences.filter((pl.col("pair") == "chains") & (pl.col("target") == target))
        .with_columns(points.alias("points"))
        .filter(pl.col("points").is_not_null())
        .group_by("item_id", "draw")
        .agg(pl.col("points").mean())
    )
    return {(item, draw): value for item, draw, value in mean.iter_rows()}
