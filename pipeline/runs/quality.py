"""What in the collected replies the reader of the numbers must know: nulls, repairs, missing answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from pipeline.benchmark.data_checks import duplicate_findings
from pipeline.benchmark.items import Item
from pipeline.config import RunConfig
from pipeline.evaluation.document import Warned
from pipeline.models.served import served_warning
from pipeline.runs.directory import RunDirectory
from pipeline.runs.frames import RunTables
from pipeline.runs.own_runs import own_config

NULL_SHARE = 0.05
"""Share of null replies of one role above which a warning stands at the top of the report."""
MISSING_SHARE = 0.02
"""Share of labeled items without a reply above which a warning stands at the top of the report."""

SAME_SHARE = 0.5
"""Share of items whose draws are all one text above which the draws are not taken for independent."""


def null_shares(tables: RunTables) -> dict[str, tuple[int, int]]:
    """Kind of reply → (null values, all values), over what was asked."""
    asked = {
        "confidence": (tables.responses.filter(pl.col("stage") == "answer"), "confidence"),
        "preference verdicts": (tables.preferences.filter(~_is_anchor()), "verdict"),
        "pairwise verdicts": (tables.preferences.filter(_is_anchor()), "verdict"),
        "pointwise scores": (tables.scores.filter(pl.col("prompt") != "candidate"), "score"),
        "candidate scores": (tables.scores.filter(pl.col("prompt") == "candidate"), "score"),
        "τ predictions": (tables.taus, "tau"),
    }
    shares = {}
    for name, (frame, column) in asked.items():
        relevant = frame.filter(pl.col(f"{column}_reason").is_null() | (pl.col(f"{column}_reason") != "not_asked"))
        if relevant.height:
            shares[name] = (relevant[column].null_count(), relevant.height)
    return shares


def _is_anchor() -> pl.Expr:
    return pl.col("pair") != "chains"


def rows_left_out(counts: Mapping[str, int] | None) -> tuple[Warned, ...]:
    """What a benchmark's file holds and the run does not ask, reason by reason."""
    if not counts:
        return ()
    reasons = ", ".join(f"{count} {reason}" for reason, count in counts.items())
    return (Warned("items_left_out", f"{sum(counts.values())} rows of the benchmark are left out: {reasons}"),)


def served_models(config: RunConfig, served: Mapping[str, Mapping[str, int]]) -> tuple[Warned, ...]:
    """Entries whose replies name another model than was asked, or more than one."""
    texts = [served_warning(name, config.model_entry(name).model, counts) for name, counts in served.items() if counts]
    return tuple(Warned("served_model", text) for text in texts if text is not None)


def quality_warnings(config: RunConfig, tables: RunTables) -> tuple[Warned, ...]:
    """Warnings about null replies by role, draws that do not differ, a full pool, labeled items without an answer."""
    warnings = [
        Warned(
            "null_replies",
            f"{name}: {nulls} of {count} ({nulls / count:.1%}) are null; see the report for the reasons",
        )
        for name, (nulls, count) in null_shares(tables).items()
        if nulls / count > NULL_SHARE
    ]
    warnings += _same_questions(tables)
    warnings += _same_draws(tables)
    labeled = tables.items.filter(pl.col("labeled")).select("item_id")
    for target in config.roles.targets:
        answers = tables.responses.filter(
            (pl.col("model") == target) & (pl.col("stage") == "answer") & (pl.col("draw") == 0)
        ).join(labeled, on="item_id", how="semi")
        failed = answers.filter(pl.col("phi_reason") == "failed").height
        if failed:
            text = (
                f"{target}: the calls of {failed} of {answers.height} labeled items failed; they are left out, since a"
                " server that is down says nothing of a model (auxeval resume asks again)"
            )
            warnings.append(Warned("failed_labeled", text))
        answers = answers.filter(pl.col("phi_reason").is_null() | (pl.col("phi_reason") != "failed"))
        missing = answers["phi"].null_count()
        if not missing:
            continue
        share = missing / max(answers.height, 1)
        correct = float(answers["phi"].fill_null(0.0).sum())
        low, high = correct / answers.height, (correct + missing) / answers.height
        policy = "counted as wrong" if config.missing_reply == "wrong" else "excluded"
        emphasis = "missing_labeled" if share > MISSING_SHARE else "missing_labeled_few"
        warnings.append(
            Warned(
                emphasis,
                f"{target}: {missing} of {answers.height} labeled items ({share:.1%}) have no reply and are {policy};"
                f" whatever they would have been, the plain mean over the labeled items is in [{low:.3f}, {high:.3f}]",
            )
        )
    return tuple(warnings)


def _same_questions(tables: RunTables) -> list[Warned]:
    """Copies of a question in several rows, where no cluster says that they belong together."""
    if "cluster" in tables.items.columns and tables.items["cluster"].drop_nulls().len():
        return []
    items = [
        Item(row["item_id"], row["question"], row["gold"], tuple(row["choices"]) if row["choices"] else None)
        for row in tables.items.select("item_id", "question", "gold", "choices").iter_rows(named=True)
    ]
    return [Warned(finding.code, finding.message) for finding in duplicate_findings(items)]


def _same_draws(tables: RunTables) -> list[Warned]:
    """A warning per model and stage whose draws of an item are, on most items, one and the same text."""
    drawn = tables.responses.filter(
        pl.col("stage").is_in(("auxiliary", "episode", "candidates")) & pl.col("text").is_not_null()
    )
    items = drawn.group_by("model", "stage", "item_id").agg(pl.len().alias("draws"), pl.col("text").n_unique())
    counts = (
        items.filter(pl.col("draws") > 1)
        .group_by("model", "stage")
        .agg((pl.col("text") == 1).sum().alias("same"), pl.len().alias("items"))
        .filter(pl.col("same") > SAME_SHARE * pl.col("items"))
        .sort("model", "stage")
    )
    return [
        Warned(
            "same_draws",
            f"{row['model']}: on {row['same']} of {row['items']} items all draws of stage {row['stage']} are one text;"
            " temperature 0, or a seed among the model's params, makes draws copies that say nothing",
        )
        for row in counts.iter_rows(named=True)
    ]


def simulated_truth(directory: RunDirectory, config: RunConfig) -> dict[str, Any]:
    """Target → its true expected accuracy, for the targets that are simulated; empty where none is.

    Raises:
        InputError: the items lie outside a run folder that was not started here.
    """
    simulated = [name for name in config.roles.targets if config.model_entry(name).is_simulated]
    if not simulated:
        return {}
    from pipeline.benchmark.items import load_benchmark
    from pipeline.models.simulated.settings import simulation_settings
    from pipeline.models.simulated.world import World

    benchmark = load_benchmark(own_config(config, directory.path).benchmark, config.seed)
    if benchmark.grading == "squared_error" or benchmark.grading.startswith("python:"):
        return {}  # the share of right answers is not what is estimated
    world = World.from_items(benchmark.items, seed=config.seed)
    truths = {}
    for name in simulated:
        entry = config.model_entry(name)
        settings = simulation_settings(entry.model, entry.simulate)
        truths[name] = {"true_accuracy": world.true_accuracy(settings, (item.question for item in benchmark.items))}
    return truths
