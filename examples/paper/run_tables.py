"""Run the papers' real-data designs and print their tables.

One-step (table*): GT, naive, one-step, improvement, SE, λ. LACE (lace-*): relative efficiency of every method on one
benchmark, with all ablations; several finished runs together: auxeval study lace-real RUN RUN ….

    python examples/paper/run_tables.py --simulated                    every design, offline, at reduced size
    python examples/paper/run_tables.py --simulated table2-config1     one of them
    python examples/paper/run_tables.py table1-config2                 the real one: needs keys, and costs money

With --simulated every model entry keeps its name and answers by the project's simulated models. Gold answers come from
the benchmark that the run loads: --benchmark FILE (a local copy of the design's benchmark), else the hub's; where it
cannot be had, the embedded problems stand in and the table says so.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pipeline
from pipeline.benchmark.items import load_benchmark
from pipeline.config import RunConfig, load_config, parse_config
from pipeline.errors import InputError
from pipeline.estimators import Estimate, exact_match, kendall_tau
from pipeline.studies.registry import StudyOptions, load_study
from pipeline.studies.results import StudyResult
from pipeline.studies.runner import run_study

FOLDER = Path(__file__).resolve().parent
REDUCED = {"limit": 32, "labeled": 12, "draws": 3, "answers": 4}
LACE_LEAST, LACE_REPS = 120, 5
"""Items and splits of a reduced LACE design: its smallest budget is 50 labels."""


@dataclass(frozen=True)
class Line:
    """One model's line; numbers are shares, None where the design has no such number."""

    model: str
    truth: float | None
    naive: Estimate
    one_step: Estimate | None
    tuned: Estimate | None
    repeated: Estimate | None


@dataclass(frozen=True)
class Table:
    """A finished design."""

    name: str
    about: str
    lines: tuple[Line, ...]


def design(name: str, options: argparse.Namespace) -> tuple[RunConfig, str]:
    """The configuration to run, and what the table must say about it."""
    file = FOLDER / f"{name}.yaml"
    data = load_config(file).canonical()
    notes = []
    if options.benchmark is not None:
        data["benchmark"]["path"] = str(options.benchmark.resolve())
    elif options.simulated:  # no network
        notes.append(f"embedded problems instead of {data['benchmark']['preset']}")
        data["benchmark"] = {"preset": "embedded"}
    if options.simulated:
        notes.append("simulated models")
        for entry in data["models"].values():
            entry["transport"] = "simulated"
    if not options.full and options.simulated:
        data["benchmark"] |= {"limit": options.limit}
        data["benchmark"].pop("sample", None)
        part = {"labeled": options.labeled, "draws": options.draws, "answers": REDUCED["answers"]}
        for key, value in part.items():
            if isinstance(data["design"][key], int):
                data["design"][key] = min(data["design"][key], value)
        size = f"{options.limit} items, N = {data['design']['labeled']}, M = {data['design']['draws']}"
        answers = data["design"]["answers"]
        notes.append(f"reduced to {size}" + (f", {answers} answers an item" if answers > 1 else ""))
    data["design"]["coupling"] = options.coupling or data["design"]["coupling"]
    notes.append(f"coupling {data['design']['coupling']}")
    return parse_config(data, source=str(file)), ", ".join(notes)


def run_design(name: str, options: argparse.Namespace) -> Table:
    """Collect and estimate one design."""
    config, about = design(name, options)
    try:
        load_benchmark(config.benchmark, config.seed)
    except InputError as error:
        if options.benchmark is not None:
            raise
        print(f"{name}: {error}; the embedded problems stand in", file=sys.stderr)
        about = f"embedded problems instead of {config.benchmark.preset}, {about}"
        config = parse_config({**config.canonical(), "benchmark": {"preset": "embedded"}}, source=name)
    result = pipeline.run(config, runs_dir=options.runs_dir, yes=options.yes or options.simulated, quiet=True)
    lines = [_line(target, result.estimates[target]) for target in config.roles.targets]
    lines.sort(key=lambda line: -(line.truth if line.truth is not None else line.naive.value))
    return Table(name, about, tuple(lines))


def run_lace(name: str, options: argparse.Namespace) -> StudyResult:
    """Collect one LACE design, then the protocol of section 5.3 on the run."""
    reduced = options.simulated and not options.full
    sizes = {"limit": max(options.limit, LACE_LEAST), "labeled": max(options.labeled, 50)} if reduced else {}
    config, about = design(name, argparse.Namespace(**{**vars(options), **sizes}))
    result = pipeline.run(config, runs_dir=options.runs_dir, yes=options.yes or options.simulated, quiet=True)
    chosen = StudyOptions(reps=LACE_REPS if reduced else None, table=result.path)
    return replace(run_study(load_study("lace-real"), chosen), command=f"run_tables.py {name} ({about})")


def _line(target: str, estimates: Any) -> Line:
    truth = estimates.get("gold_all")
    return Line(
        model=target,
        truth=None if truth is None else truth.value,
        naive=estimates["naive"],
        one_step=estimates.get("one_step_paper"),
        tuned=estimates.get("one_step"),
        repeated=estimates.get("repeated_decoding"),
    )


def _percent(value: float | None, sign: bool = False) -> str:
    if value is None or not math.isfinite(value):
        return "–"
    return f"{100 * value:{'+' if sign else ''}.2f}"


def improvement(line: Line, estimate: Estimate | None) -> float | None:
    """|naive − GT| − |estimate − GT|; None without GT or estimate."""
    if estimate is None or line.truth is None:
        return None
    return abs(line.naive.value - line.truth) - abs(estimate.value - line.truth)


