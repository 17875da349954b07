"""``auxeval label``: label in a local page, one item at a time, until the plan says that it is enough."""

from __future__ import annotations

import getpass
import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pipeline.cli.completion import offer_runs
from pipeline.cli.output import allow_code_option, json_option, print_json, runs_dir_option
from pipeline.cli.table_options import column_options, column_roles, split_names
from pipeline.errors import InputError

if TYPE_CHECKING:
    from pipeline.cli.documents.looks import LabelDocument
    from pipeline.labelling.opening import Opened, Wanted
    from pipeline.labelling.server import LabelServer
    from pipeline.labelling.session import Session

_NAME = re.compile(r"\w[\w .-]{0,39}")


@click.command()
@click.argument("source", metavar="RUN|TABLE", shell_complete=offer_runs)
@click.option("--as", "rater", metavar="NAME", help="Who labels (default: the name of this login).")
@click.option("--raters", metavar="NAME,…", help="Deal the items to these people; each starts with --as.")
@click.option("--overlap", type=float, help="Share of the items that two of them label (default: 0).")
@click.option("--answer", metavar="COL", help="TABLE's column that is rated (default: answer, response or output).")
@click.option("--question", metavar="COL", help="TABLE's question column (default: question, prompt or input).")
@click.option("--context", metavar="COL", help="TABLE's column of what the answer is based on.")
@click.option("--scale", metavar="LOW-HIGH", help="TABLE: rate from LOW to HIGH (default: yes or no).")
@click.option("--seed", type=int, help="Of the order of items, without a plan.")
@click.option("--plan", "plan_file", type=click.Path(path_type=Path, dir_okay=False), help="The plan's file.")
@click.option("--no-browser", is_flag=True, help="Print the address and open nothing.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Of the page (default: a free one).")
@column_options
@allow_code_option
@runs_dir_option
@json_option
def command(source: str, as_json: bool, **given: Any) -> None:
    """Label RUN or TABLE in a page of this machine: by keyboard, blind, every answer on disk before the next item.

    Under a plan (auxeval labels plan) it hands out items, looks when a sheet is full, and says when to stop. Without
    one, items come in random order, and auxeval labels import takes what was said.
    """
    import asyncio

    from pipeline.labelling.desk import write_desk
    from pipeline.labelling.opening import open_to_label
    from pipeline.labelling.server import LabelServer
    from pipeline.labelling.session import Session

    opened = open_to_label(source, given["runs_dir"], _wanted(source, given), plan_file=given["plan_file"])
    rater = _rater(given["rater"], opened.desk.raters)
    session = Session(opened.source, rater, opened.desk, opened.plan)
    write_desk(opened.place, opened.desk)
    question = "" if opened.plan is None else opened.plan.question()
    try:
        asyncio.run(_serve(lambda: LabelServer(session, Path(source).name, question), source, rater, given))
    except KeyboardInterrupt:
        click.echo("", err=True)
    finally:
        opened.source.close()
    _print(source, opened, session, as_json, given)


def _wanted(source: str, given: dict[str, Any]) -> Wanted:
    from pipeline.labelling.opening import Wanted
    from pipeline.labelling.table_source import ShownColumns

    visible = roles = bounds = None
    if Path(source).is_file():
        if given["answer"]:
            visible = ShownColumns(given["answer"], given["question"], given["context"])
        elif given["question"] or given["context"]:
            raise InputError("--question and --context go with --answer COL, which is what is rated")
        if given["id_"]:
            if given["inclusion"] or given["labeled"]:
                raise InputError("--inclusion and --labeled are for sheets: auxeval labels export")
            roles, _ = column_roles({**given, "gold": given["gold"] or "gold"})
        bounds = _bounds(given["scale"])
    raters = split_names(given["raters"]) if given["raters"] else None
    if raters is not None and not all(_NAME.fullmatch(name) and name != "adjudicator" for name in raters):
        raise InputError(f"--raters {given['raters'][:40]}: names with commas, letters and digits")
    return Wanted(raters, given["overlap"], given["seed"], bounds, visible, roles)


def _bounds(scale: str | None) -> tuple[float, float] | None:
    if scale is None:
        return None
    match = re.fullmatch(r"(\d+(?:\.\d+)?)-(\d+(?:\.\d+)?)", scale.strip())
    if match is None or not float(match[1]) < float(match[2]):
        raise InputError(f"--scale {scale[:20]}: LOW-HIGH, such as 1-5")
    return float(match[1]), float(match[2])


def _rater(name: str | None, raters: tuple[str, ...]) -> str:
    if name is None:
        if raters:
            raise InputError(f"--as NAME is needed: items are dealt to {', '.join(raters)}")
        try:
            name = getpass.getuser()
        except (KeyError, OSError):
            name = "1"
        return name if _NAME.fullmatch(name) else "1"
    if not _NAME.fullmatch(name) or name == "adjudicator":
        raise InputError(f"--as {name[:40]}: a name of letters and digits, at most 40")
    return name


async def _serve(make: Any, source: str, rater: str, given: dict[str, Any]) -> None:
    import webbrowser

    from aiohttp import web

    from pipeline.labelling.server import HOST

    server: LabelServer = make()
    runner = web.AppRunner(server.app(), access_log=None, handle_signals=False)
    await runner.setup()
    try:
        try:
            site = web.TCPSite(runner, HOST, given["port"])
            await site.start()
        except OSError as error:
            raise InputError(f"port {given['port']}: {error.strerror or error}; choose another, or none") from None
        port = runner.addresses[0][1]
        address = f"http://{HOST}:{port}/?token={server.token}"
        click.echo(f"labelling {source} as {rater}: {address}", err=True)
        click.echo("only this machine and only this address; Ctrl-C ends, and nothing that was kept is lost", err=True)
        if not given["no_browser"]:
            webbrowser.open(address)
        await server.ended.wait()
    finally:
        await runner.cleanup()


def _print(source: str, opened: Opened, session: Session, as_json: bool, given: dict[str, Any]) -> None:
    """What was done and what comes next."""
    view = session.view()
    answers, skipped = session.counted()
    again = ["auxeval", "label", source, *(["--as", session.rater] if opened.desk.raters else [])]
    more = ["--runs-dir", given["runs_dir"]] if given["runs_dir"] != "runs" and not Path(source).is_file() else []
    if opened.plan is not None:
        then = again if view.phase != "end" else ["auxeval", "labels", "status", source]
    elif answers:
        then = ["auxeval", "labels", "import", source]
        then += ["--out", source] if Path(source).is_file() else []
    else:
        then = again
    following = shlex.join([*then, *more])
    says = list(view.says) if opened.plan is not None and view.phase != "label" else []
    if as_json:
        document: LabelDocument = {
            "schema": 1,
            "command": "label",
            "source": source,
            "rater": session.rater,
            "store": str(opened.source.store.path),
            "answers": answers,
            "skipped": skipped,
            "left": view.total - view.done,
            "phase": view.phase,
            "says": says,
            "next": following,
        }
        print_json(document)
        return
    told = f", {skipped} skipped" if skipped else ""
    click.echo(
        f"{answers} answers of {session.rater}{told} are in {opened.source.store.path}; {view.total - view.done} left"
    )
    for line in says:
        click.echo(line)
    click.echo(f"next: {following}")
