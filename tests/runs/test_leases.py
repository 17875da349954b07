"""Leases never add up to more than the run may spend, whatever happens to the processes that hold them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.errors import ConfigError
from pipeline.models.budget import Spent
from pipeline.models.spec import ModelSpec
from pipeline.runs.leases import Lease, LeaseBook, divided_specs, most_shards

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


def test_limits_divide_without_remainder_above_and_keys_stay_at_home() -> None:
    spec = ModelSpec("gpt", "openai/gpt", api_key="sk-secret", api_key_env="KEY", max_concurrency=7, rpm=100.0, tpm=9e4)
    shards = most_shards({"gpt": spec}, 3)
    part = divided_specs({"gpt": spec}, shards)["gpt"]
    assert (shards, part.max_concurrency, part.tpm, part.api_key) == (3, 2, 3e4, None)
    assert part.rpm == pytest.approx(100 / 3)
    assert most_shards({"gpt": spec}, 50) == 7
    with pytest.raises(ConfigError, match="workers must be at least 1"):
        most_shards({"gpt": spec}, 0)
