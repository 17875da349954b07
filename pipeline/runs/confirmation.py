"""Asks a person before money is spent that nobody has agreed to; without a person, nothing is spent."""

from __future__ import annotations

import logging
import sys
from pathlib import Path

from pipeline.errors import ConfigError, InputError
from pipeline.models.cache import ReplyCache, default_cache_dir
from pipeline.runs.call_log import read_calls
from pipeline.runs.directory import RunDirectory
from pipeline.runs.forecast import forecast_run
from pipeline.runs.setup import Prepared

_LOG = logging.getLogger(__name__)
_DAMAGED = 0.01
"""Share of a run's replies up to which they are asked again unasked: an entry was damaged, not the cache."""


def confirm_cost(prepared: Prepared, cache_dir: Path | None) -> None:
    """Ask before spending more than ``confirm_above_usd``; without a person to ask, refuse.

    Raises:
        ConfigError: nobody is there to ask.
        InputError: the person said no.
    """
    forecast = forecast_run(prepared, cache_dir)
    limit = prepared.config.confirm_above_usd
    if forecast.cost_usd is not None and forecast.cost_usd > limit:
        _ask(f"this run is forecast to cost about ${forecast.cost_usd:.2f} (confirm_above_usd is ${limit:.2f})")


def confirm_paid_again(directory: RunDirectory, prepared: Prepared, cache_dir: Path | None) -> None:
    """Ask before replies are paid for a second time, and before a finished run asks what it did not ask before.

    A cache can be pruned, lost, or another one: ``AUXEVAL_CACHE_DIR`` and the working directory name it. A finished run
    then paid for everything once more.

    Raises:
        ConfigError, InputError: as :func:`confirm_cost`.
    """
    manifest = directory.manifest()
    finished = manifest.get("state") == "done" or directory.estimates_file.exists()
    simulated = set(prepared.simulated)
    paid = {
        line["key"]: line.get("cost_usd") or 0.0
        for line in read_calls(directory.calls_file)
        if line["state"] != "failed" and line.get("model") not in simulated
    }
    folder = cache_dir or default_cache_dir()
    with ReplyCache(folder) as cache:
        lost = paid.keys() - cache.stored(paid)
    if lost:
        _LOG.warning("%s: %d replies that were paid for are not in the cache %s", directory.path, len(lost), folder)
    if len(lost) > _DAMAGED * len(paid):
        usd = sum(paid[key] for key in lost)
        money = f" (${usd:.2f})" if usd else ""
        _ask(
            f"{directory.path}: {len(lost)} of the {len(paid)} replies that this run has paid for{money} are not in the"
            f" cache {folder} and would be paid again; AUXEVAL_CACHE_DIR names another cache, auxeval cache import FILE"
            " brings back those of a cassette"
        )
    elif finished and manifest.get("config_sha256") not in (None, prepared.config.digest()):
        forecast = forecast_run(prepared, folder)
        more = forecast.calls - forecast.cached
        if more > 0 and simulated != set(prepared.specs):
            _ask(f"{directory.path}: is finished, and its edited config.yaml asks {more} more calls")


def _ask(line: str) -> None:
    if not (sys.stdin and sys.stdin.isatty() and sys.stderr.isatty()):
        raise ConfigError(f"{line}; pass --yes (yes=True) to go ahead")
    print(f"auxeval: {line}. Go ahead? [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise InputError("not started: nobody said yes")
