"""Verdicts between two texts: in terms of what was shown first, of whose text won, and of words for the regressor."""

from __future__ import annotations

from collections.abc import Mapping

from pipeline.collection.calls import JudgedReply
from pipeline.collection.rows import Order, Verdict
from pipeline.tables.cast import DIRECT


def verdict_of(reply: JudgedReply) -> Verdict | None:
    """First, second or tie, from A, B or tie; None without a verdict."""
    if reply.value is None:
        return None
    verdicts: Mapping[str, Verdict] = {"A": "first", "B": "second", "tie": "tie"}
    return verdicts[reply.value.verdict]


def wins(verdict: Verdict | None, order: Order) -> bool | None:
    """Whether the target's text, or w1, won; a tie does not win."""
    return None if verdict is None else verdict == ("first" if order == "ab" else "second")


def direct_pair(other: str) -> str:
    """What the preferences table calls a comparison with another target."""
    return f"{DIRECT}{other}"


def chains_phrase(verdicts: Mapping[Order, Verdict | None]) -> str | None:
    """What the regressor is told of the target's preference between w1 (CHAIN A) and w2 (CHAIN B); None if unknown.

    Half a swap pair is no preference.
    """
    choices = []
    for order, verdict in verdicts.items():
        if verdict is None:
            return None
        choices.append("neither" if verdict == "tie" else "CHAIN A" if wins(verdict, order) else "CHAIN B")
    if len(choices) == 1:
        return "neither chain" if choices[0] == "neither" else choices[0]
    if choices[0] == choices[1]:
        return "neither chain" if choices[0] == "neither" else f"{choices[0]}, in both orders of showing them"
    if "neither" in choices:
        named = choices[1] if choices[0] == "neither" else choices[0]
        return f"{named} in one order of showing them, neither chain in the other"
    return "none that lasts: it chose a different chain when the order of showing them was swapped"
