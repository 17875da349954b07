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
