"""What signals buy on every real table: run each through `auxeval estimate`, hide labels, measure error and coverage.

python benchmarks/real_data.py --reps 100 --out docs/real-data.md
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.real_tables import RealTable, real_tables
from pipeline.evaluation.evaluate import evaluate
from pipeline.evaluation.pool import Pool, TargetPool
from pipeline.evaluation.rehearsal import BUDGETS, Rehearsed, rehearse_target
from pipeline.evaluation.table_pool import read_pool

SHORT = 0.88
"""Coverage below this is counted as short: .95 less 4.5 Monte Carlo standard errors of 200 rehearsals."""
LABELS = 100
"""Labels left visible when a table goes through ``auxeval estimate`` once."""


TAKEAWAY = (
    "What pays: the share of other models with the same answer (gsm8k_outcomes), several samples and token",
    "probabilities of one model (cotuq), panels of judges (llmbar, asset_ratings), a judge that saw the reference",
    "answer (openqa_sciq, judge) and, less, one that did not (mtbench_human, pandalm_testset, civilcomments). What",
    "pays little: the softmax probability of a multiple-choice answer, lengths. What pays nothing: verbal confidence,",
    "position-bound verdicts. The gold of alpacaeval_prefs and cje_arena_policies is a stronger model, not a person.",
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """One table: its size, one pass of `estimate` with 100 labels a target, and its rehearsals."""

    name: str
    control: bool
    rows: int
    targets: int
    signals: int
    seconds: float
    warnings: tuple[str, ...]
    verdicts: tuple[str, ...]
    rehearsed: tuple[Rehearsed, ...]

    def ratios(self, budget: int) -> list[float]:
        """Efficiency of LACE against the plain mean, target by target."""
        return [r.efficiency for r in self.rehearsed if r.method == "lace" and r.labels == budget]

    def coverage(self, method: str, budget: int) -> list[float]:
        """Coverage, target by target."""
        return [r.coverage for r in self.rehearsed if r.method == method and r.labels == budget]


def measure(table: RealTable, folder: Path, reps: int, scratch: Path, seed: int = 0) -> Outcome:
    """One table through reading, estimating and rehearsing."""
    path = scratch / "table.csv"
    frame = table.build(folder)
    frame.write_csv(path)
    inputs = read_pool(path, table.roles)
    started = time.process_time()
    estimates = evaluate(_masked(inputs, seed))
    seconds = time.process_time() - started
    verdicts = [str(methods["lace"].diagnostics["verdict"]) for methods in estimates.values() if "lace" in methods]
    rehearsed = [row for target in inputs.targets for row in rehearse_target(target, reps, seed=seed)]
    codes = sorted({warning.code for warning in estimates.warnings})
    return Outcome(
        table.name, table.control, frame.height, len(inputs.targets), len(table.roles.signals), seconds, tuple(codes),
        tuple(verdicts), tuple(rehearsed),
    )  # fmt: skip


def _masked(inputs: Pool, seed: int) -> Pool:
    """The same table with at most 100 labels a target."""
    return replace(inputs, targets=tuple(_few(target, seed) for target in inputs.targets))


def _few(target: TargetPool, seed: int) -> TargetPool:
    rows = np.flatnonzero(target.labeled)
    keep = np.random.default_rng(seed).choice(rows, min(LABELS, max(len(rows) // 2, 2)), replace=False)
    labeled = np.zeros(len(target.y), dtype=bool)
    labeled[keep] = True
    return replace(target, labeled=labeled, y=np.where(labeled, target.y, np.nan))


def _geometric(values: Sequence[float]) -> float:
    return math.exp(float(np.mean(np.log(values)))) if values else math.nan


def _cell(values: Sequence[float]) -> str:
    return f"{_geometric(values):.2f} [{min(values):.2f}]" if values else "–"


def _covered(values: Sequence[float]) -> str:
    return f"{100 * float(np.mean(values)):.1f}" if values else "–"


def _table(outcomes: Sequence[Outcome]) -> list[str]:
    head = "| table | rows | targets | signals | n = 20 | 50 | 100 | 200 | coverage, n = 50 | n = 200 | said |"
    lines = [head, "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- |"]
    for o in outcomes:
        cells = " | ".join(_cell(o.ratios(budget)) for budget in BUDGETS)
        said = ", ".join(f"{o.verdicts.count(v)} {v}" for v in ("help", "neutral", "hurt") if v in o.verdicts)
        covered = f"{_covered(o.coverage('lace', 50))} | {_covered(o.coverage('lace', 200))}"
        lines.append(f"| {o.name} | {o.rows} | {o.targets} | {o.signals} | {cells} | {covered} | {said} |")
    return lines


def _overall(outcomes: Sequence[Outcome], budget: int) -> str:
    chosen = [o for o in outcomes if not o.control and o.ratios(budget)]
    ratios = [ratio for o in chosen for ratio in o.ratios(budget)]
    tables = _geometric([_geometric(o.ratios(budget)) for o in chosen])
    below = sum(ratio < 1.0 for ratio in ratios)
    covered = [c for o in chosen for c in o.coverage("lace", budget)]
    return (
        f"| {budget} | {len(chosen)} | {len(ratios)} | {tables:.2f} | {min(ratios):.2f} | {below} | "
        f"{100 * float(np.mean(covered)):.1f} | {100 * min(covered):.0f} |"
    )


def report(outcomes: Sequence[Outcome], reps: int, command: str) -> str:
    """The page docs/real-data.md."""
    useful, controls = [o for o in outcomes if not o.control], [o for o in outcomes if o.control]
    slowest = max(outcomes, key=lambda o: o.seconds)
    lines = [
        "# Real tables",
        "",
        "Every table has gold for (nearly) all of its rows. It is read from CSV by the code of `auxeval estimate`;",
        f"then the rehearsal (`--rehearse {reps}`) hides all but n labels at random, {reps} times per target and n,",
        "and compares the estimates with the mean of all labels. The numbers are the efficiency of LACE against the",
        "plain mean, MSE over MSE: 2.00 means that the signals did the work of as many labels again. Of a table with",
        "several targets (models, aspects, policies) the geometric mean is shown, and the worst target in brackets.",
        "Coverage is that of the 95 % interval of LACE, in percent. The last column is what one run with 100 labels a",
        "target said of the signals.",
        "",
        f"Made by `{command}`. With {reps} rehearsals one ratio has a relative standard error of at most "
        f"{100 * math.sqrt(4 / reps):.0f} %, less where the two errors go together.",
        "",
        "## All of them",
        "",
        "| n | tables | targets | efficiency, mean of tables | worst target | targets below 1 | coverage | worst |",
        "| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
        *(_overall(outcomes, budget) for budget in BUDGETS),
        "",
        *_short(useful),
        "",
        *TAKEAWAY,
        "",
        "## Table by table",
        "",
        *_table(useful),
        "",
        "## Negative controls",
        "",
        "Signals of which little or nothing is expected: shuffled columns, lengths, verbal confidence, a judge that",
        "goes by position. The estimate must not get worse for looking at them.",
        "",
        *_table(controls),
        "",
        f"One pass of `estimate` with 100 labels a target took {slowest.seconds:.1f} s of CPU at most ({slowest.name}, "
        f"{slowest.rows} rows, {slowest.targets} targets, all pairs of gaps).",
        "",
    ]
    return "\n".join(lines)


def _short(outcomes: Sequence[Outcome]) -> list[str]:
    """Where intervals are too short, and whether the plain mean's are too."""
    rows = [(o.name, r) for o in outcomes for r in o.rehearsed if r.labels >= 50]
    plain = {(name, r.target, r.labels): r.coverage for name, r in rows if r.method == "naive"}
    short = [(name, r) for name, r in rows if r.method == "lace" and r.coverage < SHORT]
    shared = [1 for name, r in short if plain[name, r.target, r.labels] < SHORT + 0.02]
    tables = ", ".join(sorted({name for name, _ in short})) or "none"
    total = sum(r.method == "lace" for _, r in rows)
    return [
        f"From 50 labels on, {len(short)} of {total} pairs of a target and a budget have a coverage below",
        f"{100 * SHORT:.0f} %, all in: {tables}. In {len(shared)} of them the plain mean has it too: outcomes that are",
        "almost always 0 and rarely large, so that most draws of 50 labels see nothing of the tail. `auxeval estimate`",
        "warns where the labels show it (`skewed_gold`); more labels are the only cure.",
    ]


