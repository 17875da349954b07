"""The one-step correction in words: is there information, what was gained, was it worth the calls."""

from __future__ import annotations

from pipeline.estimators import Estimate
from pipeline.report.one_step_paragraph import OneStepCosts, StageCost, one_step_paragraph
from pipeline.report.page_values import Part, Prose
from pipeline.report.run_folder import RunFolder


def one_step(run: RunFolder) -> tuple[Part, ...]:
    """A paragraph per target; none where it was not estimated."""
    paragraphs: list[Part] = []
    coupling = (run.config.get("design") or {}).get("coupling", "independent")
    for target, methods in run.estimates.items():
        estimate = methods.get("one_step")
        if not isinstance(estimate, Estimate):
            continue
        pool, repeated = methods.get("one_step_pool"), methods.get("repeated_decoding")
        paragraph = one_step_paragraph(
            target,
            estimate,
            _costs(run, estimate.n),
            coupling=coupling,
            pool=pool if isinstance(pool, Estimate) else None,
            components=repeated.components if isinstance(repeated, Estimate) else None,
        )
        paragraphs.append(Prose(paragraph))
    if not paragraphs:
        return ()
    note = (
        "Calls and money are each stage's, shared evenly over items and targets. Source: estimates.json, targets →"
        " target → one_step, one_step_pool."
    )
    return (*paragraphs, Prose(note, note=True))


def _costs(run: RunFolder, labeled: int) -> OneStepCosts:
    """Calls and money per target on the labeled items: every stage's share of items and of targets."""
    stages = (run.manifest.get("calls") or {}).get("stages") or {}
    items = max(int(run.benchmark.get("items") or 1), 1)
    share = labeled / items / max(len(run.targets), 1)

    def cost(*names: str) -> StageCost:
        counted = [stages[name] for name in names if name in stages]
        unknown = any(entry["cost_unknown"] for entry in counted)
        usd = None if unknown else share * sum(entry["cost_usd"] for entry in counted)
        return StageCost(round(share * sum(entry["calls"] for entry in counted)), usd)

    return OneStepCosts(
        answers=cost("answer"), auxiliary=cost("auxiliary", "episode", "preference", "tau", "embedding")
    )
