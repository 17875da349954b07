"""calls.jsonl: one line per logical call, appended as it ends; the last line of a call counts."""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

from pipeline.foreign_json import read_json
from pipeline.models.types import CallRecord, Failed

__all__ = ["CallLog", "CallTotals", "StageTotals", "read_calls", "recorded_failures"]

_LOG = logging.getLogger(__name__)
_LONGEST_LINE = 1 << 22
_LONGEST_TORN = 1 << 16
"""Bytes that one line of a call can have; more at the end without a line break were not left by a kill."""
_IDENTITY = ("stage", "item", "role", "target", "model", "draw", "order", "part")


_ENCODE = json.JSONEncoder(ensure_ascii=True, allow_nan=False, separators=(",", ":")).encode


def _identity(line: dict[str, Any]) -> bytes:
    text = ascii([line.get(name) for name in _IDENTITY])
    return hashlib.blake2b(text.encode("ascii"), digest_size=12).digest()


def _short(key: str) -> bytes:
    return bytes.fromhex(key[:24]) if len(key) >= 24 else key.encode()


def _as_line(record: CallRecord) -> dict[str, Any]:
    label = record.label
    error = record.error
    return {
        "key": record.key,
        "stage": label.stage,
        "role": label.role,
        "model": record.model,
        "item": label.item,
        "target": label.target,
        "part": label.part,
        "draw": label.draw,
        "order": label.order,
        "state": record.state,
        "outcome": record.outcome,
        "attempts": record.attempts,
        "waits_s": round(record.waits_s, 3),
        "latency_s": round(record.latency_s, 4),
        "tokens": {
            "prompt": record.usage.prompt,
            "completion": record.usage.completion,
            "cached": record.usage.cached,
            "reasoning": record.usage.reasoning,
        },
        "cost_usd": record.cost_usd,
        "error": None if error is None else {"kind": error.kind, "status": error.status, "message": error.message},
        "at": record.at,
        **({"sent": dict(record.sent)} if record.sent else {}),
        **({"served": record.served} if record.served else {}),
    }


def _whole_lines(path: Path) -> Iterator[dict[str, Any]]:
    """Every complete line of a call; the file may be one that another process writes, and is left as it is."""
    return (line for _, line in _lines(path) if line is not None)


def _lines(path: Path) -> Iterator[tuple[bytes, dict[str, Any] | None]]:
    """Every complete line and the call that it tells of; None where it is damaged, or longer than any of ours."""
    if not path.exists():
        return
    with path.open("rb") as file:
        while raw := file.readline(_LONGEST_LINE):
            if not raw.endswith(b"\n") and len(raw) < _LONGEST_LINE:
                return
            line = None
            with contextlib.suppress(ValueError):
                line = read_json(raw)
            yield raw, line if _is_call(line) else None


def _is_call(line: Any) -> bool:
    return (
        isinstance(line, dict)
        and all(isinstance(line.get(name), str) for name in ("key", "stage", "state"))
        and isinstance(line.get("tokens") or {}, dict)
        and isinstance(line.get("error") or {}, dict)
    )


def _mend(path: Path) -> None:
    """Keep the whole lines of a damaged log; what the others said comes back from the cache and the ledger."""
    kept = path.with_name(f"{path.name}.damaged-{time.time_ns()}")
    torn = _torn_tail(path)
    damaged = sum(line is None for _, line in _lines(path))
    if torn < _LONGEST_TORN and not damaged:
        if torn:
            os.truncate(path, path.stat().st_size - torn)
        return
    draft = path.with_name(f"{path.name}.draft")
    with draft.open("wb") as file:
        file.writelines(raw for raw, line in _lines(path) if line is not None)
        file.flush()
        os.fsync(file.fileno())
    path.rename(kept)
    draft.replace(path)
    _LOG.warning(
        "%s: %s could not be read, kept in %s; their calls are told again from the cache and the ledger of money",
        path,
        f"{damaged} lines" if damaged else f"the end (some {torn:,} bytes)",
        kept.name,
    )


def _torn_tail(path: Path) -> int:
    """The length in bytes of a last line without its line break, as a kill leaves it."""
    if not path.exists():
        return 0
    with path.open("rb") as file:
        end = size = file.seek(0, 2)
        while end:
            start = max(0, end - 65_536)
            file.seek(start)
            break_at = file.read(end - start).rfind(b"\n")
            if break_at >= 0:
                return size - (start + break_at + 1)
            end = start
    return size


@dataclass(slots=True)
class StageTotals:
    """What one stage did: counts of final outcomes, tokens, and money spent by this run."""

    calls: int = 0
    answered: int = 0
    cached: int = 0
    failed: int = 0
    attempts: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float = 0.0
    cost_unknown: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)

    def add(self, line: dict[str, Any], sign: int = 1) -> None:
        """Count one line (or with ``sign`` −1 take it back)."""
        self.calls += sign
        self.answered += sign * (line["state"] == "answered")
        self.cached += sign * (line["state"] == "cached")
        self.failed += sign * (line["state"] == "failed")
        self.attempts += sign * int(line.get("attempts") or 0)
        self.outcomes[str(line.get("outcome"))] += sign
        if line["state"] == "answered":
            tokens = line.get("tokens") or {}
            self.prompt_tokens += sign * int(tokens.get("prompt") or 0)
            self.completion_tokens += sign * int(tokens.get("completion") or 0)
            if line.get("cost_usd") is None:
                self.cost_unknown += sign
            else:
                self.cost_usd += sign * float(line["cost_usd"])

    def to_dict(self) -> dict[str, Any]:
        """Plain values; outcomes sorted by name, zero counts left out."""
        values = asdict(self)
        values["outcomes"] = {name: count for name, count in sorted(self.outcomes.items()) if count}
        values["cost_usd"] = round(self.cost_usd, 10) + 0.0
        return values


