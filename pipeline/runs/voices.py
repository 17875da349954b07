"""Who answered what in a run: the voices that its free signals are made of, and the columns added to its signals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

from pipeline.benchmark.agreement import answer_equality
from pipeline.collection.stages import stage_plan
from pipeline.config import RunConfig
from pipeline.errors import InputError
from pipeline.evaluation.free_columns import FreeColumns, Voice, free_columns
from pipeline.evaluation.signal_families import FREE_FAMILIES
from pipeline.runs.frames import RunTables
from pipeline.tables.schemas import signal_columns
from pipeline.tables.signal_checks import Notice

_FIRST_ANCHORS = ("weak", "medium", "strong")
_NO_ANSWERS = frozenset({"rating"})
"""Metrics under which two replies cannot be compared: free text that people rate."""


def run_free_columns(
    config: RunConfig, tables: RunTables, frame: pl.DataFrame, words: Sequence[str], notices: list[Notice]
) -> tuple[dict[str, tuple[str, ...]], pl.DataFrame]:
    """The free columns by family, and the signals table with them and with the length of each reply.

    Neither gold, outcomes nor which items are labeled are read.

    Args:
        config, tables: of the run.
        frame: its signals table, sorted by item and target.
        words: the families that are wanted.
        notices: grows where columns cannot be made.
    """
    items, targets = frame["item_id"].unique().sort().to_list(), config.roles.targets
    told = frame.select("item_id", "target", *_own_names(frame))
    if "length" in words:
        told = told.join(_lengths(tables.responses), on=["item_id", "target"], how="left", maintain_order="left")
    own = _matrices(told, items, targets)
    given = tuple(told.columns[2:])
    made = _made(config, tables, items, own, words, notices)
    clash = sorted(set(made.names) & set(given))
    if clash:
        raise InputError(f"two columns of the signals table would be called {clash[0]!r}; rename one of them")
    row = {item: place for place, item in enumerate(items)}
    column = {name: place for place, name in enumerate(targets)}
    at = [row[item] for item in frame["item_id"]], [column[name] for name in frame["target"]]
    free = [pl.Series(name, made.values[*at, k]) for k, name in enumerate(made.names)]
    lengths = told.select(pl.col("^log_length$")).get_columns()
    stale = [name for name in frame.columns if name in made.names or name == "log_length"]
    return dict(made.families), frame.drop(stale).with_columns(*lengths, *free)


def _own_names(frame: pl.DataFrame) -> list[str]:
    """Signals that were asked for or given; columns of an earlier export are made anew."""
    return [
        name for name in signal_columns(frame.columns)
        if not name.endswith(("_missing", "_others")) and frame[name].is_not_null().any() and not _is_free(name)
    ]  # fmt: skip


def _is_free(name: str) -> bool:
    votes = ("share", "top_share", "entropy", "plural", "consensus", "no_answer", "self_consistency", "log_length")
    return name in votes or name.startswith("agrees_")


def _lengths(responses: pl.DataFrame) -> pl.DataFrame:
    """log(1 + characters) of each graded reply."""
    graded = responses.filter((pl.col("stage") == "answer") & (pl.col("draw") == 0))
    return graded.select(
        "item_id", pl.col("model").alias("target"), pl.col("text").str.len_chars().log1p().alias("log_length")
    )


def _matrices(told: pl.DataFrame, items: Sequence[str], targets: Sequence[str]) -> dict[str, np.ndarray]:
    """Signal → (M, T) values, NaN where missing."""
    everywhere = pl.DataFrame({"item_id": items}).join(pl.DataFrame({"target": list(targets)}), how="cross")
    whole = everywhere.join(told, on=["item_id", "target"], how="left", maintain_order="left")
    shape = len(items), len(targets)
    return {name: whole[name].cast(pl.Float64).fill_null(np.nan).to_numpy().reshape(shape) for name in told.columns[2:]}


def _made(
    config: RunConfig,
    tables: RunTables,
    items: Sequence[str],
    own: Mapping[str, np.ndarray],
    words: Sequence[str],
    notices: list[Notice],
) -> FreeColumns:
    """The free columns of the run; none where two replies cannot be compared."""
    wanted = [word for word in words if word in FREE_FAMILIES]
    nothing = FreeColumns(np.zeros((len(items), len(config.roles.targets), 0)))
    grading = tables.grading or config.benchmark.grading or "exact"
    if not wanted:
        return nothing
    if grading in _NO_ANSWERS or tables.responses["answer"].is_null().all():
        text = "no signals from agreement: two replies cannot be compared where no final answer is read from them"
        notices.append(Notice("no_agreement", text))
        return nothing
    asked = tables.items.sort("item_id").filter(pl.col("item_id").is_in(items))["question"].fill_null("").to_list()
    equal = answer_equality(grading, tolerance=config.benchmark.tolerance, questions=asked)
    answers = _answers(tables.responses, items)
    plan = stage_plan(config)
    targets = [Voice(name, answers.get((name, "answer"), ([None] * len(items),))) for name in plan.targets]
    ranked = sorted(plan.anchors, key=lambda entry: _FIRST_ANCHORS.index(entry[0]) if entry[0] in _FIRST_ANCHORS else 3)
    anchors = [
        # A target of the same name keeps it; the anchor then goes by its entry.
        Voice(model if name in plan.targets else name, answers[model, "anchor"]) for name, model in ranked
        if model not in plan.targets and (model, "anchor") in answers
    ]  # fmt: skip
    taken = {voice.name for voice in (*targets, *anchors)}
    chains = [
        Voice(name if name not in taken else f"{name}_chains", answers[name, "auxiliary"])
        for name in dict.fromkeys(plan.auxiliary or ())
        if (name, "auxiliary") in answers
    ]
    return free_columns(targets, anchors, chains, equal, own=own, words=wanted)


def _answers(responses: pl.DataFrame, items: Sequence[str]) -> dict[tuple[str, str], tuple[list[str | None], ...]]:
    """(model, stage) → its final answers, one list (M,) per draw."""
    row = {item: place for place, item in enumerate(items)}
    answers: dict[tuple[str, str], dict[int, list[str | None]]] = {}
    kept = responses.filter(pl.col("stage").is_in(["answer", "anchor", "auxiliary"])).sort("model", "stage", "draw")
    for item, model, stage, draw, answer in kept.select("item_id", "model", "stage", "draw", "answer").iter_rows():
        if item in row:
            draws = answers.setdefault((model, stage), {})
            draws.setdefault(draw, [None] * len(items))[row[item]] = answer
    return {key: tuple(draws[draw] for draw in sorted(draws)) for key, draws in answers.items()}
