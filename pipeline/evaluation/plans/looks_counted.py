"""What several looks at growing labels cost, and what their plan says: an entry of the document and a sentence."""

from __future__ import annotations

from typing import Any

from pipeline.evaluation.options import Options
from pipeline.evaluation.pool import Pool


def counted_looks(pool: Pool, options: Options) -> tuple[dict[str, Any], str]:
    """({"looks": sizes, level, decisions}, the sentence for a reader); nothing for one look or none without a plan.

    Args:
        pool: with the labels of the last look.
        options: ``looks`` and how decisions are made.
    """
    sizes = options.looks
    planned = f"The labels are bought by a plan, and its verdict is the one to report. {options.plan}"
    if len(sizes) < 2:
        return {}, planned if options.plan else ""
    # Imported where it is needed: it brings scipy.optimize, which estimate starts without.
    from pipeline.estimators.looks import level_of_looks

    level = level_of_looks(sizes, max(target.size for target in pool.targets), options.target)
    which = "both intervals are" if len(sizes) == 2 else f"all {len(sizes)} intervals are"
    decided = (
        "Decisions use an interval that holds however often you look"
        if options.sequential
        else f"Decisions are right only if you had fixed {sizes[-1]} labels beforehand"
    )
    sentence = (
        f"{len(sizes)} looks ({', '.join(map(str, sizes))} labels): {which} right together in {100 * level:.0f} of 100 "
        f"studies. {decided}. {planned if options.plan else 'Next time: auxeval labels plan.'}"
    )
    entry = {"sizes": list(sizes), "level": level, "decisions": "anytime" if options.sequential else "as_if_once"}
    return {"looks": entry}, sentence
