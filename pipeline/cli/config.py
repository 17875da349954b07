"""``auxeval config``: check a configuration file before anything is asked."""

from __future__ import annotations

from pathlib import Path

import click

__all__ = ["command"]


@click.group()
def command() -> None:
    """Check a configuration file."""


@command.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print the resolved configuration as JSON.")
def check(file: Path, as_json: bool) -> None:
    """Validate FILE: its keys, its models and roles, its benchmark file and its prompts."""
    from pipeline.benchmark import load_benchmark
    from pipeline.cli.output import print_json
    from pipeline.config import load_config

    config = load_config(file)
    benchmark = load_benchmark(config.benchmark, config.seed)
    if as_json:
        print_json({"schema": 1, "config": config.canonical(), "items": len(benchmark.items)})
        return
    roles = ", ".join(f"{name} ({entry.model})" for name, entry in config.model_entries.items())
    click.echo(f"{file}: fine")
    click.echo(f"  benchmark  {benchmark.name}: {len(benchmark.items)} items")
    for reason, count in benchmark.skipped.items():
        click.echo(f"             {count} skipped: {reason}")
    click.echo(f"  models     {roles}")
    click.echo(f"  estimates  {', '.join(config.estimate)}")


@command.command()
def schema() -> None:
    """Print the JSON Schema of the configuration, for editors."""
    from pipeline.cli.output import print_json
    from pipeline.config import config_json_schema

    print_json(config_json_schema())