def save(outcomes: Sequence[Outcome], path: Path) -> None:
    """Everything that was measured, one table a line."""
    with gzip.GzipFile(path, "wb", mtime=0) as file:
        for outcome in outcomes:
            file.write((json.dumps(asdict(outcome)) + "\n").encode())


def saved(path: Path) -> list[Outcome]:
    """What ``save`` wrote."""
    outcomes = []
    with gzip.open(path, "rt", encoding="utf-8") as text:
        for values in map(json.loads, text):
            rehearsed = tuple(Rehearsed(**row) for row in values.pop("rehearsed"))
            lists: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in values.items()}
            outcomes.append(Outcome(**lists, rehearsed=rehearsed))
    return outcomes


def main() -> None:
    """Measure, or read what was measured, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--shared", type=Path, default=Path(os.environ.get("AUXEVAL_SHARED", "../shared")))
    parser.add_argument("--reps", type=int, default=200)
    parser.add_argument("--only", default="", help="tables whose name contains this")
    parser.add_argument("--out", type=Path, default=Path("docs/real-data.md"))
    parser.add_argument("--data", type=Path, default=Path("docs/studies/real-data.jsonl.gz"), help="what was measured")
    parser.add_argument("--saved", type=Path, help="measure nothing: write the page from this")
    given = parser.parse_args()
    outcomes = saved(given.saved) if given.saved else _measured(given)
    reps = max(row.reps for outcome in outcomes for row in outcome.rehearsed)
    given.out.write_text(report(outcomes, reps, f"python benchmarks/real_data.py --reps {reps}"))


def _measured(given: argparse.Namespace) -> list[Outcome]:
    outcomes = []
    with tempfile.TemporaryDirectory() as scratch:
        for table in real_tables(given.shared):
            if given.only in table.name:
                outcomes.append(measure(table, given.shared, given.reps, Path(scratch)))
                print(f"{table.name}: {_cell(outcomes[-1].ratios(100))} at n = 100", file=sys.stderr, flush=True)
    save(outcomes, given.data)
    return outcomes


if __name__ == "__main__":
    main()
