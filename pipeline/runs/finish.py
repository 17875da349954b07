"""From the collected tables to signals, estimates and report: the half of a run that asks nobody anything."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pipeline.collection.stages import is_rated, stage_plan
from pipeline.config import RunConfig
from pipeline.evaluation.document import EstimateSet
from pipeline.evaluation.planning import families_worth, free_worth
from pipeline.evaluation.plans.doors import ledger_at_door
from pipeline.runs.audit import apply_stored_audit, grading_error
from pipeline.runs.directory import RunDirectory, write_atomically
from pipeline.runs.estimation import estimate_run
from pipeline.runs.exported import Exported, exported
from pipeline.runs.frames import RunTables
from pipeline.runs.labels import apply_stored_labels
from pipeline.runs.manifest import Manifest, State
from pipeline.runs.quality import quality_warnings, rows_left_out, served_models, simulated_truth
from pipeline.runs.ratings import apply_stored_ratings, rater_warnings
from pipeline.runs.unread import stage_replies, unread_answers, unread_warnings
from pipeline.tables.cast import Cast
from pipeline.tables.schemas import signals_table
from pipeline.tables.signals import assemble_signals
from pipeline.tables.store import write_frame


def finish_run(directory: RunDirectory, config: RunConfig, manifest: Manifest, *, anytime: bool = False) -> EstimateSet:
    """Assemble the signals, estimate, write estimates.json and the report; the manifest says done.

    Raises:
        InputError: a blind label plan hides the numbers; nothing can be estimated from these tables.
    """
    table = assemble_run(directory, config, manifest)
    ledger = ledger_at_door(directory.path)
    tables = RunTables(directory.tables)
    estimates = estimate_run(config, tables, table, ledger=ledger, anytime=anytime)
    unread = unread_answers(config, tables)
    left_out = rows_left_out(manifest.values["benchmark"].get("left_out"))
    served = served_models(config, manifest.values.get("served") or {})
    noticed = (*unread_warnings(unread), *left_out, *served, *quality_warnings(config, tables))
    if is_rated(config):
        noticed = (*noticed, *rater_warnings(directory, config, estimates))
    truth = simulated_truth(directory, config)
    worth = _worth(table) if "lace" in config.estimate and any(estimates.values()) else []
    estimates = replace(
        estimates,
        warnings=tuple(dict.fromkeys((*noticed, *estimates.warnings))),
        unread=unread,
        replies=stage_replies(tables, manifest.values.get("quotes") or {}),
        audit=grading_error(tables),
        extra={**estimates.extra, **({"worth": worth} if worth else {}), **({"simulated": truth} if truth else {})},
    )
    write_atomically(directory.estimates_file, estimates.to_json())
    make_report(directory, state="done")  # which is what the manifest says as soon as the report is there
    manifest.finish("done", unread={name: entry.to_dict() for name, entry in unread.items()})
    return estimates


def assemble_run(directory: RunDirectory, config: RunConfig, manifest: Manifest) -> Exported:
    """Grade with the labels that came later and write the table that everything is estimated from."""
    if is_rated(config):
        apply_stored_ratings(directory, config, manifest)
    else:
        apply_stored_labels(directory, config, manifest)
    apply_stored_audit(directory)
    tables = RunTables(directory.tables)
    frame, schema = assemble_signals(
        tables.items,
        tables.responses,
        tables.preferences,
        tables.scores,
        targets=config.roles.targets,
        cast=run_cast(config),
        own=tables.own,
        probabilities=tables.probabilities,
        missing_reply=config.missing_reply,
        kind=manifest.values["benchmark"]["profile_kind"],
    )
    write_frame(directory.tables, schema, frame)
    table = exported(config, RunTables(directory.tables))
    write_frame(directory.tables, signals_table(table.frame), table.frame, metadata=table.metadata())
    return table


def run_cast(config: RunConfig) -> Cast:
    """Who gives signals in a run."""
    plan = stage_plan(config)
    return Cast(
        judges=plan.judges,
        anchors=tuple(name for name, _ in plan.anchors),
        criteria=tuple(criterion.name for criterion in plan.criteria),
        compared=plan.targets if plan.direct else (),
        own=config.benchmark.fields.signals,
        scattered=len(plan.judges) * max(plan.pointwise, 1) > 1,
        rated=config.benchmark.grading == "rating",
        weighed=(
            *(("logprob_mean", "logprob_min") if plan.weighed else ()),
            *(("p_true",) if plan.p_true else ()),
            *(("judge_expected",) if plan.expected else ()),
        ),
    )


def _worth(table: Exported) -> list[dict[str, Any]]:
    """What the free signals are worth, then what each other family adds to all; without costs, which a replay lacks."""
    kept = ("target", "family", "gain", "effective", "without")
    pool = table.pool()
    if len(pool.families) < 2:
        return []
    entries = []
    for target in pool.targets:
        free = free_worth(pool, target)
        worth = [*([free] if free else []), *families_worth(pool, target)]
        entries += [{**entry.to_dict(), "target": target.name} for entry in worth]
    return [{name: entry[name] for name in kept} for entry in entries]


def make_report(directory: RunDirectory, *, state: State | None = None) -> None:
    """(Re)build report.html and figures/ from what the run holds.

    Args:
        directory: the run.
        state: what the report says of the run, where its manifest does not say it yet.

    Raises:
        InputError: a blind label plan hides the numbers.
    """
    from pipeline.report.page import write_report
    from pipeline.runs.prompt_texts import asked_prompts
    from pipeline.runs.setup import run_prompts

    ledger_at_door(directory.path)
    config = directory.config()
    directory.manifest()  # says what makes it again, if it is lost
    write_report(directory.path, asked_prompts(run_prompts(config, directory), config), state=state)
