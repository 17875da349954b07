"""``auxeval resume``: carry on where a run stopped."""

from __future__ import annotations

import click

from pipeline.cli.completion import offer_runs
from pipeline.cli.output import all_option, allow_code_option, invocation, json_option, runs_dir_option
from pipeline.cli.run import budget_option, interrupts_explained, quiet_option, show_result


@click.command()
@click.argument("run", shell_complete=offer_runs)
@runs_dir_option
@budget_option
@click.option(
    "--forgive-unknown", is_flag=True, help="Count attempts of unknown cost as free; until then at their largest cost."
)
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="KEY=VALUE",
    help="Change a limit: attempt_timeout_s, drain_s, models.NAME.max_concurrency, …; may be repeated.",
)
@click.option("--rebuild", is_flag=True, help="Make a damaged manifest.json again from the log and the cache.")
@click.option("--yes", "-y", is_flag=True, help="Pay again for replies that are no longer in the cache.")
@quiet_option
@allow_code_option
@all_option
@json_option
def command(
    run: str,
    runs_dir: str,
    budget_usd: float | None,
    forgive_unknown: bool,
    settings: tuple[str, ...],
    yes: bool,
    rebuild: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """Carry on RUN (a directory, or an id under --runs-dir); what has been answered is not asked again."""
    with interrupts_explained():
        from pipeline.runs.interface import resume

        result = resume(
            run,
            runs_dir=runs_dir,
            budget_usd=budget_usd,
            forgive_unknown=forgive_unknown,
            settings=dict(_setting(text) for text in settings),
            yes=yes,
            rebuild=rebuild,
            quiet=quiet,
            command=invocation(),
        )
    show_result(result, as_json)


def _setting(text: str) -> tuple[str, float | None]:
    """``KEY=NUMBER``, or ``KEY=null`` for no limit."""
    key, _, value = text.partition("=")
    try:
        number = None if value.strip() == "null" else float(value)
    except ValueError:
        raise click.UsageError(f"--set {text}: expected KEY=NUMBER, as in attempt_timeout_s=300") from None
    return key.strip(), int(number) if number is not None and number.is_integer() else number
