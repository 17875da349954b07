"""The estimates of a run or table as one document: estimates.json, and what ``--json`` prints."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from pipeline.errors import InputError
from pipeline.estimators.gaps.ranking import RankSet
from pipeline.estimators.results import Estimate, Profile
from pipeline.evaluation.reading import GradingError, StageReplies, Unread
from pipeline.evaluation.validity import JudgeValidity
from pipeline.foreign_json import read_json

SCHEMA = 2
"""The first had no fields beside the numbers, no verdicts, no headline; it stays readable."""
Verdict = Literal["a_better", "b_better", "equivalent", "undecided"]


@dataclass(frozen=True, slots=True)
class Gap:
    """The paired difference a − b of two targets."""

    a: str
    b: str
    method: str
    estimate: Estimate | Profile

    def to_dict(self) -> dict[str, Any]:
        """As in estimates.json."""
        return {"a": self.a, "b": self.b, "method": self.method, "estimate": self.estimate.to_dict()}


@dataclass(frozen=True, slots=True)
class BestOfNEstimate:
    """The value of one policy: the best of N candidates by the mean of J scores."""

    target: str
    n: int
    j: int
    estimate: Estimate
    measure: str = "score"

    def to_dict(self) -> dict[str, Any]:
        """As in estimates.json."""
        return {
            "target": self.target,
            "n": self.n,
            "j": self.j,
            "measure": self.measure,
            "estimate": self.estimate.to_dict(),
        }


@dataclass(frozen=True, slots=True)
class Warned:
    """Something the reader of the numbers must know."""

    code: str
    message: str

    def to_dict(self) -> dict[str, str]:
        """As in estimates.json."""
        return {"code": self.code, "message": self.message}


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A method that was asked for and has no number here.

    Attributes:
        target: the target, or the pair ``a − b``.
        method: its name.
        reason: why, and what to do instead.
    """

    target: str
    method: str
    reason: str

    def to_dict(self) -> dict[str, str]:
        """As in estimates.json."""
        return {"target": self.target, "method": self.method, "reason": self.reason}


@dataclass(frozen=True, slots=True)
class PairDecision:
    """The difference a − b of two targets, decided together with all other pairs.

    Attributes:
        a: first target.
        b: second target.
        value: the difference.
        se: its standard error.
        low: lower end of the interval that holds together with those of all other pairs.
        high: upper end of the same.
        low_single: lower end of the interval of this pair alone.
        high_single: upper end of the same.
        p: two-sided p-value of no difference, this pair alone.
        p_adjusted: the same after Holm's correction over all pairs.
        level: nominal joint coverage.
        n: items labeled for both.
        margin: the difference below which two targets count as equivalent; None: none was named.
        target: ``population`` or ``pool``.
        verdict: ``a_better``, ``b_better``, ``equivalent`` or ``undecided``, from the joint interval; None about a
            pool: a difference of these very items is a fact, not an inference.
    """

    a: str
    b: str
    value: float
    se: float
    low: float
    high: float
    low_single: float
    high_single: float
    p: float
    p_adjusted: float
    level: float
    n: int
    margin: float | None
    target: str
    verdict: Verdict | None

    @property
    def better(self) -> str | None:
        """The target that is shown to be better."""
        return {"a_better": self.a, "b_better": self.b}.get(self.verdict or "")

    @property
    def said(self) -> str:
        """The verdict in words; empty about a pool."""
        if self.better is not None:
            return f"{self.better} is better"
        if self.verdict == "equivalent":
            return f"equivalent within ±{self.margin:g}"
        return "no difference shown" if self.verdict == "undecided" else ""

    def to_dict(self) -> dict[str, Any]:
        """As in estimates.json."""
        return _plain(asdict(self))


