"""``auxeval replay``: the same run from recorded responses alone."""

from __future__ import annotations

import click

from pipeline.cli.completion import offer_runs
from pipeline.cli.output import all_option, allow_code_option, invocation, json_option, runs_dir_option
from pipeline.cli.run import quiet_option, show_result


@click.command()
@click.argument("source", metavar="RUN|CASSETTE", shell_complete=offer_runs)
@click.option("--out", metavar="DIR", help="Directory of the new run (default: RUN-replay).")
@runs_dir_option
@allow_code_option
@all_option
@quiet_option
@json_option
def command(source: str, out: str | None, runs_dir: str, quiet: bool, as_json: bool) -> None:
    """Replay RUN, or a cassette file, without network; a response that was not recorded is an error.

    A replay shows no progress; --quiet is there so that scripts give run, resume and replay the same words.
    """
    from pipeline.runs.interface import replay

    result = replay(source, out=out, runs_dir=runs_dir, command=invocation())
    show_result(result, as_json)
    if not as_json:
        same = result.manifest.get("identical")
        if same is not None:
            verdict = "byte-identical to" if same else "DIFFERENT from"
            click.echo(f"replay   tables and estimates are {verdict} those of {source}")
