"""A run of one target over real HTTP, in this process or in one that is killed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from fault_server import FaultServer

ROOT = Path(__file__).parents[2]


@pytest.fixture
def server() -> Iterator[FaultServer]:
    with FaultServer() as running:
        yield running


@pytest.fixture(params=["direct", "litellm"])
def transport(request: pytest.FixtureRequest) -> str:
    """Both real transports."""
    return str(request.param)


def one_target(url: str, *, items: int = 20, transport: str = "direct", **overrides: Any) -> dict[str, Any]:
    """One model that answers the embedded benchmark, a dollar a million tokens; ``entry`` changes its entry."""
    entry = {
        "model": "openai/gpt",
        "api_base": url,
        "transport": transport,
        "params": {"temperature": 0.7, "max_tokens": 64},
        "max_concurrency": 8,
        "price": {"input_per_million": 1.0, "output_per_million": 1.0},
        **overrides.pop("entry", {}),
    }
    return {
        "schema": 1,
        "name": "attack",
        "benchmark": {"preset": "embedded", "limit": items},
        "models": {"gpt": entry},
        "roles": {"targets": ["gpt"]},
        "design": {"labeled": items},
        "estimate": ["naive"],
        "max_attempts": 2,
        "drain_s": 5,
        **overrides,
    }


RUN = """
import json, sys
import pipeline
config, folder, name, options = json.loads(sys.argv[1]), sys.argv[2], sys.argv[3], json.loads(sys.argv[4])
try:
    pipeline.run(config, run_id=name, runs_dir=folder + "/runs", cache_dir=folder + "/cache", yes=True, **options)
except pipeline.errors.StoppedEarly as stop:
    print(stop)
    sys.exit(3)
"""


def start(config: dict[str, Any], folder: Path, name: str = "r", **options: Any) -> subprocess.Popen[str]:
    """A run in a process of its own."""
    arguments = [json.dumps(config), str(folder), name, json.dumps(options)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(
        [sys.executable, "-c", RUN, *arguments], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True,
    )  # fmt: skip