@dataclass(frozen=True, slots=True)
class Decisions:
    """Which target is better, all pairs decided together.

    Attributes:
        method: estimator of the differences.
        adjustment: how the intervals are made to hold together.
        level: nominal joint coverage.
        margin: equivalence margin, or None.
        target: ``population`` or ``pool``.
        pairs: every pair with enough labels.
        rank_sets: the ranks that every target could hold; empty about a pool, and where not all pairs were compared.
    """

    method: str
    adjustment: str
    level: float
    margin: float | None
    target: str
    pairs: tuple[PairDecision, ...]
    rank_sets: tuple[RankSet, ...] = ()

    def beaten(self, name: str) -> list[str]:
        """The targets that one is shown to be better than."""
        return [pair.b if pair.a == name else pair.a for pair in self.pairs if pair.better == name]

    def to_dict(self) -> dict[str, Any]:
        """As in estimates.json."""
        kept = {name: getattr(self, name) for name in ("method", "adjustment", "level", "margin", "target")}
        pairs = [pair.to_dict() for pair in self.pairs]
        return {**kept, "pairs": pairs, "rank_sets": [_plain(entry.to_dict()) for entry in self.rank_sets]}


@dataclass(frozen=True, slots=True)
class EstimateSet(Mapping[str, Mapping[str, Estimate | Profile]]):
    """Everything that was estimated: target → method → estimate, and what is about several targets.

    ``estimates["gpt"]["one_step"]`` is an :class:`Estimate`, ``estimates["gpt"]["lace_profile"]`` a :class:`Profile`.

    Attributes:
        targets: target → method → its result.
        gaps: paired differences.
        best_of_n: values of best-of-N policies.
        warnings: what the reader of the numbers must know.
        left_out: methods that have no number here, and why.
        decisions: all pairs decided together; None where there is no pair.
        headline: the sentence that answers.
        judges: each judge's score held against the labels.
        criteria: further things that people rated, each with targets, gaps and decisions of its own.
        unread: target → its answers in which none could be read; empty for tables, whose outcomes are given.
        replies: what became of the replies of every stage; empty for tables.
        audit: how often a person found the grading of a random sample wrong; None where nobody looked.
        extra: further entries of the document, as JSON values.
    """

    targets: Mapping[str, Mapping[str, Estimate | Profile]]
    gaps: tuple[Gap, ...] = ()
    best_of_n: tuple[BestOfNEstimate, ...] = ()
    warnings: tuple[Warned, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    decisions: Decisions | None = None
    headline: str = ""
    judges: tuple[JudgeValidity, ...] = ()
    criteria: Mapping[str, EstimateSet] = field(default_factory=dict)
    unread: Mapping[str, Unread] = field(default_factory=dict)
    replies: tuple[StageReplies, ...] = ()
    audit: GradingError | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)

    def __getitem__(self, target: str) -> Mapping[str, Estimate | Profile]:
        return self.targets[target]

    def __iter__(self) -> Iterator[str]:
        return iter(self.targets)

    def __len__(self) -> int:
        return len(self.targets)

    def to_dict(self) -> dict[str, Any]:
        """The document as strict JSON values."""
        decided = {} if self.decisions is None else {"decisions": self.decisions.to_dict()}
        judges = {"judges": [entry.to_dict() for entry in self.judges]} if self.judges else {}
        criteria = (
            {"criteria": {name: part.criterion() for name, part in self.criteria.items()}} if self.criteria else {}
        )
        return {
            "schema": SCHEMA,
            "headline": self.headline,
            "targets": {
                name: {method: estimate.to_dict() for method, estimate in methods.items()}
                for name, methods in self.targets.items()
            },
            "gaps": [gap.to_dict() for gap in self.gaps],
            "best_of_n": [entry.to_dict() for entry in self.best_of_n],
            "warnings": [warning.to_dict() for warning in self.warnings],
            "left_out": [entry.to_dict() for entry in self.left_out],
            **decided,
            **judges,
            **criteria,
            **({"unread": {name: entry.to_dict() for name, entry in self.unread.items()}} if self.unread else {}),
            **({"replies": [entry.to_dict() for entry in self.replies]} if self.replies else {}),
            **({"audit": self.audit.to_dict()} if self.audit is not None else {}),
            **dict(self.extra),
        }

    def criterion(self) -> dict[str, Any]:
        """What the document of a run says of one further criterion."""
        whole = self.to_dict()
        return {name: whole[name] for name in ("headline", "targets", "gaps", "decisions", "judges") if name in whole}

    def to_json(self) -> str:
        """The document as indented strict JSON, ending with a newline."""
        return json.dumps(self.to_dict(), indent=1, ensure_ascii=True, allow_nan=False) + "\n"


