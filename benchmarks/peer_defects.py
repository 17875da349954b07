"""Defects seen in comparable packages, tried on every package that is installed and on ours, in one table.

python benchmarks/peer_defects.py
"""

from __future__ import annotations

import argparse
import logging
import os
import subprocess
import sys
import warnings
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np

from benchmarks.peer_estimators import (
    FloatArray,
    Method,
    absent,
    installed,
    our_methods,
    peer_methods,
)
from pipeline.estimators import lace_mean

LABELS, ROWS = 20, 500
MODULES = {
    "auxeval": "pipeline.estimators.lace_mean", "glide-py": "glide.estimators", "ppi-python": "ppi_py",
    "truescore": "truescore", "fewhumans": "fewhumans", "evalstats": "evalstats", "cje-eval": "cje.array_api",
    "DoubleML": "doubleml", "evalica": "evalica", "passk-inference": "passk_inference",
}  # fmt: skip


def data(seed: int = 0) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Gold, three signals and the best of them; the first ``LABELS`` rows will be labeled."""
    rng = np.random.default_rng(seed)
    gold = (rng.random(ROWS) < 0.7).astype(np.float64)
    signals = rng.standard_normal((ROWS, 3)) + 1.5 * gold[:, None]
    best = (signals[:, 0] - signals[:, 0].mean()) / signals[:, 0].std() * gold.std() + gold.mean()
    return gold, signals, best


def hidden(gold: FloatArray) -> FloatArray:
    """Gold of the labeled rows, NaN elsewhere."""
    return np.where(np.arange(len(gold)) < LABELS, gold, np.nan)


def outcome(method: Method, y: FloatArray, signals: FloatArray, best: FloatArray) -> str:
    """The interval, or the error, and how many warnings were given."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        try:
            value, low, high = method.call(y, signals, best)
        except Exception as error:
            return f"{type(error).__name__}: {str(error).splitlines()[0][:60]}"
    said = f", {len(seen)} warnings" if seen else ", no warning"
    return f"{value:.3f} [{low:.3f}, {high:.3f}]{said if not np.isfinite(value) else ''}"


def all_correct(methods: list[Method]) -> None:
    """20 of 20 labels are 1: no width, an exception, or an honest interval."""
    print(f"{LABELS} of {LABELS} labels correct, pool of {ROWS} (Wilson alone: [0.839, 1.000])")
    gold, signals, best = data()
    gold = gold.copy()
    gold[:LABELS] = 1.0
    for method in methods:
        print(f"  {method.name:34}{outcome(method, hidden(gold), signals, best)}")


def not_a_number(methods: list[Method]) -> None:
    """One signal value is NaN."""
    print("one signal value is NaN")
    gold, signals, best = data()
    signals, best = signals.copy(), best.copy()
    signals[-1, 0] = best[-1] = np.nan
    for method in methods:
        print(f"  {method.name:34}{outcome(method, hidden(gold), signals, best)}")


def collinear(methods: list[Method]) -> None:
    """A signal twice, exactly and with noise of 1e-9: the estimate should hardly move, or something be said."""
    print("a signal given twice: estimate without → with an exact copy → with a copy with noise of 1e-9")
    gold, signals, best = data()
    noise = 1e-9 * np.random.default_rng(1).standard_normal(ROWS)
    copies = (np.column_stack([signals, signals[:, 0] + scale * noise]) for scale in (0.0, 1.0))
    tried = (signals, *copies)
    for method in methods:
        if method.signals == "all":
            print(f"  {method.name:34}" + " → ".join(outcome(method, hidden(gold), one, best) for one in tried))


def shifted() -> None:
    """Weighted intervals when 100 is added to outcome and signal: the width should stay."""
    print("width of a weighted interval of ratings, then with 100 added to outcome and signal")
    gold, signals, best = data()
    ratings = gold + np.random.default_rng(2).normal(size=ROWS)
    y, chance = hidden(ratings), np.where(np.arange(ROWS) % 2 == 0, 0.06, 0.02)
    widths = []
    for shift in (0.0, 100.0):
        found = lace_mean(y + shift, signals, adapt="average", learner=None, inclusion_probabilities=chance)
        widths.append(found.high - found.low)
    print(f"  {'auxeval lace_mean':34}{widths[0]:.4f} → {widths[1]:.4f}")
    package = installed("ppi_py")
    if package is not None:
        known = np.isfinite(y)
        weights = 1.0 / chance[known]
        widths = []
        for shift in (0.0, 100.0):
            parts = y[known] + shift, best[known] + shift, best[~known] + shift
            low, high = package.ppi_mean_ci(*parts, alpha=0.05, w=weights / weights.mean())
            widths.append(float(np.ravel(high - low)[0]))
        print(f"  {'ppi-python ppi_mean_ci':34}{widths[0]:.4f} → {widths[1]:.4f}")


def one_sided() -> None:
    """A one-sided interval asked for, the tuning parameter estimated."""
    print("a one-sided interval (alternative='larger') with λ estimated, then with λ = 1")
    print(f"  {'auxeval':34}offers two-sided intervals only")
    package = installed("ppi_py")
    if package is not None:
        gold, _, best = data()
        y = hidden(gold)
        known = np.isfinite(y)
        shown = []
        for options in ({}, {"lam": 1.0}):
            parts = y[known], best[known], best[~known]
            ends = package.ppi_mean_ci(*parts, alpha=0.05, alternative="larger", **options)
            shown.append("[{:.3f}, {:.3f}]".format(*(float(np.ravel(end)[0]) for end in ends)))
        print(f"  {'ppi-python ppi_mean_ci':34}{shown[0]} → {shown[1]}")


def silenced() -> None:
    """Whether a user's own warning is still seen after the import."""
    print("a UserWarning raised after the import of the package, default filters")
    for name, module in MODULES.items():
        code = f"import {module}, warnings\nwarnings.warn('seen by the user')"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        if not done.returncode:
            print(f"  {name:34}{'shown' if 'seen by the user' in done.stderr else 'swallowed'}")


def main() -> None:
    """Print one block a defect."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    logging.disable(logging.WARNING)
    methods = [*our_methods(), *peer_methods()]
    all_correct(methods)
    not_a_number(methods)
    collinear(methods)
    shifted()
    one_sided()
    silenced()
    if missing := absent():
        print(missing)


if __name__ == "__main__":
    main()
