"""Leases: what each of several collecting processes may spend, so that together they never pass one run's bounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pipeline.benchmark.items import Item
from pipeline.errors import ConfigError
from pipeline.models.budget import Spent
from pipeline.models.spec import ModelSpec

__all__ = ["Lease", "LeaseBook", "dealt_items", "divided_specs", "most_shards", "restart_pause_s"]

_SLOWER = 60.0 / 61.0


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

    A lease is granted before a shard starts and settled by what the shard says it spent, or by its meter where its
    process died. Where the meter cannot be read either, the lease is forfeited whole: what it spent nobody knows.

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

    def beyond(self, *, usd: float, calls: int, tokens: int) -> dict[str, float]:
        """What is committed beyond what is logged: what may have been charged without a reply to show for it."""
        used = self.committed
        more = max(0.0, used["usd"] - usd)
        return {
            "usd": more if more > 1e-9 else 0.0,
            "calls": max(0, int(used["calls"]) - calls),
            "tokens": max(0, int(used["tokens"]) - tokens),
        }

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
    """How many processes can collect at once so that each has a slot, and a request a minute, of every model.

    Raises:
        ConfigError: fewer than one is wanted.
    """
    if wanted < 1:
        raise ConfigError(f"workers must be at least 1, got {wanted}")
    slots = [spec.max_concurrency for spec in specs.values()]
    requests = [max(1, int(spec.rpm)) for spec in specs.values() if spec.rpm is not None]
    return min([wanted, *slots, *requests])


def divided_specs(specs: Mapping[str, ModelSpec], shards: int, number: int) -> dict[str, ModelSpec]:
    """The entries with one shard's share of every limit, and without keys: each process reads its own environment.

    Slots and requests a minute are dealt out whole, so that the shares add up to the limit; several processes are paced
    a sixtieth slower, so that a minute in which requests overtake each other on their way holds no more either.
    """
    return {
        name: replace(
            spec,
            api_key=None if spec.api_key_env is not None else spec.api_key,
            max_concurrency=_dealt(spec.max_concurrency, shards, number),
            rpm=spec.rpm if spec.rpm is None or shards == 1 else _dealt(int(spec.rpm), shards, number) * _SLOWER,
            tpm=None if spec.tpm is None else spec.tpm / shards,
        )
        for name, spec in specs.items()
    }


def dealt_items(items: Sequence[Item], shards: int) -> list[list[Item]]:
    """Items dealt in turn to at most so many hands; those with the same question go together, as their calls do."""
    hands: list[list[Item]] = [[] for _ in range(max(1, min(shards, len({item.question for item in items}))))]
    place: dict[str, int] = {}
    for item in items:
        hands[place.setdefault(item.question, len(place) % len(hands))].append(item)
    return hands


def restart_pause_s(specs: Mapping[str, ModelSpec]) -> float:
    """Seconds after which a process that takes over a share cannot start a minute's worth of it a second time.

    Requests are paced, so the next is due one interval after the last; of tokens a whole minute is forgotten.
    """
    if any(spec.tpm is not None for spec in specs.values()):
        return 61.0
    return max((60.0 / spec.rpm for spec in specs.values() if spec.rpm is not None), default=0.0)


def _dealt(whole: int, shards: int, number: int) -> int:
    return whole // shards + (number < whole % shards)
