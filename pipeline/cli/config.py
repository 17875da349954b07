"""``auxeval config``: check a configuration file before anything is asked."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from pipeline.cli.output import allow_code_option, json_option, print_facts, print_json

if TYPE_CHECKING:
    from pipeline.cli.documents.care import ConfigCheckDocument


@click.group()
def command() -> None:
    """Check a configuration file."""


@command.command()
@click.argument("file", type=click.Path(path_type=Path))
@allow_code_option
@json_option
def check(file: Path, as_json: bool) -> None:
    """Validate FILE: its keys, its models and roles, its benchmark file and its prompts."""
    from pipeline.benchmark import load_benchmark
    from pipeline.benchmark.data_checks import check_data
    from pipeline.runs.own_runs import config_of_file

    config = config_of_file(file)
    benchmark = load_benchmark(config.benchmark, config.seed)
    findings = check_data(benchmark)
    if as_json:
        document: ConfigCheckDocument = {
            "schema": 1,
            "command": "config check",
            "config": config.canonical(),
            "items": len(benchmark.items),
            "skipped": dict(benchmark.skipped),
            "findings": [{"code": finding.code, "message": finding.message} for finding in findings],
        }
        print_json(document)
        return
    click.echo(f"{file}: fine")
    print_facts(
        [
            ("  benchmark", f"{benchmark.name}: {len(benchmark.items)} items"),
            *(("  !" if finding.warns else "", finding.message) for finding in findings),
            ("  models", ", ".join(f"{name} ({entry.model})" for name, entry in config.model_entries.items())),
            ("  estimates", ", ".join(config.estimate)),
        ]
    )


@command.command()
@json_option
def schema(as_json: bool) -> None:
    """Print the JSON Schema of the configuration, for editors; it is JSON with or without --json."""
    from pipeline.config import config_json_schema

    print_json(config_json_schema())
