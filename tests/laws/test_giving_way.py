"""No command puts its output in the place of a file that a person made: every option of every command that writes."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

import click
import polars as pl
import pytest

import pipeline
from pipeline.cli import _auxeval, main

TABLE = "id,model,correct,judge,mine\n" + "".join(
    f"{item},{model},{'' if item > 15 else (item * 7 + len(model)) % 2},{item % 10 / 10},keep\n"
    for item in range(40)
    for model in ("a", "bb")
)
LABELED = {
    "name": "l",
    "benchmark": {"preset": "embedded", "limit": 20},
    "models": {"a": {"model": "sim/weak"}},
    "roles": {"targets": ["a"]},
    "design": {"labeled": "gold"},
    "estimate": ["naive"],
}
COLUMNS = "--gold correct --signals judge --id id --model model"
ASKED = "--question question --response response --id id"
WRITES = {
    "audit --out": "audit run --out {out}",
    "compare --out": "compare run run2 --out {folder}",
    "estimate --out": f"estimate {{out}} {COLUMNS} --out {{folder}}",
    "export cassette": "export run {out}",
    "gate --out": "gate base.csv new.csv --gold correct --signals judge --id id --model a --margin .9 --out {folder}",
    "import --out": "import other.csv --out {out}",
    "init file": "init {out} --benchmark embedded",
    "judge --save-config": f"judge traces.csv --judge sim/judge {ASKED} --save-config {{out}}",
    "labels export file": f"labels export base.csv {{out}} {COLUMNS}",
    "labels import --out": "labels import base.csv sheet.csv --out {out}",
    "labels next file": "labels next base.csv {out}",
    "replay --out": "replay run --out {out}",
    "study --out": "study best-of-n-table2 --reps 2 --out {out}",
    "--log-file": f"-v --log-file {{out}} estimate base.csv {COLUMNS}",
}
"""Option or argument → a command that is to write where a person's table is."""
READS = {
    *("audit file", "cache import cassette", "config check file", "doctor config", "estimate tables", "import paths"),
    *("judge --criteria", "judge table", "init --judge", "init --table", "labels import files", "look paths"),
    *("run config", "study tables", "serve-local --model-file"),
}
"""What else names a path: it is read, or a folder of the tool's own."""


def paths_of(command: click.Command, name: str) -> Iterator[str]:
    """The options and arguments of a command and those below it that take a path."""
    if isinstance(command, click.Group):
        context = click.Context(command)
        for each in command.list_commands(context):
            below = command.get_command(context, each)
            assert below is not None
            yield from paths_of(below, f"{name} {each}".strip())
    for parameter in command.params:
        if isinstance(parameter.type, click.Path) or parameter.name == "out":
            option = parameter.opts[0] if isinstance(parameter, click.Option) else str(parameter.name)
            yield f"{name} {option}".strip()


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs, tables of two versions, traces."""
    folder = tmp_path_factory.mktemp("place")
    for name in ("run", "run2"):
        pipeline.run(LABELED, run_id=name, runs_dir=folder / "runs", cache_dir=folder / ".auxeval/cache", yes=True)
    for other in ("base.csv", "new.csv", "other.csv"):
        (folder / other).write_text(TABLE.replace(",mine\n", "\n").replace(",keep\n", "\n"), encoding="utf-8")
    (folder / "traces.csv").write_text("id,question,response\n1,q,r\n2,q,r\n", encoding="utf-8")
    return folder


@pytest.fixture
def here(place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the place, as the working directory."""
    shutil.copytree(place, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AUXEVAL_CACHE_DIR", str(tmp_path / ".auxeval/cache"))
    return tmp_path


def status(line: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(shlex.split(line))
    return int(ended.value.code or 0)


def prepare(option: str) -> None:
    """What must have gone before."""
    if option == "labels import --out":
        assert status(f"labels export base.csv sheet.csv {COLUMNS}") == 0
        frame = pl.read_csv("sheet.csv", infer_schema=False)
        frame.with_columns(pl.lit("1").alias("gold")).write_csv("sheet.csv")
    elif option == "labels next file":
        assert status(f"labels plan base.csv --half-width .2 --max 30 {COLUMNS}") == 0


@pytest.mark.parametrize("option", sorted(WRITES))
def test_each_writes_where_nothing_is(option: str, here: Path) -> None:
    prepare(option)
    fresh = here / "fresh" / ("of.jsonl.gz" if option.startswith("export") else "of.csv")
    fresh.parent.mkdir()
    (here / "own.csv").write_text(TABLE, encoding="utf-8")
    line = WRITES[option].replace("estimate {out}", "estimate own.csv")
    assert status(line.format(out=fresh, folder=fresh.parent)) == 0
    assert any(fresh.parent.iterdir())


@pytest.mark.parametrize("option", sorted(WRITES))
@pytest.mark.parametrize("name", ["mine.csv", "estimates.csv", "estimates.json"])
def test_what_a_person_made_stays(option: str, name: str, here: Path) -> None:
    prepare(option)
    mine = Path(name)
    mine.write_text(TABLE if name.endswith("csv") else '{"mine": 1}', encoding="utf-8")
    before = mine.read_bytes()
    line = WRITES[option].format(out=mine, folder=here)
    assert status(line) in ((0, 2) if "{folder}" in WRITES[option] else (2,)), line
    assert mine.read_bytes() == before


def test_every_option_that_writes_is_tried() -> None:
    there = set(paths_of(_auxeval, "")) - {path for path in paths_of(_auxeval, "") if path.endswith("-dir")}
    own = {path for path in there if path.endswith(("--plan", "--cache-dir"))}
    assert there - own - READS - set(WRITES) == set()
    assert set(WRITES) - there == set()
