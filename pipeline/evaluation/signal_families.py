"""The families of signals, and what each took of a run's money."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

OWN_FAMILIES = ("judge", "pairwise", "confidence", "length", "tau", "logprob", "p_true", "benchmark")
FREE_FAMILIES = ("vote", "anchor", "target", "peer")
FAMILIES = (*OWN_FAMILIES, *FREE_FAMILIES)
"""The words of ``signals:`` in a configuration."""
NO_CALLS = ("length", "vote", "target", "peer")
"""Families made of what a run holds anyway; the anchors' answers are calls."""
_STARTS = {
    "pair_": "pairwise", "preference": "pairwise", "confidence": "confidence", "log_length": "length",
    "logprob_": "logprob", "p_true": "p_true",
}  # fmt: skip


def family_of(signal: str, own: Sequence[str] = ()) -> str:
    """The family of a signal that was asked for or given, its missing-reply indicator included.

    Args:
        signal: the column.
        own: names of the user's own numbers.
    """
    if signal.removesuffix("_missing") in own:
        return "benchmark"
    return next((word for start, word in _STARTS.items() if signal.startswith(start)), "judge")


_STAGES: Mapping[str, tuple[str, ...]] = {
    "judge": ("pointwise", "criterion"),
    "pairwise": ("pairwise", "direct"),
    "anchor": ("anchor",),
    "p_true": ("p_true",),
    # Confidence is asked in the answer itself; what is made of answers costs no call.
}


def family_costs(manifest: Mapping[str, Any]) -> tuple[dict[str, float] | None, str]:
    """(family → what it took, ``money``); in ``tokens`` where nothing was priced, None where nothing was counted."""
    stages = (manifest.get("calls") or {}).get("stages") or {}

    def spent(key: str) -> dict[str, float]:
        return {
            family: sum(float((stages.get(stage) or {}).get(key) or 0.0) for stage in names)
            for family, names in _STAGES.items()
        }

    money = spent("cost_usd")
    if sum(money.values()) > 0:
        return money, "money"
    tokens = _tokens(spent("prompt_tokens"), spent("completion_tokens"))
    return (tokens, "tokens") if sum(tokens.values()) > 0 else (None, "tokens")


def _tokens(prompt: Mapping[str, float], completion: Mapping[str, float]) -> dict[str, float]:
    return {family: prompt[family] + completion[family] for family in prompt}
