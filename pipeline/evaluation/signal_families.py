"""The families of signals, and what each took of a run's money."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["FAMILIES", "family_costs", "family_of"]

FAMILIES = ("judge scores", "pairwise comparisons", "confidence")


def family_of(signal: str) -> str:
    """The family of a signal of a run, its missing-reply indicator included."""
    if signal.startswith("pair_"):
        return "pairwise comparisons"
    return "confidence" if signal.startswith("confidence") else "judge scores"


_STAGES: Mapping[str, tuple[str, ...]] = {
    "judge scores": ("pointwise",),
    "pairwise comparisons": ("pairwise", "anchor"),
    "confidence": (),  # asked in the answer itself
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
