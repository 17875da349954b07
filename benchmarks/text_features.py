"""Do embeddings of the question predict correctness better than lengths alone? GSM8K questions, 16 models.

Usage: python benchmarks/text_features.py [SHARED] [--splits 3] [--out FILE]
"""

from __future__ import annotations

import argparse
import gzip
import json
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from pipeline.estimators import cross_fit_tau
from pipeline.estimators.one_step.feature_regression import PenalizedRegression
from pipeline.studies.results import Cell, Measured, ResultTable, StudyResult
from pipeline.tables.draw_features import text_components
from pipeline.tables.embedding import StaticEmbedder

FloatArray = NDArray[np.float64]
COMPONENTS, BOOTSTRAP = 256, 1000


def load(shared: Path) -> tuple[list[str], dict[str, tuple[FloatArray, FloatArray]]]:
    """Questions, and per model (correctness (N,), log reply length (N,)) in the same order."""
    with gzip.open(shared / "data/benchmarks/gsm8k_test.jsonl.gz", "rt", encoding="utf-8") as stream:
        items = [json.loads(line) for line in stream]
    order = {item["item_id"]: row for row, item in enumerate(items)}
    table = pl.read_csv(shared / "data/tables/gsm8k_outcomes.csv.gz")
    models = {}
    for name in table["model"].unique(maintain_order=True):
        rows = table.filter(pl.col("model") == name)
        place = [order[item] for item in rows["item_id"]]
        y, length = np.empty(len(items)), np.empty(len(items))
        y[place], length[place] = rows["y"].to_numpy(), np.log1p(rows["out_chars"].to_numpy().clip(0))
        models[name] = (y, length)
    return [item["question"] for item in items], models


def scaled(columns: FloatArray) -> FloatArray:
    """Mean 0, sd 1."""
    return np.asarray((columns - columns.mean(axis=0)) / columns.std(axis=0))


def out_of_fold(y: FloatArray, columns: FloatArray, splits: int) -> FloatArray:
    """Mean over ``splits`` partitions of the five-fold out-of-fold predictions, by the product's own Algorithm 1."""
    cube = np.repeat(columns[:, None, :], 2, axis=1)
    parts = [
        cross_fit_tau(y, cube, regressor=PenalizedRegression(), rng=np.random.default_rng(split))[:, 0]
        for split in range(splits)
    ]
    return np.asarray(np.mean(parts, axis=0))


def log_loss(y: FloatArray, chance: FloatArray) -> FloatArray:
    """Loss of each item."""
    return -np.log(np.where(y == 1.0, chance, 1.0 - chance))


def auc(y: FloatArray, score: FloatArray, weights: FloatArray) -> FloatArray:
    """Weighted area under the ROC curve for every row of weights (B, N)."""
    order = np.argsort(score, kind="stable")
    y, score, weights = y[order], score[order], weights[:, order]
    low, high = weights * (1.0 - y), weights * y
    _, start, inverse = np.unique(score, return_index=True, return_inverse=True)
    below = np.concatenate([np.zeros((len(weights), 1)), np.cumsum(low, axis=1)], axis=1)
    end = np.append(start[1:], len(score))
    half = 0.5 * (below[:, start[inverse]] + below[:, end[inverse]])
    return np.asarray((high * half).sum(axis=1) / (high.sum(axis=1) * low.sum(axis=1)))


def interval(values: FloatArray, digits: int = 4) -> Measured:
    """Row 0 is the sample, the others its bootstrap resamples."""
    low, high = np.quantile(values[1:], [0.025, 0.975])
    return Measured(float(values[0]), float(low), float(high), digits=digits)


def compare(questions: list[str], models: dict[str, tuple[FloatArray, FloatArray]], splits: int) -> list[ResultTable]:
    """One table with lengths of the question alone, one with the reply's length as well."""
    embedder = StaticEmbedder()
    text = text_components(embedder.embed(questions).astype(np.float64), COMPONENTS)
    lengths = scaled(np.log1p([[len(question), len(question.split())] for question in questions]))
    draws = np.random.default_rng(0).multinomial(len(questions), np.full(len(questions), 1 / len(questions)), BOOTSTRAP)
    weights = np.concatenate([np.ones((1, len(questions))), draws]).astype(np.float64)
    tables = []
    for title, with_reply in (("question lengths", False), ("question and reply lengths", True)):
        rows: list[tuple[Cell, ...]] = []
        gains, savings = [], []
        for name, (y, reply) in models.items():
            cheap = np.column_stack([lengths, scaled(reply)]) if with_reply else lengths
            base = out_of_fold(y, cheap, splits)
            full = out_of_fold(y, np.column_stack([cheap, text]), splits)
            before, after = auc(y, base, weights), auc(y, full, weights)
            loss0 = weights @ log_loss(y, base) / weights.sum(axis=1)
            loss1 = weights @ log_loss(y, full) / weights.sum(axis=1)
            gains.append(after - before)
            savings.append(loss0 - loss1)
            rows.append(
                (
                    name,
                    float(y.mean()),
                    Measured(float(before[0])),
                    Measured(float(after[0])),
                    interval(gains[-1]),
                    interval(savings[-1]),
                )
            )
        mean_gain, mean_saving = np.mean(gains, axis=0), np.mean(savings, axis=0)
        better = sum(gain[0] > 0 for gain in gains)
        rows.append(("mean of all", None, None, None, interval(mean_gain), interval(mean_saving)))
        tables.append(
            ResultTable(
                f"{title} alone, and with {COMPONENTS} components of {embedder.name}",
                ("model", "accuracy", "AUC lengths", "AUC with text", "gain in AUC", "saved log loss"),
                tuple(rows),
                notes=(f"AUC rises for {better} of {len(rows) - 1} models.",),
            )
        )
    return tables


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("shared", type=Path, nargs="?", default=Path("../shared"))
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    result = StudyResult(
        title="Text features: embeddings against lengths alone, GSM8K",
        tables=tuple(compare(*load(options.shared), options.splits)),
        notes=(
            "Five-fold out-of-fold predictions of `cross_fit_tau` with `PenalizedRegression`, averaged over"
            f" {options.splits} partitions; 95% intervals by {BOOTSTRAP} bootstrap resamples of the items, the same for"
            " every model, so that the mean's interval allows for shared items.",
        ),
        command=f"python benchmarks/text_features.py {options.shared} --splits {options.splits} --out {options.out}",
    )
    print(result.to_text())
    if options.out is not None:
        options.out.write_text(result.to_text(), encoding="utf-8")


if __name__ == "__main__":
    main()
