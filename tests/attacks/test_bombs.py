"""Files that are bombs: one line, exit 2, little time and memory."""

from __future__ import annotations

import bz2
import gzip
import lzma
from pathlib import Path

import pytest

from pipeline.config import load_config
from pipeline.config_values import read_yaml
from pipeline.errors import ConfigError, DataError
from pipeline.tables import compressed
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
