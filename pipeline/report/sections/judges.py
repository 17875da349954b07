"""Judges: how each rater judges, and how far that can be trusted."""

from __future__ import annotations

import polars as pl

from pipeline.estimators import Estimate
from pipeline.report.judge_diagnostics import labeled_outcomes, pair_diagnostics, score_diagnostics
from pipeline.report.markup import Cell, Span, section, table
from pipeline.report.run_folder import RunFolder
from pipeline.report.sections.values import between, share

__all__ = ["judges"]


def judges(run: RunFolder) -> str:
    """The section; empty where nobody judged."""
    parts = [_pairs(run), _scores(run)]
    return section("judges", "Judges", *parts) if any(parts) else ""


def _anchors(run: RunFolder) -> pl.DataFrame | None:
    """item_id, pair, phi of every anchor's answer."""
    named = {model: pair for pair, model in ((run.config.get("roles") or {}).get("anchors") or {}).items() if model}
    if not named:
        return None
    answers = run.responses.filter(
        pl.col("model").is_in(list(named)) & pl.col("stage").is_in(["anchor", "answer"]) & (pl.col("draw") == 0)
    )
    answers = answers.unique(["item_id", "model"], keep="first", maintain_order=True)
    return answers.select("item_id", pl.col("model").replace_strict(named, default=None).alias("pair"), "phi")


def _points(found: Estimate | None) -> tuple[Cell, Cell]:
    if found is None:
        return "–", "–"
    return share(found.value), between(found.low, found.high, percent=True)


def _triple(found: tuple[float, float, float] | None) -> tuple[Cell, Cell]:
    if found is None:
        return "–", "–"
    return f"{found[0]:.2f}", Span(found[1], found[2], f"[{found[1]:.2f}, {found[2]:.2f}]")


def _pairs(run: RunFolder) -> str:
    found = pair_diagnostics(run.preferences, outcomes=labeled_outcomes(run.signals), anchors=_anchors(run))
    rows: list[list[Cell]] = []
    for entry in found:
        repairs = sum(
            count
            for (stage, model), count in run.call_log.repairs.items()
            if model == entry.rater and stage == ("preference" if entry.kind == "chains" else "pairwise")
        )
        rows.append(
            [
                entry.rater,
                "answers against anchors" if entry.kind == "pairwise" else "chains",
                entry.verdicts,
                share(entry.failed),
                share(repairs / entry.verdicts) if run.call_log.read else "–",
                share(entry.ties),
                *_points(entry.position_effect),
                entry.pairs,
                *_points(entry.consistent),
                share(entry.wins),
                share(entry.losses),
                *_points(entry.agreement),
            ]
        )
    if not rows:
        return ""
    columns = ["rater", "of", "verdicts", "null, %", "repaired, %", "ties, %", "position effect, points", "interval"]
    columns += ["swap pairs", "consistent, %", "interval", "wins, %", "losses, %", "gold's side, %", "interval"]
    note = (
        "position effect: how much more often the first-shown text wins than the second; 0 is fair, 100 is always the"
        " first. consistent: swap pairs that say the same in both orders; wins and losses of the target's text (of the"
        " first chain) are in both orders, and half a pair is no verdict. gold's side: of labeled items where exactly"
        " one of target and anchor is right, how often a consistent verdict picks that one. 95 % intervals; items"
        " are the units."
    )
    return table(
        columns,
        rows,
        caption="Pairwise verdicts by rater",
        numeric=range(2, len(columns)),
        note=note,
        source="tables/preferences.parquet, calls.jsonl",
    )


def _scores(run: RunFolder) -> str:
    found = score_diagnostics(
        run.scores,
        run.responses,
        labeled_outcomes(run.signals),
        levels=run.items.select("item_id", "profile"),
        asked_at=run.call_log.score_times,
    )
    rows: list[list[Cell]] = [
        [
            entry.rater,
            entry.scores,
            share(entry.failed),
            share(entry.repaired),
            entry.labels,
            *_points(entry.agreement),
            *_triple(entry.gold_correlation),
            *_triple(entry.verbosity),
            *_points(entry.self_preference),
            *_triple(entry.drift),
        ]
        for entry in found
    ]
    if not rows:
        return ""
    columns = ["rater", "scores", "null, %", "repaired, %", "labeled answers", "gold's side of ½, %", "interval"]
    columns += ["correlation with gold", "interval", "length", "interval", "own answers, points", "interval"]
    columns += ["drift", "interval"]
    note = (
        "On labeled items: gold's side of ½ is the share of scores above ½ for right and below for wrong answers;"
        " length is the correlation of score and log length given the outcome; own answers is how much more a judge"
        " that is also a target gives to its own than to others' answers to the same item, given the outcome. drift is"
        " the correlation of score and time asked within levels of the profile. 95 % intervals."
    )
    return table(
        columns,
        rows,
        caption="Scores by rater",
        numeric=range(1, len(columns)),
        note=note,
        source="tables/scores.parquet, responses.parquet, calls.jsonl",
    )
