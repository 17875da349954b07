"""`auxeval look`: what files hold, and the exact command to run on them."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pipeline.cli.output import console, json_option, print_json

if TYPE_CHECKING:
    from pipeline.cli.documents.care import LookDocument
    from pipeline.tables.shapes.look import LookedAt


@click.command("look")
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="PATH…")
@json_option
def command(paths: tuple[Path, ...], as_json: bool) -> None:
    """Say what PATH holds: where the rows are, what its columns may be, what is odd, and the command to run."""
    document = _look(paths)
    if as_json:
        print_json(document)
        return
    click.echo(f"{document['path']}: {document['kind']}" + (f", {document['rows']} rows" if document["rows"] else ""))
    if document["sample"]:
        _print_sample(document["sample"])
    for role, column in document["roles"].items():
        click.echo(f"  {role:<10} {column}")
    for line in document["odd"]:
        click.echo(f"  odd        {line}")
    click.echo(f"  run        {document['next']}")


def _look(paths: tuple[Path, ...]) -> LookDocument:
    from pipeline.errors import DataError
    from pipeline.tables.imports.recognised import tool_of
    from pipeline.tables.shapes.files import input_files
    from pipeline.tables.shapes.look import look_at
    from pipeline.tables.shapes.workbook import is_workbook

    files = [file for path in paths for file in (_inside(path) if path.is_dir() else input_files([path]))]
    for file in files:
        if str(file) == "-":
            raise DataError("auxeval look reads files; standard input can be read once only")
    # Parquet and workbooks are nobody's log: only texts and .eval archives are.
    texts = [
        file for file in files if file.exists() and file.suffix not in (".parquet", ".pq") and not is_workbook(file)
    ]
    tools = dict.fromkeys(tool for file in texts[:1000] if (tool := tool_of(file)) not in (None, "table"))
    given = [str(path) for path in paths]
    if tools:
        tool = next(iter(tools))
        stem = paths[0].stem or "imported"
        out = f"{stem}.parquet" if not Path(f"{stem}.parquet").exists() else f"{stem}-imported.parquet"
        line = shlex.join(
            ["auxeval", "import", *given, *(["--from", str(tool)] if len(tools) > 1 else []), "--out", out]
        )
        odd = [f"files of {', '.join(map(str, tools))} stand together"] if len(tools) > 1 else []
        return _document(given, f"results of {tool} ({len(texts)} files)", None, [], {}, odd, line)
    looked = look_at(files[0])
    more = ["--model-from-file"] if len(files) > 1 and _unnamed(looked) else []
    return _of_table(given, looked, more)


def _inside(path: Path) -> list[Path]:
    from pipeline.errors import DataError

    files = sorted(file for file in path.rglob("*") if file.is_file() and not file.name.startswith("."))
    if not files:
        raise DataError(f"{path} is an empty folder")
    return files


def _unnamed(looked: LookedAt) -> bool:
    return looked.guess.roles is not None and looked.guess.roles.model is None and not looked.shape.wide


def _of_table(given: list[str], looked: LookedAt, more: list[str]) -> LookDocument:
    guess, shape = looked.guess, looked.shape
    options = [*more]
    for name, value in (("--records", shape.records), ("--header-line", shape.header_line), ("--sheet", shape.sheet)):
        options += [name, str(value)] if value else []
    roles: dict[str, str] = {}
    if guess.roles is not None:
        return _outcomes(given, looked, options)
    if guess.pairs is not None:
        pairs = guess.pairs
        roles = {"model a": pairs.a, "model b": pairs.b, "gold": pairs.gold, "signals": ", ".join(pairs.signals)}
        words = ["--pairwise", "--model-a", pairs.a, "--model-b", pairs.b, "--gold", pairs.gold]
        words += ["--signals", _joined(pairs.signals)] if pairs.signals else []
        words += ["--id", pairs.id] if pairs.id else []
        line = shlex.join(["auxeval", "estimate", *given, *words, *options])
        return _document(given, _kind(looked, "votes"), looked.rows, _rows(looked), roles, list(looked.odd), line)
    if guess.question is not None and guess.answer is not None:
        roles = {"question": guess.question, "gold": guess.answer}
        line = shlex.join(["auxeval", "init", f"{Path(given[0]).name.split('.')[0]}.yaml", "--benchmark", given[0]])
        return _document(given, _kind(looked, "benchmark"), looked.rows, _rows(looked), roles, list(looked.odd), line)
    odd = [*looked.odd, "no column looks like a gold (how good each answer is): name it with --gold"]
    line = shlex.join(["auxeval", "estimate", "--help"])
    return _document(given, _kind(looked, "table"), looked.rows, _rows(looked), roles, odd, line)


def _outcomes(given: list[str], looked: LookedAt, options: list[str]) -> LookDocument:
    chosen, shape = looked.guess.roles, looked.shape
    assert chosen is not None
    wide = ",".join(f"{role}={pattern}" for role, pattern in shape.wide.items())
    words = ["--wide", wide] if wide else ["--gold", chosen.gold]
    words += ["--signals", _joined(chosen.signals)] if chosen.signals and not wide else []
    for name, value in (("--id", chosen.id), ("--model", chosen.model), ("--rater", shape.rater)):
        words += [name, value] if value else []
    for column, numbers in shape.maps.items():
        words += ["--map", f"{column}: " + ", ".join(f"{word}={number:g}" for word, number in numbers.items())]
    named = {"gold": chosen.gold, "signals": ", ".join(chosen.signals), "id": chosen.id, "model": chosen.model}
    roles = {role: column for role, column in {**named, "wide": wide, "rater": shape.rater}.items() if column}
    line = shlex.join(["auxeval", "estimate", *given, *words, *options])
    return _document(given, _kind(looked, "table"), looked.rows, _rows(looked), roles, list(looked.odd), line)


def _joined(names: tuple[str, ...]) -> str:
    return ",".join(name.replace(",", "\\,") for name in names)


def _kind(looked: LookedAt, what: str) -> str:
    source = looked.source
    packed = "" if source.compression == "none" else f", {source.compression}"
    inside = f", rows at {looked.shape.records}" if looked.shape.records else ""
    return f"{what} ({source.format}{packed}{inside})"


def _rows(looked: LookedAt) -> list[dict[str, str]]:
    return [dict(row) for row in looked.sample.iter_rows(named=True)]


def _document(
    given: list[str], kind: str, rows: int | None, sample: list[dict[str, str]], roles: dict[str, str], odd: list[str],
    line: str,
) -> LookDocument:  # fmt: skip
    return {
        "schema": 1,
        "command": "look",
        "path": ", ".join(given),
        "kind": kind,
        "rows": rows,
        "sample": sample,
        "roles": roles,
        "odd": odd,
        "next": line,
    }


def _print_sample(rows: list[dict[str, str]]) -> None:
    from rich.markup import escape
    from rich.table import Table

    names = list(rows[0])[:8]
    table = Table(box=None, pad_edge=False, show_edge=False)
    for name in names:
        table.add_column(escape(name[:24]), overflow="ellipsis", no_wrap=True)
    for row in rows:
        table.add_row(*(escape(" ".join(row[name].split())[:24]) for name in names))
    console().print(table)
