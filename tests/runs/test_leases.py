"""Leases never add up to more than the run may spend, whatever happens to the processes that hold them."""

from __future__ import annotations

import asyncio
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.benchmark.items import Item
from pipeline.errors import ConfigError
from pipeline.models.budget import Cost, Spent
from pipeline.models.pricing import worst_case
from pipeline.models.spec import ModelSpec
from pipeline.models.transport import RawReply
from pipeline.models.types import Price, Request, Usage
from pipeline.runs.leases import Lease, LeaseBook, dealt_items, divided_specs, most_shards, restart_pause_s
from pipeline.runs.meter import MeteredBudget, MeteredTransport, read_meter

EVENTS = st.lists(
    st.tuples(st.sampled_from(["grant", "settle", "forfeit"]), st.floats(0.01, 1.0), st.floats(0.0, 1.0)), max_size=60
)


@given(EVENTS, st.floats(0.01, 1e6), st.integers(0, 10_000), st.integers(0, 10**9))
def test_spent_and_leased_never_pass_the_bounds(
    events: list[tuple[str, float, float]], usd: float, calls: int, tokens: int
) -> None:
    book = LeaseBook(usd=usd, calls=calls, tokens=tokens)
    held: list[Lease] = []
    truth = {"usd": 0.0, "calls": 0, "tokens": 0}
    for what, share, used in events:
        if what == "grant":
            held.append(book.grant(share))
        elif held:
            lease = held.pop(0)
            assert lease.usd is not None
            assert lease.calls is not None
            assert lease.tokens is not None
            spent = Spent(calls=int(lease.calls * used), tokens=int(lease.tokens * used), usd=lease.usd * used)
            truth["usd"] += spent.usd
            truth["calls"] += spent.calls
            truth["tokens"] += spent.tokens
            if what == "settle":
                book.settle(lease, spent)
            else:
                book.forfeit(lease)
        most = {name: truth[name] + sum(getattr(lease, name) for lease in held) for name in truth}
        assert most["usd"] <= usd * (1 + 1e-9)
        assert most["calls"] <= calls
        assert most["tokens"] <= tokens
        for name, value in book.committed.items():
            assert value >= most[name] * (1 - 1e-9)


def test_earlier_sessions_count_and_a_lease_settles_once() -> None:
    book = LeaseBook(usd=10.0, calls=None, tokens=None, spent=Spent(usd=4.0, possible_usd=1.0))
    lease = book.grant(1.0)
    assert lease == Lease(0, 5.0, None, None)
    book.settle(lease, Spent(usd=2.0))
    book.forfeit(lease)
    assert book.committed["usd"] == 7.0
    assert book.outstanding == 0
    assert book.grant(0.5).usd == pytest.approx(1.5)
    with pytest.raises(ValueError, match="share"):
        book.grant(0.0)


@given(st.integers(1, 50), st.integers(1, 400), st.integers(1, 12))
def test_shares_add_up_to_the_limit_and_no_minute_holds_more(slots: int, rpm: int, wanted: int) -> None:
    specs = {"gpt": ModelSpec("gpt", "openai/gpt", max_concurrency=slots, rpm=float(rpm), tpm=9e4)}
    shards = most_shards(specs, wanted)
    parts = [divided_specs(specs, shards, number)["gpt"] for number in range(shards)]
    assert sum(part.max_concurrency for part in parts) == slots
    assert min(part.max_concurrency for part in parts) >= 1
    assert sum(part.tpm or 0.0 for part in parts) == pytest.approx(9e4)
    # Paced requests of one process: as many fit into a minute as intervals begin in it, half a second of haste or not.
    most = [math.ceil(60.5 / (60.0 / (part.rpm or 0.0)) - 1e-9) for part in parts]
    assert sum(most) <= rpm if shards > 1 else parts[0].rpm == rpm


