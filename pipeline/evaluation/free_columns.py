"""Free signals as columns of a table: whose answers vote, which columns are kept, and in what family each is.

It never receives an outcome, a gold answer or which items are labeled.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from pipeline.benchmark.agreement import Equal
from pipeline.errors import InputError
from pipeline.estimators.floats import FloatArray
from pipeline.estimators.free_signals import answer_codes, free_signals

MOST_OTHERS = 12
"""With more other targets than these, only the most reliable have a column of their own."""


@dataclass(frozen=True, slots=True)
class Voice:
    """The final answers of one model.

    Attributes:
        name: the target, anchor or auxiliary entry.
        answers: one sequence (M,) per draw, None where no answer was found; a target's graded ones come first.
    """

    name: str
    answers: tuple[Sequence[str | None], ...]


@dataclass(frozen=True, slots=True, eq=False)
class FreeColumns:
    """Columns that cost no call.

    Attributes:
        values: (M, T, K).
        names: (K,) columns; families: word of the family → its columns.
        reliability: voice → how often its first answer agrees with the consensus.
    """

    values: FloatArray
    names: tuple[str, ...] = ()
    families: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    reliability: Mapping[str, float] = field(default_factory=dict)


def free_columns(
    targets: Sequence[Voice],
    anchors: Sequence[Voice],
    chains: Sequence[Voice],
    equal: Equal | None,
    *,
    own: Mapping[str, FloatArray],
    words: Sequence[str],
) -> FreeColumns:
    """The free columns of every target.

    Args:
        targets: the evaluated models, in the order of the configuration.
        anchors: weak, medium, strong, then others; chains: auxiliary entries with the final answers of their chains.
        equal: how two answers are compared; None means identical text.
        own: own signal → (M, T) values, NaN where missing, for the peer columns.
        words: families that are wanted, of vote, anchor, target and peer.

    Raises:
        InputError: two columns would have one name.
    """
    voices = [*targets, *anchors, *chains]
    names = [voice.name for voice in voices]
    number = {id(voice): place for place, voice in enumerate(voices)}
    # The order of the voters decides who is the head of a group: graded answers, anchors, further draws, chains.
    order = [(voice, voice.answers[0]) for voice in targets]
    order += [(voice, answers) for voice in anchors for answers in voice.answers]
    most = max(len(voice.answers) for voice in targets)
    order += [(v, v.answers[draw]) for draw in range(1, most) for v in targets if draw < len(v.answers)]
    order += [(voice, answers) for voice in chains for answers in voice.answers]
    owner = [number[id(voice)] for voice, _ in order]
    codes = answer_codes(list(zip(*(answers for _, answers in order), strict=True)), equal)
    whole = {name: _filled(values) for name, values in own.items() if np.isfinite(values).any(axis=0).all()}
    stacked = np.stack(list(whole.values()), axis=2) if whole else None
    try:
        made = free_signals(codes, owner, len(targets), own=stacked, own_names=tuple(whole), voice_names=names)
    except ValueError as error:
        raise InputError(f"signals from answers: {error}") from error
    first = [owner.index(number) for number in range(len(names))]
    voting = [j for j in range(len(owner)) if owner[:j].count(owner[j]) < 5]
    reliability = {name: float(made.reliability[voting.index(j)]) for name, j in zip(names, first, strict=True)}
    trusted = sorted(names[: len(targets)], key=lambda name: (-reliability[name], name))[: MOST_OTHERS + 1]
    dropped = {f"agrees_{name}" for name in names[: len(targets)]} - {f"agrees_{name}" for name in trusted}
    kept = [
        k
        for k, (name, family) in enumerate(zip(made.names, made.families, strict=True))
        if family in words and not (family == "target" and name in dropped)
    ]
    families: dict[str, tuple[str, ...]] = {}
    for k in kept:
        families[made.families[k]] = (*families.get(made.families[k], ()), made.names[k])
    return FreeColumns(made.columns[:, :, kept], tuple(made.names[k] for k in kept), families, reliability)


def _filled(values: FloatArray) -> FloatArray:
    """(M, T) with each target's missing values at its mean."""
    means = np.nanmean(values, axis=0)
    return np.where(np.isfinite(values), values, means)
