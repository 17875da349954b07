"""Files that are bombs: one line, exit 2, little time and memory."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zipfile
from pathlib import Path

import pytest

from pipeline.cli import main
from pipeline.config import load_config
from pipeline.config_values import read_yaml
from pipeline.errors import ConfigError, DataError
from pipeline.tables import compressed
from pipeline.tables.imports import inspect_logs
from pipeline.tables.shapes import rows, workbook
from pipeline.tables.table_source import inspect_source

BOMBS = {
    "deep lists": "a: " + "[" * 20_000 + "]" * 20_000,
    "deep mappings": "a: " + "{b: " * 20_000 + "1" + "}" * 20_000,
    "aliases": "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 40)),
    "an alias of itself": "a: &a [*a]\n",
    "an integer of 5,000 digits": f"seed: {'7' * 5000}\n",
    "a date that is none": "seed: 2024-99-99\n",
}


@pytest.mark.parametrize("kind", BOMBS)
def test_yaml_bombs_are_one_line(kind: str, tmp_path: Path) -> None:
    file = tmp_path / "c.yaml"
    file.write_text(BOMBS[kind], encoding="utf-8")
    with pytest.raises(ConfigError) as refused:
        load_config(file)
    assert "\n" not in str(refused.value)
    assert "not valid YAML" in str(refused.value)
    assert len(str(refused.value)) < 600


def test_honest_aliases_are_read() -> None:
    assert read_yaml("a: &a {x: 1}\nb: *a\nc: [*a, *a]\n") == {"a": {"x": 1}, "b": {"x": 1}, "c": [{"x": 1}] * 2}


@pytest.mark.parametrize("ending", ["gz", "bz2", "xz"])
def test_a_small_file_that_unpacks_to_gigabytes_is_refused_without_being_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    monkeypatch.setattr(compressed, "_LEAST_BOMB_BYTES", 1 << 20)
    opener = {"gz": gzip.open, "bz2": bz2.open, "xz": lzma.open}[ending]
    bomb = tmp_path / f"table.csv.{ending}"
    with opener(bomb, "wb") as file:
        file.write(b"gold,judge\n")
        for _ in range(64):
            file.write(b"1" * (1 << 18))
    with pytest.raises(DataError, match="unpack to more than") as caught:
        inspect_source(bomb)
    assert "\n" not in str(caught.value)
    honest = tmp_path / f"honest.csv.{ending}"
    with opener(honest, "wb") as file:
        file.write(b"gold,judge\n" + b"".join(b"%d,%d\n" % (k % 2, k * 7919) for k in range(200_000)))
    assert inspect_source(honest).columns == ("gold", "judge")


def test_a_zstandard_frame_that_says_it_is_huge_is_refused(tmp_path: Path) -> None:
    frame = b"\x28\xb5\x2f\xfd" + bytes([0xE0]) + (5 << 30).to_bytes(8, "little") + b"\x01\x00\x00"
    (tmp_path / "t.csv.zst").write_bytes(frame)
    with pytest.raises(DataError, match="unpack to more than"):
        inspect_source(tmp_path / "t.csv.zst")


DEEP = "[" * 50_000 + "]" * 50_000
DIGITS = "7" * 5000
LONG = "x" * 20_000


def table(text: str) -> bytes:
    """Thirty honest rows, and one more with a field that no one asked for."""
    rows = [f'{{"id": "{k}", "question": "q {k}", "gold": {k % 2}, "judge": 0.5, "model": "m"}}\n' for k in range(30)]
    return "".join([*rows, f'{{"id": "x", "question": "q", "gold": 1, "judge": 0.5, "more": {text}}}\n']).encode()


def rows_of_text(first: str = "0", gold: str = "1") -> bytes:
    rows = [f"{k or first},q {k},{k % 2},0.5,m\n" for k in range(30)]
    return ("id,question,gold,judge,model\n" + "".join(rows) + f"y,q,{gold},0.5,m\n").encode()


def archive(member: str, data: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr(member, data)
    return file.getvalue()


HEADER = f'{{"version": 2, "eval": {{"task": "t", "model": "m", "run_id": {DIGITS}}}, "status": "success"}}'
SPACES = b" " * (4 << 20)
KINDS: dict[str, bytes] = {
    "long-id.csv": rows_of_text(first=LONG),
    "digits.csv": rows_of_text(gold=DIGITS),
    "deep.jsonl": table(DEEP),
    "digits.jsonl": table(DIGITS),
    "deep.json": f'{{"results": {DEEP}}}'.encode(),
    "deep-log.json": f'{{"version": 2, "eval": {DEEP}, "samples": []}}'.encode(),
    "digits.json": f'[{{"id": 1, "gold": {DIGITS}, "judge": 0.5}}]'.encode(),
    "header.eval": archive("header.json", SPACES),
    "samples.eval": archive("samples/1_epoch_1.json", SPACES),
    "deep.eval": archive("header.json", DEEP.encode()),
    "digits.eval": archive("header.json", HEADER.encode()),
    "book.xlsx": archive("xl/workbook.xml", SPACES),
    "one-line.csv.gz": gzip.compress(b"id,question,gold\n" + b"1" * (4 << 20)),
    "one-line.jsonl.gz": gzip.compress(b"1" * (4 << 20)),
    "lines.csv.gz": gzip.compress(b"id,question,gold\n" + b"1,q,1\n" * (1 << 20)),
}
DOORS: dict[str, list[str]] = {
    "look": ["look", "FILE"],
    "estimate": ["estimate", "FILE", "--gold", "gold", "--signals", "judge", "--id", "id"],
    "benchmark": ["config", "check", "c.yaml"],
    "import": ["import", "FILE", "--out", "out.csv"],
    "plan": ["plan", "FILE", "--gold", "gold", "--signals", "judge"],
    "gate": ["gate", "FILE", "FILE", "--margin", "0.1"],
    "replay": ["replay", "FILE"],
    "labels": ["labels", "import", "t.csv", "FILE"],
    "cache": ["cache", "import", "FILE"],
    "config": ["config", "check", "FILE"],
}
CONFIG = """\
schema: 1
name: c
benchmark: {{preset: custom, path: {file}, grading: exact, fields: {{id: id, question: question, gold: gold}}}}
models: {{a: {{model: sim/strong}}}}
roles: {{targets: [a]}}
design: {{labeled: 5}}
estimate: [naive]
"""


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_at_every_door_is_read_or_refused_in_one_line(
    kind: str, door: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(compressed, "_LEAST_BOMB_BYTES", 1 << 20)
    monkeypatch.setattr(rows, "_LONGEST_LINE", 1 << 20)
    monkeypatch.setattr(inspect_logs, "MAX_MEMBER_BYTES", 1 << 20)
    monkeypatch.setattr(workbook, "MAX_UNPACKED_BYTES", 1 << 20)
    Path(kind).write_bytes(KINDS[kind])
    Path("t.csv").write_bytes(rows_of_text())
    Path("c.yaml").write_text(CONFIG.format(file=kind))
    with pytest.raises(SystemExit) as end:
        main([kind if word == "FILE" else word for word in DOORS[door]])
    told = capsys.readouterr()
    assert end.value.code in (None, 0, 2), told.err
    assert "internal error" not in told.err
    if end.value.code == 2:
        assert told.out == ""
        lines = told.err.strip().splitlines()
        assert len(lines[-1]) < 700
        assert sum(line.startswith("auxeval: ") for line in lines) >= 1


@pytest.mark.parametrize("name", ["manifest.json", "estimates.json", "calls.jsonl", "audit.json", "labels.json"])
@pytest.mark.parametrize("kind", ["deep", "digits"])
def test_a_run_folder_with_a_bomb_inside_is_one_line(
    kind: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import pipeline

    monkeypatch.chdir(tmp_path)
    config = {
        "schema": 1, "name": "b", "benchmark": {"preset": "embedded", "limit": 6},
        "models": {"a": {"model": "sim/strong"}},
        "roles": {"targets": ["a"]}, "design": {"labeled": 6}, "estimate": ["naive"],
    }  # fmt: skip
    pipeline.run(config, run_id="r", yes=True)
    (tmp_path / "runs" / "r" / name).write_text(f'{{"schema": {DIGITS if kind == "digits" else DEEP}}}\n')
    for command in (["report", "r"], ["runs", "list"], ["resume", "r"], ["replay", "r"], ["compare", "r", "r"]):
        with pytest.raises(SystemExit) as end:
            main(command)
        told = capsys.readouterr()
        assert end.value.code in (None, 0, 2, 3), (command, told.err)
        assert "internal error" not in told.err, (command, told.err)
