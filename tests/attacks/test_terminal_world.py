"""Streams that are closed, full or ASCII, limits of the shell, a terminal that hangs up: never an internal error."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from fault_server import FaultServer

ROOT = Path(__file__).parents[2]
AUXEVAL = f"{sys.executable} -m pipeline"


def _shell(command: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-c", command], cwd=folder, capture_output=True, text=True, timeout=120, check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
    )  # fmt: skip


@pytest.mark.parametrize("redirect", [">&-", "2>&-", "| head -c 1"])
def test_a_closed_stream_is_no_internal_error(tmp_path: Path, redirect: str) -> None:
    ended = _shell(f"set -o pipefail; {AUXEVAL} config schema {redirect}", tmp_path)
    assert ended.returncode == 0
    assert "internal error" not in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_a_full_stdout_is_told(tmp_path: Path) -> None:
    ended = _shell(f"{AUXEVAL} config schema > /dev/full", tmp_path)
    assert ended.returncode == 2
    assert "internal error" not in ended.stderr
    assert len(ended.stderr.strip().splitlines()) == 1


def test_an_ascii_terminal_takes_every_text(tmp_path: Path) -> None:
    ended = _shell(f"{AUXEVAL} config check 'Müller Δ.yaml'", tmp_path, LC_ALL="C", PYTHONIOENCODING="ascii")
    assert ended.returncode == 2
    assert "no such configuration file" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_hang_up_drains_as_a_termination_does(tmp_path: Path) -> None:
    with FaultServer(latency_s=0.3) as server:
        config = {
            "schema": 1, "name": "hup", "benchmark": {"preset": "embedded", "limit": 40},
            "models": {"gpt": {"model": "openai/gpt", "api_base": server.url, "transport": "direct",
                               "params": {"max_tokens": 20}, "max_concurrency": 2}},
            "roles": {"targets": ["gpt"]}, "design": {"labeled": 40}, "estimate": ["naive"], "drain_s": 5,
        }  # fmt: skip
        (tmp_path / "c.yaml").write_text(json.dumps(config), encoding="utf-8")
        process = subprocess.Popen(
            [sys.executable, "-m", "pipeline", "run", "c.yaml", "--yes", "--run-id", "r", "--quiet"], cwd=tmp_path,
            stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)},
        )  # fmt: skip
        deadline = time.monotonic() + 60
        while server.seen.answered < 2 and time.monotonic() < deadline:
            time.sleep(0.05)
        process.send_signal(signal.SIGHUP)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 3
    assert said.strip().splitlines()[-1] == "auxeval resume runs/r"


def _run_over_http(folder: Path, url: str) -> None:
    config = {
        "schema": 1, "name": "limits", "benchmark": {"preset": "embedded", "limit": 40},
        "models": {"gpt": {"model": "openai/gpt", "api_base": url, "transport": "direct",
                           "params": {"max_tokens": 20}, "max_concurrency": 64}},
        "roles": {"targets": ["gpt"]}, "design": {"labeled": 40}, "estimate": ["naive"],
    }  # fmt: skip
    (folder / "c.yaml").write_text(json.dumps(config), encoding="utf-8")


@pytest.mark.parametrize("files", [16, 24, 40])
def test_few_open_files_cost_no_run(files: int, tmp_path: Path) -> None:
    """64 connections at once want more than the shell allows: it is told, and a run goes on where there are more."""
    with FaultServer(latency_s=0.2) as server:
        _run_over_http(tmp_path, server.url)
        ended = _shell(f"ulimit -n {files}; {AUXEVAL} run c.yaml --yes --run-id r --quiet", tmp_path)
        assert ended.returncode in (0, 2, 3), ended.stderr
        assert "internal error" not in ended.stderr
        assert "Traceback" not in ended.stderr
        again = _shell(f"{AUXEVAL} run c.yaml --yes --run-id r --quiet", tmp_path)
        assert again.returncode == 0, again.stderr
        assert server.seen.answered == 40


@pytest.mark.parametrize("kib", [60_000, 300_000, 1_000_000])
@pytest.mark.parametrize(
    "command", ["run --yes --quiet --limit 4", "estimate t.csv --gold y --signals s", "study --list"]
)
def test_little_address_space_is_told(kib: int, command: str, tmp_path: Path) -> None:
    """OpenBLAS ended the process with its own line and exit 1, polars with an abort."""
    (tmp_path / "t.csv").write_text("y,s\n" + "1,0.5\n0,0.4\n" * 20, encoding="utf-8")
    ended = _shell(f"ulimit -v {kib}; {AUXEVAL} {command}", tmp_path)
    assert ended.returncode == 2, ended.stderr
    assert "ulimit -v" in ended.stderr
    assert len(ended.stderr.strip().splitlines()) == 1
    light = _shell(f"ulimit -v {max(kib, 150_000)}; {AUXEVAL} runs list", tmp_path)
    assert light.returncode == 0, light.stderr


@pytest.mark.parametrize("redirect", [">&-", "2>&-", ">&- 2>&-", "> /dev/full", "2> /dev/full", "| head -c 1"])
@pytest.mark.parametrize("environment", [{}, {"LC_ALL": "C", "PYTHONIOENCODING": "ascii"}])
def test_a_whole_run_meets_every_stream(redirect: str, environment: dict[str, str], tmp_path: Path) -> None:
    ended = _shell(f"{AUXEVAL} run --yes --limit 4 --run-id r {redirect}", tmp_path, **environment)
    assert ended.returncode == (2 if redirect == "> /dev/full" else 0), ended.stderr
    assert "internal error" not in ended.stderr
    assert "Traceback" not in ended.stderr
    assert json.loads((tmp_path / "runs" / "r" / "manifest.json").read_text())["state"] == "done"


@pytest.mark.parametrize("command", ["config check", "run", "plan", "judge"])
def test_a_file_is_called_what_its_user_called_it(command: str, tmp_path: Path) -> None:
    """The path in a configuration is resolved; its messages showed the home of whoever ran it."""
    (tmp_path / "t.csv").write_text("question,gold,response\nwhat?,1\n", encoding="utf-8")
    config = {
        "schema": 1, "name": "p", "benchmark": {"preset": "custom", "path": "gone.csv"},
        "models": {"m": {"model": "sim/strong"}}, "roles": {"targets": ["m"]}, "estimate": ["naive"],
    }  # fmt: skip
    (tmp_path / "c.yaml").write_text(json.dumps(config), encoding="utf-8")
    arguments = "gone.csv --question q --response r --id i --judge sim/judge" if command == "judge" else "c.yaml"
    ended = _shell(f"{AUXEVAL} {command} {arguments}", tmp_path)
    assert ended.returncode == 2
    assert "gone.csv" in ended.stderr
    assert str(tmp_path) not in ended.stderr
