"""Ledger: what runs have spent, or may have, attempt by attempt, in the cache's own database."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pipeline.errors import DataError
from pipeline.models.budget import Budget, Cost, Spent
from pipeline.models.cache import ReplyCache
from pipeline.models.leases import Leases
from pipeline.models.store import Sql, only_read
from pipeline.models.types import Shown, Usage

Opened = Literal["open", "stored", "held", "refused"]
_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS Ledger (id INTEGER PRIMARY KEY, run TEXT NOT NULL, account TEXT NOT NULL,"
    " call TEXT NOT NULL, model TEXT NOT NULL, state TEXT NOT NULL, calls INTEGER NOT NULL, tokens INTEGER NOT NULL,"
    " usd REAL NOT NULL, size INTEGER NOT NULL, prompt INTEGER, completion INTEGER)",
    "CREATE INDEX IF NOT EXISTS LedgerOfRun ON Ledger (run, call)",
    # Accounts that several runs share: their sums, kept by the database itself whatever writes to the ledger.
    "CREATE INDEX IF NOT EXISTS LedgerOfAccount ON Ledger (account) WHERE account <> run",
    "CREATE TABLE IF NOT EXISTS LedgerAccount (account TEXT PRIMARY KEY, calls INTEGER, tokens INTEGER, usd REAL)",
    "CREATE TRIGGER IF NOT EXISTS LedgerAdds AFTER INSERT ON Ledger WHEN NEW.account <> NEW.run BEGIN"
    " INSERT OR IGNORE INTO LedgerAccount VALUES (NEW.account, 0, 0, 0.0);"
    " UPDATE LedgerAccount SET calls = calls + NEW.calls, tokens = tokens + NEW.tokens, usd = usd + NEW.usd"
    " WHERE account = NEW.account; END",
    "CREATE TRIGGER IF NOT EXISTS LedgerChanges AFTER UPDATE ON Ledger WHEN NEW.account <> NEW.run BEGIN"
    " UPDATE LedgerAccount SET calls = calls + NEW.calls - OLD.calls, tokens = tokens + NEW.tokens - OLD.tokens,"
    " usd = usd + NEW.usd - OLD.usd WHERE account = NEW.account; END",
    "CREATE TRIGGER IF NOT EXISTS LedgerRemoves AFTER DELETE ON Ledger WHEN OLD.account <> OLD.run BEGIN"
    " UPDATE LedgerAccount SET calls = calls - OLD.calls, tokens = tokens - OLD.tokens, usd = usd - OLD.usd"
    " WHERE account = OLD.account; END",
)
_SUMS = "SELECT state = 'paid', sum(calls), sum(tokens), sum(usd) FROM Ledger WHERE {} = ? GROUP BY state = 'paid'"
SALVAGED = "salvaged"
"""The note of a cache whose database was repaired: of its ledger, rows may be lost."""
_UNKNOWN = "('reserved', 'unknown')"


@dataclass(frozen=True, slots=True)
class Attempt:
    """A journalled attempt: its row, the most it can cost, and the bound of its prompt tokens."""

    row: int
    worst: Cost
    size: int


class Ledger:
    """The attempts of one run.

    A row is written and synced before an attempt leaves, at the most that it can cost, and corrected in the
    transaction that stores its reply. What ends without a reply, or with a reply whose cost nobody can tell, stays at
    its largest cost in this and every later session, until :meth:`forgive`. Nothing is read off a clock, a log or a
    reply found in the cache.

    Args:
        cache: its database holds the ledger.
        run: identity of the run.
        account: name of a budget that several runs share; None: the run has its own.
    """

    def __init__(self, cache: ReplyCache, run: str, account: str | None = None) -> None:
        self.run, self.account = run, f"ledger:{account}" if account is not None else run
        self._cache = cache
        self.leases = Leases(cache)
        self._next = secrets.randbits(38) << 24
        cache.transact(lambda sql: [sql(statement) for statement in _SCHEMA])

    # What is spent

    def spent(self) -> Spent:
        """Of the account: what is paid, and the most that unsettled attempts may have cost."""
        column = "run" if self.account == self.run else "account <> run AND account"
        return _sums(self._cache.query(_SUMS.format(column), (self.account,)))

    def own(self) -> Spent:
        """The same of this run alone."""
        return _sums(self._cache.query(_SUMS.format("run"), (self.run,)))

    def paid(self, call: str) -> bool:
        """Whether this run has paid for a reply to the request with this key."""
        query = "SELECT 1 FROM Ledger WHERE run = ? AND call = ? AND prompt IS NOT NULL LIMIT 1"
        return bool(self._cache.query(query, (self.run, call)))

    def shown(self) -> dict[str, Shown]:
        """Model entry → what this run's replies have shown of it."""
        query = (
            "SELECT model, max(completion), max(max(prompt - size, 0)) FROM Ledger"
            " WHERE run = ? AND state = 'paid' GROUP BY model"
        )
        return {model: Shown(completion, excess) for model, completion, excess in self._cache.query(query, (self.run,))}

    def forgive(self) -> Spent:
        """Count attempts whose cost nobody knows as free from now on; what they counted as until now.

        The caller holds the run's lock: none of them is in flight.
        """
        before = self.own()
        change = (
            f"UPDATE Ledger SET state = 'forgiven', calls = 0, tokens = 0, usd = 0.0 WHERE run = ?"
            f" AND state IN {_UNKNOWN}"
        )
        self._cache.transact(lambda sql: sql(change, (self.run,)))
        return before

    def carry_over(self, spent: Spent) -> None:
        """Begin with what a run spent under a ledger that is not here: an older version's, or a cache that is gone.

        Where rows of the ledger may be lost, as its database was damaged, what they say less than the log is added.
        """
        if self._cache.query("SELECT 1 FROM Ledger WHERE run = ? LIMIT 1", (self.run,)):
            if self._cache.note(SALVAGED) is None:
                return
            left = self.own()
            calls, tokens, usd = spent.calls - left.calls, spent.tokens - left.tokens, spent.usd - left.usd
            spent = Spent(max(calls, 0), max(tokens, 0), max(usd, 0.0))
        paid = (spent.calls - spent.possible_calls, spent.tokens, spent.usd)
        possible = (spent.possible_calls, spent.possible_tokens, spent.possible_usd)

        def write(sql: Sql) -> None:
            for state, (calls, tokens, usd) in (("paid", paid), ("unknown", possible)):
                if calls or tokens or usd:
                    values = (self._row(), self.run, self.account, "earlier", "", state, calls, tokens, usd, 0)
                    sql("INSERT INTO Ledger VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, NULL, NULL)", values)

        self._cache.transact(write)

    def restore(self, rows: Iterable[Sequence[Any]]) -> None:
        """Put back rows as a damaged database had them, in the order of its columns."""
        statement = f"INSERT OR IGNORE INTO Ledger VALUES ({', '.join('?' * 12)})"
        self._cache.transact(lambda sql: [sql(statement, tuple(row)) for row in rows])

    # One attempt; each inside a transaction

    def open(self, sql: Sql, attempt: Attempt, call: str, model: str, bounds: Budget) -> Opened:
        """Journal an attempt that is about to leave, where its call is this process's to make and the account allows.

        ``stored``: the reply is in the cache by now. ``held``: another process is asking. ``refused``: together with
        what other runs have spent or reserved it could pass a bound.
        """
        taken = self.leases.take(sql, call)
        if taken != "mine":
            return taken
        worst = attempt.worst
        values = (attempt.row, self.run, self.account, call, model, worst.tokens, worst.usd or 0.0, attempt.size)
        sql("INSERT INTO Ledger VALUES (?, ?, ?, ?, ?, 'reserved', 1, ?, ?, ?, NULL, NULL)", values)
        if self.account != self.run and bounds.bounded:
            query = "SELECT calls, tokens, usd FROM LedgerAccount WHERE account = ?"
            if bounds.passed(*sql(query, (self.account,)).fetchone()):
                sql("DELETE FROM Ledger WHERE id = ?", (attempt.row,))
                return "refused"
        return "open"

    def attempt(self, worst: Cost, size: int) -> Attempt:
        """An attempt that is not journalled yet."""
        return Attempt(self._row(), worst, size)

    def settle(self, sql: Sql, attempt: Attempt, call: str, actual: Cost | None, usage: Usage | None) -> None:
        """The attempt was answered: at its cost, or (None) at its largest; its call has ended."""
        usage = usage or Usage()
        if actual is None:
            change = "UPDATE Ledger SET state = 'unknown', prompt = ?, completion = ? WHERE id = ?"
            sql(change, (usage.prompt, usage.completion, attempt.row))
        else:
            change = "UPDATE Ledger SET state = 'paid', tokens = ?, usd = ?, prompt = ?, completion = ? WHERE id = ?"
            sql(change, (actual.tokens, actual.usd or 0.0, usage.prompt, usage.completion, attempt.row))
        self.leases.drop(sql, call)

    def unknown(self, sql: Sql, attempt: Attempt) -> None:
        """The attempt ended without a reply but may be charged."""
        sql("UPDATE Ledger SET state = 'unknown' WHERE id = ?", (attempt.row,))

    def free(self, sql: Sql, attempt: Attempt) -> None:
        """The attempt was not made, or was refused free of charge."""
        sql("UPDATE Ledger SET state = 'free', calls = 0, tokens = 0, usd = 0.0 WHERE id = ?", (attempt.row,))

    def _row(self) -> int:
        self._next += 1
        return self._next


def name_of_payer(cache: ReplyCache, calls: Sequence[str]) -> str | None:
    """Which run the ledger has as paying for most of these calls; None where it knows of none."""
    marks = ", ".join("?" * len(calls))
    query = (
        f"SELECT run FROM Ledger WHERE prompt IS NOT NULL AND call IN ({marks})"
        " GROUP BY run ORDER BY count(*) DESC, run LIMIT 1"
    )
    try:
        rows = cache.query(query, tuple(calls)) if calls else []
    except DataError:  # no ledger yet
        return None
    return str(rows[0][0]) if rows else None


def spent_by(directory: Path, run: str) -> Spent | None:
    """What a run has spent by the ledger of a cache that is only read; None where there is no word of it."""
    rows = only_read(directory, _SUMS.format("run"), (run,))
    return _sums(rows) if rows else None


def _sums(rows: list[tuple[int, int, int, float]]) -> Spent:
    spent = Spent()
    for settled, calls, tokens, usd in rows:
        spent.calls += calls
        if settled:
            spent.tokens, spent.usd = tokens, usd
        else:
            spent.possible_calls, spent.possible_tokens, spent.possible_usd = calls, tokens, usd
    return spent
