"""Every benchmark of this folder, one after the other, into docs/benchmarks.md: python -m benchmarks [--full].

    python -m benchmarks [--quick | --full] [--only NAME ...] [--rounds 3] [--out docs/benchmarks.md]

Reduced sizes by default, about 20 minutes in all; ``--full`` takes the full sizes and the long studies too, hours in
all; ``--quick`` takes the smallest sizes once, to see that everything runs. Every script runs ``--rounds`` times as a
process of its own, with this Python: peers are compared where they are installed in it. What is written is the median
of every figure, and how far the rounds lie apart; scripts with rounds of their own run once. A script that fails says
so on the page, the others run, and the exit code is 1. Only the part of the page between the two marks is replaced.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.metadata
import os
import platform
import re
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BEGIN, END = "<!-- measured by python -m benchmarks: begin -->", "<!-- measured by python -m benchmarks: end -->"
PEERS = (
    "aiohttp", "cje-eval", "DoubleML", "evalica", "evalstats", "fewhumans", "glide-py", "inspect-ai", "litellm",
    "openai", "passk-inference", "ppi-python", "truescore",
)  # fmt: skip
OWN = ("auxeval", "numpy", "scipy", "scikit-learn", "polars", "pydantic", "diskcache")
_GSM8K = "{shared}/data/benchmarks/gsm8k_test.jsonl.gz"
_FIGURE = re.compile(r"(?<![\w.])-?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?")


@dataclass(frozen=True, slots=True)
class Case:
    """One script: its title, its arguments at three scales (None: not run at that scale), and whether it runs once.

    ``{out}`` in an argument is a scratch folder, ``{shared}`` the shared data; a case whose data are absent is skipped.
    """

    script: str
    title: str
    quick: str | None = None
    reduced: str | None = None
    full: str | None = None
    once: bool = False

    def arguments(self, scale: str) -> str | None:
        """Those of one scale."""
        found: str | None = getattr(self, scale)
        return found


CASES = (
    Case("start_up", "Start-up", "--rounds 1", "--rounds 1", "--rounds 5"),
    Case("best_of_n", "Best-of-N and pass@k", None, "--repeats 2", "--repeats 5"),
    Case("lace", "LACE against its floors and loops", None, "--repeats 2", "--repeats 7"),
    Case("peers", "Estimators against their peers", "--quick --rounds 1 --reps 2 --slow-reps 1 --rank-reps 1",
         "--rounds 5 --reps 200 --slow-reps 20", "--rounds 9 --reps 2000 --slow-reps 200 --rank-reps 100", once=True),
    Case("peers_real", "Estimators against their peers on real tables",
         "--shared {shared} --reps 2 --slow-reps 0 --budgets 20 --per-table 1",
         "--shared {shared} --reps 20 --slow-reps 0", "--shared {shared} --reps 200 --slow-reps 40", once=True),
    Case("peer_defects", "Defects of peers", "", "", "", once=True),
    Case("estimation_size", "Estimation at size", "--rows 1000 10000 --prompts 100 1000 --models 3 6",
         "--rows 100000 1000000 10000000 --plot docs/growth.svg",
         "--rows 100000 1000000 10000000 --plot docs/growth.svg", once=True),
    Case("growth", "Growth of every path of a run", "--scale quick", "--scale reduced --plot docs/growth-runs.svg",
         "--scale full --plot docs/growth-runs.svg", once=True),
    Case("collector", "Collectors side by side", "--prompts 40 --rounds 1", "--prompts 500 --rounds 3",
         "--prompts 2000 --rounds 5", once=True),
    Case("collector_overhead", "The collector alone", "--items 100", "--items 1000 5000", "--items 1000 10000 100000"),
    Case("simulated", "Simulated replies", "--calls 50", "--calls 500", "--calls 4000"),
    Case("processes", "Collection over several processes", None, "--items 30", "--items 200", once=True),
    Case("report", "The report", "--items 200", "--items 200", "--items 200 2000 20000"),
    Case("own_data", "Users' own data", "--rows 2000 --reps 4", "--rows 20000 --reps 20", "--rows 1000000 --reps 400"),
    Case("http_run", "A run over HTTP and its replay", f"{_GSM8K} --items 4 --draws 1",
         f"{_GSM8K} --items 10 --draws 2", _GSM8K),
    Case("reliability", "Faults and the soak",
         "--soak 200 --calls 0 --whole 0 --brief --rows {out}/rows --out {out}/page",
         "--soak 2000 --calls 10 --whole 2000 --transports direct --brief --rows {out}/rows --out {out}/page",
         "--out {out}/page --rows {out}/rows", once=True),
    Case("crash", "Killed runs", full="--kills 200 --budget --out {out}/crash.json", once=True),
    Case("coupling", "Coupling", full="", once=True),
    Case("coverage_embedded", "Coverage of the offline run", full="--seeds 200 --out {out}/coverage.txt", once=True),
    Case("real_data", "Real tables", full="--shared {shared} --reps 200 --out {out}/real.md --data {out}/real.jsonl.gz",
         once=True),
    Case("text_features", "Text features", full="{shared}", once=True),
)  # fmt: skip


def main(argv: list[str] | None = None) -> int:
    """Run the cases and write the page after each, so that an interrupted run keeps what it measured."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    scales = parser.add_mutually_exclusive_group()
    scales.add_argument("--quick", action="store_true", help="the smallest sizes, once, to see that everything runs")
    scales.add_argument("--full", action="store_true", help="full sizes, and the long studies")
    parser.add_argument("--only", nargs="+", default=[], help="scripts to run; the others' sections stay as they are")
    parser.add_argument("--rounds", type=int, help="rounds of every script that has none of its own (3; quick: 1)")
    parser.add_argument("--timeout", type=float, help="seconds per script and round (900; full: none)")
    parser.add_argument("--shared", type=Path, default=Path(os.environ.get("AUXEVAL_SHARED", ROOT.parent / "shared")))
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "benchmarks.md")
    given = parser.parse_args(argv)
    scale = "quick" if given.quick else "full" if given.full else "reduced"
    timeout = given.timeout or (None if given.full else 900.0)
    known = {case.script for case in CASES}
    if unknown := sorted(set(given.only) - known):
        parser.error(f"no benchmark {unknown[0]!r}; there are {', '.join(sorted(known))}")
    failed = []
    for case in CASES:
        arguments = case.arguments(scale)
        if (given.only and case.script not in given.only) or arguments is None:
            continue
        print(f"{case.script} …", file=sys.stderr, flush=True)
        rounds = 1 if case.once else given.rounds or (1 if given.quick else 3)
        section, well = measure(case, arguments, rounds, timeout, given.shared)
        write_section(given.out, case, section)
        print(section, flush=True)
        failed += [] if well else [case.script]
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def measure(case: Case, arguments: str, rounds: int, timeout: float | None, shared: Path) -> tuple[str, bool]:
    """The section of one script, and whether it ran through."""
    shown = f"python benchmarks/{case.script}.py {arguments.replace('{shared}', '../shared')}".strip()
    head = f"### {case.title}\n\n`{shown}`"
    if "{shared}" in arguments and not shared.exists():
        return f"{head}: not run, its data are not here.\n", True
    texts: list[str] = []
    before = time.monotonic()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        command = arguments.format(out=folder, shared=shared.resolve()).split()
        for _ in range(rounds):
            try:
                texts.append(run_script(case.script, command, timeout))
            except subprocess.TimeoutExpired:
                return f"{head}: **not finished** within {timeout:g} s.\n", False
            except subprocess.CalledProcessError as error:
                last = (error.stderr or "").strip().splitlines()[-1:] or [f"exit {error.returncode}"]
                return f"{head}: **failed**: {last[0][:300]}\n", False
            except OSError as error:
                return f"{head}: **failed**: {error}\n", False
    seconds = (time.monotonic() - before) / rounds
    several = f"medians of {rounds} rounds, ± half their largest range within the line"
    how = several if rounds > 1 else "run once"
    day = time.strftime("%Y-%m-%d", time.gmtime())
    load = f", load {os.getloadavg()[0]:.0f} on {os.cpu_count()} cores" if hasattr(os, "getloadavg") else ""
    return f"{head}: {how}; {seconds:.0f} s a round, {day}{load}.\n\n```\n{summarise(texts)}\n```\n", True


