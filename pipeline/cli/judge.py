"""``auxeval judge``: judge responses that exist already, a run without a configuration file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from pipeline.cli.output import all_option, invocation, json_option, runs_dir_option
from pipeline.cli.run import budget_option, interrupts_explained, quiet_option, show_result
from pipeline.cli.table_options import split_names


@click.command()
@click.argument("table", type=click.Path(path_type=Path))
@click.option("--question", metavar="COL", required=True, help="What was asked.")
@click.option("--response", metavar="COL", required=True, help="What was answered: text, or a list of messages.")
@click.option("--id", "id_", metavar="COL", required=True, help="The item; joins the responses of several models.")
@click.option("--judge", "judges", metavar="MODEL,…", required=True, help="Provider/model strings; each is a signal.")
@click.option("--model", metavar="COL", help="Which model or version answered; each is a target.")
@click.option("--gold", metavar="COL|CRITERION=COL,…", help="People's ratings: numbers, or yes and no.")
@click.option("--range", "bounds", metavar="LOW,HIGH", help="Of the ratings; one outside is an error.")
@click.option("--criteria", type=click.Path(path_type=Path), help="YAML: criterion → question, or {question, scale}.")
@click.option("--context", metavar="COL", help="What the response was to be based on.")
@click.option("--reference", metavar="COL", help="An answer known to be good.")
@click.option("--profile", metavar="COL", help="The axis to profile along, as categories.")
@click.option("--cluster", metavar="COL", help="Items with one value are not independent.")
@click.option("--own", metavar="COL,…", help="Your own numbers that say something of a response.")
@click.option("--save-config", type=click.Path(path_type=Path), help="Write the configuration here and ask nothing.")
@click.option("--run-id", metavar="ID", help="Name of the run directory (default: date, name and hash).")
@runs_dir_option
@click.option("--limit", type=int, metavar="N", help="Only N items.")
@budget_option
@click.option("--yes", "-y", is_flag=True, help="Do not ask, whatever the forecast says.")
@quiet_option
@all_option
@json_option
def command(table: Path, runs_dir: str, save_config: Path | None, as_json: bool, **given: Any) -> None:
    """Judge the responses in TABLE; people's ratings of some of them correct the judges. No target is asked."""
    from pipeline.config import parse_config

    plain = judging_config(table, given)
    config = parse_config(plain, source=str(table), base=Path.cwd())
    if save_config is not None:
        _write(save_config, plain, table)
        return
    from pipeline.runs.interface import run

    with interrupts_explained():
        result = run(
            config,
            run_id=given["run_id"],
            runs_dir=runs_dir,
            limit=given["limit"],
            budget_usd=given["budget_usd"],
            yes=given["yes"],
            quiet=given["quiet"],
            command=invocation(),
        )
    show_result(result, as_json)


def judging_config(table: Path, given: dict[str, Any]) -> dict[str, Any]:
    """The configuration that the options stand for, as plain values.

    Raises:
        InputError: the file of criteria cannot be read, or a range is none.
    """
    columns = ("question", "response", "model", "context", "reference", "cluster", "profile")
    fields: dict[str, Any] = {"id": given["id_"], **{name: given[name] for name in columns if given[name]}}
    if given["gold"]:
        fields["gold"] = _gold(given["gold"])
    if given["own"]:
        fields["signals"] = list(split_names(given["own"]))
    benchmark: dict[str, Any] = {"path": str(table), "fields": fields, "grading": "rating"}
    if given["bounds"]:
        benchmark["range"] = _bounds(given["bounds"])
    if given["profile"]:
        benchmark["profile"] = {"field": given["profile"], "kind": "categorical"}
    name = "".join(c if c.isalnum() else "-" for c in table.name.split(".")[0]).strip("-")[:40] or "judged"
    plain: dict[str, Any] = {"schema": 1, "name": name, "benchmark": benchmark}
    if given["criteria"] is not None:
        plain["judge"] = {"criteria": _criteria(given["criteria"])}
    return {**plain, "roles": {"judge": list(split_names(given["judges"]))}}


def _gold(text: str) -> str | dict[str, str]:
    if "=" not in text:
        return text
    pairs = (name.partition("=") for name in split_names(text))
    return {criterion: column or criterion for criterion, _, column in pairs}


def _bounds(text: str) -> list[float]:
    from pipeline.errors import InputError

    try:
        low, high = (float(part) for part in text.split(","))
    except ValueError:
        raise InputError(f"--range {text}: expected LOW,HIGH, two numbers") from None
    return [low, high]


def _criteria(path: Path) -> Any:
    import yaml

    from pipeline.config_values import read_yaml
    from pipeline.errors import InputError

    try:
        values = read_yaml(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise InputError(
            f"--criteria {path}: not a readable YAML file ({' '.join(str(error).split())[:120]})"
        ) from None
    inner = values.get("criteria", values) if isinstance(values, dict) else None
    if not isinstance(inner, dict):
        raise InputError(f"--criteria {path}: expected a mapping: criterion → question")
    return inner


def _write(path: Path, plain: dict[str, Any], table: Path) -> None:
    import yaml

    from pipeline.errors import InputError

    if path.exists():
        raise InputError(f"--save-config {path}: is there already; name another file")
    plain["benchmark"]["path"] = str(table.resolve())
    path.write_text(yaml.safe_dump(plain, sort_keys=False, allow_unicode=True), encoding="utf-8")
    click.echo(f"wrote {path}; to judge: auxeval run {path}", err=True)
