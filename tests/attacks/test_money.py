"""The ledger of money: killed, resumed, without usage, with a clock set back, over many runs, nothing spent is lost."""

from __future__ import annotations

import json
import random
import time
from pathlib import Path
from typing import Any

import pytest
from fault_server import FaultServer

import pipeline
from pipeline.cli import _run
from pipeline.errors import StoppedEarly
from pipeline.models.budget import Budget, Cost, Spent
from pipeline.models.cache import ReplyCache
from pipeline.models.journal import Journal
from pipeline.models.ledger import Ledger, spent_by
from pipeline.models.types import Usage
from pipeline.runs.directory import RunDirectory
from tests.attacks.conftest import one_target, start


def run(config: dict[str, Any], folder: Path, name: str = "r", **options: Any) -> pipeline.RunResult:
    places = {"runs_dir": folder / "runs", "cache_dir": folder / "cache", "yes": True}
    return pipeline.run(config, run_id=name, **{**places, **options})


def resume(folder: Path, name: str = "r", **options: Any) -> pipeline.RunResult:
    return pipeline.resume(folder / "runs" / name, cache_dir=folder / "cache", **options)


def spent(folder: Path, name: str = "r") -> Spent:
    return spent_by(folder / "cache", RunDirectory(folder / "runs" / name).ledger_name or "") or Spent()


@pytest.mark.parametrize("bound", [{"calls": 30}, {"usd": 0.006}])
def test_a_budget_holds_over_kills_by_the_servers_count(bound: dict[str, float], tmp_path: Path) -> None:
    """Once, budget.calls: 120 with six kills paid 720."""
    rng = random.Random(13)
    with FaultServer(latency_s=0.02) as server:
        config = one_target(server.url, items=60, budget=bound)
        for _ in range(4):
            until = server.seen.answered + rng.randrange(1, 8)
            process = start(config, tmp_path)
            while server.seen.answered < until and process.poll() is None:
                time.sleep(0.005)
            process.kill()
            process.wait()
            seen = server.seen
            billed = {"calls": seen.requests, "usd": (seen.prompt_tokens + seen.completion_tokens) / 1e6}
            assert all(billed[name] <= most for name, most in bound.items())
        with pytest.raises(StoppedEarly, match="the budget does not allow"):
            run(config, tmp_path)
        seen = server.seen
        billed = {"calls": seen.requests, "usd": (seen.prompt_tokens + seen.completion_tokens) / 1e6}
        counted = spent(tmp_path)
        assert counted.calls >= seen.requests
        assert counted.usd + counted.possible_usd >= billed["usd"] - 1e-12
        assert all(billed[name] <= most for name, most in bound.items())


@pytest.mark.parametrize("usage", [None, [], {}, {"prompt_tokens": "many", "completion_tokens": 5},
                                   {"prompt_tokens": 10, "completion_tokens": -5},
                                   {"prompt_tokens": 1e13, "completion_tokens": 5},
                                   {"prompt_tokens": 10}])  # fmt: skip
def test_senseless_usage_counts_at_its_largest_in_every_session(
    usage: Any, transport: str, server: FaultServer, tmp_path: Path
) -> None:
    """Once, 71 calls of a budget grew to 184 over three resumes."""
    server.fail("shape", reply={"usage": usage})
    config = one_target(server.url, transport=transport, items=12, budget={"usd": 0.004}, entry={"max_concurrency": 1})
    with pytest.raises(StoppedEarly, match=r"budget\.usd"):
        run(config, tmp_path)
    asked = server.seen.requests
    assert 0 < asked < 12
    for _ in range(2):
        with pytest.raises(StoppedEarly, match=r"budget\.usd"):
            resume(tmp_path)
    assert server.seen.requests == asked
    manifest = json.loads((tmp_path / "runs" / "r" / "manifest.json").read_text())
    assert manifest["cost_upper_bound"]["calls"] == asked
    assert manifest["cost_upper_bound"]["usd"] == pytest.approx(manifest["cost_usd"])
    server.rules.clear()
    done = resume(tmp_path, forgive_unknown=True, budget_usd=0.006)
    assert server.seen.requests == 12 or done.state == "done"
    assert done.manifest["cost_upper_bound"] == {}


def test_the_report_says_how_much_of_the_cost_is_an_upper_bound(server: FaultServer, tmp_path: Path) -> None:
    server.fail("no_usage", times=3)
    result = run(one_target(server.url), tmp_path)
    page = (result.path / "report.html").read_text()
    assert "is an upper bound: 3 attempts" in page
    assert result.manifest["cost_usd"] > result.manifest["cost_upper_bound"]["usd"] > 0


def test_tokens_beyond_the_parts_of_usage_count_and_the_second_call_knows(
    transport: str, server: FaultServer, tmp_path: Path
) -> None:
    """Once, 11 requests and 99,220 tokens of a budget of 20,000."""
    server.fail("shape", reply={"usage": {"prompt_tokens": 1000, "completion_tokens": 20, "total_tokens": 9020}})
    config = one_target(server.url, transport=transport, budget={"tokens": 20_000}, entry={"max_concurrency": 16})
    with pytest.raises(StoppedEarly, match=r"budget\.tokens"):
        run(config, tmp_path)
    assert server.seen.requests == 2
    assert spent(tmp_path).tokens == 18_040


