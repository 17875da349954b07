"""``auxeval init``: a commented configuration for the keys at hand."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pipeline.cli.output import json_option, print_json
from pipeline.errors import InputError

if TYPE_CHECKING:
    from pipeline.cli.documents.care import InitDocument


@dataclass(frozen=True, slots=True)
class Provider:
    """One provider: the variable of its key, and models of it that can play together.

    One key is enough: target, judge and anchor may be models of one provider.
    """

    key: str | None
    target: str
    other: str
    judge: str


PROVIDERS = (
    Provider("OPENAI_API_KEY", "openai/gpt-5-mini", "openai/gpt-5-nano", "openai/gpt-5"),
    Provider(
        "ANTHROPIC_API_KEY", "anthropic/claude-haiku-4-5", "anthropic/claude-sonnet-4-5", "anthropic/claude-opus-4-5"
    ),
    Provider("GEMINI_API_KEY", "gemini/gemini-2.5-flash", "gemini/gemini-2.5-flash-lite", "gemini/gemini-2.5-pro"),
    Provider(
        "MISTRAL_API_KEY",
        "mistral/mistral-small-latest",
        "mistral/mistral-medium-latest",
        "mistral/mistral-large-latest",
    ),
    Provider("DEEPSEEK_API_KEY", "deepseek/deepseek-chat", "deepseek/deepseek-v3.2", "deepseek/deepseek-reasoner"),
)
SIMULATED = Provider(None, "sim/medium", "sim/weak", "sim/judge")
_COLUMNS: Mapping[str, tuple[str, ...]] = {
    "id": ("id", "item_id", "trace_id", "trace", "item", "uid", "question_id"),
    "question": ("question", "input", "prompt", "problem", "query", "messages"),
    "response": ("response", "output", "completion", "reply", "generation"),
    "model": ("model", "version", "system", "variant"),
    "gold": ("rating", "gold", "human", "label", "correct", "score"),
    "context": ("context", "contexts", "retrieved", "documents"),
    "reference": ("reference", "expected", "ideal", "target"),
}
_ANSWERS = ("gold", "answer", "target", "expected", "solution")


@click.command()
@click.argument("file", default="auxeval.yaml", type=click.Path(path_type=Path))
@click.option("--benchmark", metavar="PRESET|FILE", help="Questions with answers: a preset, or a file of your own.")
@click.option("--judge", "traces", type=click.Path(path_type=Path), metavar="TABLE", help="Responses to be judged.")
@click.option("--table", type=click.Path(path_type=Path), metavar="TABLE", help="A table with scores and some gold.")
@click.option("--budget-usd", "usd", type=float, default=5.0, show_default=True, help="What the run may spend.")
@json_option
def command(
    file: Path, benchmark: str | None, traces: Path | None, table: Path | None, usd: float, as_json: bool
) -> None:
    """Write a commented configuration to FILE (auxeval.yaml) for the keys in the environment."""
    if sum(given is not None for given in (benchmark, traces, table)) > 1:
        raise InputError("give one of --benchmark, --judge and --table: they are different questions")
    if benchmark is None and traces is None and table is None:
        benchmark, traces, table = _asked()
    if table is not None:
        _tell(None, [f"auxeval look {table}"], "a table needs no configuration", as_json)
        return
    if file.exists():
        raise InputError(f"{file}: is there already; name another file")
    text = _judging(file, traces, usd) if traces is not None else _asking(file, benchmark or "embedded", usd)
    _check(text, file)
    file.write_text(text, encoding="utf-8")
    steps = [f"auxeval config check {file}", f"auxeval plan {file}", f"auxeval run {file}"]
    _tell(file, steps, f"wrote {file} for {_keys_said()}", as_json)


def _tell(file: Path | None, steps: list[str], done: str, as_json: bool) -> None:
    if as_json:
        document: InitDocument = {
            "schema": 1, "command": "init", "file": None if file is None else str(file), "key": _provider().key,
            "next": steps,
        }  # fmt: skip
        print_json(document)
        return
    click.echo("\n".join((done, *(f"next    {step}" for step in steps))))


def _asked() -> tuple[str | None, Path | None, Path | None]:
    """Three questions at most; without a person to ask, the embedded benchmark."""
    if not (sys.stdin and sys.stdin.isatty()):
        return "embedded", None, None
    click.echo("What do you have?  1 questions with answers   2 responses to be judged   3 a table with scores")
    what = click.prompt("1, 2 or 3", type=click.Choice(["1", "2", "3"]), default="1", show_choices=False)
    if what == "1":
        return click.prompt("A preset (gsm8k, math500, mmlu, …) or a file", default="embedded"), None, None
    path = Path(click.prompt("Which file"))
    return (None, path, None) if what == "2" else (None, None, path)


def _provider() -> Provider:
    from pipeline.runs.interface import load_env_file

    load_env_file()
    return next((entry for entry in PROVIDERS if os.environ.get(entry.key or "")), SIMULATED)


def _keys_said() -> str:
    key = _provider().key
    if key is None:
        names = ", ".join(entry.key or "" for entry in PROVIDERS)
        return f"simulated models, since no key is set (looked for {names})"
    return f"the key in {key}"


def _asking(file: Path, benchmark: str, usd: float) -> str:
    from pipeline.benchmark.presets import PRESETS

    provider = _provider()
    values: dict[str, Any] = {"preset": benchmark, "title": f"{benchmark}: two models of one provider, compared."}
    if benchmark != "embedded" and benchmark not in PRESETS:
        columns = _columns_of(Path(benchmark))
        fields = {role: _first(columns, names, role, benchmark) for role, names in _roles("question", "id").items()}
        fields["gold"] = _first(columns, _ANSWERS, "gold", benchmark)
        grading = "choice" if {"choices", "options"} & set(columns) else "exact"
        values = {"preset": None, "path": _relative(benchmark, file), "fields": _flow(fields), "grading": grading}
        values["title"] = f"{Path(benchmark).name}: two models of one provider, compared."
    models = [_entry("first", provider.target, provider), _entry("second", provider.other, provider)]
    judge, anchor = _entry("judge", provider.judge, provider, 1500), _anchor(provider)
    return _rendered(
        "benchmark.yaml.j2", file, usd, **values, name=_name(benchmark), models=[*models, judge, *anchor],
        targets="[first, second]", judge="judge", anchors="[anchor]" if anchor else "[first]",
    )  # fmt: skip


def _anchor(provider: Provider) -> list[dict[str, Any]]:
    """A strong model that answers too. A simulated judge cannot answer, so that one is a model of its own."""
    model = "sim/anchor-strong" if provider is SIMULATED else provider.judge
    return [_entry("anchor", model, provider)]


def _judging(file: Path, traces: Path, usd: float) -> str:
    provider = _provider()
    columns = _columns_of(traces)
    fields = {
        role: _first(columns, names, role, str(traces)) for role, names in _roles("id", "question", "response").items()
    }
    for role in ("model", "gold", "context", "reference"):
        column = next((name for name in _COLUMNS[role] if name in columns), None)
        fields |= {role: column} if column else {}
    return _rendered(
        "judge.yaml.j2", file, usd, title=f"{traces.name}: responses that exist already, judged.",
        name=_name(str(traces)), path=_relative(str(traces), file), fields=_flow(fields), judge="judge",
        models=[_entry("judge", provider.judge, provider, 1500)],
    )  # fmt: skip


def _roles(*names: str) -> dict[str, tuple[str, ...]]:
    return {name: _COLUMNS[name] for name in names}


def _first(columns: Sequence[str], names: Sequence[str], role: str, source: str) -> str:
    column = next((name for name in names if name in columns), None)
    if column is None:
        raise InputError(
            f"{source}: no column that looks like the {role} (one of {', '.join(names)}); it has {', '.join(columns)}:"
            " rename one, or write fields by hand (docs/reference/configuration.md)"
        )
    return column


def _columns_of(path: Path) -> list[str]:
    from pipeline.tables.shapes.rows import file_rows

    row = next(file_rows(path), None)
    if row is None:
        raise InputError(f"{path}: holds no row")
    return [str(name) for name in row.values]


def _entry(name: str, model: str, provider: Provider, max_tokens: int = 2000) -> dict[str, Any]:
    return {"name": name, "model": model, "key": provider.key, "max_tokens": max_tokens}


def _flow(values: Mapping[str, str]) -> str:
    import yaml

    return yaml.safe_dump(
        dict(values), default_flow_style=True, sort_keys=False, allow_unicode=True, width=1000
    ).strip()


def _relative(path: str, file: Path) -> str:
    """As a configuration at ``file`` names it."""
    return _flow({"p": os.path.relpath(Path(path).resolve(), file.resolve().parent)})[4:-1]


def _name(source: str) -> str:
    stem = Path(source).name.split(".")[0]
    return "".join(c if c.isascii() and c.isalnum() else "-" for c in stem).strip("-")[:40] or "run"


def _rendered(template: str, file: Path, usd: float, **values: Any) -> str:
    from jinja2 import Environment, StrictUndefined

    text = (Path(__file__).parent / "templates" / template).read_text(encoding="utf-8")
    made = Environment(undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True)
    return made.from_string(text).render(file=file, usd=f"{usd:g}", **values)


def _check(text: str, file: Path) -> None:
    """What we write must be a configuration that we take."""
    from pipeline.config import parse_config
    from pipeline.config_values import read_yaml

    parse_config(read_yaml(text), source=str(file), base=file.resolve().parent)
