"""Decisions over many models: a small seeded slice of the rank-coverage study."""

import numpy as np
import pytest

from pipeline.studies.coverage.ranks import LAWS, MARGIN, MEASURES, Setting, _judged, replicate
from pipeline.studies.runner import task_generator


@pytest.mark.parametrize(("law", "target"), [("equal", "pool"), ("margin", "population")])
def test_rank_sets_gaps_and_decisions_keep_their_level(law: str, target: str) -> None:
    rows = [
        replicate(Setting(law, 3, 80, target), task_generator(0, f"slice {law} {k}"))  # type: ignore[arg-type]
        for k in range(50)
    ]
    for estimator in ("labels", "LACE"):
        shares = dict(zip(MEASURES, np.mean([row[estimator] for row in rows], axis=0), strict=True))
        # 50 replicates: .95 less three Monte Carlo standard errors.
        assert shares["ranks"] >= 0.85, (estimator, shares)
        assert shares["gaps"] >= 0.85, (estimator, shares)
        assert shares["different"] <= 0.15, (estimator, shares)
        assert shares["equivalent"] <= 0.15, (estimator, shares)


def test_what_is_wrong_is_counted() -> None:
    from pipeline.estimators import paired_differences

    sure = np.repeat([[1.0, 0.0]], 200, axis=0)
    sure[:2] = 1.0 - sure[:2]
    pairs = paired_differences(sure, margin=MARGIN, names=("0", "1"))
    right, wrong = _judged(pairs, np.array([0.99, 0.01])), _judged(pairs, np.array([0.5, 0.5]))
    assert right[:4] == [1.0, 1.0, 0.0, 0.0]
    assert wrong[:4] == [0.0, 0.0, 1.0, 0.0]


def test_the_laws_lie_as_they_say() -> None:
    assert np.ptp(LAWS["equal"].accuracies(12)) == 0.0
    assert np.allclose(-np.diff(LAWS["margin"].accuracies(6)), MARGIN)
    assert LAWS["unequal"].accuracies(12)[[0, -1]] == pytest.approx([0.9, 0.5])
