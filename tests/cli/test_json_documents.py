"""Every command with --json prints one document on stdout that its published schema describes, and nothing else."""

from __future__ import annotations

import csv
import functools
import json
import math
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import jsonschema
import numpy as np
import polars as pl
import pytest

import pipeline
from pipeline.cli import _auxeval, main
from pipeline.cli.documents import DOCUMENTS, document_schema
from pipeline.cli.output import print_json

FIXTURES = Path(__file__).parent.parent / "tables" / "fixtures"
CONFIG = """\
schema: 1
name: small
benchmark: {preset: embedded, limit: 16}
models:
  a: {model: sim/strong}
  b: {model: sim/weak}
  judge: {model: sim/judge}
  w: {model: sim/anchor-weak}
  m: {model: sim/anchor-medium}
  s: {model: sim/anchor-strong}
roles: {targets: [a, b], judge: judge, auxiliary: [w, m], anchors: {weak: w, medium: m, strong: s}}
design: {labeled: 8, draws: 1, judge_prompts: 1}
estimate: [naive, lace, gaps, best_of_n]
best_of_n: {candidates: 3, scores: 2, n: [2], j: [1]}
"""
COLUMNS = "--gold gold --signals judge,length --id id"

CASES = [
    ("run", "small.yaml --run-id c --quiet"),
    ("resume", "a --quiet"),
    ("replay", "a --out replayed --quiet"),
    ("plan", "small.yaml"),
    ("plan", "a --half-width 0.1"),
    ("plan", f"t.csv {COLUMNS} --profile level --family good=judge@2 --family free=length@1"),
    ("plan", "scores.csv --best-of-n 2 --budget 500"),
    ("estimate", f"t.csv {COLUMNS} --model model --profile level"),
    ("estimate", "full.csv --gold gold --signals judge --rehearse 3"),
    ("estimate", "scores.csv --best-of-n 2"),
    ("report", "a"),
    ("compare", "a b"),
    ("gate", "full.csv full.csv --margin 0.1 --profile level"),
    ("gate", "a b --model a --margin 0.5"),
    ("gate", "full.csv full.csv --aa"),
    ("runs list", ""),
    ("study", "--list"),
    ("study", "best-of-n-figure2"),
    ("import", f"inspect {FIXTURES}/inspect --out i.parquet"),
    ("look", "t.csv"),
    ("skill", ""),
    ("init", "made.yaml --benchmark embedded"),
    (
        "judge",
        "r.jsonl --question q --response o --id i --gold g --judge sim/judge --reference e --yes --quiet --run-id j",
    ),
    ("import", f"lm-eval {FIXTURES}/lm_eval --out l.parquet"),
    ("import", "table t.csv --out again.jsonl"),
    ("labels export", f"t.csv new-sheet.csv {COLUMNS}"),
    ("labels export", "b run-sheet.csv -n 3"),
    ("audit", "b --out audit-sheet.csv --sample 2"),
    ("labels import", "t.csv sheet.csv --out labeled.csv"),
    ("labels plan", f"t.csv --half-width 0.1 --max 100 {COLUMNS}"),
    ("labels next", "t.csv plan-sheet.csv"),
    ("labels status", "t.csv"),
    ("export", "a again.jsonl.gz"),
    ("cache stats", ""),
    ("cache verify", ""),
    ("cache import", "a.jsonl.gz"),
    ("cache prune", "--before 2000-01-01"),
    ("cache repair", ""),
    ("config check", "small.yaml"),
    ("config schema", ""),
    ("doctor", "small.yaml --no-calls"),
    ("schema", ""),
    ("schema", "runs list"),
]


