"""Judge diagnostics on raters whose habits are known."""

from __future__ import annotations

import json
from collections.abc import Callable

import numpy as np
import polars as pl
import pytest

from pipeline.report.judge_diagnostics import labeled_outcomes, pair_diagnostics, score_diagnostics
from pipeline.tables.schemas import TABLES

ITEMS = tuple(f"i{k:03d}" for k in range(60))


def preferences(
    verdict: Callable[[str, str], str | None], *, pair: str = "weak", rater: str = "judge", reason: str = "invalid"
) -> pl.DataFrame:
    """Verdicts of one rater on every item in both orders."""
    rows = []
    for item in ITEMS:
        for order in ("ab", "ba"):
            said = verdict(item, order)
            rows.append(
                {
                    "item_id": item, "target": "t", "rater": rater, "pair": pair, "draw": 0, "order": order,
                    "verdict": said, "verdict_reason": reason if said is None else None,
                    "wins": None if said is None else said == ("first" if order == "ab" else "second"),
                    "request_key": f"{item}{order}",
                }
            )  # fmt: skip
    return pl.DataFrame(rows, schema=dict(TABLES["preferences"].columns))


def scores(values: dict[tuple[str, str], float | None], *, rater: str = "judge") -> pl.DataFrame:
    """One score per (item, target)."""
    rows = [
        {
            "item_id": item, "target": target, "rater": rater, "prompt": "pointwise_1", "candidate": None, "draw": 0,
            "score": value, "score_reason": "invalid" if value is None else None, "repaired": value is None,
            "request_key": f"{item}|{target}",
        }
        for (item, target), value in values.items()
    ]  # fmt: skip
    return pl.DataFrame(rows, schema=dict(TABLES["scores"].columns))


def responses(lengths: dict[tuple[str, str], int]) -> pl.DataFrame:
    """Answers of given lengths."""
    rows = [
        {"item_id": item, "model": target, "stage": "answer", "draw": 0, "length": length, "outcome": "ok"}
        for (item, target), length in lengths.items()
    ]
    return pl.DataFrame(rows, schema={**TABLES["responses"].columns, "length": pl.UInt32})


def outcomes(values: dict[tuple[str, str], float]) -> pl.DataFrame:
    return pl.DataFrame(
        [{"item_id": item, "target": target, "y": y} for (item, target), y in values.items()],
        schema={"item_id": pl.String, "target": pl.String, "y": pl.Float64},
    )


def test_a_judge_that_always_says_first_wins_nothing_and_agrees_never() -> None:
    (found,) = pair_diagnostics(preferences(lambda item, order: "first"))
    assert found.wins == 0.0
    assert found.losses == 0.0
    assert found.consistent is not None
    assert found.consistent.value == 0.0
    assert found.position_effect is not None
    assert found.position_effect.value == 1.0
    assert found.position_effect.low < 1.0  # 60 items leave room for doubt
    assert found.position_effect.low == pytest.approx(2 * 60 / (60 + 1.959964**2) - 1, abs=1e-4)


def test_a_fair_judge_is_consistent_and_has_no_position_effect() -> None:
    def fair(item: str, order: str) -> str:
        better = int(item[1:]) % 2 == 0
        return "first" if better == (order == "ab") else "second"

    (found,) = pair_diagnostics(preferences(fair))
    assert (found.wins, found.losses, found.ties, found.failed) == (0.5, 0.5, 0.0, 0.0)
    assert found.consistent is not None
    assert found.consistent.value == 1.0
    assert found.position_effect is not None
    assert found.position_effect.value == 0.0


def test_a_judge_that_is_down_gives_no_verdict_and_no_tie() -> None:
    (found,) = pair_diagnostics(preferences(lambda item, order: None, reason="failed"))
    assert found.failed == 1.0
    assert found.pairs == 0
    assert np.isnan(found.ties)
    assert found.position_effect is None
    json.dumps(found.to_dict(), allow_nan=False)


def test_half_a_pair_is_no_verdict() -> None:
    (found,) = pair_diagnostics(preferences(lambda item, order: "first" if order == "ab" else None))
    assert found.pairs == 0
    assert found.half == len(ITEMS)
    assert found.failed == 0.5


def test_what_was_never_asked_is_not_a_failure() -> None:
    assert pair_diagnostics(preferences(lambda item, order: None, reason="missing_input")) == ()


def test_chains_and_answers_are_told_apart() -> None:
    both = pl.concat([preferences(lambda i, o: "first"), preferences(lambda i, o: "tie", pair="chains", rater="judge")])
    kinds = {entry.kind: entry for entry in pair_diagnostics(both)}
    assert set(kinds) == {"chains", "pairwise"}
    assert kinds["chains"].ties == 1.0
    assert kinds["chains"].consistent is not None
    assert kinds["chains"].consistent.value == 1.0


def test_pairwise_agreement_counts_decided_pairs_with_one_right_side() -> None:
    right = {(item, "t"): float(k % 2) for k, item in enumerate(ITEMS)}
    anchors = pl.DataFrame({"item_id": ITEMS, "pair": ["weak"] * 60, "phi": [0.0] * 60})

    def target_always(item: str, order: str) -> str:
        return "first" if order == "ab" else "second"

    (found,) = pair_diagnostics(preferences(target_always), outcomes=outcomes(right), anchors=anchors)
    assert found.agreement is not None
    assert found.agreement.value == 1.0
    assert found.agreement.n == 30  # only where the target alone is right


