"""How a pool is evaluated: which methods, about what, at which level, by which margin."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import numpy as np

DEFAULT_GROUPS = (
    "naive",
    "repeated_decoding",
    "lace",
    "lace_profile",
    "lace_deployment",
    "lace_cascade",
    "one_step",
    "gaps",
)
"""What is estimated where nobody chose: of it, what the data allow."""
RULE: Literal["curved"] = "curved"
"""The averaging rule of means and gaps, everywhere: a plan, a gate and a run say the same number."""


@dataclass(frozen=True, slots=True)
class Options:
    """How a pool is evaluated.

    Attributes:
        methods: names of methods or of groups of them; those whose data are not there are passed over.
        by_name: whether the methods were chosen by a person, who is then told of every one that cannot be had.
        level: nominal coverage; of decisions jointly.
        target: ``population`` for the mean of items like these, ``pool`` for that of these very items.
        distribution: value of the first profile column → its share in deployment; empty means: not given.
        seed: of everything random.
        smooth: whether points of an ordinal axis borrow labels from their neighbours.
        shrink: adds categorical profiles shrunk towards their common mean, beside the unshrunk ones.
        margin: two targets that differ by less are equivalent; None decides no equivalence.
        baseline: the target that gaps are taken to, where all pairs are too many.
        looks: numbers of labels that were looked at without a plan or under one, now last; empty: nothing was counted.
        plan: what the plan says under which the labels were bought, in words; empty without one.
        as_if_once: decide by intervals of one look although there were more.
        anytime: decide by intervals that hold however often one looks, although this may be the first look.
    """

    methods: tuple[str, ...] = DEFAULT_GROUPS
    by_name: bool = False
    level: float = 0.95
    target: Literal["pool", "population"] = "population"
    distribution: Mapping[str, float] = field(default_factory=dict)
    seed: int = 0
    smooth: bool = False
    shrink: bool = False
    margin: float | None = None
    baseline: str | None = None
    looks: tuple[int, ...] = ()
    plan: str = ""
    as_if_once: bool = False
    anytime: bool = False

    @property
    def sequential(self) -> bool:
        """Whether decisions must hold over all looks together."""
        return self.anytime or (len(self.looks) > 1 and not self.as_if_once)

    def to_dict(self) -> dict[str, Any]:
        """As a table of ours carries them."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Options:
        """What ``to_dict`` wrote."""
        return cls(**{**data, "methods": tuple(data["methods"]), "looks": tuple(data.get("looks", ()))})


def generator(seed: int, *purpose: object) -> np.random.Generator:
    """A random generator for one purpose: the same seed and purpose give the same numbers, whatever else is drawn."""
    text = "\x1f".join(str(part) for part in purpose)
    words = np.frombuffer(hashlib.sha256(text.encode("utf-8", "backslashreplace")).digest(), dtype="<u4")
    return np.random.Generator(np.random.PCG64([seed, *(int(word) for word in words)]))
