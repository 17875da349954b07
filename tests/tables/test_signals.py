"""Signal assembly against values computed by hand."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from pipeline.tables.cast import Cast
from pipeline.tables.schemas import TABLES, signal_columns
from pipeline.tables.signals import assemble_signals


def _frame(name: str, rows: list[dict[str, Any]]) -> pl.DataFrame:
    schema = TABLES[name]
    return pl.DataFrame([{c: row.get(c) for c in schema.columns} for row in rows], schema=dict(schema.columns))


def _items(n: int = 2) -> pl.DataFrame:
    return _frame("items", [{"item_id": f"i{k}", "gold": "1", "profile": 1.0, "labeled": k == 0} for k in range(n)])


def _responses(n: int = 2, **extra: Any) -> list[dict[str, Any]]:
    return [
        {"item_id": f"i{k}", "model": "t", "stage": "answer", "draw": 0, "phi": 1.0, "confidence": 0.8, **extra}
        for k in range(n)
    ]


def _assemble(**tables: Any) -> pl.DataFrame:
    frame, _ = assemble_signals(
        tables.get("items", _items()),
        _frame("responses", tables.get("responses", _responses())),
        _frame("preferences", tables.get("preferences", [])),
        _frame("scores", tables.get("scores", [])),
        targets=("t",),
        missing_reply=tables.get("missing_reply", "wrong"),
    )
    return frame


def _score(item: str, prompt: str, score: float | None, candidate: int | None = None) -> dict[str, Any]:
    return {
        "item_id": item,
        "target": "t",
        "rater": "j",
        "prompt": prompt,
        "draw": 0,
        "score": score,
        "candidate": candidate,
    }


def test_judge_is_the_mean_and_disagreement_the_mean_square_of_three_scores() -> None:
    scores = [_score("i0", f"p{r}", value) for r, value in enumerate((0.2, 0.5, 0.8))]
    row = _assemble(scores=[*scores, _score("i0", "candidate", 0.0, candidate=1)]).row(0, named=True)
    assert row["judge"] == pytest.approx(0.5)
    assert row["disagreement"] == pytest.approx((0.09 + 0.0 + 0.09) / 3)


def test_one_missing_score_makes_the_judge_signal_null_never_zero() -> None:
    row = _assemble(scores=[_score("i0", "p0", 0.2), _score("i0", "p1", None)]).row(0, named=True)
    assert row["judge"] is None
    assert row["disagreement"] is None


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [
        ((True, True), 1.0),
        ((True, False), 0.5),
        ((None, True), 0.75),
        ((None, None), 0.5),
        ((False, None), 0.25),
        ((False, False), 0.0),
    ],
)
def test_pair_signal_counts_wins_and_half_ties(verdicts: tuple[bool | None, ...], expected: float) -> None:
    preferences = [
        {
            "item_id": "i0",
            "target": "t",
            "rater": "j",
            "pair": "weak",
            "draw": 0,
            "order": order,
            "verdict": "tie" if wins is None else "first",
            "wins": False if wins is None else wins,
        }
        for order, wins in zip(("ab", "ba"), verdicts, strict=True)
    ]
    assert _assemble(preferences=preferences)["pair_weak"][0] == pytest.approx(expected)


def test_half_a_swap_pair_is_no_signal() -> None:
    half = {"item_id": "i0", "target": "t", "rater": "j", "pair": "weak", "draw": 0, "order": "ab"}
    preferences = [{**half, "verdict": "first", "wins": True}, {**half, "order": "ba", "verdict_reason": "invalid"}]
    assert _assemble(preferences=preferences)["pair_weak"][0] is None


def test_labels_stay_on_labeled_items_and_indicators_mark_missing_replies() -> None:
    frame = _assemble(scores=[_score("i0", "p0", 0.5)])
    assert frame["y"].to_list() == [1.0, None]
    assert frame["judge_missing"].to_list() == [False, True]
    assert "pair_weak_missing" not in frame.columns


@pytest.mark.parametrize(("policy", "y", "labeled"), [("wrong", 0.0, True), ("exclude", None, False)])
def test_a_labeled_item_without_a_reply_counts_as_the_policy_says(policy: str, y: float | None, labeled: bool) -> None:
    frame = _assemble(responses=_responses(phi=None), missing_reply=policy)
    assert frame["y"][0] == y
    assert frame["labeled"][0] is labeled


def test_a_panel_has_its_mean_and_each_judge_and_pairs_over_all_judges() -> None:
    scores = [{**_score("i0", f"p{k}", score), "rater": rater} for rater, k, score in (("j", 0, 0.2), ("k", 0, 0.6))]
    orders = (("ab", "first", True), ("ba", "tie", False))
    preferences = [
        {
            "item_id": "i0",
            "target": "t",
            "rater": rater,
            "pair": "x/y",
            "draw": 0,
            "order": order,
            "verdict": verdict,
            "wins": wins,
        }
        for rater in ("j", "k")
        for order, verdict, wins in orders
    ]
    frame, schema = assemble_signals(
        _items(), _frame("responses", _responses()), _frame("preferences", preferences), _frame("scores", scores),
        targets=("t",), cast=Cast(judges=("j", "k"), anchors=("x/y",)),
    )  # fmt: skip
    row = frame.row(0, named=True)
    assert [row[name] for name in ("judge", "judge_j", "judge_k", "pair_x/y")] == pytest.approx([0.4, 0.2, 0.6, 0.75])
    assert row["disagreement"] == pytest.approx(0.04)
    assert signal_columns(schema.columns)[:4] == ("judge", "judge_j", "judge_k", "pair_x/y")
    half = assemble_signals(
        _items(), _frame("responses", _responses()), _frame("preferences", preferences[:3]),
        _frame("scores", scores[:1]),
        targets=("t",), cast=Cast(judges=("j", "k"), anchors=("x/y",)),
    )[0].row(0, named=True)  # fmt: skip
    assert half["pair_x/y"] is None
    assert (half["judge_j"], half["judge_k"]) == (0.2, None)


@pytest.mark.parametrize(
    ("reason", "policy", "y"),
    [
        ("refused", "wrong", 0.0),
        ("truncated", "wrong", 0.0),
        ("no_answer", "wrong", 0.0),
        ("refused", "exclude", None),
        ("failed", "wrong", None),
        ("failed", "exclude", None),
    ],
)
def test_a_call_that_failed_says_nothing_of_the_model(reason: str, policy: str, y: float | None) -> None:
    frame = _assemble(responses=_responses(phi=None, phi_reason=reason), missing_reply=policy)
    assert frame["y"][0] == y
    assert frame["labeled"][0] == (y is not None)
