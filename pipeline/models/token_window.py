"""TokenWindow: the tokens of the last minute, so that no minute ever holds more than its limit."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

_WINDOW_S = 61.0  # the second more is for requests that overtake each other on their way


@dataclass(slots=True)
class _Taken:
    at: float
    tokens: int
    counted: bool = True


class TokenWindow:
    """Tokens of the attempts of the last minute: the most that each may take, then what it took.

    Every attempt is corrected once, when it ends. A correction goes to the oldest attempt that reserved as much and was
    not corrected yet. Should that be another one than has ended, the sum is the same while both are in the window, and
    too high, never too low, after that.

    Args:
        limit: tokens a minute.
    """

    def __init__(self, limit: float) -> None:
        self._limit = limit
        self._taken: deque[_Taken] = deque()
        self._open: dict[int, deque[_Taken]] = {}
        self._total = 0

    def take(self, tokens: int, now: float) -> None:
        """An attempt starts that may take so many."""
        self._forget(now)
        taken = _Taken(now, tokens)
        self._taken.append(taken)
        self._open.setdefault(tokens, deque()).append(taken)
        self._total += tokens

    def correct(self, reserved: int, tokens: int) -> None:
        """An attempt that reserved so many has taken so many."""
        waiting = self._open.get(reserved)
        if not waiting:
            return
        taken = waiting.popleft()
        if not waiting:
            del self._open[reserved]
        if taken.counted:
            self._total += tokens - taken.tokens
        taken.tokens = tokens

    def free_at(self, tokens: int, now: float) -> float:
        """When so many more fit; what is larger than the limit fits into an empty minute."""
        self._forget(now)
        total, ready = self._total, now
        for taken in self._taken:
            if total + tokens <= self._limit:
                break
            total -= taken.tokens
            ready = taken.at + _WINDOW_S
        return ready

    def _forget(self, now: float) -> None:
        while self._taken and self._taken[0].at + _WINDOW_S <= now:
            taken = self._taken.popleft()
            taken.counted = False
            self._total -= taken.tokens
