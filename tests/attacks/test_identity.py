"""A request is the same request however its numbers are written, and old caches stay valid."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from fault_server import FaultServer

from pipeline.models.cache import ReplyCache
from pipeline.models.identity import earlier_keys, request_key
from pipeline.models.types import Request
from tests.attacks.conftest import one_target
from tests.attacks.test_money import run

ASKED = Request("m", None, ({"role": "user", "content": "q"},), {"temperature": 1, "stop": ["a"]})


@pytest.mark.parametrize(
    ("one", "other"), [(1, 1.0), (0, 0.0), (0, -0.0), (0.0, -0.0), ([1, {"x": 2}], [1.0, {"x": 2.0}])]
)
def test_numbers_are_what_they_are_worth(one: object, other: object) -> None:
    assert request_key(replace(ASKED, params={"p": one})) == request_key(replace(ASKED, params={"p": other}))


@pytest.mark.parametrize(("one", "other"), [(1, True), (1, "1"), (0.7, 0.70000001), (0, None)])
def test_what_differs_stays_different(one: object, other: object) -> None:
    assert request_key(replace(ASKED, params={"p": one})) != request_key(replace(ASKED, params={"p": other}))


@pytest.mark.parametrize(("first", "second"), [(1, 1.0), (0.0, 0)])
def test_another_way_to_write_a_number_pays_nothing(
    first: float, second: float, server: FaultServer, tmp_path: Path
) -> None:
    for name, temperature in (("a", first), ("b", second)):
        run(
            one_target(server.url, items=4, entry={"params": {"temperature": temperature, "max_tokens": 64}}),
            tmp_path,
            name,
        )
    assert server.seen.requests == 4


def test_a_reply_under_the_key_of_an_older_version_is_still_read(server: FaultServer, tmp_path: Path) -> None:
    config = one_target(server.url, items=3, entry={"params": {"temperature": 1.0, "max_tokens": 64}})
    run(config, tmp_path, "a")
    with ReplyCache(tmp_path / "cache") as cache:
        entries = list(cache.entries())
        cache.remove([entry.key for entry in entries])
        for entry in entries:
            cache.add(replace(entry, key=earlier_keys(entry.request)[0]))
        assert cache.verify().ok
    run(config, tmp_path, "b")
    assert server.seen.requests == 3