def to_text(table: Table) -> str:
    """The paper's columns, then SE and λ; the one-step columns twice, with λ = 1 and with the fitted λ."""
    head: tuple[str, ...]
    if table.lines[0].repeated is not None:
        head = ("Model", "GT%", "Naive%", "SE", "Repeated%", "Gap to GT", "SE")
        rows = [_repeated_row(line) for line in table.lines]
    else:
        head = ("Model", "GT%", "Naive%", "SE", "One-step%", "Improv.", "SE", "Fitted λ%", "Improv.", "SE", "λ")
        rows = [_one_step_row(line) for line in table.lines]
    widths = [max(len(row[column]) for row in (head, *rows)) for column in range(len(head))]
    text = [
        "  ".join(
            cell.ljust(width) if k == 0 else cell.rjust(width)
            for k, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in (head, *rows)
    ]
    return "\n".join([f"{table.name} ({table.about})", *text, *_ranking(table.lines)])


def _one_step_row(line: Line) -> tuple[str, ...]:
    paper, tuned = line.one_step, line.tuned
    return (
        line.model,
        _percent(line.truth),
        _percent(line.naive.value),
        _percent(line.naive.se),
        _percent(paper.value if paper else None),
        _percent(improvement(line, paper), sign=True),
        _percent(paper.se if paper else None),
        _percent(tuned.value if tuned else None),
        _percent(improvement(line, tuned), sign=True),
        _percent(tuned.se if tuned else None),
        f"{tuned.diagnostics['power']:.2f}" if tuned else "–",
    )


def _repeated_row(line: Line) -> tuple[str, ...]:
    assert line.repeated is not None
    gap = None if line.truth is None else abs(line.repeated.value - line.truth)
    return (
        line.model,
        _percent(line.truth),
        _percent(line.naive.value),
        _percent(line.naive.se),
        _percent(line.repeated.value),
        _percent(gap),
        _percent(line.repeated.se),
    )


def _ranking(lines: Sequence[Line]) -> list[str]:
    """How far each estimate's ranking agrees with the full benchmark's."""
    truth = [line.truth for line in lines if line.truth is not None]
    if len(truth) < max(len(lines), 2):
        return []
    found = {"naive": [line.naive.value for line in lines]}
    for name, values in (
        ("one-step", [line.one_step for line in lines]),
        ("fitted λ", [line.tuned for line in lines]),
        ("repeated", [line.repeated for line in lines]),
    ):
        if all(value is not None for value in values):
            found[name] = [value.value for value in values if value is not None]
    parts = [
        f"{name} {float(kendall_tau(values, truth)):.2f}{' (exact)' if exact_match(values, truth) else ''}"
        for name, values in found.items()
    ]
    return [f"Kendall's τ with the ranking by GT: {', '.join(parts)}"]


def sizes_compared(small: Table, large: Table) -> str:
    """Table 9: the same design at N = 100 and N = 200."""
    before = {line.model: line for line in small.lines}
    rows = ["  ".join(("Model".ljust(24), "    GT%", "smaller N%", "larger N%", "Improv."))]
    for line in large.lines:
        first = before[line.model].one_step
        if line.one_step is None or first is None or line.truth is None:
            continue
        gain = abs(first.value - line.truth) - abs(line.one_step.value - line.truth)
        cells = (_percent(line.truth).rjust(7), _percent(first.value).rjust(10), _percent(line.one_step.value).rjust(9))
        rows.append("  ".join((line.model.ljust(24), *cells, _percent(gain, sign=True).rjust(7))))
    return "\n".join([f"{small.name} against {large.name}, one-step with λ = 1", *rows])


def main(arguments: Sequence[str] | None = None) -> list[Table]:
    """Run the designs asked for and print their tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("designs", nargs="*", help="names of configurations in this folder (default: all)")
    parser.add_argument("--simulated", action="store_true", help="simulated models instead of providers")
    parser.add_argument("--full", action="store_true", help="with --simulated: the design's own sizes")
    parser.add_argument("--benchmark", type=Path, help="a local copy of the design's benchmark")
    parser.add_argument("--coupling", choices=("independent", "episode"), help="instead of the design's own")
    parser.add_argument("--limit", type=int, default=REDUCED["limit"])
    parser.add_argument("--labeled", type=int, default=REDUCED["labeled"])
    parser.add_argument("--draws", type=int, default=REDUCED["draws"])
    parser.add_argument("--runs-dir", type=Path, default=Path("runs"))
    parser.add_argument("--yes", action="store_true", help="do not ask before spending")
    options = parser.parse_args(arguments)
    known = sorted(file.stem for file in FOLDER.glob("*.yaml"))
    unknown = set(options.designs) - set(known)
    if unknown:
        parser.error(f"unknown design {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    tables = {}
    for name in options.designs or known:
        if name.startswith("lace-"):
            print(run_lace(name, options).to_text(), end="\n\n", flush=True)
            continue
        doubled = replace_sizes(options, name)
        tables[name] = run_design(name, doubled)
        print(to_text(tables[name]), end="\n\n", flush=True)
    for config in ("config1", "config2"):
        small, large = tables.get(f"table3-{config}"), tables.get(f"table9-{config}")
        if small is not None and large is not None:
            print(sizes_compared(small, large), end="\n\n")
    return list(tables.values())


def replace_sizes(options: argparse.Namespace, name: str) -> argparse.Namespace:
    """Table 9 labels twice as many items as Table 3, at reduced size as well."""
    if not name.startswith("table9"):
        return options
    return argparse.Namespace(**{**vars(options), "labeled": 2 * options.labeled})


if __name__ == "__main__":
    try:
        main()
    except InputError as error:
        sys.exit(f"run_tables: {error}")
