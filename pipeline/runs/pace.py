"""Pace: how many calls are still to be asked, and what time and money they will take."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

Where = tuple[str, str]
"""Stage and model entry."""

_FORGET = 0.98
"""Weight of what is one call older: a server that slows down is believed after some fifty calls."""
_MEMORY = 0.3
"""Share of the time since the first call over which the calls in flight are averaged."""


_LAST = 0.5
"""Share of one item's way through its stages that is added: the last ones end with slots empty beside them."""
_LAST_AT_MOST = 0.15
"""Of the time left until then: behind a server with few slots most of a call's time is its place in the line."""


@dataclass(frozen=True, slots=True)
class PlannedStage:
    """What the plan expects of one stage and model.

    Attributes:
        stage, model: which.
        calls: expected, repairs aside.
        tokens: that one reply is expected to have; what is unseen yet is scaled by it.
        cost_usd: that one call is expected to cost; None where no price is known.
    """

    stage: str
    model: str
    calls: int
    tokens: float = 1.0
    cost_usd: float | None = None


@dataclass(slots=True)
class _Stage:
    plan: PlannedStage
    seen: int = 0
    cached: int = 0
    repairs: int = 0
    asked: int = 0
    weight: float = 0.0
    busy: float = 0.0
    cost: float = 0.0

    def answered(self, busy_s: float, cost_usd: float) -> None:
        self.asked += 1
        self.weight = self.weight * _FORGET + 1.0
        self.busy += (busy_s - self.busy) / self.weight
        self.cost += (cost_usd - self.cost) / self.weight


class Pace:
    """Time and money left, by what the *asked* calls of this session took, over the calls still to ask.

    Replies that are at hand (of an earlier session, of a pilot) cost neither and once made a resumed run look done in
    a minute that took an hour. A call's work is the time that its attempts held a slot, time-outs included; the time
    left is the work left over the calls in flight, as averaged lately.

    Args:
        plan: what is expected.
        at_hand: (stage, model) → calls answered before this session.
    """

    def __init__(self, plan: Iterable[PlannedStage], at_hand: Mapping[Where, int] | None = None) -> None:
        self._stages = {(each.stage, each.model): _Stage(each) for each in plan}
        self._at_hand: Counter[Where] = Counter(at_hand or {})
        self._began: float | None = None
        self._sampled = 0.0
        self._in_flight = 0.0

    @property
    def asked(self) -> int:
        """Calls of this session that were really asked."""
        return sum(stage.asked for stage in self._stages.values())

    def rate(self, now: float) -> float:
        """Asked calls a second, since the first."""
        elapsed = now - self._began if self._began is not None else 0.0
        return self.asked / elapsed if elapsed > 0 else 0.0

    def see(self, where: Where, *, cached: bool, repair: bool, busy_s: float, cost_usd: float) -> None:
        """A call has ended.

        Args:
            where: stage and model.
            cached: its reply was at hand.
            repair: it is a second try at a reply that could not be read.
            busy_s: seconds that its attempts held a slot.
            cost_usd: what it cost.
        """
        stage = self._stages.setdefault(where, _Stage(PlannedStage(*where, 0)))
        stage.repairs += repair
        stage.seen += not repair
        stage.cached += cached and not repair
        if not cached:
            stage.answered(busy_s, cost_usd)

    def sample(self, now: float, in_flight: int) -> None:
        """So many calls are in flight now; the more often this is told, the better."""
        if self._began is None:
            if in_flight:
                self._began = self._sampled = now
                self._in_flight = float(in_flight)
            return
        passed = now - self._sampled
        if passed > 0:
            share = passed / (_MEMORY * (now - self._began) + passed)
            self._in_flight += share * (in_flight - self._in_flight)
            self._sampled = now

    def calls_left(self) -> dict[Where, float]:
        """Calls still to ask, repairs as frequent as until now included."""
        left = {}
        for where, stage in self._stages.items():
            unseen = stage.plan.calls - stage.seen - max(0, self._at_hand[where] - stage.cached)
            share = stage.repairs / stage.seen if stage.seen else 0.0
            left[where] = max(0.0, float(unseen)) * (1.0 + share)
        return left

    def seconds_left(self) -> float | None:
        """None before anything was asked."""
        left = {where: count for where, count in self.calls_left().items() if count}
        if not self.asked:
            return None
        parallel = min(max(self._in_flight, 0.1), max(1.0, sum(left.values())))
        a_token = self._mean("busy")
        each = {where: self._of(where, "busy", a_token) for where in left}
        steady = sum(count * each[where] for where, count in left.items()) / parallel
        return steady + min(_LAST * sum(each.values()), _LAST_AT_MOST * steady)

    def usd_left(self) -> float | None:
        """None where the cost of a stage that was not asked yet cannot be told."""
        total = 0.0
        for where, count in self.calls_left().items():
            stage = self._stages[where]
            if stage.asked:
                total += count * stage.cost
            elif count and stage.plan.cost_usd is None:
                return None
            elif count:
                total += count * (stage.plan.cost_usd or 0.0)
        return total

    def _of(self, where: Where, name: str, a_token: float) -> float:
        """What a call of a stage takes; of one that was not asked yet, by the tokens it is expected to have."""
        stage = self._stages[where]
        return float(getattr(stage, name)) if stage.asked else a_token * stage.plan.tokens

    def _mean(self, name: str) -> float:
        asked = [stage for stage in self._stages.values() if stage.asked]
        tokens = sum(stage.asked * stage.plan.tokens for stage in asked)
        return sum(stage.asked * float(getattr(stage, name)) for stage in asked) / max(tokens, 1e-9)
