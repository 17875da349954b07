"""Time and money left, told while a run goes: within a factor of 1.5 from the first tenth on, on a clock of its own."""

from __future__ import annotations

import heapq
import io
import itertools
import random
from collections import Counter, deque
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from pipeline.models.flights import GatewayStatus
from pipeline.models.types import CallLabel, CallRecord, Usage
from pipeline.runs.call_log import CallLog
from pipeline.runs.pace import Pace, PlannedStage
from pipeline.runs.progress import Progress

FACTOR = 1.5


@dataclass
class World:
    """A run on a simulated clock: items go through their stages in order, so many items and calls at once.

    Attributes:
        stages: (stage, model, calls per item, seconds a call at its server, tokens, cost of a call).
        items, window: how many, and how many are under way at once.
        slots: calls that each model's server works on at once; the others wait there, in flight.
        concurrency: calls in flight of each model.
        cached: share of calls answered by an earlier session of the run.
        pilot: items answered by another run.
        timeouts: share of calls whose first attempt is lost after twice the time of an answer.
        repairs: share of replies that are asked once more.
    """

    stages: list[tuple[str, str, int, float, float, float]]
    items: int = 200
    window: int = 32
    slots: int = 1000
    concurrency: int = 16
    cached: float = 0.0
    pilot: int = 0
    timeouts: float = 0.0
    repairs: float = 0.0
    seed: int = 0
    log: list[tuple[float, float, float | None, float | None, float]] = field(default_factory=list)

    def plan(self) -> list[PlannedStage]:
        return [
            PlannedStage(stage, model, count * self.items, tokens, cost if stage != "pointwise" else 2 * cost)
            for stage, model, count, _, tokens, cost in self.stages
        ]

    def run(self) -> None:
        """Fill ``log`` with (time, spent, seconds left as told, money left as told, share of asked calls)."""
        rng = random.Random(self.seed)
        known: set[tuple[int, int, int]] = set()
        for item, (place, stage) in itertools.product(range(self.items), enumerate(self.stages)):
            for k in range(stage[2]):
                if item < self.pilot or rng.random() < self.cached:
                    known.add((item, place, k))
        at_hand = Counter((self.stages[place][0], self.stages[place][1]) for _, place, _ in known)
        pace = Pace(self.plan(), at_hand)
        total = sum(stage[2] for stage in self.stages) * self.items - len(known)
        now, spent, asked, serial = 0.0, 0.0, 0, itertools.count()
        events: list[tuple[float, int, tuple[int, int, int], bool, float]] = []
        waiting: dict[str, deque[tuple[tuple[int, int, int], bool]]] = {stage[1]: deque() for stage in self.stages}
        flying: Counter[str] = Counter()
        free = {stage[1]: [0.0] * self.slots for stage in self.stages}
        open_calls: Counter[int] = Counter()
        next_item = 0

        def send() -> None:
            for model, queue in waiting.items():
                while queue and flying[model] < self.concurrency:
                    call, repair = queue.popleft()
                    _, _, _, seconds, _, _ = self.stages[call[1]]
                    work = seconds * rng.gammavariate(4.0, 0.25)
                    lost = 2 * seconds if rng.random() < self.timeouts else 0.0
                    slot = heapq.heappop(free[model])
                    end = max(slot, now) + work + lost
                    heapq.heappush(free[model], end)
                    flying[model] += 1
                    heapq.heappush(events, (end, next(serial), call, repair, end - now))

        def begin(item: int, place: int) -> None:
            while place < len(self.stages):
                stage, model, count, *_ = self.stages[place]
                fresh = []
                for k in range(count):
                    if (item, place, k) in known:
                        pace.see((stage, model), cached=True, repair=False, busy_s=0.0, cost_usd=0.0)
                    else:
                        fresh.append((item, place, k))
                if fresh:
                    open_calls[item] = len(fresh)
                    waiting[model].extend((call, False) for call in fresh)
                    return
                place += 1
            start()

        def start() -> None:
            nonlocal next_item
            if next_item < self.items:
                next_item += 1
                begin(next_item - 1, 0)

        for _ in range(min(self.window, self.items)):
            start()
        send()
        while events:
            pace.sample(now, sum(flying.values()))
            now, _, call, repair, busy = heapq.heappop(events)
            stage, model, _, _, _, cost = self.stages[call[1]]
            pace.sample(now, sum(flying.values()))
            flying[model] -= 1
            pace.see((stage, model), cached=False, repair=repair, busy_s=busy, cost_usd=cost)
            spent += cost
            if repair or rng.random() >= self.repairs:
                asked += 1
                open_calls[call[0]] -= 1
                if not open_calls[call[0]]:
                    begin(call[0], call[1] + 1)
            else:
                waiting[model].append((call, True))
            send()
            self.log.append((now, spent, pace.seconds_left(), pace.usd_left(), asked / total))


