"""Random numbers that are a function of a seed and of what they are for."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from hashlib import blake2b
from statistics import NormalDist
from typing import TypeVar

T = TypeVar("T")

_WORDS = struct.Struct("<8Q")
_INVERSE_NORMAL = NormalDist().inv_cdf


def sigmoid(value: float) -> float:
    """1 / (1 + exp(−value))."""
    return 1.0 / (1.0 + math.exp(-value)) if value > -700.0 else 0.0


def logit(probability: float) -> float:
    """ln(p / (1 − p)), p kept within [1e-6, 1 − 1e-6]."""
    kept = min(max(probability, 1e-6), 1.0 - 1e-6)
    return math.log(kept / (1.0 - kept))


class Chance:
    """A stream of random numbers named by its parts: the same parts give the same numbers everywhere.

    A generator is needed for every reply, so it must cost next to nothing to seed: the stream is BLAKE2b in counter
    mode over the parts.
    """

    __slots__ = ("_block", "_name", "_next")

    def __init__(self, *parts: str | int) -> None:
        self._name = "\x1f".join(map(str, parts)).encode("utf-8", "surrogatepass")
        self._block: tuple[int, ...] = ()
        self._next = 0

    def uniform(self) -> float:
        """Uniform on the open interval (0, 1)."""
        place = self._next & 7
        if place == 0:
            self._block = _WORDS.unpack(blake2b(self._name, salt=self._next.to_bytes(16, "little")).digest())
        self._next += 1
        return ((self._block[place] >> 12) + 0.5) * 2.0**-52

    def normal(self) -> float:
        """Standard normal."""
        return _INVERSE_NORMAL(self.uniform())

    def happens(self, probability: float) -> bool:
        """Whether an event of this probability takes place."""
        return self.uniform() < probability

    def below(self, count: int) -> int:
        """A whole number from 0 to count − 1."""
        return int(self.uniform() * count)

    def pick(self, options: Sequence[T]) -> T:
        """One of the options, each as likely as the others."""
        return options[int(self.uniform() * len(options))]