def test_position_effect_covers_its_truth() -> None:
    """P(first) − P(second) = 0.3 over 300 seeded worlds: 95 % intervals cover within four Monte Carlo errors."""
    rng = np.random.default_rng(5)
    covered = 0
    for _ in range(300):
        said = {(item, order): "first" if rng.random() < 0.65 else "second" for item in ITEMS for order in ("ab", "ba")}
        (found,) = pair_diagnostics(preferences(lambda item, order, said=said: said[item, order]))
        assert found.position_effect is not None
        covered += found.position_effect.low <= 0.3 <= found.position_effect.high
    assert abs(covered / 300 - 0.95) < 4 * np.sqrt(0.95 * 0.05 / 300)


def test_agreement_uses_labeled_items_alone_and_nulls_count_for_nothing() -> None:
    keys = [(item, "t") for item in ITEMS]
    given: dict[tuple[str, str], float | None] = {
        key: None if k % 10 == 0 else 0.9 if k % 2 else 0.1 for k, key in enumerate(keys)
    }
    truth = {key: float(k % 2) for k, key in enumerate(keys) if k < 30}
    (found,) = score_diagnostics(scores(given), responses(dict.fromkeys(keys, 100)), outcomes(truth))
    assert found.failed == pytest.approx(0.1)
    assert found.repaired == pytest.approx(0.1)
    assert found.labels == 27
    assert found.agreement is not None
    assert found.agreement.value == 1.0
    assert found.agreement.n == 27


def test_verbosity_is_found_given_correctness_and_not_invented() -> None:
    rng = np.random.default_rng(1)
    keys = [(item, "t") for item in ITEMS]
    truth = {key: float(rng.random() < 0.5) for key in keys}
    # Right answers are longer and score higher: without the outcome that looks like a liking for length.
    lengths = {key: int(200 + 400 * truth[key] + rng.integers(0, 200)) for key in keys}
    blind: dict[tuple[str, str], float | None] = {key: 0.3 + 0.4 * truth[key] + 0.05 * rng.random() for key in keys}
    fond: dict[tuple[str, str], float | None] = {
        key: float(np.clip(0.2 + 0.3 * truth[key] + 0.0008 * lengths[key] + 0.02 * rng.random(), 0, 1)) for key in keys
    }
    (none,) = score_diagnostics(scores(blind), responses(lengths), outcomes(truth))
    (much,) = score_diagnostics(scores(fond), responses(lengths), outcomes(truth))
    assert none.verbosity is not None
    assert none.verbosity[1] < 0.0 < none.verbosity[2]
    assert much.verbosity is not None
    assert much.verbosity[1] > 0.5


def test_self_preference_where_the_judge_is_a_target() -> None:
    rng = np.random.default_rng(2)
    keys = [(item, target) for item in ITEMS for target in ("judge", "other")]
    truth = {key: float(rng.random() < (0.9 if key[1] == "judge" else 0.4)) for key in keys}
    given: dict[tuple[str, str], float | None] = {
        key: 0.3 + 0.4 * truth[key] + (0.1 if key[1] == "judge" else 0.0) + 0.02 * rng.random() for key in keys
    }
    (found,) = score_diagnostics(scores(given), responses(dict.fromkeys(keys, 50)), outcomes(truth))
    assert found.self_preference is not None
    assert 0.05 < found.self_preference.low < found.self_preference.high < 0.15
    (stranger,) = score_diagnostics(scores(given, rater="x"), responses(dict.fromkeys(keys, 50)), outcomes(truth))
    assert stranger.self_preference is None


def test_drift_is_found_over_time_and_not_from_the_order_of_levels() -> None:
    rng = np.random.default_rng(3)
    keys = [(item, "t") for item in ITEMS]
    times = {f"{item}|t": f"2026-01-01T00:00:{k:02d}Z" for k, item in enumerate(ITEMS)}
    levels = pl.DataFrame({"item_id": ITEMS, "profile": [float(k // 20) for k in range(60)]})
    hard: dict[tuple[str, str], float | None] = {
        key: 0.8 - 0.2 * (k // 20) + 0.05 * rng.random() for k, key in enumerate(keys)
    }
    tired: dict[tuple[str, str], float | None] = {
        key: 0.9 - 0.01 * k + 0.01 * rng.random() for k, key in enumerate(keys)
    }
    known = outcomes(dict.fromkeys(keys, 1.0))
    lengths = responses(dict.fromkeys(keys, 50))
    (steady,) = score_diagnostics(scores(hard), lengths, known, levels=levels, asked_at=times)
    (drifting,) = score_diagnostics(scores(tired), lengths, known, levels=levels, asked_at=times)
    (untimed,) = score_diagnostics(scores(tired), lengths, known, levels=levels)
    assert steady.drift is not None
    assert steady.drift[1] < 0.0 < steady.drift[2]
    assert drifting.drift is not None
    assert drifting.drift[2] < -0.8
    assert untimed.drift is None


def test_constant_scores_have_no_correlation_and_dump_as_strict_json() -> None:
    keys = [(item, "t") for item in ITEMS]
    flat: dict[tuple[str, str], float | None] = dict.fromkeys(keys, 0.5)
    (found,) = score_diagnostics(
        scores(flat), responses(dict.fromkeys(keys, 5)), outcomes({key: float(k % 2) for k, key in enumerate(keys)})
    )
    assert found.gold_correlation is None
    assert found.agreement is not None
    assert found.agreement.value == 0.5
    json.dumps(found.to_dict(), allow_nan=False)


def test_labeled_outcomes_leaves_out_the_pool() -> None:
    signals = pl.DataFrame(
        {"item_id": ["a", "b", "c"], "target": ["t"] * 3, "y": [1.0, None, 0.0], "labeled": [True, False, True]}
    )
    assert labeled_outcomes(signals)["item_id"].to_list() == ["a", "c"]
