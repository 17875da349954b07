"""The fault matrix and the soak: every fault against the gateway over real HTTP, written to docs/reliability.md.

    python benchmarks/reliability.py [--calls 60] [--soak 20000] [--whole 20000] [--out docs/reliability.md]

``--calls 0``, ``--soak 0`` or ``--whole 0`` takes that part from the rows kept by an earlier run (``--rows``).

Per fault and transport: a first pass asks every call while the server commits the fault; then the server is mended and
a second pass, as ``auxeval resume`` makes it, asks them all again. Lost are calls without a stored reply at the end;
repeated are requests for a reply that was stored already.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from fault_server import FaultServer  # noqa: E402

from pipeline.models import Budget, Gateway, ModelSpec, ReplyCache, RunStopped  # noqa: E402
from pipeline.models.types import Answered, CallLabel, CallRecord, Failed, ReplySchema  # noqa: E402

HURRY = 50.0
"""Back-off waits are this much shorter in the matrix; nothing else is."""

ANOTHER_FORM = "asked in another form"
SCHEMA = ReplySchema("score", {"type": "object", "properties": {"score": {"type": "number"}}})


@dataclass(frozen=True)
class Case:
    """One row of the matrix."""

    title: str
    fault: str
    options: dict[str, Any]
    rate: float = 0.3
    expect: str = "tried again"
    schema: bool = False


CASES = (
    Case("429, Retry-After in seconds", "rate_limit", {"seconds": 1}, 0.05),
    Case("429, Retry-After as a date", "rate_limit", {"seconds": 1, "form": "date"}, 0.05),
    Case("429, retry-after-ms", "rate_limit", {"seconds": 0.3, "form": "ms"}, 0.1),
    Case("429, reset headers only", "rate_limit", {"seconds": 0.3, "form": "reset"}, 0.1),
    Case("429 without a word", "rate_limit", {"form": "none"}, 0.1),
    Case("429 insufficient_quota", "quota", {}, 0.1, "stops the run"),
    *(Case(f"{status}", "status", {"status": status}) for status in (408, 409, 425, 500, 502, 503, 504)),
    Case("529 overloaded", "overloaded", {}, 0.1),
    Case("502 with an HTML page", "gateway_html", {}),
    Case("connection reset", "reset", {}),
    Case("body cut off", "cut", {}),
    Case("200, invalid JSON", "bad_json", {}),
    Case("200, a page of HTML", "html", {}),
    Case("200, error object inside", "error_in_200", {}),
    Case("200, no choices", "empty_choices", {}),
    Case("stall: never answers", "stall", {}, 0.1),
    Case("slow drip: never ends", "drip", {}, 0.1),
    Case("400, json_schema refused", "no_response_format", {"types": ["json_schema"]}, 1.0, ANOTHER_FORM, True),
    Case("400, every response_format refused", "no_response_format", {}, 1.0, ANOTHER_FORM, True),
    Case("400, parameter refused", "unsupported", {"param": "temperature"}, 1.0, "stops the run"),
    Case("400, context too long", "context", {}, 0.2, "null with its reason"),
    Case("400, content policy", "policy", {}, 0.2, "null with its reason"),
    Case("400, anything else", "status", {"status": 400, "message": "bad"}, 0.2, "null with its reason"),
    Case("401", "status", {"status": 401}, 0.2, "stops the run"),
    Case("402", "status", {"status": 402}, 0.2, "stops the run"),
    Case("403", "status", {"status": 403}, 0.2, "stops the run"),
    Case("404", "status", {"status": 404}, 0.2, "stops the run"),
    Case("finish reason length", "length", {}, 0.3, "stored, truncated"),
    Case("reasoning without text", "reasoning_only", {}, 0.3, "stored, truncated"),
    Case("refusal field", "refusal", {}, 0.3, "stored, refused"),
    Case("content filter", "content_filter", {}, 0.3, "stored, refused"),
    Case("empty reply", "empty", {}, 0.3, "stored, empty"),
    Case("usage null", "null_usage", {}, 0.3, "stored, cost unknown"),
    Case("usage missing", "no_usage", {}, 0.3, "stored, cost unknown"),
    Case("usage of wrong types", "odd_usage", {}, 0.3, "stored"),
)  # fmt: skip

PAID_AND_UNUSABLE = frozenset({"empty_choices"})


async def one_pass(
    cache: ReplyCache, spec: ModelSpec, calls: int, case: Case, hurry: float
) -> tuple[list[CallRecord], int, str]:
    """Ask every call once; the records, how many have no reply, and why the run stopped, if so."""
    records: list[CallRecord] = []
    time_ = {"clock": lambda: time.monotonic() * hurry, "sleep": lambda s: asyncio.sleep(s / hurry)}
    if case.fault in ("rate_limit", "overloaded"):
        time_ = {}  # pauses are the provider's: they are not hurried
    async with Gateway({"m": spec}, cache=cache, budget=Budget(), record=records.append, **time_) as gateway:

        async def ask(i: int) -> bool:
            label = CallLabel("answer", str(i), "target")
            messages = [{"role": "user", "content": f'Question {i}: what is {i} + {i * 7}? "score" Answer:'}]
            outcome = await gateway.ask("m", messages, label=label, schema=SCHEMA if case.schema else None)
            return isinstance(outcome, Answered)

        results = await asyncio.gather(*[ask(i) for i in range(calls)], return_exceptions=True)
        await gateway.drain(10)
    stops = [result for result in results if isinstance(result, BaseException)]
    for stop in stops:
        if not isinstance(stop, RunStopped):
            raise stop
    return records, sum(result is not True for result in results), stops[0].kind if stops else ""  # type: ignore[union-attr]


async def one_case(case: Case, transport: str, calls: int) -> dict[str, Any]:
    """Both passes of one fault."""
    with tempfile.TemporaryDirectory() as folder, FaultServer(latency_s=0.01) as server:
        spec = ModelSpec(
            "m", "openai/tester", api_base=server.url, api_key="none", transport=transport,  # type: ignore[arg-type]
            params={"temperature": 0.7, "max_tokens": 200}, max_concurrency=16, max_attempts=8,
            attempt_timeout_s=0.7 if case.fault in ("stall", "drip") else 60.0,
        )  # fmt: skip
        server.fail(case.fault, rate=case.rate, **case.options)
        with ReplyCache(folder) as cache:
            records, without, stopped = await one_pass(cache, spec, calls, case, HURRY)
            first = {"requests": server.seen.requests, "faults": sum(server.seen.faults.values())}
            kept = len(cache)
            server.rules = [] if case.expect != ANOTHER_FORM else server.rules
            records_2, _, _ = await one_pass(cache, spec, calls, case, HURRY)
            stored = len(cache)
        usable = server.seen.answered - sum(server.seen.faults[name] for name in PAID_AND_UNUSABLE)
    asked_again = sum(record.state == "answered" for record in records_2) - (calls - kept)
    return {
        "title": case.title,
        "transport": transport,
        "expect": case.expect,
        "requests": first["requests"],
        "faults": first["faults"],
        "without_reply": without,
        "stopped": stopped,
        "second_pass": sum(record.attempts for record in records_2),
        "lost": calls - stored,
        "repeated": max(usable - stored, asked_again),
        "attempts_recorded": sum(record.attempts for record in records),
    }


async def matrix(calls: int, transports: tuple[str, ...], brief: bool) -> list[dict[str, Any]]:
    """Every case over the transports."""
    rows = []
    for transport in transports:
        for case in CASES:
            rows.append(await one_case(case, transport, calls))
            if not brief:
                print(json.dumps(rows[-1]), flush=True)
    if brief:
        lost, repeated = (sum(row[key] for row in rows) for key in ("lost", "repeated"))
        print(f"{len(rows)} faults, {calls} calls each, {', '.join(transports)}: {lost} lost, {repeated} repeated")
    return rows


SOAK_FAULTS: tuple[tuple[str, float, dict[str, Any]], ...] = (
    ("status", 0.034, {"status": 500}),
    ("status", 0.034, {"status": 503}),
    ("rate_limit", 0.022, {"seconds": 0.1, "form": "ms"}),
    ("reset", 0.034, {}),
    ("cut", 0.034, {}),
    ("bad_json", 0.034, {}),
    ("empty_choices", 0.034, {}),
)


async def soak(calls: int) -> dict[str, Any]:
    """Many calls, a fifth of the responses faulty; everything must end complete."""
    with tempfile.TemporaryDirectory() as folder, FaultServer(latency_s=0.005) as server:
        for fault, rate, options in SOAK_FAULTS:
            server.fail(fault, rate=rate, **options)
        states: Counter[str] = Counter()
        attempts = 0

        def record(call: CallRecord) -> None:
            nonlocal attempts
            states[call.state] += 1
            attempts += call.attempts

        spec = ModelSpec(
            "m", "openai/tester", api_base=server.url, api_key="none", transport="direct", max_concurrency=128,
            max_attempts=8, params={"temperature": 0.7, "max_tokens": 200},
        )  # fmt: skip
        began, cpu = time.monotonic(), time.process_time()
        with ReplyCache(folder) as cache:
            async with Gateway({"m": spec}, cache=cache, budget=Budget(), record=record) as gateway:
                failures = []

                async def worker(first: int) -> None:
                    for i in range(first, calls, 256):
                        messages = [{"role": "user", "content": f"Question {i}: {i} + {i * 3}? Answer:"}]
                        outcome = await gateway.ask("m", messages, label=CallLabel("answer", str(i), "target"))
                        if isinstance(outcome, Failed):
                            failures.append(outcome)

                await asyncio.gather(*[worker(first) for first in range(256)])
            stored = len(cache)
            whole = cache.verify().ok
        usable = server.seen.answered - server.seen.faults["empty_choices"]
        return {
            "calls": calls,
            "requests": server.seen.requests,
            "attempts_recorded": attempts,
            "faults": dict(server.seen.faults),
            "fault_share": round(sum(server.seen.faults.values()) / server.seen.requests, 3),
            "stored": stored,
            "failed": len(failures),
            "repeated": usable - stored,
            "cache_verified": whole,
            "seconds": round(time.monotonic() - began, 1),
            "cpu_s_with_server": round(time.process_time() - cpu, 1),
            "peak_rss_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        }


def whole(items: int) -> list[dict[str, Any]]:
    """The commands of a run as their users start them: each a process of its own, with its peak memory."""
    measured = []
    with FaultServer() as server, tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        rows = (
            {"id": f"i{k}", "question": f"{k} + {k * 3}?", "gold": str(4 * k), "level": k % 5} for k in range(items)
        )
        (place / "items.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="ascii")
        entry = {
            "model": "openai/tester", "api_base": server.url, "transport": "direct", "params": {"max_tokens": 64},
            "max_concurrency": 64, "price": {"input_per_million": 1.0, "output_per_million": 1.0},
        }  # fmt: skip
        config = {
            "schema": 1, "name": "whole", "models": {"m": entry}, "roles": {"targets": ["m"]},
            "benchmark": {"preset": "custom", "path": "items.jsonl", "profile": {"field": "level", "kind": "ordinal"}},
            "design": {"labeled": items // 4},
            "estimate": ["naive"], "budget": {"usd": 100.0},
        }  # fmt: skip
        (place / "c.yaml").write_text(json.dumps(config), encoding="ascii")
        for command in ("run c.yaml --run-id r --yes", "resume r", "replay r", "export r r.jsonl.gz", "report r"):
            began = time.monotonic()
            process = subprocess.Popen(
                [sys.executable, "-m", "pipeline", *command.split()], cwd=place, stdout=subprocess.DEVNULL,
                env={**os.environ, "PYTHONPATH": str(ROOT), "XDG_STATE_HOME": folder},
            )  # fmt: skip
            _, status, used = os.wait4(process.pid, 0)
            measured.append({
                "command": command.partition(" ")[0], "exit": os.waitstatus_to_exitcode(status),
                "cpu_s": round(used.ru_utime + used.ru_stime, 1), "seconds": round(time.monotonic() - began, 1),
                "peak_mib": used.ru_maxrss // 1024,
            })  # fmt: skip
    return measured


def page(kept: dict[str, Any], crashed: dict[str, Any] | None) -> str:
    """docs/reliability.md."""
    rows, soaked, calls = kept.get("matrix", []), kept.get("soak"), kept.get("calls", 0)
    lines = [
        "# Reliability",
        "",
        "What the collector does when servers, networks and machines fail. Made by"
        " `python benchmarks/reliability.py` and `python benchmarks/crash.py`, over real HTTP on loopback.",
        "",
        *(ROOT / "docs" / "studies" / "reliability-words.md").read_text(encoding="utf-8").splitlines(),
        "",
        "## Fault matrix",
        "",
        f"{calls} calls at concurrency 16 while the server commits the fault (first pass); then the server is mended"
        " and everything is asked again, as `auxeval resume` does (second pass: its requests)."
        " *Requests* and *faults* are the server's"
        " own counts of the first pass; *null* are calls without a reply after it; *lost* are calls without a stored"
        " reply in the end; *repeated* are requests for replies that were stored already. *no choices* is a reply that"
        " was sent and cannot be used: it is asked for again.",
        "",
        "| fault | transport | what happens | requests | faults | null | second pass | lost | repeated |",
        "| --- | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for row in rows:
        happened = f"{row['expect']} ({row['stopped']})" if row["stopped"] else row["expect"]
        lines.append(
            f"| {row['title']} | {row['transport']} | {happened} | {row['requests']} | {row['faults']} |"
            f" {row['without_reply']} | {row['second_pass']} | {row['lost']} | {row['repeated']} |"
        )
    if soaked:
        share = 100 * soaked["fault_share"]
        lines += [
            "",
            "## Soak",
            "",
            f"{soaked['calls']:,} calls, {share:.0f} % of {soaked['requests']:,} responses faulty"
            f" ({', '.join(f'{name} {count:,}' for name, count in soaked['faults'].items())}):"
            f" {soaked['stored']:,} replies stored, {soaked['failed']} calls failed, {soaked['repeated']} repeated;"
            f" attempts in the call records {soaked['attempts_recorded']:,}, requests at the server"
            f" {soaked['requests']:,}; `cache verify` {'clean' if soaked['cache_verified'] else 'DAMAGED'};"
            f" {soaked['seconds']} s.",
        ]
    if kept.get("whole"):
        lines += [
            "",
            "## Memory of whole processes",
            "",
            f"One target over {kept['whole_items']:,} items, 64 at a time; each command in a process of its own, from"
            " its start to its exit, imports, tables, estimates and report included.",
            "",
            "| command | exit | CPU, s | wall clock, s | peak memory, MiB |",
            "| --- | ---: | ---: | ---: | ---: |",
            *(
                "| `auxeval {command}` | {exit} | {cpu_s} | {seconds} | {peak_mib} |".format(**row)
                for row in kept["whole"]
            ),
        ]
    if crashed:
        lines += [
            "",
            "## Kills with a budget in force",
            "",
            f"{crashed['kills']} kills (SIGKILL) at random moments of {crashed['runs_done']} runs, each carried on with"
            " `auxeval resume` until done, with a bound of money from the first session on: the bill is the server's"
            " own, held against the bound at every answer; a run that its bound stops is carried on with a larger one.",
            "",
            *(f"* {name.replace('_', ' ')}: {value:,}" for name, value in crashed.items() if name != "exits"),
            "",
            "*In flight or being stored* are replies that the server sent and the killed process had not made durable:"
            " the only thing that a kill can cost.",
            "",
            "What was in flight at a kill stays in the ledger at the most that it may have cost, in all later sessions:"
            " that is why a bound is reached before all of it is billed, until a person says `--forgive-unknown`.",
        ]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Run and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=60)
    parser.add_argument("--soak", type=int, default=20_000)
    parser.add_argument("--whole", type=int, default=20_000)
    parser.add_argument("--crash", type=Path, default=ROOT / "docs" / "studies" / "crash.json")
    parser.add_argument("--rows", type=Path, default=ROOT / "docs" / "studies" / "reliability.json")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "reliability.md")
    parser.add_argument("--transports", nargs="+", default=["direct", "litellm"])
    parser.add_argument("--brief", action="store_true", help="print sums of the matrix, not its rows")
    options = parser.parse_args()
    logging.getLogger("pipeline").setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", module="pydantic")
    kept = json.loads(options.rows.read_text(encoding="ascii")) if options.rows.exists() else {}
    if options.soak:
        kept["soak"] = asyncio.run(soak(options.soak))
        print(json.dumps(kept["soak"]), flush=True)
    if options.calls:
        kept |= {
            "matrix": asyncio.run(matrix(options.calls, tuple(options.transports), options.brief)),
            "calls": options.calls,
        }
    if options.whole:
        kept |= {"whole": whole(options.whole), "whole_items": options.whole}
        print(json.dumps(kept["whole"]), flush=True)
    options.rows.write_text(json.dumps(kept, indent=0) + "\n", encoding="ascii")
    rows, soaked = kept.get("matrix", []), kept.get("soak")
    crashed = json.loads(options.crash.read_text(encoding="ascii")) if options.crash.exists() else None
    options.out.write_text(page(kept, crashed), encoding="utf-8")
    bad = [row for row in rows if row["lost"] or row["repeated"]]
    sys.exit(1 if bad or (soaked and (soaked["failed"] or soaked["repeated"])) else 0)


if __name__ == "__main__":
    main()
