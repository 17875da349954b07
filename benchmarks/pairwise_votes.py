"""Bradley–Terry from some human votes and all judge votes of the arena table, beside human votes alone.

python benchmarks/pairwise_votes.py [REPS]   (reads AUXEVAL_SHARED, default ../shared)
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import polars as pl

from pipeline.estimators.gaps.pairwise import bradley_terry, check_votes

SHARE = {"model_a": 1.0, "tie": 0.5, "model_b": 0.0}
MODELS = 8


def main(reps: int, pool: int = 4000, labels: int = 800) -> None:
    """Print joint coverage, and the votes alone that have the same joint width."""
    folder = Path(os.environ.get("AUXEVAL_SHARED", "../shared"))
    frame = pl.read_csv(folder / "data" / "judges" / "arena_votes_llm_judges.csv.gz")
    counts = pl.concat([frame["model_a"], frame["model_b"]]).value_counts().sort(["count", "model_a"], descending=True)
    names = sorted(counts["model_a"][:MODELS])
    frame = frame.filter(pl.col("model_a").is_in(names) & pl.col("model_b").is_in(names))
    sides = [np.array([names.index(name) for name in frame[side]]) for side in ("model_a", "model_b")]
    votes = np.array([SHARE.get(str(vote), 0.5) for vote in frame["human"]])
    judges = [name for name in frame.columns if name.startswith("judge_")]
    signals = np.column_stack([[SHARE.get(str(v), 0.5) - 0.5 for v in frame[name]] for name in judges])
    truth = bradley_terry(check_votes(*sides, votes, signals[:, :0])).scores
    covered, widths = {"votes alone": 0, "corrected": 0}, {"votes alone": 0.0, "corrected": 0.0}
    rng = np.random.default_rng(7)
    for _ in range(reps):
        rows = rng.choice(len(votes), pool, replace=True)  # a population like these battles
        shown = np.where(rng.permutation(pool) < labels, votes[rows], np.nan)
        for name, used in (("votes alone", signals[rows, :0]), ("corrected", signals[rows])):
            fit = bradley_terry(check_votes(sides[0][rows], sides[1][rows], shown, used))
            pairs = [(a, b) for a in range(MODELS) for b in range(a)]
            errors = [abs(fit.difference(a, b)[0] - truth[a] + truth[b]) / fit.difference(a, b)[1] for a, b in pairs]
            covered[name] += max(errors) <= fit.quantile
            widths[name] += float(np.mean([fit.quantile * fit.difference(a, b)[1] for a, b in pairs])) / reps
    for name in covered:
        print(f"{name:12} joint coverage {covered[name] / reps:.3f}, mean joint half-width {widths[name]:.3f}")
    worth = (widths["votes alone"] / widths["corrected"]) ** 2
    print(f"{len(votes)} battles of {MODELS} models; {labels} votes with judges are worth {worth * labels:.0f} alone")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
