"""The journal syncs in groups: changes that arrive together share a commit, and a broken one fails its group alone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipeline.models.budget import Budget, Cost
from pipeline.models.cache import ReplyCache
from pipeline.models.journal import Journal
from pipeline.models.ledger import Ledger
from pipeline.models.store import Sql


async def test_many_reservations_share_a_few_commits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with ReplyCache(tmp_path / "cache") as cache:
        journal, ledger = Journal(cache), Ledger(cache, "r")
        commits = 0
        transact = cache.transact

        def counted(work: Callable[[Sql], Any]) -> Any:
            nonlocal commits
            commits += 1
            return transact(work)

        monkeypatch.setattr(cache, "transact", counted)

        async def reserve(number: int) -> None:
            attempt = ledger.attempt(Cost(10, 0.01), 5)
            assert await journal.do(lambda sql: ledger.open(sql, attempt, f"{number:064x}", "m", Budget())) == "open"

        await asyncio.gather(*(reserve(number) for number in range(400)))
        await journal.close()
        assert ledger.own().possible_calls == 400
    assert commits <= 4


async def test_a_change_that_fails_is_told_to_all_of_its_group_and_to_no_other(tmp_path: Path) -> None:
    with ReplyCache(tmp_path / "cache") as cache:
        journal = Journal(cache)

        def breaks(sql: Sql) -> None:
            raise ValueError("broken")

        results = await asyncio.gather(journal.do(breaks), journal.do(lambda sql: 1), return_exceptions=True)
        assert all(isinstance(result, ValueError) for result in results)
        assert await journal.do(lambda sql: 2) == 2
        await journal.close()
