"""How well replies were read: answers that could not be, and how often a person found a reading wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Unread:
    """Answers of one target in which none could be read.

    Attributes:
        count: how many.
        share: of the target's answers, in [0, 1].
        value_low: plain mean over the labeled items as it is, unread ones wrong; None where φ is no share.
        value_high: the same, had all of them been right.
        forms: the commonest forms of their last lines, most frequent first, each with its count.
    """

    count: int
    share: float
    value_low: float | None
    value_high: float | None
    forms: tuple[tuple[str, int], ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """As in estimates.json."""
        return {**asdict(self), "forms": [list(form) for form in self.forms]}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Unread:
        """From estimates.json."""
        forms = tuple((str(form), int(count)) for form, count in data.get("forms", ()))
        return cls(data["count"], data["share"], data["value_low"], data["value_high"], forms)


@dataclass(frozen=True, slots=True)
class StageReplies:
    """What became of the replies of one stage about one target.

    Attributes:
        target: whom they are about; the model itself where the stage has no target.
        stage: answer, anchor, preference, score, pairwise, tau, …
        ok: read and used.
        cut: ended by the token limit.
        unread: whole, and nothing could be read in them.
        invalid: empty, or still not in the asked form after a repair.
        refused: refused or filtered.
        failed: calls without a reply.
        quotes: how up to three of the replies end that could not be used.
    """

    target: str
    stage: str
    ok: int = 0
    cut: int = 0
    unread: int = 0
    invalid: int = 0
    refused: int = 0
    failed: int = 0
    quotes: tuple[str, ...] = ()

    @classmethod
    def from_counts(cls, target: str, stage: str, ends: Mapping[str, int], quotes: Sequence[str] = ()) -> StageReplies:
        """From how often each end was met."""
        kinds = ("ok", "cut", "unread", "invalid", "refused", "failed")
        return cls(target, stage, **{kind: ends.get(kind, 0) for kind in kinds}, quotes=tuple(quotes))

    @property
    def asked(self) -> int:
        """All of them."""
        return self.ok + self.cut + self.unread + self.invalid + self.refused + self.failed

    @property
    def lost(self) -> float:
        """Share of them that could not be used, in [0, 1]."""
        return 1.0 - self.ok / self.asked if self.asked else 0.0

    def to_dict(self) -> dict[str, Any]:
        """As in estimates.json."""
        return {**asdict(self), "quotes": list(self.quotes)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> StageReplies:
        """From estimates.json, also of a version that quoted nothing."""
        counts = {name: data[name] for name in cls.__dataclass_fields__ if name != "quotes"}
        return cls(**counts, quotes=tuple(map(str, data.get("quotes", ()))))


@dataclass(frozen=True, slots=True)
class GradingError:
    """How often a person who checked a random sample of read answers found φ wrong.

    Attributes:
        checked: answers of the sample that were checked.
        wrong: those among them whose φ was wrong.
        rate: their share.
        low: lower end of its Wilson interval.
        high: upper end of the same.
        level: its nominal coverage.
    """

    checked: int
    wrong: int
    rate: float
    low: float
    high: float
    level: float

    def to_dict(self) -> dict[str, Any]:
        """As in estimates.json."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> GradingError:
        """From estimates.json."""
        return cls(**{name: data[name] for name in cls.__dataclass_fields__})
