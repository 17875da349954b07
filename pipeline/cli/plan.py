"""``auxeval plan``: what a run would do and cost, and how many gold labels a wanted half-width needs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from pipeline.cli.completion import offer_runs
from pipeline.cli.output import allow_code_option, json_option, print_json, print_table, print_text, runs_dir_option
from pipeline.cli.table_options import column_options, score_options
from pipeline.errors import InputError

if TYPE_CHECKING:
    from pipeline.cli.documents.plans import ForecastEntry, LabelsEntry, PlanDocument
    from pipeline.config import RunConfig
    from pipeline.runs.directory import RunDirectory
    from pipeline.runs.forecast import Forecast
    from pipeline.runs.setup import Prepared

_CONFIGS = (".yaml", ".yml")
_TABLES = (".csv", ".jsonl", ".parquet", ".gz")


@click.command()
@click.argument("source", metavar="CONFIG|RUN|TABLE", shell_complete=offer_runs)
@click.option("--half-width", "width", type=float, metavar="W", help="Wanted half-width of the interval, in (0, 1).")
@click.option("--limit", type=int, metavar="N", help="CONFIG: plan for only N items.")
@click.option(
    "--family", "families", multiple=True, metavar="NAME=COL,…[@COST]", help="TABLE: signals bought together."
)
@click.option("--best-of-n", type=int, metavar="N", help="Score TABLE: designs for the best of N, from this pilot.")
@click.option(
    "--budget", type=float, metavar="B", help="With --best-of-n: what may be spent, in the unit of the costs."
)
@click.option("--score-cost", type=float, metavar="C", default=1.0, show_default=True, help="Cost of one score.")
@click.option("--generation-cost", type=float, metavar="C", default=0.0, show_default=True, help="Of one candidate.")
@score_options
@column_options
@runs_dir_option
@allow_code_option
@json_option
def command(source: str, width: float | None, limit: int | None, as_json: bool, runs_dir: str, **columns: Any) -> None:
    """Forecast CONFIG or RUN: calls, tokens and money by stage, and what is cached already. A pilot (auxeval run
    CONFIG --limit 20) makes the forecast exact. With --half-width W, and for a finished RUN or a TABLE with some
    gold, also: how many labels are needed, and what each family of signals is worth. With --best-of-n N and a score
    TABLE: which design to collect next."""
    from pipeline.benchmark.data_checks import check_data
    from pipeline.runs.forecast import forecast_run

    path = Path(source)
    if width is not None and not width > 0.0:
        raise InputError(f"--half-width must be positive, got {width:g}")
    if path.is_file() and path.suffix.lower() not in _CONFIGS:
        from pipeline.cli.plan_table import plan_designs, plan_table

        if columns["best_of_n"] is not None:
            plan_designs(path, columns, as_json)
            return
        plan_table(path, columns, width, as_json)
        return
    if columns["best_of_n"] is not None:
        raise InputError(f"--best-of-n plans from a TABLE of scores; {source} is none")
    directory, config = _source(path, source, Path(runs_dir), limit)
    prepared = _prepared(config, directory)
    done = (
        directory if limit is None and directory is not None and directory.manifest().get("state") == "done" else None
    )
    forecast = forecast_run(prepared, finished=done if done is not None and _same(done, config) else None)
    findings = check_data(prepared.benchmark)
    labels = _labels(directory, width) if directory is not None else None
    if as_json:
        document: PlanDocument = {
            "schema": 1,
            "command": "plan",
            "forecast": cast("ForecastEntry", forecast.to_dict()),
            "labels": labels,
            "findings": [{"code": finding.code, "message": finding.message} for finding in findings],
        }
        print_json(document)
        return
    _print_forecast(forecast)
    for finding in findings:
        print_text(f"! {finding.message}" if finding.warns else finding.message)
    if labels is not None:
        from pipeline.cli.plan_table import print_label_plan

        print_label_plan(labels)
    elif width is not None:
        print_text("labels: a finished run or a table with some gold is needed to say how many; run a pilot first")


def _source(path: Path, source: str, runs_dir: Path, limit: int | None) -> tuple[RunDirectory | None, RunConfig]:
    from pipeline.runs.directory import find_run
    from pipeline.runs.setup import resolve_config

    if path.is_file():
        return None, resolve_config(path, limit=limit)
    if path.suffix.lower() in (*_CONFIGS, *_TABLES):
        raise InputError(f"{source}: no such file")
    directory = find_run(source, runs_dir)
    return directory, resolve_config(directory.own_config(), limit=limit)


def _same(directory: RunDirectory, config: RunConfig) -> bool:
    """Whether a run was done with this configuration, and not edited since."""
    return directory.manifest().get("config_sha256") == config.digest()


def _prepared(config: RunConfig, directory: RunDirectory | None) -> Prepared:
    from pipeline.runs.setup import prepare

    same = directory if directory is not None and directory.config().digest() == config.digest() else None
    return prepare(config, same, need_keys=False)


def _labels(directory: RunDirectory, width: float | None) -> LabelsEntry | None:
    if directory.manifest().get("state") != "done":
        return None
    from pipeline.runs.planning import plan_labels

    return cast("LabelsEntry", plan_labels(directory, width))


def _print_forecast(forecast: Forecast) -> None:
    rows = [
        [
            stage.stage,
            stage.model,
            str(stage.calls),
            str(stage.cached),
            str(stage.prompt_tokens + stage.completion_tokens),
            "?" if stage.cost_usd is None else f"${stage.cost_usd:.4f}",
            "measured" if stage.measured else "assumed",
        ]
        for stage in forecast.stages
    ]
    columns = ["stage", "model", "calls", "cached", "tokens to come", "cost", "lengths"]
    print_table(f"{forecast.items} items", columns, rows, numeric=(2, 3, 4, 5))
    if forecast.left_out:
        reasons = ", ".join(f"{count} {reason}" for reason, count in forecast.left_out.items())
        print_text(f"{sum(forecast.left_out.values())} rows of the benchmark are left out: {reasons}")
    cost = forecast.cost_usd
    money = "an unknown sum (a price is missing)" if cost is None else f"about ${cost:.4f}"
    print_text(f"{forecast.calls} calls, {forecast.cached} of them answered already; to come: {money}")
    if not all(stage.measured for stage in forecast.stages):
        print_text("lengths marked assumed are guesses; a pilot (auxeval run CONFIG --limit 20) measures them")
