"""The embedded benchmark: worded arithmetic at five levels, written from a seed, with exact answers."""

from __future__ import annotations

from pipeline.benchmark.embedded.families import levels
from pipeline.benchmark.embedded.worded import Draw, Family, Problem
from pipeline.benchmark.items import Item

__all__ = ["LEVELS", "embedded_items", "embedded_problems"]

LEVELS: dict[int, tuple[Family, ...]] = levels()
"""The problem families of each level, from one step of arithmetic to problems that need an idea."""


def embedded_problems(seed: int = 0, *, per_level: int = 40) -> tuple[tuple[int, Problem], ...]:
    """Problems with their level, easiest first; no two have the same question.

    Args:
        seed: the same seed gives the same text, byte for byte.
        per_level: problems at each of the five levels; the families of a level take turns.

    Raises:
        ValueError: more problems are wanted than the families can write without repeating one.
    """
    chosen: list[tuple[int, Problem]] = []
    seen: set[str] = set()
    for level, families in LEVELS.items():
        for index in range(per_level):
            family = families[index % len(families)]
            for attempt in range(200):
                problem = family(Draw(f"{seed}/{level}/{index}/{attempt}"))
                if problem.question not in seen:
                    break
            else:
                raise ValueError(f"cannot write {per_level} different problems at level {level}")
            seen.add(problem.question)
            chosen.append((level, problem))
    return tuple(chosen)


def embedded_items(seed: int = 0, *, per_level: int = 40) -> tuple[Item, ...]:
    """The embedded benchmark as items: 200 by default, profile = level 1 to 5 (ordinal).

    Args:
        seed: the same seed gives the same items, byte for byte.
        per_level: items at each of the five levels.
    """
    counts: dict[int, int] = {}
    items = []
    for level, problem in embedded_problems(seed, per_level=per_level):
        counts[level] = counts.get(level, 0) + 1
        items.append(
            Item(
                item_id=f"level{level}-{counts[level]:03d}",
                question=problem.question,
                gold=problem.gold,
                profile=level,
                metadata={"family": problem.family, "solution": "\n".join(problem.steps)},
            )
        )
    return tuple(items)
