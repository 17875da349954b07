"""Kill a run with SIGKILL at random moments until it is done, again and again; count what was lost or asked twice.

    python benchmarks/crash.py --kills 200 --budget --out docs/studies/crash.json

The run goes over real HTTP to the test server, in a process of its own per session. After every session the server's
count of answers is compared with the entries of the cache: a session that ended by itself must match exactly; a killed
one may miss only what was in flight or being stored, and may have asked for nothing that was stored before.
When a run is done, its tables must equal, byte for byte, those of an undisturbed run over the same replies, without a
call of its own.

With ``--budget`` every run has a bound of money from its first session on. What the server has billed is held against
it at every answer; a run that its bound stops is carried on with a larger one. The ledger must never say less than the
server, nor more than the bound.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from dataclasses import asdict, dataclass, field
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

import yaml  # noqa: E402
from fault_server import FaultServer  # noqa: E402

from pipeline.models.cache import ReplyCache  # noqa: E402
from pipeline.models.ledger import spent_by  # noqa: E402
from pipeline.models.reading import now_utc  # noqa: E402
from pipeline.runs.directory import RunDirectory  # noqa: E402

CONCURRENCY = 4
USD_PER_TOKEN = 1e-6
ENTRIES = ("gpt", "aux", "judge", "weak", "medium", "strong", "regressor")


@dataclass
class Totals:
    """What all sessions together did."""

    kills: int = 0
    runs_done: int = 0
    answers_of_the_server: int = 0
    replies_stored: int = 0
    in_flight_or_being_stored_when_killed: int = 0
    most_of_them_at_one_kill: int = 0
    stored_replies_asked_again: int = 0
    duplicate_rows: int = 0
    tables_that_differ: int = 0
    sessions_with_another_exit: int = 0
    sessions_stopped_by_the_budget: int = 0
    answers_billed_beyond_the_budget: int = 0
    ledger_below_the_server: int = 0
    ledger_above_the_budget: int = 0
    least_share_of_a_budget_left_unused: float = 1.0
    seconds: float = 0.0
    exits: dict[str, int] = field(default_factory=dict)


class Bills:
    """What the server has billed for one run, held against the run's budget at every answer."""

    def __init__(self, server: FaultServer, budget: float | None) -> None:
        self._seen, self.budget, self.beyond = server.seen, budget, 0
        self._before = self._tokens()
        server.on_answer = self._hold

    def _tokens(self) -> int:
        return self._seen.prompt_tokens + self._seen.completion_tokens

    @property
    def usd(self) -> float:
        """Billed until now."""
        return (self._tokens() - self._before) * USD_PER_TOKEN

    def _hold(self) -> None:
        self.beyond += self.budget is not None and self.usd > self.budget


