"""Every benchmark of this folder, one after the other, into docs/benchmarks.md: python -m benchmarks [--full].

    python -m benchmarks [--full] [--only NAME ...] [--rounds 3] [--out docs/benchmarks.md]

Reduced sizes by default, minutes in all; ``--full`` takes the full sizes and the long studies too, hours in all. Every
script runs ``--rounds`` times as a process of its own; what is written is the median of every figure, and how far the
rounds lie apart. Only the part of the page between the two marks is replaced.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BEGIN, END = "<!-- measured by python -m benchmarks: begin -->", "<!-- measured by python -m benchmarks: end -->"
PEERS = (
    "aiohttp", "cje-eval", "DoubleML", "evalica", "glide-py", "inspect-ai", "litellm", "openai",
    "passk-inference", "ppi-python",
)  # fmt: skip
OWN = ("auxeval", "numpy", "scipy", "scikit-learn", "polars", "pydantic", "diskcache")
_GSM8K = "{shared}/data/benchmarks/gsm8k_test.jsonl.gz"
_FIGURE = re.compile(r"(?<![\w.])-?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?")


@dataclass(frozen=True, slots=True)
class Case:
    """One script: its title, its arguments reduced and in full, and whether it runs in full only.

    ``{out}`` in an argument is a scratch folder, ``{shared}`` the shared data; a case whose data are absent is skipped.
    """

    script: str
    title: str
    reduced: str = ""
    full: str = ""
    long: bool = False
    once: bool = False


CASES = (
    Case("start_up", "Start-up", "--rounds 1", "--rounds 5"),
    Case("best_of_n", "Best-of-N and pass@k", "--repeats 2", "--repeats 5"),
    Case("lace", "LACE against its floors, loops and MultiPPI", "--repeats 2", "--repeats 7"),
    Case("estimation_size", "Estimation at size", "--rows 100000 1000000",
         "--rows 100000 1000000 10000000 --plot docs/growth.svg", once=True),
    Case("collector", "Collectors side by side", "--prompts 500 --rounds 1", "--prompts 2000 --rounds 3"),
    Case("collector_overhead", "The collector alone", "--items 1000 5000", "--items 1000 10000 100000"),
    Case("simulated", "Simulated replies", "--calls 500", "--calls 4000"),
    Case("processes", "Collection over several processes", "--items 30", "--items 200", once=True),
    Case("report", "The report", "--items 200", "--items 200 2000 20000", once=True),
    Case("own_data", "Users' own data", "--rows 20000 --reps 20", "--rows 1000000 --reps 400", once=True),
    Case("http_run", "A run over HTTP and its replay", f"{_GSM8K} --items 10 --draws 2", _GSM8K, once=True),
    Case("reliability", "Faults and the soak", full="--out {out}/reliability.md", long=True, once=True),
    Case("crash", "Killed runs", full="--kills 200 --out {out}/crash.json", long=True, once=True),
    Case("coupling", "Coupling", long=True, once=True),
    Case("coverage_embedded", "Coverage of the offline run", full="--seeds 200 --out {out}/coverage.txt", long=True,
         once=True),
    Case("real_data", "Real tables", full="--shared {shared} --reps 200 --out {out}/real.md --data {out}/real.jsonl.gz",
         long=True, once=True),
    Case("text_features", "Text features", full="{shared}", long=True, once=True),
)  # fmt: skip


def main() -> None:
    """Run the cases and write the page after each, so that an interrupted run keeps what it measured."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--full", action="store_true", help="full sizes, and the long studies")
    parser.add_argument("--only", nargs="+", default=[], help="scripts to run; the others' sections stay as they are")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--timeout", type=float, help="seconds per script and round (900; full: none)")
    parser.add_argument("--shared", type=Path, default=Path(os.environ.get("AUXEVAL_SHARED", ROOT.parent / "shared")))
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "benchmarks.md")
    given = parser.parse_args()
    timeout = given.timeout or (None if given.full else 900.0)
    known = {case.script for case in CASES}
    if unknown := sorted(set(given.only) - known):
        parser.error(f"no benchmark {unknown[0]!r}; there are {', '.join(sorted(known))}")
    for case in CASES:
        wanted = case.script in given.only if given.only else given.full or not case.long
        if not wanted or not (ROOT / "benchmarks" / f"{case.script}.py").exists():
            continue
        print(f"{case.script} …", file=sys.stderr, flush=True)
        section = measure(case, given.full, 1 if case.once else given.rounds, timeout, given.shared)
        write_section(given.out, case, section)
        print(section, flush=True)


def measure(case: Case, full: bool, rounds: int, timeout: float | None, shared: Path) -> str:
    """The section of one script."""
    arguments = case.full if full else case.reduced
    shown = f"python benchmarks/{case.script}.py {arguments.replace('{shared}', '../shared')}".strip()
    head = f"### {case.title}\n\n`{shown}`"
    if "{shared}" in arguments and not shared.exists():
        return f"{head}: not run, its data are not here.\n"
    texts: list[str] = []
    before = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        command = arguments.format(out=folder, shared=shared).split()
        for _ in range(rounds):
            try:
                texts.append(run_script(case.script, command, timeout))
            except subprocess.TimeoutExpired:
                return f"{head}: not finished within {timeout:g} s.\n"
            except subprocess.CalledProcessError as error:
                last = (error.stderr or "").strip().splitlines()[-1:] or [f"exit {error.returncode}"]
                return f"{head}: failed: {last[0]}\n"
    seconds = (time.monotonic() - before) / rounds
    how = "one round" if rounds == 1 else f"medians of {rounds} rounds, ± half their largest range within the line"
    day = time.strftime("%Y-%m-%d", time.gmtime())
    load = f", load {os.getloadavg()[0]:.0f} on {os.cpu_count()} cores" if hasattr(os, "getloadavg") else ""
    return f"{head}: {how}; {seconds:.0f} s a round, {day}{load}.\n\n```\n{summarise(texts)}\n```\n"


def run_script(script: str, arguments: list[str], timeout: float | None) -> str:
    """What a script prints on stdout."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    program = [sys.executable, str(ROOT / "benchmarks" / f"{script}.py"), *arguments]
    done = subprocess.run(
        program, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=timeout, check=True
    )
    return done.stdout.rstrip()


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
    main()
