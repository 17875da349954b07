"""Fixtures of the run tests: a server on loopback, and runs that go to it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from fault_server import FaultServer


@pytest.fixture
def server() -> Iterator[FaultServer]:
    with FaultServer() as running:
        yield running


def http_config(server_url: str, **overrides: Any) -> dict[str, Any]:
    """Every role on one OpenAI-compatible server, few draws."""
    names = ("gpt", "llama", "aux", "judge", "weak", "medium", "strong", "regressor")
    transport = overrides.pop("transport", "direct")
    models = {
        name: {
            "model": f"openai/{name}",
            "api_base": server_url,
            "transport": transport,
            "params": {"temperature": 0.7, "max_tokens": 512},
            "max_concurrency": overrides.get("concurrency", 32),
            "price": {"input_per_million": 1.0, "output_per_million": 2.0},
        }
        for name in names
    }
    overrides.pop("concurrency", None)
    return {
        "schema": 1,
        "name": "http",
        "benchmark": {"preset": "embedded", "limit": 12},
        "models": models,
        "roles": {
            "targets": ["gpt", "llama"],
            "auxiliary": ["aux"],
            "judge": "judge",
            "anchors": {"weak": "weak", "medium": "medium", "strong": "strong"},
            "regressor": "regressor",
        },
        "design": {"labeled": 8, "draws": 2},
        **overrides,
    }


def write_config(folder: Path, data: dict[str, Any]) -> Path:
    path = folder / "config.yaml"
    path.write_text(yaml.safe_dump(data), encoding="utf-8")
    return path