def test_a_model_without_max_tokens_is_asked_once_first_and_stays_within(server: FaultServer, tmp_path: Path) -> None:
    """Once, $3.60 of $1.00 and exit 0."""
    server.fail("shape", reply={"usage": {"prompt_tokens": 50, "completion_tokens": 60_000, "total_tokens": 60_050}})
    config = one_target(server.url, budget={"usd": 1.0}, entry={"params": {}, "max_concurrency": 16})
    config["models"]["gpt"]["price"] = {"input_per_million": 1.0, "output_per_million": 5.0}
    with pytest.raises(StoppedEarly, match=r"budget\.usd") as stopped:
        run(config, tmp_path)
    assert stopped.value.exit_code == 3
    assert server.seen.requests == 3  # 0.30 each; a fourth would pass
    with pytest.raises(StoppedEarly, match=r"budget\.usd"):
        resume(tmp_path)
    assert server.seen.requests == 3


def test_a_reply_in_a_shared_cache_belongs_to_the_run_that_paid(server: FaultServer, tmp_path: Path) -> None:
    """Also where the run that finds it was resumed after a crash, and where its log was lost."""
    first = run(one_target(server.url), tmp_path, "payer")
    config = one_target(server.url, items=24)
    server.fail("status", status=401, message="no")
    with pytest.raises(StoppedEarly):
        run(config, tmp_path, "finder")
    server.rules.clear()
    manifest = tmp_path / "runs" / "finder" / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"stopped"', '"running"'))  # as after a crash
    (tmp_path / "runs" / "finder" / "calls.jsonl").unlink()
    found = resume(tmp_path, "finder")
    assert found.manifest["calls"]["answered"] == 4
    assert spent(tmp_path, "finder").calls == 4
    assert spent(tmp_path, "payer").calls == 20
    again = resume(tmp_path, "payer")
    assert again.manifest["cost_usd"] == first.manifest["cost_usd"]


def test_the_clock_and_the_log_have_no_say(
    server: FaultServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once, a clock set back lost an eighth of the spend; a log that is gone is rebuilt with what was paid."""
    first = run(one_target(server.url), tmp_path)
    (first.path / "calls.jsonl").unlink()
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() - 86_400 * 365)
    again = resume(tmp_path)
    assert server.seen.requests == 20
    assert again.manifest["cost_usd"] == first.manifest["cost_usd"]
    assert again.manifest["calls"]["answered"] == 20


def test_a_ledger_spans_runs(server: FaultServer, tmp_path: Path) -> None:
    budget = {"ledger": "october", "calls": 25}
    run(one_target(server.url, budget=budget), tmp_path, "one")
    other = one_target(server.url, budget=budget, entry={"model": "openai/other"})
    with pytest.raises(StoppedEarly, match="25"):
        run(other, tmp_path, "two")
    assert server.seen.requests == 25
    assert spent(tmp_path, "two").calls == 5


def test_a_ledger_spans_runs_that_go_at_once(tmp_path: Path) -> None:
    with FaultServer(latency_s=0.05) as server:
        budget = {"ledger": "shared", "calls": 30}
        processes = [
            start(one_target(server.url, items=25, budget=budget, entry={"model": f"openai/m{k}"}), tmp_path, f"r{k}")
            for k in range(3)
        ]
        for process in processes:
            process.communicate(timeout=120)
        assert 20 <= server.seen.requests <= 30
        assert {process.returncode for process in processes} <= {0, 3}
        assert sum(spent(tmp_path, f"r{k}").calls for k in range(3)) == server.seen.requests


def test_a_run_of_an_older_version_begins_with_what_it_had_spent(server: FaultServer, tmp_path: Path) -> None:
    config = one_target(server.url, budget={"calls": 25})
    run(config, tmp_path)
    (tmp_path / "runs" / "r" / ".ledger").unlink()
    manifest = json.loads((tmp_path / "runs" / "r" / "manifest.json").read_text())
    manifest["prior_spend"] = {"calls": 3, "tokens": 900, "usd": 0.0009}
    (tmp_path / "runs" / "r" / "manifest.json").write_text(json.dumps(manifest))
    resume(tmp_path)
    assert spent(tmp_path).calls == 23
    assert spent(tmp_path).possible_tokens == 900


def test_runs_list_reads_the_ledger_of_a_killed_run(
    server: FaultServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    result = run(one_target(server.url), tmp_path)
    manifest = json.loads((result.path / "manifest.json").read_text())
    (result.path / "manifest.json").write_text(json.dumps({**manifest, "cost_usd": 0.0, "state": "running"}))
    monkeypatch.setenv("AUXEVAL_CACHE_DIR", str(tmp_path / "cache"))
    assert _run(["runs", "list", "--runs-dir", str(tmp_path / "runs"), "--json"]) == 0
    (entry,) = json.loads(capsys.readouterr().out)["runs"]
    assert entry["cost_usd"] == pytest.approx(result.manifest["cost_usd"])


async def test_a_reservation_is_on_disk_before_its_attempt_leaves_and_stays_where_it_never_lands(
    tmp_path: Path,
) -> None:
    with ReplyCache(tmp_path) as cache:
        ledger, journal = Ledger(cache, "r"), Journal(cache)
        attempts = [ledger.attempt(Cost(100, 0.5), 40) for _ in range(3)]
        for k, attempt in enumerate(attempts):
            opened = await journal.do(lambda sql, a=attempt, k=k: ledger.open(sql, a, f"{k:064x}", "m", Budget()))  # type: ignore[misc]
            assert opened == "open"
        assert spent_by(tmp_path, "r") == Spent(3, 0, 0.0, 300, 1.5, 3)
        await journal.do(lambda sql: ledger.settle(sql, attempts[0], "0" * 64, Cost(30, 0.1), Usage(10, 20)))
        await journal.do(lambda sql: ledger.free(sql, attempts[1]))
        assert spent_by(tmp_path, "r") == Spent(2, 30, 0.1, 100, 0.5, 1)
        await journal.close()
        forgiven = ledger.forgive()
        assert forgiven.possible_usd == 0.5
        assert spent_by(tmp_path, "r") == Spent(1, 30, 0.1)
