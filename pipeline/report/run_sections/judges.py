"""Judges: how each rater judges, and how far that can be trusted."""

from __future__ import annotations

import math
from collections.abc import Iterator

import polars as pl

from pipeline.estimators import Estimate
from pipeline.report.judge_diagnostics import (
    PairDiagnostics,
    ScoreDiagnostics,
    labeled_outcomes,
    pair_diagnostics,
    score_diagnostics,
)
from pipeline.report.page_values import Folded, Part, parts_of
from pipeline.report.run_folder import RunFolder
from pipeline.report.values import Cell, Number, Span, Table, quantity, range_of, table

_COLUMNS = ("rater", "measure", "value", "95 % interval", "out of", "reading")


def judges(run: RunFolder) -> tuple[Part, ...]:
    """The parts; none where nobody judged."""
    pairs = _pairs(run)
    run.forget()
    made = parts_of(pairs, _scores(run), _candidates(run))
    return (Folded("How each rater judges: position, ties, verbosity, drift, repairs", made),) if made else ()


def _anchors(run: RunFolder) -> pl.DataFrame | None:
    """item_id, pair, phi of every anchor's answer."""
    named = (run.config.get("roles") or {}).get("anchors") or {}
    if not named:
        return None
    pairs = pl.DataFrame(
        {"pair": list(named), "model": list(named.values())}, schema={"pair": pl.String, "model": pl.String}
    )
    answers = run.responses.filter(pl.col("stage").is_in(["anchor", "answer"]) & (pl.col("draw") == 0))
    answers = answers.unique(["item_id", "model"], keep="first", maintain_order=True)
    return answers.join(pairs, on="model", how="inner", maintain_order="left").select("item_id", "pair", "phi")


def _points(made: Estimate | None) -> tuple[Cell, Cell]:
    if made is None:
        return "–", ""
    return _percent(made.value), range_of(made.low, made.high, percent=True)


def _percent(value: float) -> Number:
    return quantity(value, percent=True)


def _triple(made: tuple[float, float, float] | None) -> tuple[Cell, Cell]:
    if made is None:
        return "–", ""
    value, low, high = made
    return Number(value, f"{value:.2f}"), Span(low, high, f"[{low:.2f}, {high:.2f}]")


def _unbroken(row: list[Cell]) -> list[Cell]:
    """The row with rater and measure on one line each, if they are short."""
    return [
        cell.replace(" ", "\u00a0") if k < 2 and isinstance(cell, str) and len(cell) < 36 else cell
        for k, cell in enumerate(row)
    ]


def _share(value: float) -> Cell:
    return _percent(value) if math.isfinite(value) else "–"


def _pairs(run: RunFolder) -> Table | None:
    raters = pair_diagnostics(run.preferences, outcomes=labeled_outcomes(run.signals), anchors=_anchors(run))
    rows = [_unbroken(row) for entry in raters for row in _pair_rows(run, entry)]
    if not rows:
        return None
    note = "Intervals take items as the units. Half a swap pair is no verdict, and a null one is no tie."
    return table(
        "Pairwise verdicts by rater",
        _COLUMNS,
        rows,
        numeric=(2, 3, 4),
        note=note,
        source="tables/preferences.parquet, calls.jsonl",
    )


def _pair_rows(run: RunFolder, entry: PairDiagnostics) -> Iterator[list[Cell]]:
    chains = entry.kind == "chains"
    name = f"{entry.rater}, on chains" if chains else f"{entry.rater}, on answers"
    side = "the first chain" if chains else "the target"
    stage, asked = "preference" if chains else "pairwise", f"{entry.verdicts:,} verdicts"
    repairs = sum(n for (of, model), n in run.call_log.repairs.items() if (of, model) == (stage, entry.rater))
    pairs = f"{entry.pairs:,} swap pairs"
    yield [name, "position effect, points", *_points(entry.position_effect), asked, "0 is fair, 100 always the first"]
    yield [name, "same in both orders, %", *_points(entry.consistent), pairs, "swap consistency"]
    yield [name, "wins in both orders, %", _share(entry.wins), "", pairs, f"{side} wins"]
    yield [name, "losses in both orders, %", _share(entry.losses), "", pairs, f"{side} loses"]
    yield [name, "ties, %", _share(entry.ties), "", asked, "of the verdicts that came"]
    yield [name, "null, %", _percent(entry.failed), "", asked, f"pairs with one verdict only: {entry.half:,}"]
    if run.call_log.read:
        yield [name, "repaired, %", _percent(repairs / entry.verdicts), "", asked, "asked a second time for the form"]
    if not chains:
        about = "where one of target and anchor is right: the verdict picks it"
        yield [name, "on gold's side, %", *_points(entry.agreement), _units(entry.agreement), about]