def _call(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as caught:
        main(list(words))
    out, err = capsys.readouterr()
    return int(caught.value.code or 0), out, err


def _commands(group: click.Group, above: tuple[str, ...] = ()) -> Iterator[str]:
    for name in group.list_commands(click.Context(group)):
        found = group.get_command(click.Context(group), name)
        if isinstance(found, click.Group):
            yield from _commands(found, (*above, name))
        else:
            yield " ".join((*above, name))


@functools.cache
def _validator(command: str) -> Any:
    return jsonschema.Draft202012Validator(document_schema(command))


def _tables(folder: Path) -> None:
    rng = np.random.default_rng(0)
    skill = rng.standard_normal(120)
    truth = (rng.random(120) < 1 / (1 + np.exp(-2 * skill))).astype(float)
    frame = pl.DataFrame(
        {
            "id": [f"q{row}" for row in range(120)],
            "gold": [f"{value:.0f}" if row % 3 == 0 else "" for row, value in enumerate(truth)],
            "judge": skill,
            "length": rng.integers(10, 300, 120),
            "level": rng.integers(1, 4, 120),
        }
    )
    both = pl.concat([frame.with_columns(pl.lit(model).alias("model")) for model in ("x", "y")])
    both.write_csv(folder / "both.csv")
    frame.with_columns(pl.lit("x").alias("model")).write_csv(folder / "t.csv")
    frame.with_columns(pl.Series("gold", truth)).write_csv(folder / "full.csv")
    answered = {"i": [f"i{k}" for k in range(12)], "q": [f"What is {k} + 1?" for k in range(12)]}
    responses = pl.DataFrame({**answered, "o": [f"It is {k + 1}" for k in range(12)]}).with_columns(
        pl.Series("e", [str(k + 1) for k in range(12)]), pl.Series("g", [1, 0] * 3 + [None] * 6)
    )
    responses.write_ndjson(folder / "r.jsonl")
    scores = [(p, c, d, float(rng.random())) for p in range(4) for c in range(3) for d in range(3)]
    pl.DataFrame(scores, schema=["prompt", "candidate", "draw", "score"], orient="row").write_csv(folder / "scores.csv")


def _fill(sheet: Path) -> None:
    with sheet.open(encoding="utf-8-sig", newline="") as file:
        head, *rows = csv.reader(file)
    place = head.index("gold")
    for position, row in enumerate(rows):
        row[place] = str(position % 2)
    with sheet.open("w", encoding="utf-8-sig", newline="") as file:
        csv.writer(file).writerows([head, *rows])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Two finished runs, a cassette, tables and a filled label sheet."""
    folder = tmp_path_factory.mktemp("commands")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("AUXEVAL_CACHE_DIR", str(folder / "cache"))
        (folder / "small.yaml").write_text(CONFIG)
        _tables(folder)
        pipeline.run("small.yaml", run_id="a")
        shutil.copytree("runs/a", "runs/b")
        for words in ("export a a.jsonl.gz", f"labels export t.csv sheet.csv {COLUMNS} -n 6"):
            with pytest.raises(SystemExit) as caught:
                main(words.split())
            assert not caught.value.code, words
        _fill(folder / "sheet.csv")
        yield folder


def test_every_command_has_a_document_and_a_case_here() -> None:
    # They serve until they are stopped; serve-local has nothing to report, and tests/labelling reads what label says.
    commands = set(_commands(_auxeval)) - {"serve-local", "label", "labels carry"}
    assert commands == set(DOCUMENTS) - {"label", "labels carry"}  # tests/labelling
    assert commands == {command for command, _ in CASES}


@pytest.mark.parametrize(("command", "arguments"), CASES, ids=[f"{c} {a}".strip()[:40] for c, a in CASES])
def test_the_document_is_as_published(
    command: str, arguments: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    code, out, err = _call(capsys, *command.split(), *arguments.split(), "--json")
    assert code == 0, err
    document = json.loads(out, parse_constant=lambda token: pytest.fail(f"{token} in JSON"))
    _validator(command).validate(document)
    if document.get("command") and command != "study":
        assert document["command"] == command


def test_a_schema_refuses_what_it_does_not_name() -> None:
    document = {"schema": 1, "command": "export", "cassette": "c", "responses": 1}
    _validator("export").validate(document)
    for broken in ({**document, "more": 1}, {**document, "responses": "1"}, {**document, "command": "report"}):
        assert not _validator("export").is_valid(broken)
    estimate = dict.fromkeys(("value", "se", "low", "high"), math.inf)
    assert not _validator("run").is_valid({"schema": 1, "targets": {"a": {"naive": estimate}}})


def test_what_is_not_finite_is_null(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"a": math.nan, "b": [math.inf, 1.5], "c": {"d": (-math.inf, "x")}})
    assert json.loads(capsys.readouterr().out) == {"a": None, "b": [None, 1.5], "c": {"d": [None, "x"]}}


WRONG = [
    ("run", "absent.yaml"),
    ("resume", "absent"),
    ("replay", "absent"),
    ("plan", "absent.yaml"),
    ("plan", "t.csv --gold gold --signals absent"),
    ("estimate", "absent.csv --gold gold --signals judge"),
    ("report", "absent"),
    ("compare", "a absent"),
    ("gate", "a absent"),
    ("study", "absent"),
    ("import", "inspect absent --out x.csv"),
    ("look", "absent.csv"),
    ("import", "lm-eval absent --out x.csv"),
    ("import", "table absent --out x.csv"),
    ("labels export", "absent sheet2.csv"),
    ("labels import", "t.csv absent.csv"),
    ("labels plan", "t.csv --half-width 0.1 --gap x,y --gold gold --id id"),
    ("labels next", "absent plan-sheet.csv"),
    ("labels status", "absent"),
    ("export", "absent x.jsonl.gz"),
    ("cache stats", "--cache-dir absent"),
    ("cache verify", "--cache-dir absent"),
    ("cache import", "absent.jsonl.gz"),
    ("cache prune", "--before tomorrow"),
    ("cache repair", "--cache-dir absent"),
    ("config check", "absent.yaml"),
    ("schema", "absent"),
]


@pytest.mark.parametrize(("command", "arguments"), WRONG, ids=[f"{c} {a}"[:40] for c, a in WRONG])
def test_on_an_error_stdout_is_empty_and_stderr_one_line(
    command: str, arguments: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    code, out, err = _call(capsys, *command.split(), *arguments.split(), "--json")
    assert (code, out) == (2, "")
    assert err.startswith("auxeval: ")
    assert len(err.splitlines()) == 1
