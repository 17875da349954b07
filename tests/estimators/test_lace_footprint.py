"""What LACE needs: memory at a million items, and no heavy library at its start."""

from __future__ import annotations

import subprocess
import sys
import tracemalloc

import numpy as np

from pipeline.estimators import lace_profile


def test_a_million_items_need_no_array_of_points_by_items() -> None:
    rng = np.random.default_rng(19)
    rows = 1_000_000
    z, signals = rng.normal(size=rows), rng.normal(size=(rows, 6))
    y = np.full(rows, np.nan)
    y[:200] = (rng.random(200) < 0.5).astype(float)
    tracemalloc.start()
    found = lace_profile(z, y, signals)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(found.value) == 20
    assert peak < 120e6  # 20 × 10⁶ doubles alone would be 160 MB


def test_start_up_needs_neither_sklearn_nor_scipy_stats() -> None:
    code = (
        "import sys, numpy as np\n"
        "from pipeline.estimators import lace_profile, lace_mean, lace_gap\n"
        "rng = np.random.default_rng(0); y = (rng.random(60) < .5) * 1.; s = rng.normal(size=(60, 2)) + y[:, None]\n"
        "lab = np.arange(60) < 30\n"
        "lace_profile(rng.random(60), y, s, labeled=lab, adapt='average', learner='logistic')\n"
        "lace_mean(y, s, labeled=lab, adapt='average')\n"
        "bad = [m for m in sys.modules if m.split('.')[0] == 'sklearn' or m.startswith('scipy.stats')]\n"
        "assert not bad, bad\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
