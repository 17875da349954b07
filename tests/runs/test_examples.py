"""Every example configuration is valid, and those on simulated models run."""

from __future__ import annotations

from pathlib import Path

import pytest

import pipeline
from pipeline.config import load_config

EXAMPLES = Path(__file__).resolve().parent.parent.parent / "examples"
FILES = sorted(EXAMPLES.rglob("*.yaml"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_an_example_is_a_valid_configuration(path: Path) -> None:
    config = load_config(path)
    assert config.roles.targets or config.judges_what_exists


def test_best_of_n_runs_and_the_gain_grows_with_n(tmp_path: Path) -> None:
    result = pipeline.run(
        EXAMPLES / "best-of-n.yaml", runs_dir=tmp_path / "runs", cache_dir=tmp_path / "cache", yes=True
    )
    found = {(e.n, e.j, e.measure): e.estimate for e in result.estimates.best_of_n}
    assert set(found) == {(n, j, m) for n in (2, 4, 8) for j in (1, 3) for m in ("score", "gain", "gold", "gold_gain")}
    assert found[8, 3, "gain"].value > found[2, 3, "gain"].value > 0
    assert found[8, 3, "gold_gain"].value > 0
    scores = result.tables.scores
    assert scores.height == 60 * 8 * 4
    # independent draws: one candidate's scores are not one reply K times over
    assert scores["request_key"].n_unique() == scores.height
