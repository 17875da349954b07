"""Ctrl-C at every moment of a command's life: one line, exit 130 or a run that can be resumed, never a traceback."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from fault_server import FaultServer

from tests.attacks.conftest import ROOT, one_target

HOOK = """
import os, signal, sys

class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == os.environ.get("INTERRUPTED_IMPORT"):
            sys.meta_path.remove(self)
            os.kill(os.getpid(), signal.SIGINT)
        return None

if "INTERRUPTED_IMPORT" in os.environ:
    sys.meta_path.insert(0, Interrupt())
"""
"""Ctrl-C exactly where a module is about to be imported: no dependence on how fast the machine is."""


@pytest.fixture
def hooked(tmp_path: Path) -> dict[str, str]:
    """The environment of a process that is interrupted at an import."""
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    (hooks / "sitecustomize.py").write_text(HOOK, encoding="utf-8")
    return {**os.environ, "PYTHONPATH": f"{hooks}{os.pathsep}{ROOT}", "AUXEVAL_CACHE_DIR": str(tmp_path / "cache"),
            "XDG_STATE_HOME": str(tmp_path / "state")}  # fmt: skip


IMPORTS = ("pipeline.cli", "click", "logging", "pipeline.errors", "pipeline.cli.run", "pipeline.runs.interface",
           "pydantic", "yaml", "pipeline.config", "numpy")  # fmt: skip


@pytest.mark.parametrize("module", IMPORTS)
def test_an_interrupt_during_imports_is_one_line(module: str, hooked: dict[str, str], tmp_path: Path) -> None:
    """Once, a traceback of 40 lines in the first third of a second."""
    ended = subprocess.run(
        [sys.executable, "-m", "pipeline", "run", "--yes", "--quiet", "--limit", "4"], cwd=tmp_path, check=False,
        env={**hooked, "INTERRUPTED_IMPORT": module}, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert ended.returncode in (3, 130), ended.stderr
    lines = ended.stderr.strip().splitlines()
    assert "Traceback" not in ended.stderr
    assert ended.returncode == 3 or [line for line in lines if line.startswith("auxeval: ")] == lines[-1:]


@pytest.mark.parametrize(
    "command", ["--help", "runs list", "config check c.yaml", "estimate t.csv --gold y --signals s"]
)
def test_every_command_can_be_interrupted_while_it_starts(command: str, hooked: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("y,s\n" + "1,0.5\n0,0.4\n" * 20, encoding="utf-8")
    (tmp_path / "c.yaml").write_text(json.dumps(one_target("http://127.0.0.1:1/v1", items=4)), encoding="utf-8")
    for module in ("pipeline.cli", "click.core", "difflib", "pydantic", "polars"):
        ended = subprocess.run(
            [sys.executable, "-m", "pipeline", *command.split()], cwd=tmp_path, check=False, capture_output=True,
            env={**hooked, "INTERRUPTED_IMPORT": module}, text=True, timeout=120,
        )  # fmt: skip
        assert ended.returncode in (0, 130), (module, ended.stderr)
        assert "Traceback" not in ended.stderr


@pytest.mark.parametrize("interrupts", [1, 2])
def test_a_run_drains_at_the_first_and_ends_at_the_second(interrupts: int, tmp_path: Path) -> None:
    """Both leave a run that is carried on; the second waits for nothing."""
    with FaultServer(latency_s=0.5) as server:
        config = one_target(server.url, items=40, drain_s=100, entry={"max_concurrency": 2})
        (tmp_path / "c.yaml").write_text(json.dumps(config), encoding="utf-8")
        process = subprocess.Popen(
            [sys.executable, "-m", "pipeline", "run", "c.yaml", "--yes", "--run-id", "r", "--quiet"], cwd=tmp_path,
            stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)},
        )  # fmt: skip
        assert process.stderr is not None
        while server.seen.answered < 2 and process.poll() is None:
            pass
        server.latency_s = 0.5 if interrupts == 1 else 60.0  # the second must not wait for these
        while server.seen.in_flight < 2 and process.poll() is None:
            pass
        process.send_signal(signal.SIGINT)
        told = process.stderr.readline()  # it has heard the first
        assert "no new calls" in told
        if interrupts == 2:
            process.send_signal(signal.SIGINT)
        _, rest = process.communicate(timeout=50)
    assert process.returncode == 3, rest
    assert "Traceback" not in rest
    assert rest.strip().splitlines()[-1] == "auxeval resume runs/r"
