"""What the shell offers after Tab, beyond commands, options and files: names of runs, of studies, of documents."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import click
    from click.shell_completion import CompletionItem


def offer_runs(context: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Ids under ``--runs-dir``; where none begins so, files and folders."""
    from click.shell_completion import CompletionItem

    folder = Path(context.params.get("runs_dir") or "runs")
    run_ids = sorted(config.parent.name for config in folder.glob("*/config.yaml"))
    items = [CompletionItem(name) for name in run_ids if name.startswith(incomplete)]
    return items or [CompletionItem(incomplete, type="file")]


def offer_studies(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Names of studies, each with its line."""
    from click.shell_completion import CompletionItem

    from pipeline.studies.registry import study_summaries

    return [CompletionItem(name, help=line) for name, line in study_summaries().items() if name.startswith(incomplete)]


def offer_commands(context: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The next word of a command that has a document."""
    from click.shell_completion import CompletionItem

    from pipeline.cli.documents import DOCUMENTS

    typed = list(context.params.get("words") or ())
    rest = [name.split()[len(typed) :] for name in DOCUMENTS if name.split()[: len(typed)] == typed]
    return [
        CompletionItem(word) for word in sorted({words[0] for words in rest if words}) if word.startswith(incomplete)
    ]
