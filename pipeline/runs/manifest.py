"""manifest.json: what ran, with which versions, seeds and hashes, how far it got and what it cost."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Literal

from pipeline.config import RunConfig
from pipeline.models.budget import Spent
from pipeline.runs.directory import RunDirectory, write_atomically

__all__ = ["Manifest", "State", "now"]

State = Literal["running", "stopped", "done"]
_PACKAGES = ("auxeval", "litellm", "numpy", "scipy", "polars", "pydantic", "scikit-learn", "diskcache", "math-verify")


def now() -> str:
    """The time as UTC ISO 8601, to the millisecond."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


class Manifest:
    """The manifest of one run: loaded if it exists, saved in one step at every change of state."""

    def __init__(self, directory: RunDirectory) -> None:
        self._directory = directory
        self.values: dict[str, Any] = directory.manifest()

    @property
    def prior_spend(self) -> Spent:
        """What earlier sessions may have spent beyond what is logged: calls of workers that died, cut-off attempts."""
        return Spent(**(self.values.get("prior_spend") or {}))

    def remember_possible(self, spent: Spent) -> None:
        """Add what this session's attempts without a reply may have cost: no log line tells a later session of it."""
        prior = self.prior_spend
        if spent.possible_calls:
            self.values["prior_spend"] = {
                "calls": prior.calls + spent.possible_calls,
                "tokens": prior.tokens + spent.possible_tokens,
                "usd": prior.usd + spent.possible_usd,
            }

    def start(self, config: RunConfig, facts: Mapping[str, Any]) -> None:
        """Say what runs; the time of the first start is kept when a run is carried on."""
        self.values = {
            "schema": 1,
            "run_id": self._directory.path.name,
            "name": config.name,
            "state": "running",
            "reason": None,
            "created_at": self.values.get("created_at") or now(),
            "started_at": now(),
            "finished_at": None,
            "versions": _versions(),
            "platform": f"{platform.system()} {platform.machine()}",
            "config_sha256": config.digest(),
            "seed": config.seed,
            **facts,
            "negotiated": self.values.get("negotiated") or {},
            "prior_spend": self.values.get("prior_spend") or {},
            "calls": self.values.get("calls") or {},
            "cost_usd": self.values.get("cost_usd"),
        }
        self.save()

    def update(self, **values: Any) -> None:
        """Change some entries and save."""
        self.values.update(values)
        self.save()

    def finish(self, state: State, *, reason: str | None = None, **values: Any) -> None:
        """Say how the run ended."""
        self.update(state=state, reason=reason, finished_at=now(), **values)

    def save(self) -> None:
        """Write the manifest in one step."""
        text = json.dumps(self.values, indent=1, ensure_ascii=True, allow_nan=False, default=str)
        write_atomically(self._directory.manifest_file, text + "\n")
