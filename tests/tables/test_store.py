"""The table store: sorted, unique, strict about reasons, the same bytes for the same rows in any order."""

from __future__ import annotations

import random
from pathlib import Path

import polars as pl
import pytest

from pipeline.errors import DataError
from pipeline.tables.schemas import TABLES
from pipeline.tables.store import RowSpool, read_table, write_rows


def _tau(item: str, draw: int, tau: float | None = 0.5, reason: str | None = None) -> dict[str, object]:
    return {
        "item_id": item,
        "target": "t",
        "variant": "zero_shot",
        "draw": draw,
        "tau": tau,
        "tau_reason": reason,
        "request_key": f"{item}{draw}",
    }


def test_spooled_rows_give_the_same_bytes_in_any_order(tmp_path: Path) -> None:
    rows = [_tau(f"i{item}", draw, item / 100) for item in range(50) for draw in range(3)]
    payloads = []
    for run in range(2):
        random.Random(run).shuffle(rows)
        with RowSpool(tmp_path / f"spool{run}") as spool:
            for row in rows:
                spool.add("taus", row)
            spool.write(tmp_path / f"tables{run}", [TABLES["taus"]])
        payloads.append((tmp_path / f"tables{run}" / "taus.parquet").read_bytes())
    assert payloads[0] == payloads[1]
    frame = read_table(tmp_path / "tables0", "taus")
    assert frame.height == 150
    assert frame["item_id"].is_sorted()


def test_lone_surrogates_and_nuls_survive_as_visible_text(tmp_path: Path) -> None:
    with RowSpool(tmp_path / "spool") as spool:
        spool.add("taus", _tau("bad\ud835id\x00", 0))
        spool.write(tmp_path / "tables", [TABLES["taus"]])
    assert read_table(tmp_path / "tables", "taus")["item_id"].to_list() == ["bad\\ud835id\x00"]


def test_two_rows_with_one_key_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="share a key"):
        write_rows(tmp_path, TABLES["taus"], [_tau("a", 0), _tau("a", 0)])


def test_a_reason_outside_the_closed_list_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="'because'"):
        write_rows(tmp_path, TABLES["taus"], [_tau("a", 0, None, "because")])


def test_a_table_without_rows_keeps_its_columns(tmp_path: Path) -> None:
    with RowSpool(tmp_path / "spool") as spool:
        spool.write(tmp_path / "tables", TABLES.values())
    for name, schema in TABLES.items():
        assert read_table(tmp_path / "tables", name).columns == list(schema.columns)


def test_a_missing_or_damaged_table_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such table"):
        read_table(tmp_path, "taus")
    (tmp_path / "taus.parquet").write_bytes(b"PAR1 not really")
    with pytest.raises(DataError, match="is damaged"):
        read_table(tmp_path, "taus")


def test_a_newer_schema_is_refused(tmp_path: Path) -> None:
    pl.DataFrame({"a": [1]}).write_parquet(tmp_path / "taus.parquet", metadata={"auxeval.schema": "2"})
    with pytest.raises(DataError, match="schema 2 is newer"):
        read_table(tmp_path, "taus")
