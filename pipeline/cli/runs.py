"""``auxeval runs``: what runs there are."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from pipeline.cli.output import json_option, runs_dir_option
from pipeline.errors import InputError

if TYPE_CHECKING:
    from pipeline.cli.documents.care import RunEntry, RunsListDocument


@click.group()
def command() -> None:
    """What runs there are."""


@command.command("list")
@runs_dir_option
@json_option
def list_runs(runs_dir: str, as_json: bool) -> None:
    """List the runs under the runs directory, newest first."""
    from pipeline.cli.output import print_json, print_table

    if Path(runs_dir).is_file():
        raise InputError(f"{runs_dir}: is a file; runs are kept in a folder (--runs-dir)")
    rows = sorted(_runs(Path(runs_dir)), key=lambda row: str(row["created_at"]), reverse=True)
    if as_json:
        document: RunsListDocument = {"schema": 1, "command": "runs list", "runs": rows}
        print_json(document)
        return
    if not rows:
        click.echo(f"no runs under {runs_dir}/ yet; auxeval run makes one")
        return
    cells = [
        [
            str(row["run_id"]),
            str(row["state"]),
            str(row["created_at"] or "")[:16].replace("T", " "),
            str(row["items"] or ""),
            "" if row["cost_usd"] is None else f"${row['cost_usd']:.2f}",
        ]
        for row in rows
    ]
    print_table("", ["run", "state", "created (UTC)", "items", "cost"], cells, numeric=(3, 4))


def _runs(folder: Path) -> list[RunEntry]:
    from pipeline.models.cache import default_cache_dir
    from pipeline.models.ledger import spent_by
    from pipeline.runs.directory import RunDirectory

    entries: list[RunEntry] = []
    for config in folder.glob("*/config.yaml") if folder.is_dir() else ():
        directory = RunDirectory(config.parent)
        try:
            manifest = directory.manifest()
        except InputError:
            manifest = {"state": "damaged"}
        if manifest.get("state") == "running" and not directory.held():
            manifest = {**manifest, "state": "stopped", "reason": "its process ended without a word; resume it"}
        name = directory.ledger_name
        spent = None if name is None else spent_by(default_cache_dir(), name)
        entries.append(
            {
                "run_id": directory.path.name,
                "path": str(directory.path),
                "state": manifest.get("state", "unknown"),
                "reason": manifest.get("reason"),
                "created_at": manifest.get("created_at"),
                "finished_at": manifest.get("finished_at"),
                "items": (manifest.get("benchmark") or {}).get("items"),
                "targets": manifest.get("targets"),
                "cost_usd": manifest.get("cost_usd") if spent is None else spent.usd + spent.possible_usd,
                "simulated": manifest.get("simulated"),
            }
        )
    return entries
