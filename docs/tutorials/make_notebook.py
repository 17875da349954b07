"""Runs the cells of the tutorial notebook and writes them with their output: python docs/tutorials/make_notebook.py"""

from __future__ import annotations

import contextlib
import io
import json
import os
import tempfile
from pathlib import Path
from typing import Any

NOTEBOOK = Path(__file__).with_name("notebook.ipynb")

CELLS: tuple[tuple[str, str], ...] = (
    (
        "markdown",
        "# auxeval in a notebook\n\nSimulated models, no keys, no network."
        " `pipeline.run` works inside the notebook's own event loop.",
    ),
    (
        "code",
        "import pipeline\n\n"
        "result = pipeline.run(limit=60, yes=True)  # the embedded default, 60 of its items\n"
        "result.state",
    ),
    ("markdown", "Every estimate is a frozen dataclass, by target and method."),
    (
        "code",
        "for target, methods in result.estimates.items():\n"
        "    naive, lace = methods['naive'], methods['lace']\n"
        "    print(f'{target:7} naive {naive.value:.3f} ± {naive.se:.3f}   LACE {lace.value:.3f} ± {lace.se:.3f}')",
    ),
    ("markdown", "The profile along the difficulty levels, and whether the signals helped at each."),
    (
        "code",
        "profile = result.estimates['medium']['lace_profile']\n"
        "for at, value, low, high in zip(profile.at, profile.value, profile.low, profile.high):\n"
        "    print(f'level {at:.0f}: {value:.2f} [{low:.2f}, {high:.2f}]')",
    ),
    ("markdown", "The tables are polars frames."),
    ("code", "result.tables.signals.select('item_id', 'target', 'y', 'judge', 'confidence').head(3).rows()"),
    ("markdown", "The estimators work on plain arrays too."),
    (
        "code",
        "import numpy as np\nfrom pipeline.estimators import lace_mean, naive_mean\n\n"
        "rng = np.random.default_rng(0)\n"
        "truth = rng.random(1000) < 0.7\n"
        "signals = truth[:, None] + rng.normal(0, 0.6, (1000, 2))\n"
        "y = np.where(np.arange(1000) < 80, truth, np.nan)          # 80 labels\n"
        "print(round(naive_mean(y[:80]).se, 4), round(lace_mean(y, signals, adapt='average', learner=None).se, 4))",
    ),
)


def execute(source: str, namespace: dict[str, Any]) -> str:
    """Run a cell; what it prints, then the value of its last line if that is an expression."""
    lines = source.rstrip().split("\n")
    body, last = "\n".join(lines[:-1]), lines[-1]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        try:
            value_of = compile(last, "cell", "eval")
        except SyntaxError:
            exec(compile(source, "cell", "exec"), namespace)  # noqa: S102
            return printed.getvalue()
        exec(compile(body, "cell", "exec"), namespace)  # noqa: S102
        value = eval(value_of, namespace)  # noqa: S307
    return printed.getvalue() + ("" if value is None else f"{value!r}\n")


def executed_cells() -> list[dict[str, Any]]:
    """The notebook's cells with their outputs, run in an empty folder."""
    namespace: dict[str, Any] = {}
    cells: list[dict[str, Any]] = []
    here = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            for number, (kind, source) in enumerate(CELLS):
                cell: dict[str, Any] = {"id": f"cell-{number}", "cell_type": kind, "metadata": {}}
                cell["source"] = source.splitlines(keepends=True)
                if kind == "code":
                    text = execute(source, namespace)
                    output = {"output_type": "stream", "name": "stdout", "text": text.splitlines(keepends=True)}
                    cell |= {"execution_count": number, "outputs": [output] if text else []}
                cells.append(cell)
        finally:
            os.chdir(here)
    return cells


def main() -> None:
    """Write the notebook."""
    document = {
        "cells": executed_cells(),
        "metadata": {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    NOTEBOOK.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
