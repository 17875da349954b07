"""`auxeval gate`: ship, block or inconclusive for a candidate against its base."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pipeline.cli.completion import offer_runs
from pipeline.cli.output import console, json_option, print_json, runs_dir_option
from pipeline.cli.table_options import split_names
from pipeline.errors import InputError

if TYPE_CHECKING:
    from pipeline.cli.documents.gates import GateDocument
    from pipeline.evaluation.gate import RunNoise
    from pipeline.evaluation.gate_verdict import GateReport
    from pipeline.evaluation.gate_versions import GateColumns, Version

MARGIN = 0.01
"""How much worse a candidate may be where nobody says it."""


@click.command()
@click.argument("sources", metavar="BASE CANDIDATE", nargs=-1, required=True, shell_complete=offer_runs)
@click.option("--margin", type=float, help="How much worse it may be (default: 0.01, or as the plan promised).")
@click.option("--metric", "metrics", multiple=True, metavar="NAME[:MARGIN]", help="What is compared. Repeatable.")
@click.option("--profile", "profiles", multiple=True, metavar="COL", help="Slices: they may block. Repeatable.")
@click.option(
    "--slices", type=click.Choice(["advise", "require"]), default="advise", show_default=True,
    help="Whether slices must ship too.",
)  # fmt: skip
@click.option("--id", "id_", metavar="COL", help="Item id, by which both sides are joined (default: id, item_id).")
@click.option("--gold", metavar="COL", help="The score (default: gold, score, correct); --metric names several.")
@click.option("--signals", metavar="COL,…", help="Label-free numbers, used where some items have no score.")
@click.option("--cluster", metavar="COL", help="Items with one value are not independent.")
@click.option("--model", metavar="BASE[=CANDIDATE]", help="Which model of each side, where a side holds several.")
@click.option("--model-column", metavar="COL", help="Where a table says the model (default: model).")
@click.option(
    "--target", type=click.Choice(["population", "pool"]), default="population", show_default=True,
    help="Items like these, or these very items: an interval and no verdict.",
)  # fmt: skip
@click.option("--aa", is_flag=True, help="All sources are runs of one version: how much does a run move by itself?")
@click.option("--rerun", "reruns", multiple=True, metavar="BASE2", help="A further run of the base. Repeatable.")
@click.option("--out", type=click.Path(path_type=Path), metavar="DIR", help="Write the verdict as a page here.")
@click.option(
    "--plan", "plan_file", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
    help="A label plan of --gap CANDIDATE,BASE: its last look decides, with its margin.",
)  # fmt: skip
@click.option("--as-if-once", is_flag=True, help="Decide as if these labels were the first look.")
@click.option("--inconclusive", type=click.Choice(["fail", "pass"]), default="fail", help="pass: exit 0, not 11.")
@runs_dir_option
@json_option
def command(sources: tuple[str, ...], as_json: bool, **given: Any) -> int:
    """May CANDIDATE replace BASE? SHIP (exit 0), BLOCK (10) or INCONCLUSIVE (11); each a run, a table or a log."""
    from pipeline.evaluation.gate_verdict import base_noise, judge_candidate
    from pipeline.evaluation.gate_versions import GateColumns, read_version
    from pipeline.evaluation.plans.gate_looks import GateLooks, looks_of_plan

    if given["margin"] is not None and not given["margin"] >= 0.0:
        raise InputError(f"--margin must be at least 0, got {given['margin']:g}")
    margins = _margins({**given, "margin": MARGIN if given["margin"] is None else given["margin"]})
    columns = GateColumns(
        given["id_"], given["model_column"], given["cluster"], tuple(margins), split_names(given["signals"]),
        tuple(given["profiles"]),
    )  # fmt: skip
    first, _, second = (given["model"] or "").partition("=")
    runs_dir = Path(given["runs_dir"])
    if given["aa"]:
        versions = [read_version(_place(source, runs_dir), columns, first or None) for source in sources]
        return _show_noise(*base_noise(versions), as_json)
    if len(sources) != 2:
        raise InputError(f"gate compares BASE and CANDIDATE, got {len(sources)} sources (--aa takes several of one)")
    base, candidate = _both(sources, columns, runs_dir, first, second)
    margin = MARGIN if given["margin"] is None else given["margin"]
    looks = GateLooks() if given["as_if_once"] else None
    if given["plan_file"] is not None:
        looks, margin = looks_of_plan(given["plan_file"], base.name, candidate.name, given["margin"])
        if given["as_if_once"] or given["target"] == "pool":
            raise InputError("--plan decides by the plan's look; leave --as-if-once and --target pool out")
        margins = dict.fromkeys(margins, margin)
    chosen = margins or {next(iter(base.scores)): margin}
    reruns = [read_version(_place(source, runs_dir), columns, first or None) for source in given["reruns"]]
    report = judge_candidate(
        base, candidate, chosen, target=given["target"], slices=given["slices"], reruns=reruns, looks=looks
    )  # fmt: skip
    code = 0 if report.exit == 11 and report.verdict and given["inconclusive"] == "pass" else report.exit
    if given["out"] is not None:
        from pipeline.cli.output import provenance
        from pipeline.report.gate_page import write_gate_page

        reason = _reason(report) if report.verdict is not None else "a difference of these very items, no verdict"
        write_gate_page(given["out"], report, reason, list(_more(report)), provenance(*map(Path, sources)))
        click.echo(f"wrote {given['out'] / 'report.html'}", err=True)
    if as_json:
        print_json(_document(report, report.noise, code))
    else:
        _show(report)
    return code


def _margins(given: dict[str, Any]) -> dict[str, float]:
    if given["metrics"] and given["gold"]:
        raise InputError("--gold and --metric both name the score; give one of them")
    margins: dict[str, float] = {}
    for text in given["metrics"] or ([given["gold"]] if given["gold"] else []):
        name, _, margin = text.rpartition(":")
        try:
            margins[name or text] = float(margin) if name else given["margin"]
        except ValueError:
            margins[text] = given["margin"]
    if bad := [name for name, margin in margins.items() if not 0.0 <= margin < float("inf")]:
        raise InputError(f"--metric {bad[0]}: the margin must be at least 0")
    return margins


def _both(
    sources: tuple[str, ...], columns: GateColumns, runs_dir: Path, first: str, second: str
) -> tuple[Version, Version]:
    from dataclasses import replace

    from pipeline.evaluation.gate_versions import read_version

    if first and sources[0] == sources[1] and not second:
        raise InputError("both sides are one source: --model BASE=CANDIDATE says which model is which")
    base, candidate = (
        read_version(_place(source, runs_dir), columns, model or None)
        for source, model in zip(sources, (first, second or first), strict=True)
    )
    if base.name == candidate.name:  # one model in two versions: the sources tell them apart
        names = [Path(source).stem for source in sources]
        names = [f"{base.name} in {source}" for source in (names if names[0] != names[1] else sources)]
        base, candidate = replace(base, name=names[0]), replace(candidate, name=names[1])
    return base, candidate


def _place(source: str, runs_dir: Path) -> Path:
    below = runs_dir / source
    return below if not Path(source).exists() and (below / "tables").is_dir() else Path(source)


def _show(report: GateReport) -> None:
    from pipeline.report.gate_page import gate_table
    from pipeline.report.printers.terminal import TerminalTable

    console().print(TerminalTable(gate_table(report)))
    for line in _more(report):
        click.echo(line)
    for note in report.notes:
        click.echo(f"note: {note}")
    if report.verdict is not None:
        click.echo(f"{report.verdict}: {_reason(report)}")


def _more(report: GateReport) -> Iterator[str]:
    if report.only_base or report.only_candidate:
        yield f"left out: {report.only_base} items of the base only, {report.only_candidate} of the candidate only"
    if max(report.epochs) > 1:
        yield f"epochs averaged per item: {report.epochs[0]} of the base, {report.epochs[1]} of the candidate"
    if report.noise is not None:
        yield _noise_line(report.noise)


def _reason(report: GateReport) -> str:
    judged = [row for row in report.rows if row.ships is not None]
    named = {id(row): row.metric + ("" if row.column is None else f" at {row.column} = {row.level}") for row in judged}
    if report.verdict == "BLOCK":
        worse = [row for row in judged if row.blocks]
        return ", ".join(f"{named[id(row)]} is worse by more than its margin" for row in worse)
    if report.verdict == "SHIP":
        return f"not worse than {report.base} by more than the margin, on every metric (95 %)"
    open_rows = [row for row in judged if not row.ships]
    sentences = [
        f"{named[id(row)]} is not decided"
        + (f" (about {row.needed} items would, if it stays so)" if row.needed else "")
        for row in open_rows
    ]
    return ", ".join(sentences)


def _noise_line(noise: RunNoise) -> str:
    moves = "whole runs move" if noise.moves else "nothing moves whole runs"
    return (
        f"{noise.runs} runs of the base: {100 * noise.flip_rate:.1f} % of scores flip between two runs; "
        f"F = {noise.ratio:.2f} ({moves})"
    )


def _show_noise(metric: str, noise: RunNoise, as_json: bool) -> int:
    if as_json:
        print_json(_document(None, noise, 0))
    else:
        click.echo(f"{metric}, {noise.items} items: {_noise_line(noise)}")
    return 0


def _document(report: GateReport | None, noise: RunNoise | None, code: int) -> GateDocument:
    from dataclasses import asdict

    return {
        "schema": 1,
        "command": "gate",
        "base": report.base if report else None,
        "candidate": report.candidate if report else None,
        "target": report.target if report else "population",
        "verdict": report.verdict if report else None,
        "exit": code,
        "items": report.items if report else None,
        "only_base": report.only_base if report else None,
        "only_candidate": report.only_candidate if report else None,
        "epochs": list(report.epochs) if report else None,
        "metrics": [asdict(row) for row in report.rows] if report else [],
        "notes": list(report.notes) if report else [],
        "noise": {**asdict(noise), "moves": noise.moves} if noise else None,
    }
