"""``auxeval cache``: care of the response cache; it is pruned only when asked."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from pipeline.cli.output import json_option, print_json, print_table, print_text

if TYPE_CHECKING:
    from pipeline.cli.documents.care import (
        CacheImportDocument,
        CachePruneDocument,
        CacheRepairDocument,
        CacheStatsDocument,
        CacheVerifyDocument,
    )
    from pipeline.models.cache import ReplyCache

cache_dir_option = click.option(
    "--cache-dir", type=click.Path(path_type=Path), help="The cache (default: AUXEVAL_CACHE_DIR, else .auxeval/cache)."
)


@click.group()
def command() -> None:
    """Care of the response cache: paid replies, kept until you prune them."""


def _open(cache_dir: Path | None, *, must_exist: bool = True) -> ReplyCache:
    from pipeline.errors import InputError
    from pipeline.models.cache import ReplyCache, default_cache_dir

    folder = cache_dir or default_cache_dir()
    if must_exist and not (folder / "cache.db").is_file():
        raise InputError(f"{folder}: no cache here; AUXEVAL_CACHE_DIR or --cache-dir names another place")
    return ReplyCache(folder)


@command.command()
@cache_dir_option
@json_option
def stats(cache_dir: Path | None, as_json: bool) -> None:
    """How many replies, of which models, how large, what they cost."""
    with _open(cache_dir) as cache:
        held = cache.stats()
        place = str(cache.directory)
    if as_json:
        document: CacheStatsDocument = {
            "schema": 1,
            "command": "cache stats",
            "cache": place,
            "entries": held.entries,
            "bytes_on_disk": held.bytes_on_disk,
            "damaged": held.damaged,
            "by_model": held.by_model,
            "cost_usd": held.cost_usd,
            "oldest": held.oldest,
            "newest": held.newest,
        }
        print_json(document)
        return
    click.echo(f"cache    {place}")
    click.echo(f"replies  {held.entries} ({held.bytes_on_disk / 2**20:.1f} MiB on disk, {held.damaged} set aside)")
    if held.entries:
        click.echo(f"cost     ${held.cost_usd:.4f} (replies whose price was known)")
        click.echo(f"from     {held.oldest} to {held.newest}")
        rows = [[model, str(count)] for model, count in sorted(held.by_model.items(), key=lambda row: -row[1])]
        print_table("", ["model", "replies"], rows, numeric=(1,))


@command.command()
@cache_dir_option
@json_option
@click.pass_context
def verify(context: click.Context, cache_dir: Path | None, as_json: bool) -> None:
    """Read every reply and check it; exit 2 if any is damaged (a damaged one counts as never answered)."""
    with _open(cache_dir) as cache:
        report = cache.verify()
    if as_json:
        document: CacheVerifyDocument = {
            "schema": 1,
            "command": "cache verify",
            "entries": report.entries,
            "damaged": list(report.damaged),
            "ok": report.ok,
        }
        print_json(document)
    else:
        click.echo(f"{report.entries} replies read, {len(report.damaged)} damaged")
        for key, problem in report.damaged[:20]:
            print_text(f"  {key[:16]}…  {problem}")
    if not report.ok:
        context.exit(2)


@command.command()
@cache_dir_option
@json_option
def repair(cache_dir: Path | None, as_json: bool) -> None:
    """Build a damaged database anew from every reply that can be read; the damaged files are kept beside it."""
    from pipeline.models.cache import default_cache_dir
    from pipeline.runs.cache_repair import repair_cache

    report = repair_cache(cache_dir or default_cache_dir())
    if as_json:
        document: CacheRepairDocument = {
            "schema": 1,
            "command": "cache repair",
            "replies": report.replies,
            "ledger_rows": report.ledger_rows,
            "kept": str(report.kept),
        }
        print_json(document)
        return
    click.echo(f"{report.replies} replies saved, {report.ledger_rows} attempts of the ledger of money")
    click.echo(f"the damaged files are kept in {report.kept}")
    if not report.replies:
        click.echo("auxeval cache import FILE brings back the replies of a cassette (auxeval export made it)")


@command.command("import")
@click.argument("cassette", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@cache_dir_option
@json_option
def import_cassette(cassette: Path, cache_dir: Path | None, as_json: bool) -> None:
    """Add the replies of CASSETTE (auxeval export) to the cache; each line is checked."""
    from pipeline.runs.cassettes import import_replies

    with _open(cache_dir, must_exist=False) as cache:
        report = import_replies(cassette, cache)
    if as_json:
        document: CacheImportDocument = {
            "schema": 1,
            "command": "cache import",
            "added": report.added,
            "known": report.known,
        }
        print_json(document)
    else:
        click.echo(f"{report.added} replies added, {report.known} were there already")


@command.command()
@cache_dir_option
@click.option("--model", help="Only replies of this model string.")
@click.option("--before", metavar="DATE", help="Only replies older than this UTC date (YYYY-MM-DD).")
@click.option("--yes", "-y", is_flag=True, help="Do it; without, only say what would go.")
@json_option
def prune(cache_dir: Path | None, model: str | None, before: str | None, yes: bool, as_json: bool) -> None:
    """Remove replies for good. What they cost must be paid again if they are needed again."""
    if model is None and before is None:
        raise click.UsageError("say which replies: --model, --before, or both")
    if before is not None:
        _check_date(before)
    with _open(cache_dir) as cache:
        chosen = [
            entry.key
            for entry in cache.entries()
            if (model is None or entry.request.model == model) and (before is None or entry.reply.at[:10] < before)
        ]
        removed = cache.remove(chosen) if yes else 0
    if as_json:
        document: CachePruneDocument = {
            "schema": 1,
            "command": "cache prune",
            "matched": len(chosen),
            "removed": removed,
        }
        print_json(document)
    elif yes:
        click.echo(f"{removed} replies removed")
    else:
        click.echo(f"{len(chosen)} replies would be removed; --yes removes them")


def _check_date(text: str) -> None:
    from datetime import date

    from pipeline.errors import InputError

    try:
        if date.fromisoformat(text).isoformat() == text:
            return
    except ValueError:
        pass
    raise InputError(f"--before {text}: not a date; write YYYY-MM-DD")
