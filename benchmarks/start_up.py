"""CPU seconds and peak memory of starting up: the command, an estimate on 1,000 rows, imports of LiteLLM and peers.

    python benchmarks/start_up.py [--rounds 5]

Peers that are not installed are left out. Every command runs in a process of its own, the commands in turn, so that all
of them see the same machine.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
_CLI = "import sys; from pipeline.cli import main; main(sys.argv[1:])"
_USE = """
import atexit, resource, sys
def tell():
    use = resource.getrusage(resource.RUSAGE_SELF)
    peak = use.ru_maxrss / (1 << 20 if sys.platform == "darwin" else 1 << 10)
    print(use.ru_utime + use.ru_stime, peak, file=sys.stderr)
atexit.register(tell)
"""
PEERS = {
    "import inspect_ai": ("inspect_ai", "import inspect_ai"),
    "inspect --help": (
        "inspect_ai",
        "import sys; sys.argv[1:] = ['--help']; from inspect_ai._cli.main import main; main()",
    ),
    "import glide.estimators": ("glide", "import glide.estimators"),
    "import ppi_py": ("ppi_py", "import ppi_py"),
    "import doubleml": ("doubleml", "import doubleml"),
    "import evalica": ("evalica", "import evalica"),
    "import evalstats": ("evalstats", "import evalstats"),
    "import truescore": ("truescore", "import truescore"),
    "import cje": ("cje", "import cje"),
}


def write_rows(path: Path, rows: int) -> None:
    """A table of ``rows`` items with two signals, one in ten labeled."""
    rng = random.Random(0)  # not NumPy: a child's peak memory starts from its parent's
    lines = []
    for i in range(rows):
        first, second = rng.random(), rng.random()
        gold = int(rng.random() < (first + second) / 2) if i % 10 == 0 else ""
        lines.append(f"{i},{gold},{first:.6f},{second:.6f}")
    path.write_text("\n".join(["id,gold,judge,confidence", *lines]) + "\n", encoding="utf-8")


def cost(program: str, *arguments: str) -> tuple[float, float]:
    """CPU seconds and peak MB of one Python process."""
    done = subprocess.run(
        [sys.executable, "-c", _USE + program, *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
        env={**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True", "PYTHONPATH": str(ROOT)},
    )
    cpu, peak = done.stderr.split()[-2:]
    return float(cpu), float(peak)


def main() -> None:
    """Print one line per command: median CPU seconds, their range, median peak memory, what the project asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "table.csv"
        write_rows(table, 1_000)
        estimate = ("estimate", str(table), "--gold", "gold", "--signals", "judge,confidence", "--id", "id")
        cases = {
            "python -c pass": ("", (), ""),
            "auxeval --help": (_CLI, ("--help",), "<= 0.3"),
            "auxeval estimate, 1,000 rows": (_CLI, (*estimate, "--out", str(Path(folder) / "out")), "<= 4"),
            "import lace_mean": ("from pipeline.estimators import lace_mean", (), ""),
            "import litellm": ("import litellm", (), ""),
            **{name: (program, (), "") for name, (module, program) in PEERS.items() if find_spec(module) is not None},
        }
        # With compiled bytecode, as after a user's first start, whatever this machine's settings are.
        os.environ["PYTHONDONTWRITEBYTECODE"], os.environ["PYTHONPYCACHEPREFIX"] = "", str(Path(folder) / "bytecode")
        measured: dict[str, list[tuple[float, float]]] = {name: [] for name in cases}
        for counted in [False, *[True] * rounds]:
            for name, (program, arguments, _wanted) in cases.items():
                found_cost = cost(program, *arguments)
                measured[name] += [found_cost] if counted else []
    print(f"{'command':<30} {'CPU s':>7} {'from':>7} {'to':>7} {'peak MB':>8}  wanted")
    for name, found in measured.items():
        seconds = [cpu for cpu, _ in found]
        peak = statistics.median(peak for _, peak in found)
        middle = statistics.median(seconds)
        print(f"{name:<30} {middle:7.2f} {min(seconds):7.2f} {max(seconds):7.2f} {peak:8.0f}  {cases[name][2]}")


if __name__ == "__main__":
    main()
