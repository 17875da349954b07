"""From the tables of a run to (x, w1, w2, v)."""

from __future__ import annotations

import polars as pl

from pipeline.tables.item_draws import item_draws
from pipeline.tables.schemas import TABLES

ITEMS = pl.DataFrame({"item_id": ["b", "a"], "question": ["second?", "first?"]})


def responses(*rows: tuple[str, str, int, str | None, str | None]) -> pl.DataFrame:
    columns = TABLES["responses"].columns
    return pl.DataFrame(
        [
            {"item_id": item, "model": model, "stage": "auxiliary", "draw": draw, "text": text, "answer": answer}
            for item, model, draw, text, answer in rows
        ],
        schema=dict(columns),
    )


def preferences(*rows: tuple[str, str, int, str, str | None, bool | None]) -> pl.DataFrame:
    columns = TABLES["preferences"].columns
    return pl.DataFrame(
        [
            {
                "item_id": item, "target": target, "rater": target, "pair": "chains", "draw": draw, "order": order,
                "verdict": verdict, "wins": wins,
            }
            for item, target, draw, order, verdict, wins in rows
        ],
        schema=dict(columns),
    )  # fmt: skip


def test_chains_verdicts_and_gaps_find_their_places() -> None:
    chains = responses(
        ("a", "m1", 0, "a01", "1"),
        ("a", "m2", 1, "a02", "2"),
        ("a", "m1", 2, "a11", None),
        ("a", "m2", 3, None, None),
        ("b", "m1", 0, "b01", "3"),
    )
    verdicts = preferences(
        ("a", "t", 0, "ab", "first", True),
        ("a", "t", 0, "ba", "first", False),
        ("a", "t", 1, "ab", "tie", False),
        ("a", "t", 1, "ba", None, None),
        ("b", "t", 0, "ab", "first", True),
        ("b", "other", 0, "ab", "second", False),
    )
    first, second = item_draws(ITEMS, chains, verdicts, target="t", auxiliary=("m1", "m2"))
    assert (first.question, second.question) == ("first?", "second?")
    assert first.first == ("a01", "a11")
    assert first.second == ("a02", "")
    assert first.first_answers == ("1", None)
    assert first.second_answers == ("2", None)
    assert first.preference == (0.5, 0.5)
    assert second.first == ("b01", "")
    assert second.preference == (1.0, 0.5)


def test_one_model_may_write_both_chains() -> None:
    chains = responses(("a", "m", 0, "w1", None), ("a", "m", 1, "w2", None))
    first, _ = item_draws(ITEMS, chains, preferences(), target="t", auxiliary=("m", "m"))
    assert (first.first, first.second) == (("w1",), ("w2",))