def _units(made: Estimate | None) -> str:
    return f"{made.n:,} labeled, decided pairs" if made is not None else ""


def _scores(run: RunFolder) -> Table | None:
    raters = score_diagnostics(
        run.scores,
        run.responses,
        labeled_outcomes(run.signals),
        levels=run.items.select("item_id", "profile"),
        asked_at=run.call_log.score_times,
    )
    rows = [_unbroken(row) for entry in raters for row in _score_rows(entry)]
    if not rows:
        return None
    note = (
        "Given the outcome: what a straight line in φ explains is taken out first, of score and of length. Drift is"
        " within levels of the profile, since items are asked in their order."
    )
    return table(
        "Scores by rater",
        _COLUMNS,
        rows,
        numeric=(2, 3, 4),
        note=note,
        source="tables/scores.parquet, responses.parquet, signals.parquet, calls.jsonl",
    )


def _candidates(run: RunFolder) -> Table | None:
    """Scores of candidates, each candidate being an answer of its own."""
    key = (pl.col("target") + "\x1f" + pl.col("candidate").cast(pl.String)).alias("target")
    scored = run.scores.filter(pl.col("candidate").is_not_null())
    graded = run.candidates.filter(pl.col("phi").is_not_null())
    raters = score_diagnostics(
        scored.with_columns(key, pl.lit(None, dtype=pl.Int32).alias("candidate")),
        run.responses.clear(),
        graded.select("item_id", key, pl.col("phi").alias("y")),
    )
    rows: list[list[Cell]] = []
    for entry in raters:
        graded_count = f"{entry.labels:,} graded candidates"
        name, asked = entry.rater, f"{entry.scores:,} scores"
        about = "above for right, below for wrong candidates"
        rows.append([name, "on gold's side of ½, %", *_points(entry.agreement), graded_count, about])
        about = "of a candidate's mean score"
        rows.append([name, "correlation with gold", *_triple(entry.gold_correlation), graded_count, about])
        rows.append([name, "null, %", _percent(entry.failed), "", asked, "no score after one repair"])
        rows.append([name, "repaired, %", _share(entry.repaired), "", asked, "asked a second time for the form"])
    if not rows:
        return None
    return table(
        "Scores of candidates by rater",
        _COLUMNS,
        [_unbroken(row) for row in rows],
        numeric=(2, 3, 4),
        note="Best of N picks by these scores: what they say of gold is what picking can gain in gold.",
        source="tables/scores.parquet, candidates.parquet",
    )


def _score_rows(entry: ScoreDiagnostics) -> Iterator[list[Cell]]:
    name, labeled, asked = entry.rater, f"{entry.labels:,} labeled answers", f"{entry.scores:,} scores"
    yield [
        name,
        "on gold's side of ½, %",
        *_points(entry.agreement),
        labeled,
        "above for right, below for wrong answers",
    ]
    yield [name, "correlation with gold", *_triple(entry.gold_correlation), labeled, "of an answer's mean score"]
    about = "correlation of score and log length, given the outcome; above 0 likes long answers"
    yield [name, "verbosity", *_triple(entry.verbosity), labeled, about]
    if entry.self_preference is not None:
        about = "its own against others' answers to the same item, given the outcome"
        yield [name, "self-preference, points", *_points(entry.self_preference), labeled, about]
    yield [name, "drift over time", *_triple(entry.drift), asked, "correlation of score and the time it was asked"]
    yield [name, "null, %", _percent(entry.failed), "", asked, "no score after one repair"]
    yield [name, "repaired, %", _share(entry.repaired), "", asked, "asked a second time for the form"]
