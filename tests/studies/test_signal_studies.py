"""The studies of curves and of free signals: small, seeded, with every table they promise."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.errors import InputError
from pipeline.studies.real import signal_studies
from pipeline.studies.registry import StudyOptions, load_study
from pipeline.studies.results import Measured
from pipeline.studies.runner import run_study

TABLES = Path(__file__).resolve().parents[3] / "shared" / "data" / "tables" / "gsm8k_outcomes.csv.gz"


def test_curves_are_measured_on_every_design(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signal_studies, "BUDGETS", (50,))
    monkeypatch.setattr(signal_studies, "DESIGNS", ("U-shape", "lognormal"))
    result = run_study(load_study("curved"), StudyOptions(reps=12))
    rows = {row[0]: row for row in result.tables[1].rows}
    assert set(rows) == {"U-shape", "lognormal"}
    gained = rows["U-shape"][2]
    assert isinstance(gained, Measured)
    assert gained.value < 0.9
    assert "U-shape" in result.to_text()


def test_free_signals_need_a_table_of_answers() -> None:
    with pytest.raises(InputError, match="table"):
        run_study(load_study("free-signals"), StudyOptions(reps=2))


def test_free_signals_on_real_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    if not TABLES.is_file():
        pytest.skip("the shared real tables are not here")
    monkeypatch.setattr(signal_studies, "BUDGETS", (50,))
    result = run_study(load_study("free-signals"), StudyOptions(reps=8, table=TABLES))
    (table,) = result.tables
    strong = next(row for row in table.rows if row[0] == "GSM8K, strong anchor")
    assert float(str(strong[2])) > 2.0
