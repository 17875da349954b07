"""Draws 50 labels of a simulated run again and again: python docs/pictures/many_seeds.py RUN [DRAWS]

Every outcome of a simulated run is known, so that each draw can be held against the truth. Writes many-seeds.svg beside
this file and prints its numbers.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import polars as pl

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from pipeline.estimators import lace_mean
from pipeline.report.printers.svg import standalone, svg
from pipeline.report.values import Axis, Figure, Series

LABELS = 50
SIGNALS = ("judge", "pair_weak", "pair_medium", "pair_strong", "confidence", "log_length", "consensus")


def draws(run: Path, count: int) -> dict[str, np.ndarray]:
    """Target → (count, 4): worth of the labels, whether the interval holds the truth, LACE's and the plain error²."""
    answers = pl.read_parquet(run / "tables" / "responses.parquet").filter(
        (pl.col("stage") == "answer") & (pl.col("draw") == 0)
    )
    outcomes = answers.select("item_id", pl.col("model").alias("target"), "phi")
    table = pl.read_parquet(run / "tables" / "signals.parquet").join(outcomes, on=["item_id", "target"])
    made = {}
    for (name,), part in table.group_by("target", maintain_order=True):
        names = [signal for signal in SIGNALS if signal in part.columns]
        signals = part.select(pl.col(names).fill_null(strategy="mean")).to_numpy().astype(float)
        phi, rng = part["phi"].to_numpy().astype(float), np.random.default_rng(7)
        rows = []
        for _ in range(count):
            chosen = np.zeros(len(phi), dtype=bool)
            chosen[rng.choice(len(phi), LABELS, replace=False)] = True
            lace = lace_mean(np.where(chosen, phi, np.nan), signals, target="pool")
            truth, rest = phi.mean(), 1 / LABELS - 1 / len(phi)
            plain = phi[chosen].var(ddof=1) * rest  # variance of the labels' mean about this pool
            worth = 1 / (lace.se**2 * rest / plain + 1 / len(phi)) if plain > 0 else float(LABELS)
            errors = (lace.value - truth) ** 2, (phi[chosen].mean() - truth) ** 2
            rows.append([worth, lace.low <= truth <= lace.high, *errors])
        made[str(name)] = np.array(rows, dtype=float)
    return made


def picture(made: dict[str, np.ndarray]) -> Figure:
    """What 50 labels were worth over the draws, with the coverage of the intervals beside it."""
    names, series, beside = [], [], []
    for k, (name, rows) in enumerate(made.items()):
        low, middle, high = np.quantile(rows[:, 0], [0.1, 0.5, 0.9])
        inner = np.quantile(rows[:, 0], [0.25, 0.75])
        series.append(Series("", [middle], [float(k)], [inner[0]], [inner[1]], [low], [high], across=True, tone=k))
        names.append(name)
        beside.append(f"{middle:.0f} ({low:.0f}–{high:.0f}); intervals hold {100 * rows[:, 1].mean():.1f} %")
    axis = Axis("what 50 labels are worth", marks=(float(LABELS),))
    caption = "Thick: half of the draws; thin: eight in ten."
    count = len(next(iter(made.values())))
    title = f"{count} draws of 50 labels from 200 items"
    return Figure(title, tuple(series), axis, Axis(names=tuple(names), beside=tuple(beside)), caption, width=800)


def main() -> None:
    """Write the picture and print its numbers."""
    made = draws(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 400)
    Path(__file__).with_name("many-seeds.svg").write_text(standalone(svg(picture(made))), encoding="utf-8")
    for name, rows in made.items():
        ratio = rows[:, 3].mean() / rows[:, 2].mean()
        print(f"{name}: worth {np.median(rows[:, 0]):.0f}; coverage {rows[:, 1].mean():.3f}; mean squared"
              f" error of the plain mean {ratio:.2f} times LACE's")  # fmt: skip


if __name__ == "__main__":
    main()
