"""Leases: what each of several collecting processes may spend, so that together they never pass one run's bounds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from pipeline.errors import ConfigError
from pipeline.models.budget import Spent
from pipeline.models.spec import ModelSpec

__all__ = ["Lease", "LeaseBook", "divided_specs", "most_shards"]


@dataclass(frozen=True, slots=True)
class Lease:
    """A part of a run's budget, for one shard and one attempt at it; None where the run has no such bound."""

    number: int
    usd: float | None
    calls: int | None
    tokens: int | None

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for the wire."""
        return {"number": self.number, "usd": self.usd, "calls": self.calls, "tokens": self.tokens}


class LeaseBook:
    """Hands out leases; spent, forfeited and outstanding together never exceed the bounds.

    A lease is granted before a shard starts and settled by what the shard says it spent. The lease of a process that
    died is forfeited whole: what it spent last nobody knows.

    Args:
        usd, calls, tokens: the run's bounds, or None.
        spent: what was spent before.
    """

    def __init__(self, *, usd: float | None, calls: int | None, tokens: int | None, spent: Spent | None = None) -> None:
        self._bounds: dict[str, float | int | None] = {"usd": usd, "calls": calls, "tokens": tokens}
        before = spent or Spent()
        self._used: dict[str, float] = {
            "usd": before.usd + before.possible_usd,
            "calls": before.calls,
            "tokens": before.tokens + before.possible_tokens,
        }
        self._open: dict[int, Lease] = {}
        self._granted = 0

    @property
    def outstanding(self) -> int:
        """Leases that are neither settled nor forfeited."""
        return len(self._open)

    @property
    def committed(self) -> dict[str, float]:
        """What is spent, forfeited or leased, by bound."""
        leased = {name: sum(getattr(lease, name) or 0 for lease in self._open.values()) for name in self._bounds}
        return {name: self._used[name] + leased[name] for name in self._bounds}

    def grant(self, share: float) -> Lease:
        """Lease ``share`` in (0, 1] of what is free of every bound.

        Raises:
            ValueError: share out of range.
        """
        if not 0.0 < share <= 1.0:
            raise ValueError(f"share must lie in (0, 1], got {share}")
        committed = self.committed
        free = {
            name: None if bound is None else max(0.0, bound - committed[name]) * share
            for name, bound in self._bounds.items()
        }
        usd, calls, tokens = free["usd"], free["calls"], free["tokens"]
        lease = Lease(
            self._granted, usd, None if calls is None else int(calls), None if tokens is None else int(tokens)
        )
        self._granted += 1
        self._open[lease.number] = lease
        return lease

    def settle(self, lease: Lease, spent: Spent) -> None:
        """The shard has ended: count what it spent, or may have been charged, and free the rest."""
        if self._open.pop(lease.number, None) is None:
            return
        self._used["usd"] += spent.usd + spent.possible_usd
        self._used["calls"] += spent.calls
        self._used["tokens"] += spent.tokens + spent.possible_tokens

    def forfeit(self, lease: Lease) -> None:
        """The process died: the whole lease counts as spent."""
        if self._open.pop(lease.number, None) is None:
            return
        for name in self._bounds:
            self._used[name] += getattr(lease, name) or 0


def most_shards(specs: Mapping[str, ModelSpec], wanted: int) -> int:
    """How many processes can collect at once so that each has a slot of every model.

    Raises:
        ConfigError: fewer than one is wanted.
    """
    if wanted < 1:
        raise ConfigError(f"workers must be at least 1, got {wanted}")
    return min([wanted, *(spec.max_concurrency for spec in specs.values())])


def divided_specs(specs: Mapping[str, ModelSpec], shards: int) -> dict[str, ModelSpec]:
    """The entries with 1/``shards`` of every limit, and without keys: each process reads its own environment."""
    return {
        name: replace(
            spec,
            api_key=None if spec.api_key_env is not None else spec.api_key,
            max_concurrency=spec.max_concurrency // shards,
            rpm=None if spec.rpm is None else spec.rpm / shards,
            tpm=None if spec.tpm is None else spec.tpm / shards,
        )
        for name, spec in specs.items()
    }