@dataclass(slots=True)
class CallTotals:
    """Totals by stage."""

    stages: dict[str, StageTotals] = field(default_factory=dict)

    def add(self, line: dict[str, Any], sign: int = 1) -> None:
        """Count one line under its stage."""
        self.stages.setdefault(line["stage"], StageTotals()).add(line, sign)

    @property
    def cost_usd(self) -> float:
        """USD spent by this run's own calls."""
        return sum(stage.cost_usd for stage in self.stages.values())

    @property
    def calls_sent(self) -> int:
        """Calls of this run that a provider answered."""
        return sum(stage.answered for stage in self.stages.values())

    @property
    def tokens(self) -> int:
        """Tokens of this run's own calls."""
        return sum(stage.prompt_tokens + stage.completion_tokens for stage in self.stages.values())

    def to_dict(self) -> dict[str, Any]:
        """Totals and the stages' counts."""
        stages = {name: stage.to_dict() for name, stage in sorted(self.stages.items())}
        return {
            "calls": sum(stage.calls for stage in self.stages.values()),
            "answered": self.calls_sent,
            "cached": sum(stage.cached for stage in self.stages.values()),
            "failed": sum(stage.failed for stage in self.stages.values()),
            "tokens": self.tokens,
            "cost_usd": round(self.cost_usd, 10) + 0.0,
            "stages": stages,
        }


class CallLog:
    """Appends call records; knows which calls the run has already logged as answered.

    A call answered earlier in this run comes back from the cache when the run is resumed; it is not logged again, so
    that its cost, latency and time stay those of the call that was paid for.

    ``seen`` counts what this session has gone through, by stage; ``totals`` what the whole run has; ``at_hand`` what
    earlier sessions have settled, by stage and model, repairs aside.

    Args:
        path: the file; a torn last line is cut off.
        paid: whether this run has paid for the reply of a request key, by the ledger. A reply can be stored and its
            line lost, in a crash; found in the cache, it is logged as answered.
    """

    def __init__(self, path: Path, *, paid: Callable[[str], bool] = lambda key: False) -> None:
        self._path = path
        _mend(path)
        self._paid_by_ledger = paid
        self._paid: set[bytes] = set()
        self._settled: set[bytes] = set()
        self._failures: dict[bytes, dict[str, Any]] = {}
        self.seen: Counter[str] = Counter()
        self.watch: Callable[[CallRecord], None] | None = None
        self.totals = CallTotals()
        self.at_hand: Counter[tuple[str, str]] = Counter()
        for line in _whole_lines(path):
            settled = self._count(line) and line["state"] != "failed"
            if settled and not str(line.get("part") or "").endswith("repair"):
                self.at_hand[line["stage"], str(line.get("model"))] += 1
        self._file = path.open("a", encoding="ascii", buffering=1)

    def __enter__(self) -> CallLog:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _count(self, line: dict[str, Any]) -> bool:
        """Whether the line is news."""
        identity = _identity(line)
        if line["state"] == "failed":
            if identity in self._failures:
                self.totals.add(self._failures[identity], -1)
            self._failures[identity] = line
        else:
            if identity in self._settled and line["state"] == "cached":
                return False
            earlier = self._failures.pop(identity, None)
            if earlier is not None:
                self.totals.add(earlier, -1)
            self._settled.add(identity)
        if line["state"] == "answered":
            self._paid.add(_short(line["key"]))
        self.totals.add(line)
        return True

    def append(self, record: CallRecord) -> None:
        """Write one record, unless the run has it as answered already and it comes from the cache.

        A reply that was paid for again, as its entry in the cache was damaged, is a line, and money, of its own.
        """
        line = _as_line(record)
        self.seen[line["stage"]] += 1
        if self.watch is not None:
            self.watch(record)
        if line["state"] == "cached" and self._lost_its_line(line):
            line["state"], line["attempts"] = "answered", 1
        if self._count(line):
            self._file.write(_ENCODE(line) + "\n")

    def failure_messages(self, stage: str, most: int) -> list[tuple[str, int]]:
        """The commonest messages of a stage's failed calls, and how many calls each ended."""
        failed = (line for line in self._failures.values() if line["stage"] == stage and line.get("error"))
        return Counter(str(line["error"]["message"]) for line in failed).most_common(most)

    def _lost_its_line(self, line: dict[str, Any]) -> bool:
        lost = _short(line["key"]) not in self._paid and _identity(line) not in self._settled
        return lost and self._paid_by_ledger(line["key"])

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def read_calls(path: Path) -> Iterator[dict[str, Any]]:
    """Every line of a finished or running log, in order."""
    yield from _whole_lines(path)


def answered_calls(path: Path) -> list[dict[str, Any]]:
    """The last line of every call that has a reply, each call once."""
    return list({_identity(line): line for line in _whole_lines(path) if line["state"] != "failed"}.values())


def recorded_failures(path: Path) -> dict[str, Failed]:
    """Request key → failure, for calls whose last line is a failure."""
    failures: dict[str, Failed] = {}
    for line in _whole_lines(path):
        if line["state"] == "failed" and line.get("error"):
            error = line["error"]
            failures[line["key"]] = Failed(line["key"], error["kind"], error["message"], error.get("status"))
        else:
            failures.pop(line["key"], None)
    return failures
