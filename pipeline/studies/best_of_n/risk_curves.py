"""Figure 2: exact risks at equal means for two Gaussian candidates."""

from __future__ import annotations

from math import pi, sqrt

from pipeline.estimators.best_of_n.risks import gaussian_pair_risk, holdout_pair_risk
from pipeline.report.values import Axis, Figure, Series
from pipeline.studies.registry import Study, StudyOptions
from pipeline.studies.results import Cell, ResultTable, StudyResult

SHOWN = (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 256)


def run(options: StudyOptions) -> StudyResult:
    """Four curves over K, in closed form."""
    curves = {
        "Holdout, J = K−1": [holdout_pair_risk(k, 1.0) for k in SHOWN],
        "least unbiased, J = K−1": [gaussian_pair_risk(k - 1, k, 1.0) for k in SHOWN],
        "row-mean maximum (biased)": [1.0 / k for k in SHOWN],
        "least unbiased, J = 1": [gaussian_pair_risk(1, k, 1.0) for k in SHOWN],
    }
    rows: list[tuple[Cell, ...]] = [
        (str(k), *(curve[at] for curve in curves.values()), 1.0 / (pi * sqrt(2.0 * k))) for at, k in enumerate(SHOWN)
    ]
    series = [
        Series(name, [float(k) for k in SHOWN], values, dashed="biased" in name) for name, values in curves.items()
    ]
    axes = Axis("scores per candidate K", log=True), Axis("MSE", log=True)
    chart = Figure("Risk at equal means, M = N = 2, σ = 1", tuple(series), *axes)
    table = ResultTable(
        "Exact mean squared error at equal means, M = N = 2, σ = 1",
        ("K", *curves, "1/(π√(2K))"),
        tuple(rows),
        digits=5,
    )
    return StudyResult(
        study.title,
        (table,),
        figures={"best-of-n-figure2": chart},
        notes=(
            "Closed forms: equation 4 (least unbiased risk at J = K−1 and, to show a fixed depth, at J = 1), equation "
            "5 (Holdout) and 1/K. The last column is the sharp unbiased rate that both J = K−1 curves approach.",
        ),
    )


study = Study(
    title="Holdout Best-of-N: exact risks at equal means (Figure 2)",
    run=run,
    default_reps=2,
)
