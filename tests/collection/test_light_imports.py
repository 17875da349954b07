"""What importing these rooms costs: nothing heavy before it is used."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    "module", ["pipeline.benchmark", "pipeline.benchmark.loading", "pipeline.collection.collector"]
)
def test_heavy_packages_are_not_imported(module: str) -> None:
    heavy = [
        "litellm",
        "polars",
        "jinja2",
        "math_verify",
        "sympy",
        "datasets",
        "numpy",
        "scipy",
        "sklearn",
    ]
    code = f"import sys, {module}; print([name for name in {heavy!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
