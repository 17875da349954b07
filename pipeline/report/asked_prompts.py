"""The prompts of a run as patterns that the page fills with an item's texts: what each call was asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pipeline.report.values import clean

_MOST = 20_000


def place(name: str) -> str:
    """The mark of a variable in a pattern: two private-use characters around its name."""
    return f"\ue000{name}\ue001"


@dataclass(frozen=True, slots=True)
class AskedPrompts:
    """Every prompt of a run, rendered with marks in the place of outside texts.

    Attributes:
        patterns: prompt (``answer``, ``anchor``, ``pointwise_1``, ``pairwise``, ``preference``, ``tau``, …) → its text
            for an item with choices and for one without.
        phrase: what a regressor is told of a target's verdicts on two chains (order → verdict); None if nothing.
    """

    patterns: Mapping[str, tuple[str, str]]
    phrase: Callable[[Mapping[str, str | None]], str | None]

    def shown(self) -> dict[str, list[str]]:
        """The patterns as the page keeps them, very long ones cut."""
        return {name: [_cut(text) for text in texts] for name, texts in self.patterns.items()}


def _cut(text: str) -> str:
    excerpt = clean(text[:_MOST])
    return excerpt if len(text) <= _MOST else f"{excerpt} … [{len(text) - _MOST:,} more characters]"