Evaluation = EstimateSet
"""What ``pipeline.estimate`` and a run return, by the name that a reader expects."""


def _plain(values: dict[str, Any]) -> dict[str, Any]:
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value for name, value in values.items()
    }


def _either(entry: Mapping[str, Any]) -> Estimate | Profile:
    return Profile.from_dict(entry) if "at" in entry else Estimate.from_dict(entry)


def _decisions(data: Mapping[str, Any] | None) -> Decisions | None:
    """Of either schema: the first had no verdicts, and they follow from its joint intervals."""
    if not data:
        return None
    target = data.get("target", "population")
    pairs = []
    for entry in data["pairs"]:
        given = {name: entry.get(name) for name in PairDecision.__dataclass_fields__}
        numbers = {name: math.nan if given[name] is None else given[name] for name in _PAIR_NUMBERS}
        verdict = (
            entry["verdict"] if "verdict" in entry else verdict_of(numbers["low"], numbers["high"], given["margin"])
        )
        pairs.append(PairDecision(**{**given, **numbers, "target": given["target"] or target, "verdict": verdict}))
    ranks = tuple(
        RankSet(**{**entry, "value": math.nan if entry["value"] is None else entry["value"]})
        for entry in data["rank_sets"]
    )
    return Decisions(
        data["method"], data["adjustment"], data["level"], data["margin"], target, tuple(pairs), ranks
    )  # fmt: skip


def verdict_of(low: float, high: float, margin: float | None) -> Verdict:
    """What a joint interval of a − b decides; better wins where both hold."""
    if low > 0.0:
        return "a_better"
    if high < 0.0:
        return "b_better"
    return "equivalent" if margin is not None and -margin < low and high < margin else "undecided"


_PAIR_NUMBERS = ("value", "se", "low", "high", "low_single", "high_single", "p", "p_adjusted")
_KNOWN = (
    "schema", "targets", "gaps", "best_of_n", "warnings", "left_out", "decisions", "headline", "judges", "criteria",
    "unread", "replies", "audit",
)  # fmt: skip


def read_estimates(path: Path) -> EstimateSet:
    """The document of a finished run.

    Raises:
        InputError: it is missing, damaged, or of a newer schema.
    """
    try:
        data = read_json(path.read_text(encoding="utf-8"))
        if data["schema"] > SCHEMA:
            raise InputError(
                f"{path}: schema {data['schema']} is newer than this program reads ({SCHEMA}); upgrade auxeval"
            )
        return _estimate_set(data)
    except FileNotFoundError:
        raise InputError(f"{path}: no estimates yet; auxeval resume finishes the run") from None
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path}: damaged ({type(error).__name__}); auxeval resume makes it again") from None


def _estimate_set(data: Mapping[str, Any]) -> EstimateSet:
    return EstimateSet(
        targets={
            name: {method: _either(entry) for method, entry in methods.items()}
            for name, methods in data["targets"].items()
        },
        gaps=tuple(Gap(g["a"], g["b"], g["method"], _either(g["estimate"])) for g in data["gaps"]),
        best_of_n=tuple(
            BestOfNEstimate(b["target"], b["n"], b["j"], Estimate.from_dict(b["estimate"]), b.get("measure", "score"))
            for b in data.get("best_of_n", ())
        ),
        warnings=tuple(Warned(w["code"], w["message"]) for w in data.get("warnings", ())),
        left_out=tuple(LeftOut(**entry) for entry in data.get("left_out", ())),
        decisions=_decisions(data.get("decisions")),
        headline=data.get("headline", ""),
        judges=tuple(JudgeValidity.from_dict(entry) for entry in data.get("judges", ())),
        criteria={name: _estimate_set(part) for name, part in data.get("criteria", {}).items()},
        unread={name: Unread.from_dict(entry) for name, entry in data.get("unread", {}).items()},
        replies=tuple(StageReplies.from_dict(entry) for entry in data.get("replies", ())),
        audit=GradingError.from_dict(data["audit"]) if data.get("audit") else None,
        extra={name: value for name, value in data.items() if name not in _KNOWN},
    )
