"""manifest.json: what ran, with which versions, seeds and hashes, how far it got and what it cost."""

from __future__ import annotations

import json
import logging
import platform
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Literal

from pipeline.collection.form_watch import FormWatch
from pipeline.config import RunConfig
from pipeline.models.budget import Spent
from pipeline.models.gateway import Gateway
from pipeline.runs.call_log import CallLog, read_calls
from pipeline.runs.directory import LostManifest, RunDirectory, write_atomically

_LOG = logging.getLogger(__name__)

State = Literal["running", "stopped", "done"]
_PACKAGES = ("auxeval", "litellm", "numpy", "scipy", "polars", "pydantic", "scikit-learn", "diskcache", "math-verify")


def now() -> str:
    """The time as UTC ISO 8601, to the millisecond."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _versions() -> dict[str, str]:
    versions = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    return versions


def restore_manifest(directory: RunDirectory, *, damaged: bool = False) -> None:
    """Begin a manifest that is gone, or ``damaged``, anew from the log; the caller holds the run's lock.

    Carrying the run on fills in the rest: counts from the log, money from the ledger, what models were found to take
    from the cache. What the run began with (items, prompts, configuration) cannot be compared any more, so that a
    damaged manifest, in which a person can still read it, is kept aside, and only when asked.

    Raises:
        LostManifest: it is damaged and nobody asked.
    """
    try:
        directory.manifest()
        return
    except LostManifest as error:
        why = "damaged" if directory.manifest_file.exists() else "gone"
        if why == "damaged" and not damaged:
            raise
        _LOG.warning("%s", str(error).partition(";")[0] + "; it is made again from the log and the cache")
    if directory.manifest_file.exists():
        directory.manifest_file.rename(directory.path / f"manifest.json.damaged-{now().replace(':', '')}")
    first = next(read_calls(directory.calls_file), {"at": now()})
    values = {
        "schema": 1,
        "run_id": directory.path.name,
        "state": "done" if directory.estimates_file.exists() else "stopped",
        "reason": f"its manifest was {why}",
        "created_at": first.get("at"),
    }
    write_atomically(directory.manifest_file, json.dumps(values, indent=1) + "\n")


class Manifest:
    """The manifest of one run: loaded if it exists, saved in one step at every change of state."""

    def __init__(self, directory: RunDirectory) -> None:
        self._directory = directory
        self.values: dict[str, Any] = directory.manifest()

    def start(self, config: RunConfig, settings: Mapping[str, Any]) -> None:
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
            **settings,
            "negotiated": self.values.get("negotiated") or {},
            "served": self.values.get("served") or {},
            "calls": self.values.get("calls") or {},
            "cost_usd": self.values.get("cost_usd"),
            "cost_upper_bound": self.values.get("cost_upper_bound") or {},
        }
        self.save()

    def update(self, **values: Any) -> None:
        """Change some entries and save."""
        self.values.update(values)
        self.save()

    def finish(self, state: State, *, reason: str | None = None, **values: Any) -> None:
        """Say how the run ended."""
        self.update(state=state, reason=reason, finished_at=now(), **values)

    def record(self, log: CallLog, spent: Spent, gateway: Gateway, watch: FormWatch) -> None:
        """What the run has cost by its ledger, how much of it is an upper bound, what replies name and how they end."""
        unknown = {
            "calls": spent.possible_calls,
            "tokens": spent.possible_tokens,
            "usd": round(spent.possible_usd, 10) + 0.0,
        }
        self.update(
            served=gateway.served.to_dict(),
            calls=log.totals.to_dict(),
            cost_usd=round(spent.usd + spent.possible_usd, 10) + 0.0,
            cost_upper_bound=unknown if spent.possible_calls else {},
            quotes=watch.quotes(),
        )

    def save(self) -> None:
        """Write the manifest in one step."""
        text = json.dumps(self.values, indent=1, ensure_ascii=True, allow_nan=False, default=str)
        write_atomically(self._directory.manifest_file, text + "\n")