ANSWERS = [("answer", "a", 1, 2.0, 250.0, 0.001)]
CHAIN = [
    ("answer", "a", 1, 2.0, 250.0, 0.001),
    ("auxiliary", "b", 6, 4.0, 250.0, 0.002),
    ("preference", "a", 6, 0.5, 60.0, 0.0005),
    ("pointwise", "j", 3, 0.8, 60.0, 0.004),
]
WORLDS = {
    "one stage": World(ANSWERS, items=800),
    "four stages": World(CHAIN),
    "resumed in the middle": World(CHAIN, cached=0.5),
    "resumed near the end": World(CHAIN, items=1000, cached=0.9),
    "after a pilot": World(CHAIN, items=300, pilot=150),
    "a small pilot": World(ANSWERS, items=800, pilot=80),
    "a server with one slot": World(ANSWERS, items=600, slots=1),
    "a server with two slots, four stages": World(CHAIN, slots=2),
    "a slow server, one call at a time": World([("answer", "a", 1, 60.0, 250.0, 0.0)], concurrency=1, items=150),
    "time-outs": World(CHAIN, timeouts=0.3),
    "repairs": World(CHAIN, repairs=0.2),
}


@pytest.mark.parametrize("name", WORLDS)
@pytest.mark.parametrize("seed", range(3))
def test_what_is_left_is_told_within_a_factor_of_one_and_a_half(name: str, seed: int) -> None:
    world = World(**{**vars(WORLDS[name]), "seed": seed, "log": []})
    world.run()
    end, cost = world.log[-1][0], world.log[-1][1]
    way = sum(stage[3] for stage in world.stages)
    looked = [entry for entry in world.log if 0.1 <= entry[4] <= 0.9]
    assert len(looked) > 50
    for now, spent, seconds, usd, share in looked:
        assert seconds is not None
        assert usd is not None
        within = (end - now) / FACTOR <= seconds <= (end - now) * FACTOR
        # Or off by no more than one item's way through the stages: nobody can foresee the last one's luck.
        assert within or abs(seconds - (end - now)) <= 2 * way, (share, seconds, end - now)
        assert (cost - spent) / FACTOR <= usd <= (cost - spent) * FACTOR or cost == 0, (share, usd, cost - spent)


def test_nothing_is_told_before_anything_was_asked() -> None:
    pace = Pace([PlannedStage("answer", "m", 10)], {("answer", "m"): 5})
    for _ in range(5):
        pace.see(("answer", "m"), cached=True, repair=False, busy_s=0.0, cost_usd=0.0)
    assert pace.seconds_left() is None
    assert pace.calls_left() == {("answer", "m"): 5.0}


class Still:
    """A gateway with two calls in flight, and three attempts lost to their time."""

    def status(self) -> GatewayStatus:
        return GatewayStatus(2, 0, 0, {}, {}, timed_out=3)


def record(item: int, state: str) -> CallRecord:
    label = CallLabel("answer", str(item), "target")
    busy = 10.0 if state == "answered" else 0.0
    return CallRecord(
        f"{item:064x}", label, "m", state, "ok", 1, 0.0, busy, Usage(100, 10), 0.01, None, "", busy_s=busy,  # type: ignore[arg-type]
    )  # fmt: skip


def test_the_line_of_a_resumed_run_counts_what_is_asked(tmp_path: Path) -> None:
    plan = [PlannedStage("answer", "m", 100)]
    with CallLog(tmp_path / "calls.jsonl") as log:
        for item in range(60):
            log.append(record(item, "answered"))
    now = [1000.0]
    with CallLog(tmp_path / "calls.jsonl") as log:
        assert log.at_hand == {("answer", "m"): 60}
        progress = Progress(log, plan, Still(), stream=io.StringIO(), clock=lambda: now[0])
        for item in range(60):  # at once, from the cache
            log.append(record(item, "cached"))
        progress.line()
        for item in range(60, 68):
            now[0] += 5.0  # ten seconds a call, two at once
            log.append(record(item, "answered"))
        line = progress.line()
    assert "68/100 calls" in line
    assert "3 timed out" in line
    assert "about 3 min left" in line  # 32 calls of ten seconds, two at once
    assert "$0.6800 of about $1.0000" in line