def run_script(script: str, arguments: list[str], timeout: float | None) -> str:
    """What a script prints on stdout."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    program = [sys.executable, str(ROOT / "benchmarks" / f"{script}.py"), *arguments]
    running = subprocess.Popen(
        program, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    )  # fmt: skip
    try:
        out, complaints = running.communicate(timeout=timeout)
    except BaseException:  # also what the script started: servers, workers
        with contextlib.suppress(ProcessLookupError):
            os.killpg(running.pid, signal.SIGKILL)
        running.wait()
        raise
    if running.returncode:
        raise subprocess.CalledProcessError(running.returncode, program, out, complaints)
    return out.rstrip()


def summarise(texts: list[str]) -> str:
    """Line by line the middle figure of all rounds; lines that differ in more than figures are those of the last."""
    split = [text.splitlines() for text in texts]
    last = split[-1]
    if len(texts) == 1 or any(len(lines) != len(last) for lines in split):
        return texts[-1]
    lines = [_middle(versions) for versions in zip(*split, strict=True)]
    width = max(len(text) for text, _ in lines)
    return "\n".join(f"{text:<{width}}{spread}".rstrip() for text, spread in lines)


def _middle(versions: tuple[str, ...]) -> tuple[str, str]:
    """One line with the medians of its figures, and the largest half range in percent of the median."""
    found = [list(_FIGURE.finditer(line)) for line in versions]
    frames = [[part.split() for part in _FIGURE.split(line)] for line in versions]
    if any(frame != frames[-1] for frame in frames):
        return versions[-1], ""
    line, spread = versions[-1], 0.0
    for place in reversed(range(len(found[-1]))):
        figures = sorted((row[place].group() for row in found), key=_number)
        middle, match = figures[(len(figures) - 1) // 2], found[-1][place]
        line = line[: match.start()] + middle.rjust(len(match.group())) + line[match.end() :]
        if _number(middle):
            half = (_number(figures[-1]) - _number(figures[0])) / 2
            spread = max(spread, abs(half / _number(middle)))
    return line, f"  ±{spread:4.0%}" if spread else ""


def _number(text: str) -> float:
    return float(text.replace(",", ""))


def write_section(page: Path, case: Case, section: str) -> None:
    """Replace one section of the measured part, in the order of the cases; everything else on the page stays."""
    text = page.read_text(encoding="utf-8") if page.exists() else "# Benchmarks\n"
    before, _, rest = text.partition(BEGIN)
    measured, _, after = rest.partition(END)
    sections = {}
    for found in re.split(r"(?m)^(?=### )", measured):
        title = found.partition("\n")[0].removeprefix("### ").strip()
        if found.startswith("### "):
            sections[title] = found.strip()
    sections[case.title] = section.strip()
    ordered = [sections[one.title] for one in CASES if one.title in sections]
    body = "\n\n".join([machine(), *ordered])
    page.write_text(f"{before.rstrip()}\n\n{BEGIN}\n{body}\n{END}\n{after.lstrip()}", encoding="utf-8")


def machine() -> str:
    """Machine, versions, and which peers are here."""
    own = ", ".join(f"{name} {_version(name)}" for name in OWN)
    here = [f"{name} {version}" for name in PEERS if (version := _version(name))]
    absent = [name for name in PEERS if not _version(name)]
    return (
        "## Speed, measured\n\n"
        "Made by `make benchmarks` (`python -m benchmarks`; `--full` for the full sizes). Other jobs may run beside it:"
        " ratios within one line travel, seconds do not.\n\n"
        f"* Machine: {os.cpu_count()} cores ({platform.machine()}{_memory()}), {platform.system()}, Python"
        f" {platform.python_version()}, one BLAS thread.\n"
        f"* Versions: {own}.\n* Peers here: {', '.join(here) or 'none'}.\n"
        f"* Peers absent here: {', '.join(absent) or 'none'} (`pip install 'auxeval[bench]'`)."
    )


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _memory() -> str:
    try:
        return f", {os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE') / 2**30:.0f} GiB"
    except (ValueError, OSError, AttributeError):
        return ""


if __name__ == "__main__":
    sys.exit(main())