def test_keys_stay_at_home_and_workers_are_no_more_than_slots_or_requests() -> None:
    spec = ModelSpec("gpt", "openai/gpt", api_key="sk-secret", api_key_env="KEY", max_concurrency=7)
    assert divided_specs({"gpt": spec}, 3, 0)["gpt"].api_key is None
    assert most_shards({"gpt": spec}, 50) == 7
    assert most_shards({"gpt": replace(spec, rpm=2.5)}, 50) == 2
    with pytest.raises(ConfigError, match="workers must be at least 1"):
        most_shards({"gpt": spec}, 0)


def test_a_share_that_is_taken_over_waits_for_what_may_have_been_sent_from_it() -> None:
    spec = ModelSpec("gpt", "openai/gpt")
    assert restart_pause_s({"gpt": spec}) == 0.0
    assert restart_pause_s({"gpt": spec, "slow": replace(spec, rpm=20.0)}) == 3.0
    assert restart_pause_s({"gpt": replace(spec, tpm=1e6)}) > 60.0


def test_items_with_one_question_go_to_one_worker() -> None:
    items = [Item(str(k), f"question {k % 5}", "gold") for k in range(20)]
    hands = dealt_items(items, 3)
    assert sorted(item.item_id for hand in hands for item in hand) == sorted(item.item_id for item in items)
    homes = [{item.question for item in hand} for hand in hands]
    assert sum(map(len, homes)) == 5
    assert len(dealt_items(items, 50)) == 5
    assert dealt_items([], 3) == [[]]


def test_what_is_committed_beyond_the_log_is_possibly_charged() -> None:
    book = LeaseBook(usd=10.0, calls=100, tokens=None)
    book.settle(book.grant(0.5), Spent(calls=7, tokens=70, usd=1.0, possible_usd=0.5, possible_tokens=30))
    assert book.beyond(usd=1.0, calls=6, tokens=70) == {"usd": 0.5, "calls": 1, "tokens": 30}


def test_a_killed_process_leaves_what_it_spent_and_may_have(tmp_path: Path) -> None:
    path = tmp_path / "lease.meter"
    assert read_meter(path) is None
    price = Price(1.0, 2.0)
    request = Request("openai/gpt", None, ({"role": "user", "content": "x" * 92},), {"max_tokens": 50}, 0)
    spec = ModelSpec("gpt", "openai/gpt", price=price)
    reply = RawReply("fine", "stop", Usage(20, 5))

    async def attempt(budget: MeteredBudget, inner: Any) -> None:
        worst = worst_case(price, request)
        await budget.reserve(worst)
        await MeteredTransport(inner, budget, shared=False).send(spec, request, timeout_s=1.0)
        budget.settle(worst, Cost(25, 3e-5))

    class Killed:
        async def send(self, *_: object, **__: object) -> RawReply:
            found.append(read_meter(path))
            return reply

    found: list[Spent | None] = []
    with MeteredBudget(Lease(0, 1.0, 9, 1000), path) as budget:
        asyncio.run(attempt(budget, Killed()))
        asyncio.run(attempt(budget, Killed()))
    assert found == [Spent(1, 0, 0.0, 150, pytest.approx(2e-4)), Spent(2, 25, 3e-5, 150, pytest.approx(2e-4))]
    assert read_meter(path) == Spent(2, 50, 6e-5, 0, 0.0)


async def test_a_call_above_the_share_of_tpm_is_refused_before_it_is_sent(tmp_path: Path) -> None:
    request = Request("openai/gpt", None, ({"role": "user", "content": "x"},), {"max_tokens": 900}, 0)
    spec = ModelSpec("gpt", "openai/gpt", tpm=800.0)

    class Fine:
        async def send(self, *_: object, **__: object) -> RawReply:
            return RawReply("fine", "stop", None)

    with MeteredBudget(Lease(0, None, None, None), tmp_path / "lease.meter") as budget:
        await MeteredTransport(Fine(), budget, shared=False).send(spec, request, timeout_s=1.0)  # type: ignore[arg-type]
        with pytest.raises(ConfigError, match="use fewer workers"):
            await MeteredTransport(Fine(), budget, shared=True).send(spec, request, timeout_s=1.0)  # type: ignore[arg-type]
