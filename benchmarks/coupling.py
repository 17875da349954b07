"""The offline run with separate calls and with episodes: what the within-item correction gains, and the pool.

Usage: python benchmarks/coupling.py [--labeled 200] [--draws 10] [--seeds 3]
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import pipeline

MODELS = ("sim/strong", "sim/medium", "sim/weak")


def configuration(coupling: str, labeled: int, draws: int, seed: int) -> dict[str, Any]:
    """The embedded benchmark and its simulated targets, one-step only."""
    return {
        "schema": 1,
        "name": f"coupling-{coupling}",
        "seed": seed,
        "benchmark": {"preset": "embedded"},
        "roles": {"targets": list(MODELS), "auxiliary": ["sim/aux-a", "sim/aux-b"], "regressor": "sim/regressor"},
        "design": {"labeled": labeled, "draws": draws, "coupling": coupling},
        "estimate": ["naive", "one_step"],
    }


def main() -> None:
    """Run both couplings and print one line per coupling, target and estimator."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--labeled", type=int, default=200)
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    print(f"{'coupling':<12} {'target':<11} {'estimator':<15} {'VR':>7} {'[low,':>7} {'high]':>6} {'λ':>6} {'p':>8}")
    with tempfile.TemporaryDirectory() as folder:
        for coupling in ("independent", "episode"):
            rows: dict[tuple[str, str], list[tuple[float, ...]]] = {}
            for seed in range(options.seeds):
                result = pipeline.run(
                    configuration(coupling, options.labeled, options.draws, seed),
                    runs_dir=Path(folder) / "runs",
                    cache_dir=Path(folder) / "cache",
                    quiet=True,
                    yes=True,
                )
                for target in MODELS:
                    for method in ("one_step_paper", "one_step", "one_step_pool"):
                        if method not in result.estimates[target]:
                            continue
                        facts = result.estimates[target][method].diagnostics
                        names = ("variance_reduction", "variance_reduction_low", "variance_reduction_high", "power")
                        numbers = (*(float(facts[name]) for name in names), float(facts["within_item_test_p"]))
                        rows.setdefault((target, method), []).append(numbers)
            for (target, method), found in rows.items():
                reduction, low, high, power, _ = np.mean(found, axis=0)
                p = float(np.median([entry[-1] for entry in found]))
                print(
                    f"{coupling:<12} {target:<11} {method:<15} {reduction:>7.3f} {low:>7.3f} {high:>6.3f} {power:>6.2f}"
                    f" {p:>8.1e}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
