"""Items and the benchmark they make up: loaded, cut to size, and the labeled part drawn."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

from pipeline.errors import DataError
from pipeline.tables.column_roles import ProfileKind

if TYPE_CHECKING:
    import numpy as np

JITTER = 0.4
"""Half width of the uniform noise that makes an ordered axis continuous."""


@dataclass(frozen=True, slots=True)
class GivenResponse:
    """What a model answered before anyone ran us, and what people said of it.

    Attributes:
        text: the response; a conversation is written out turn by turn.
        ratings: criterion → a person's rating, on its own scale; what nobody rated is not in it.
        context: what the response was to be based on; None where nothing was given.
        signals: own numbers of the source about the response, NaN where missing.
    """

    text: str
    ratings: Mapping[str, float] = field(default_factory=dict, hash=False)
    context: str | None = None
    signals: Mapping[str, float] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class Item:
    """One question of a benchmark.

    Attributes:
        item_id: unique in its benchmark.
        question: what is asked, without the choices.
        gold: the reference answer; for choice grading the letter; None where unknown.
        choices: the texts of the choices A, B, …; None for open questions.
        profile: position on the profile axis: a number, or a name on a categorical axis; None where there is no axis.
        metadata: whatever else the source says (subject, split, …); never shown to a model.
        given: model → its response, where responses exist already; else empty.
        reference: an answer that judges are shown beside a given response.
        cluster: items of one cluster are not independent; None where nothing says so.
        signals: own numbers of the source about the item, NaN where missing.
    """

    item_id: str
    question: str
    gold: str | None = None
    choices: tuple[str, ...] | None = None
    profile: float | str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict, hash=False)
    given: Mapping[str, GivenResponse] = field(default_factory=dict, hash=False)
    reference: str | None = None
    cluster: str | None = None
    signals: Mapping[str, float] = field(default_factory=dict, hash=False)

    @property
    def has_gold(self) -> bool:
        """Whether anything is known of how good an answer to it is: a gold answer, or a rating of a response."""
        return self.gold is not None or any(response.ratings for response in self.given.values())


@dataclass(frozen=True, slots=True)
class Benchmark:
    """Items, how they are graded, and what was left out.

    Attributes:
        name: preset name, or the file's name for custom data.
        items: in the order of the source.
        grading: ``exact``, ``choice``, ``numeric``, ``math``, ``squared_error`` or ``python:module:function``.
        profile_name: name of the profile axis, or None.
        profile_kind: its kind, or None.
        skipped: reason → number of rows left out.
        seeds: what was drawn from which seed.
        tolerance: absolute tolerance of numeric grading.
        responders: the models whose responses are given, in the order of the source; empty where targets are asked.
        criteria: what people rated, first what the estimates are about; empty where answers are graded.
        hash: SHA-256 over all of the above.
    """

    name: str
    items: tuple[Item, ...]
    grading: str
    profile_name: str | None = None
    profile_kind: ProfileKind | None = None
    skipped: Mapping[str, int] = field(default_factory=dict)
    seeds: Mapping[str, int] = field(default_factory=dict)
    tolerance: float | None = None
    responders: tuple[str, ...] = ()
    criteria: tuple[str, ...] = ()
    hash: str = ""

    def __post_init__(self) -> None:
        if not self.hash:
            object.__setattr__(self, "hash", _digest(self))

    def __len__(self) -> int:
        return len(self.items)


class _FieldNames(Protocol):
    @property
    def id(self) -> str | None: ...
    @property
    def question(self) -> str | None: ...
    @property
    def gold(self) -> str | Mapping[str, str] | None: ...
    @property
    def choices(self) -> str | None: ...
    @property
    def profile(self) -> str | None: ...
    @property
    def response(self) -> str | None: ...
    @property
    def model(self) -> str | None: ...
    @property
    def reference(self) -> str | None: ...
    @property
    def context(self) -> str | None: ...
    @property
    def cluster(self) -> str | None: ...
    @property
    def signals(self) -> Sequence[str]: ...
    @property
    def gold_columns(self) -> Mapping[str, str]: ...


class _ProfileSettings(Protocol):
    @property
    def field(self) -> str: ...
    @property
    def kind(self) -> ProfileKind: ...


class _Filter(Protocol):
    """Which rows are kept."""

    @property
    def field(self) -> str: ...
    def keeps(self, value: Any) -> bool:
        """Whether a row with this value is kept."""


class BenchmarkSettings(Protocol):
    """What this room needs of the ``benchmark`` section of a run configuration."""

    @property
    def preset(self) -> str: ...
    @property
    def path(self) -> Path | None: ...
    @property
    def limit(self) -> int | None: ...
    @property
    def sample(self) -> int | None: ...
    @property
    def filter(self) -> _Filter | None: ...
    @property
    def fields(self) -> _FieldNames: ...
    @property
    def grading(self) -> str | None: ...
    @property
    def tolerance(self) -> float | None: ...
    @property
    def profile(self) -> _ProfileSettings | None: ...
    @property
    def range(self) -> tuple[float, float] | None: ...


def load_benchmark(config: BenchmarkSettings, seed: int) -> Benchmark:
    """The items a run is about.

    Args:
        config: the ``benchmark`` section of the run configuration.
        seed: of the run; selection, order of choices and the embedded problems derive from it.

    Raises:
        ConfigError: the grading would run code that no one on this machine has allowed.
        DataError: the source is missing or unreadable, rows do not fit, ids repeat, nothing is left; one line.
    """
    from pipeline.benchmark.loading import read_benchmark
    from pipeline.code_permission import require_permission

    require_permission(config.grading)
    return read_benchmark(config, seed)


def select_items(items: Sequence[Item], *, limit: int | None, sample: int | None, seed: int) -> tuple[Item, ...]:
    """A random part of the items, in their original order.

    ``limit`` takes the first of a shuffled order, so that a larger limit contains a smaller one; ``sample`` draws the
    same number from a stream of its own.

    Args:
        items: all of them.
        limit: how many, or None for all.
        sample: how many, or None for all.
        seed: of the shuffle.
    """
    import numpy as np

    size = limit if limit is not None else sample
    if size is None or size >= len(items):
        return tuple(items)
    stream = 1 if limit is not None else 2
    order = np.random.default_rng([seed, stream]).permutation(len(items))
    return tuple(items[k] for k in sorted(order[:size].tolist()))


def draw_labeled(benchmark: Benchmark, labeled: int | Literal["gold"], seed: int) -> frozenset[str]:
    """Ids of the labeled items: a uniform draw without replacement, or those that have a gold answer.

    Args:
        benchmark: the items.
        labeled: how many (all items where there are fewer), or ``"gold"``.
        seed: of the draw.

    Raises:
        DataError: a number is asked for and an item has no gold answer, or no item has one.
    """
    import numpy as np

    with_gold = [item.item_id for item in benchmark.items if item.has_gold]
    if labeled == "gold":
        if not with_gold and benchmark.grading != "rating":  # responses may be rated after the run
            raise DataError(f"benchmark {benchmark.name}: no item has a gold answer, so none can be labeled")
        return frozenset(with_gold)
    if len(with_gold) < len(benchmark.items):
        missing = next(item.item_id for item in benchmark.items if not item.has_gold)
        count = len(benchmark.items) - len(with_gold)
        raise DataError(
            f"benchmark {benchmark.name}: item {missing!r} has no gold answer"
            + (f" ({count} such items)" if count > 1 else "")
            + "; fill it in, or set design.labeled: gold to label exactly the items that have one"
        )
    order = np.random.default_rng([seed, 3]).permutation(len(with_gold))
    return frozenset(with_gold[k] for k in order[:labeled].tolist())


def jitter_profile(values: Sequence[float] | np.ndarray[Any, Any], seed: int) -> np.ndarray[Any, Any]:
    """An ordered axis made continuous: values + U(−0.4, 0.4), independent per item.

    Args:
        values: (N,) levels, in a fixed order of the items (sorted by id, say).
        seed: of the noise.

    Returns:
        (N,) float64; the same values and seed give the same result.
    """
    import numpy as np

    levels = np.asarray(values, dtype=np.float64)
    return levels + np.random.default_rng([seed, 4]).uniform(-JITTER, JITTER, size=levels.shape)


def _plain(signals: Mapping[str, float]) -> dict[str, float | None]:
    return {name: None if math.isnan(value) else value for name, value in signals.items()}


def _digest(benchmark: Benchmark) -> str:
    digest = hashlib.sha256()
    head = [
        benchmark.name,
        benchmark.grading,
        benchmark.profile_name,
        benchmark.profile_kind,
        sorted(benchmark.skipped.items()),
        sorted(benchmark.seeds.items()),
        benchmark.tolerance,
    ]
    digest.update(json.dumps(head, ensure_ascii=True).encode("ascii"))
    for item in benchmark.items:
        row: list[Any] = [item.item_id, item.question, item.gold, item.choices, item.profile]
        if item.given or item.cluster is not None or item.signals:  # not in the hash of a benchmark without them
            given = [
                [name, part.text, dict(part.ratings), part.context, _plain(part.signals)]
                for name, part in item.given.items()
            ]
            row += [given, item.reference, item.cluster, _plain(item.signals)]
        digest.update(json.dumps(row, ensure_ascii=True).encode("ascii") + b"\n")
    return digest.hexdigest()
