"""Studies of Holdout Best-of-N: Table 2 digit for digit, the others against the paper within Monte Carlo error."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pipeline.errors import DataError, InputError
from pipeline.estimators import gaussian_target
from pipeline.estimators.best_of_n.targets import gaussian_targets
from pipeline.report.printers.svg import svg
from pipeline.studies.best_of_n import grid as best_of_n_grid
from pipeline.studies.registry import StudyOptions, load_study
from pipeline.studies.results import Measured, ResultTable
from pipeline.studies.runner import run_study


def run(name: str, **options: object) -> tuple[ResultTable, ...]:
    return run_study(load_study(name), StudyOptions(**options)).tables  # type: ignore[arg-type]


def number(cell: object) -> Measured:
    assert isinstance(cell, Measured)
    return cell


def standard_error(cell: Measured) -> float:
    assert cell.low is not None
    assert cell.high is not None
    return (cell.high - cell.low) / (2 * 1.96)


@pytest.mark.slow
def test_table_2_digit_for_digit() -> None:
    """All nine rows, every printed digit, on the published stream of 50,000 matrices."""
    try:
        found = {key: cell.printed() for key, cell in best_of_n_grid.printed_cells().items()}
    finally:
        best_of_n_grid.normals.cache_clear()
    assert found == best_of_n_grid.PAPER


def test_prefixes_of_the_stream_are_the_stream() -> None:
    try:
        few, more = best_of_n_grid.normals(3), best_of_n_grid.normals(5)
        np.testing.assert_array_equal(few, more[:3])
        with pytest.raises(InputError, match="50000"):
            run("best-of-n-table2", reps=50_001)
    finally:
        best_of_n_grid.normals.cache_clear()


def test_targets_of_many_pools_equal_those_of_one() -> None:
    means = np.random.default_rng(0).uniform(-1, 1, (5, 6))
    for n in (1, 3, 6):
        single = [gaussian_target(row, 0.7, 2, n) for row in means]
        np.testing.assert_allclose(gaussian_targets(means, 0.7, 2, n), single, atol=1e-13)


def test_table_1_agrees_with_the_paper_within_both_errors() -> None:
    """The paper has 20,000 pools, so the difference has at most 1.2 times our standard error."""
    (table,) = run("best-of-n-table1", reps=8_000)
    for row in table.rows:
        for cell in map(number, row[1:]):
            assert cell.paper is not None
            assert cell.value == pytest.approx(cell.paper, abs=4.5 * standard_error(cell) + 0.0005)


def test_table_3_agrees_with_the_paper_within_both_errors() -> None:
    bias, predicted = run("best-of-n-table3", reps=8_000)
    for row in bias.rows:
        for cell in map(number, row[1:]):
            assert cell.paper is not None
            assert cell.value == pytest.approx(cell.paper, abs=4 * standard_error(cell) + 0.0013)
    for row in predicted.rows:
        actual, known, observed = map(number, row[1:])
        tolerance = 4 * standard_error(actual)
        assert known.value == pytest.approx(actual.value, abs=tolerance + 1e-12)
        assert observed.value == pytest.approx(actual.value, abs=tolerance + 4 * standard_error(observed))


def test_section_6_1_controls() -> None:
    gaussian, bernoulli = run("best-of-n-controls", reps=8_000)
    reuse = [number(row[3]).value for row in gaussian.rows]
    assert min(reuse) == pytest.approx(0.0243, abs=0.002)
    assert max(reuse) == pytest.approx(0.4277, abs=0.006)
    for row in gaussian.rows:
        assert abs(number(row[2]).value) < 4
    for row in bernoulli.rows:
        target, holdout, z, by_index = map(number, row[1:])
        assert target.value == pytest.approx(target.paper, abs=6e-8)
        assert abs(z.value) < 4
        assert by_index.value < -4 * standard_error(by_index)
        assert -0.11 < by_index.value < -0.015
        assert holdout.value > by_index.value


def test_figure_2_has_its_four_curves() -> None:
    study = load_study("best-of-n-figure2")
    result = study.run(StudyOptions())
    drawn = svg(result.figures["best-of-n-figure2"])
    for name in ("Holdout", "least unbiased, J = K−1", "row-mean maximum", "least unbiased, J = 1"):
        assert name in drawn
    rows = {row[0]: row[1:] for row in result.tables[0].rows}
    holdout, least, biased, _, rate = (float(cell) for cell in rows["256"])  # type: ignore[arg-type]
    assert biased < least < holdout
    assert holdout / rate == pytest.approx(1.0, abs=0.3)


def test_results_do_not_depend_on_the_number_of_workers() -> None:
    alone, together = run("best-of-n-table3", reps=2000), run("best-of-n-table3", reps=2000, jobs=2)
    assert [table.to_dict() for table in alone] == [table.to_dict() for table in together]


@pytest.mark.shared
def test_real_judges(shared_path: Path) -> None:
    tables = run("best-of-n-real", table=shared_path / "data" / "bon")
    by_title = {table.title.split(":")[0].split(",")[0]: table for table in tables}
    assert {"SummEval", "Reward model on math", "Repeated picks of the best of five"} <= set(by_title)
    summeval = by_title["SummEval"]
    for row in summeval.rows:
        value, gain, gold_gain = number(row[1]), number(row[3]), number(row[5])
        assert float(row[2]) > value.value  # type: ignore[arg-type]  # the plug-in is optimistic
        assert gain.low is not None
        assert gain.low > 0
        assert gold_gain.value > 0
        assert float(row[6]) >= number(row[4]).value  # type: ignore[arg-type]  # no judge beats the experts
    checks = next(table for table in tables if table.title.startswith("What the scores"))
    assert all("drift" in str(row[1]) for row in checks.rows)
    picks = by_title["Repeated picks of the best of five"]
    assert all(("repeated_scores" in str(row[-1])) == ("T=0.00" in str(row[0])) for row in picks.rows)


def test_unknown_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "other.jsonl").write_text('{"a": 1}\n')
    with pytest.raises(DataError, match="none of the known records"):
        run("best-of-n-real", table=tmp_path)
    (tmp_path / "broken.jsonl.gz").write_bytes(b"not gzip")
    with pytest.raises(DataError, match=r"broken\.jsonl\.gz"):
        run("best-of-n-real", table=tmp_path / "broken.jsonl.gz")
    with pytest.raises(InputError, match="needs a table"):
        run("best-of-n-real")