def config(url: str, items: int, budget: float | None) -> dict[str, Any]:
    """Every role on the server."""
    models = {
        name: {
            "model": f"openai/{name}",
            "api_base": url,
            "transport": "direct",
            "params": {"temperature": 0.7, "max_tokens": 512},
            "max_concurrency": CONCURRENCY,
            "price": {"input_per_million": USD_PER_TOKEN * 1e6, "output_per_million": USD_PER_TOKEN * 1e6},
        }
        for name in ENTRIES
    }
    anchors = {"weak": "weak", "medium": "medium", "strong": "strong"}
    return {
        "schema": 1,
        "name": "crash",
        "benchmark": {"preset": "embedded", "limit": items},
        "models": models,
        "roles": {
            "targets": ["gpt"],
            "auxiliary": "aux",
            "judge": "judge",
            "anchors": anchors,
            "regressor": "regressor",
        },
        "design": {"labeled": max(5, items // 2), "draws": 2},
        "budget": {"usd": budget},
    }


# Sessions are forked from a process that has everything imported: a start costs milliseconds, not seconds.
FORKS = multiprocessing.get_context("forkserver")
PRELOAD = (
    "aiohttp", "diskcache", "jinja2", "numpy", "polars", "pydantic", "rich.console", "scipy.special", "scipy.linalg",
    "sklearn.linear_model", "tenacity", "pipeline.cli", "pipeline.runs.interface", "pipeline.models.gateway",
    "pipeline.models.direct_transport", "pipeline.collection.collector", "pipeline.tables.store", "pipeline.report",
)  # fmt: skip


def session(folder: str, arguments: list[str]) -> None:
    """One ``auxeval`` command in a forked process."""
    os.chdir(folder)
    os.environ["AUXEVAL_CACHE_DIR"] = f"{folder}/cache"
    log = os.open("stderr.txt", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(log, 1)
    os.dup2(log, 2)
    from pipeline.cli import main as auxeval

    sys.argv = ["auxeval", *arguments]
    auxeval()


def start(folder: Path, *arguments: str) -> BaseProcess:
    """Start one session."""
    process = FORKS.Process(target=session, args=(str(folder), list(arguments)))
    process.start()
    return process


def stored(folder: Path) -> set[str]:
    """Keys of the cache's entries."""
    with ReplyCache(folder / "cache") as cache:
        return {entry.key for entry in cache.entries()}


def answered_since(run: Path, began: str) -> set[str]:
    """Keys of the calls that the run's log has as answered by a provider since ``began``."""
    log = run / "calls.jsonl"
    if not log.exists():
        return set()
    whole = log.read_bytes().rpartition(b"\n")[0].splitlines()
    lines = map(json.loads, whole)
    return {line["key"] for line in lines if line["state"] == "answered" and line["at"] >= began}


def settle(server: FaultServer) -> None:
    """Wait until the server has noticed that its client is gone."""
    deadline = time.monotonic() + 10
    while server.seen.in_flight and time.monotonic() < deadline:
        time.sleep(0.005)


def kill_at_random(process: BaseProcess, server: FaultServer, rng: random.Random) -> bool:
    """Kill after a random number of answers, or after a random time; whether it was still running."""
    if rng.random() < 0.85:
        target = server.seen.answered + rng.randrange(0, 60)
        while server.seen.answered < target and process.exitcode is None:
            time.sleep(0.002)
        time.sleep(rng.uniform(0, 0.02))
    else:
        limit = time.monotonic() + rng.uniform(0.0, 6.0)
        while time.monotonic() < limit and process.exitcode is None:
            time.sleep(0.005)
    alive = process.exitcode is None
    if alive:
        process.kill()
    process.join()
    return alive and process.exitcode == -signal.SIGKILL


def hold_the_ledger(folder: Path, run: Path, bills: Bills, totals: Totals) -> None:
    """The run's own account against the server's and the budget; the run is not being asked for."""
    name = RunDirectory(run).ledger_name
    spent = spent_by(folder / "cache", name) if name is not None else None
    if spent is None or bills.budget is None:
        return
    counted = spent.usd + spent.possible_usd
    totals.ledger_below_the_server += counted < bills.usd - 1e-12
    totals.ledger_above_the_budget += counted > bills.budget + 1e-12


def one_run(
    server: FaultServer, totals: Totals, rng: random.Random, kills: int, items: int, *, bounded: bool = False
) -> None:
    """One run, killed until it is done or the kills are used up, then finished and compared."""
    folder = Path(tempfile.mkdtemp(prefix="auxeval-crash-"))
    bills = Bills(server, rng.uniform(0.01, 0.04) if bounded else None)
    (folder / "config.yaml").write_text(yaml.safe_dump(config(server.url, items, bills.budget)), encoding="utf-8")
    run = folder / "runs" / "r"
    exits: Counter[str] = Counter()
    done = False
    while not done:
        before_answers = server.seen.answered
        known = stored(folder)
        began = now_utc()
        fresh = not (run / "manifest.json").exists()
        if fresh and run.exists():
            shutil.rmtree(run)
        arguments = ["run", "config.yaml", "--yes", "--run-id", "r"] if fresh else ["resume", "runs/r"]
        if bills.budget is not None:
            arguments += ["--budget-usd", repr(bills.budget)]
        process = start(folder, *arguments)
        if totals.kills < kills:
            killed = kill_at_random(process, server, rng)
        else:
            process.join()
            killed = False
        settle(server)
        hold_the_ledger(folder, run, bills, totals)
        answers, kept = server.seen.answered - before_answers, len(stored(folder)) - len(known)
        lost = answers - kept
        totals.answers_of_the_server += answers
        totals.replies_stored += kept
        if killed:
            totals.kills += 1
            totals.in_flight_or_being_stored_when_killed += max(0, lost)
            totals.most_of_them_at_one_kill = max(totals.most_of_them_at_one_kill, lost)
            totals.stored_replies_asked_again += len(known & answered_since(run, began))
        else:
            exits[str(process.exitcode)] += 1
            totals.stored_replies_asked_again += max(0, lost)
            done = process.exitcode == 0
            if process.exitcode == 3 and bills.budget is not None:
                totals.sessions_stopped_by_the_budget += 1
                left = 1 - bills.usd / bills.budget
                totals.least_share_of_a_budget_left_unused = round(
                    min(totals.least_share_of_a_budget_left_unused, left), 6
                )
                bills.budget += rng.uniform(0.01, 0.04)
            elif not done:
                totals.sessions_with_another_exit += 1
                raise SystemExit(f"exit {process.exitcode}: see {folder / 'stderr.txt'}")
    totals.answers_billed_beyond_the_budget += bills.beyond
    server.on_answer = None
    compare(server, totals, folder, run)
    totals.runs_done += 1
    for code, count in exits.items():
        totals.exits[code] = totals.exits.get(code, 0) + count
    shutil.rmtree(folder, ignore_errors=True)


def compare(server: FaultServer, totals: Totals, folder: Path, run: Path) -> None:
    """The finished run against an undisturbed one over the same replies."""
    before = server.seen.answered
    process = start(folder, "run", "config.yaml", "--yes", "--run-id", "undisturbed", "--budget-usd", "100")
    process.join()
    if process.exitcode != 0:
        raise SystemExit(f"the undisturbed run failed: see {folder / 'stderr.txt'}")
    totals.stored_replies_asked_again += server.seen.answered - before
    other = folder / "runs" / "undisturbed"
    for file in [*sorted((run / "tables").glob("*.parquet")), run / "estimates.json"]:
        twin = other / file.relative_to(run)
        totals.tables_that_differ += file.read_bytes() != twin.read_bytes()
    lines = [json.loads(line) for line in (run / "calls.jsonl").read_text(encoding="ascii").splitlines()]
    keys = Counter(line["key"] for line in lines if line["state"] == "answered")
    totals.duplicate_rows += sum(count - 1 for count in keys.values())


def main() -> None:
    """Run, print the totals, keep them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--items", type=int, default=30)
    parser.add_argument("--budget", action="store_true", help="with a bound of money in force")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    totals = Totals()
    began = time.monotonic()
    FORKS.set_forkserver_preload(list(PRELOAD))
    with FaultServer(latency_s=0.03) as server:
        while totals.kills < options.kills:
            one_run(server, totals, rng, options.kills, options.items, bounded=options.budget)
            totals.seconds = round(time.monotonic() - began, 1)
            print(json.dumps(asdict(totals)), flush=True)
            if options.out:
                options.out.parent.mkdir(parents=True, exist_ok=True)
                options.out.write_text(json.dumps(asdict(totals), indent=1) + "\n", encoding="ascii")
    bad = totals.stored_replies_asked_again + totals.duplicate_rows + totals.tables_that_differ
    bad += totals.answers_billed_beyond_the_budget + totals.ledger_below_the_server + totals.ledger_above_the_budget
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
