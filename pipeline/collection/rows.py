"""The rows a collection yields: one frozen class per table, with the table's columns as fields."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

Reason = Literal["not_asked", "refused", "truncated", "empty", "invalid", "no_answer", "failed", "missing_input"]
"""Why a value is null."""
ResponseOutcome = Literal["ok", "no_answer", "truncated", "refused", "failed"]
Verdict = Literal["first", "second", "tie"]
Order = Literal["ab", "ba"]
"""``ab``: the target's text, or w1, is shown first."""


@dataclass(frozen=True, slots=True)
class ResponseRow:
    """One reply with a chain of reasoning and a final answer.

    ``stage`` is ``answer``, ``anchor``, ``auxiliary`` (chain s of draw j has draw 2j + s, s = 0 for w1), ``episode``
    (the fresh answers of draws 1..M under episode coupling) or ``candidates``. ``confidence`` is in [0, 1].
    """

    table: ClassVar[str] = "responses"
    item_id: str
    model: str
    stage: str
    draw: int
    text: str | None
    reasoning: str | None
    answer: str | None
    confidence: float | None
    confidence_reason: Reason | None
    phi: float | None
    phi_reason: Reason | None
    outcome: ResponseOutcome
    finish_reason: str | None
    request_key: str | None


@dataclass(frozen=True, slots=True)
class PreferenceRow:
    """One verdict in one order.

    ``pair`` is ``chains`` (w1 against w2, the rater is the target) or ``weak``, ``medium``, ``strong`` (the target
    against that anchor). ``wins`` says whether the target's text, or w1, won; a tie does not win.
    """

    table: ClassVar[str] = "preferences"
    item_id: str
    target: str
    rater: str
    pair: str
    draw: int
    order: Order
    verdict: Verdict | None
    verdict_reason: Reason | None
    wins: bool | None
    request_key: str | None


@dataclass(frozen=True, slots=True)
class ScoreRow:
    """One judge score in [0, 1]; ``candidate`` is None but for ``prompt`` = ``candidate``."""

    table: ClassVar[str] = "scores"
    item_id: str
    target: str
    rater: str
    prompt: str
    candidate: int | None
    draw: int
    score: float | None
    score_reason: Reason | None
    repaired: bool
    request_key: str | None


@dataclass(frozen=True, slots=True)
class TauRow:
    """One predicted probability that the target answers correctly."""

    table: ClassVar[str] = "taus"
    item_id: str
    target: str
    variant: str
    draw: int
    tau: float | None
    tau_reason: Reason | None
    request_key: str | None


@dataclass(frozen=True, slots=True)
class CandidateRow:
    """One candidate of Best-of-N and its gold value where gold is known."""

    table: ClassVar[str] = "candidates"
    item_id: str
    target: str
    candidate: int
    answer: str | None
    phi: float | None
    phi_reason: Reason | None
    request_key: str | None


@dataclass(frozen=True, slots=True)
class ProbabilityRow:
    """One number made of token probabilities, null where a reply that was asked for has none.

    ``signal`` is ``logprob_mean`` or ``logprob_min`` of a target's answer, ``p_true``, or ``judge_expected``, whose
    ``source`` is the judge and its prompt.
    """

    table: ClassVar[str] = "probabilities"
    item_id: str
    target: str
    signal: str
    source: str
    value: float | None


Row = ResponseRow | PreferenceRow | ScoreRow | TauRow | CandidateRow | ProbabilityRow


def columns_of(row: Row) -> dict[str, Any]:
    """Column → value, as ``dataclasses.asdict`` gives it, without its copies: a tenth of the time."""
    return {name: getattr(row, name) for name in row.__slots__}
