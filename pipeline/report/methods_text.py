"""The methods paragraph of a paper: what exactly was estimated, how, and from how many labels."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pipeline.estimators import Estimate, Profile
from pipeline.evaluation.document import EstimateSet

_INTERVALS = {
    "wilson": "Wilson's score interval at the effective number of labels",
    "t": "Student's t",
    "logit": "Student's t on the logit scale",
}


def methods_paragraph(estimates: EstimateSet, manifest: Mapping[str, Any], config: Mapping[str, Any]) -> str:
    """Sentences ready for a methods section, in which every number is this run's own."""
    design = config.get("design") or {}
    sentences = [_design(estimates, manifest, config)]
    sentences += _naive(estimates)
    sentences += _one_step(estimates, design)
    sentences += _lace(estimates, manifest)
    sentences += _decisions(estimates)
    sentences += _best_of_n(estimates, config)
    if manifest.get("simulated"):
        sentences.append(f"The replies of {_listed(tuple(manifest['simulated']))} are SIMULATED.")
    versions = manifest.get("versions") or {}
    sentences.append(f"All intervals have nominal coverage {_level(estimates):g}.")
    sentences.append(f"Software: auxeval {versions.get('auxeval', '')}; made by `{manifest.get('command')}`.")
    return " ".join(sentences)


def _listed(names: Sequence[str]) -> str:
    return "".join(names) if len(names) < 2 else f"{', '.join(names[:-1])} and {names[-1]}"


def _of(estimates: EstimateSet, method: str) -> list[tuple[str, Estimate | Profile]]:
    return [(target, methods[method]) for target, methods in estimates.items() if method in methods]


def _intervals(estimates: EstimateSet, method: str) -> str:
    forms = (estimate.interval for _, estimate in _of(estimates, method))
    flat = dict.fromkeys(form for entry in forms for form in ([entry] if isinstance(entry, str) else entry))
    kinds = [_INTERVALS.get(form, form) for form in flat]
    return f" (intervals: {_listed(kinds)})" if kinds else ""


def _covered(estimates: EstimateSet, method: str) -> str:
    """What the intervals of a method are about."""
    return _listed(tuple(dict.fromkeys(estimate.target for _, estimate in _of(estimates, method))))


def _design(estimates: EstimateSet, manifest: Mapping[str, Any], config: Mapping[str, Any]) -> str:
    benchmark, design = manifest.get("benchmark") or {}, config.get("design") or {}
    labels = sorted({estimate.n for _, estimate in _of(estimates, "naive") if isinstance(estimate, Estimate)})
    counted = " or ".join(map(str, labels)) if labels else str(manifest.get("labeled"))
    drawn = (
        "the items that came with a gold answer"
        if design.get("labeled") == "gold"
        else f"drawn uniformly without replacement (seed {manifest.get('seed')})"
    )
    weighted = any(warning.code == "unequal_chances" for warning in estimates.warnings)
    more = "; later labels were drawn with known unequal chances, which are weighted for" if weighted else ""
    missing = (
        "A labeled item without a reply counts as wrong."
        if config.get("missing_reply", "wrong") == "wrong"
        else "Labeled items without a reply are excluded."
    )
    evaluated = (
        f"We evaluated {_listed(tuple(estimates) or tuple(manifest.get('targets') or ()))} on {benchmark.get('items')}"
        f" items of {benchmark.get('name')} (grading: {benchmark.get('grading')})"
    )
    if not any(method != "gold_all" for methods in estimates.values() for method in methods):
        return f"{evaluated}."
    return f"{evaluated}, {counted} of them with gold labels, {drawn}{more}. {missing}"


def _naive(estimates: EstimateSet) -> Iterator[str]:
    if _of(estimates, "naive"):
        yield f"The naive estimate is the mean outcome of the labeled items{_intervals(estimates, 'naive')}."
    repeated = _of(estimates, "repeated_decoding")
    if repeated:
        yield "Repeated decoding averages several answers to each labeled item; items are the units."
        if any(isinstance(e, Estimate) and e.components and math.isfinite(e.components.item) for _, e in repeated):
            yield "Its variance is split into that between items and that of the answers to one item (one-way ANOVA)."


def _one_step(estimates: EstimateSet, design: Mapping[str, Any]) -> Iterator[str]:
    if not _of(estimates, "one_step"):
        return
    made = [e.correction for _, e in _of(estimates, "one_step") if isinstance(e, Estimate) and e.correction]
    rules = list(dict.fromkeys(correction.power_rule for correction in made))
    powers = [f"{correction.power:.2f}" for correction in made if math.isfinite(correction.power)]
    source = (
        "a penalised regression on features of the chains, cross-fitted"
        if design.get("algorithm") == "features"
        else "a regressor model given the item, two auxiliary chains and the target's preference between them"
    )
    yield (
        "The one-step estimate is the mean over labeled items of the outcome less λ times the difference between the"
        f" predicted probability of correctness at draw 0 and its mean over {design.get('draws')} further draws, the"
        f" predictions made by {source} ({design.get('coupling')} coupling); λ was chosen by the rule"
        f" “{_listed(rules)}” and is {_listed(powers)}{_intervals(estimates, 'one_step')}. It is about the population"
        " that the items come from."
    )
    if _of(estimates, "one_step_pool"):
        yield "Its pool version corrects by the predictions for all items and is about the mean of these items."


def _lace(estimates: EstimateSet, manifest: Mapping[str, Any]) -> Iterator[str]:
    if _of(estimates, "lace"):
        yield (
            "LACE corrects the labeled mean by label-free signals of all items (judge scores, order-swapped comparisons"
            " with anchors, stated confidence, disagreement of the scores; missing values filled with the pool's mean),"
            " its coefficients averaged over candidate rules by their leave-one-out error; it is about the"
            f" {_covered(estimates, 'lace')} mean{_intervals(estimates, 'lace')}."
        )
    profiles = _of(estimates, "lace_profile")
    if profiles:
        axis = (manifest.get("benchmark") or {}).get("profile")
        points = len(profiles[0][1].at) if isinstance(profiles[0][1], Profile) else 0
        yield (
            f"Profiles along {axis} are {_smoothed(profiles)} and estimated in the same way at {points} points,"
            f" about the {_covered(estimates, 'lace_profile')} profile"
            f"{_intervals(estimates, 'lace_profile')}."
        )
    if _of(estimates, "lace_profile_band"):
        yield "Joint bands hold for the whole profile at once."
    if _of(estimates, "lace_profile_shrunk"):
        yield (
            "Beside them stand the same groups shrunk towards their common mean (normal-normal empirical Bayes, the"
            " between-group variance averaged over its posterior), whose intervals hold on average over groups."
        )


def _smoothed(profiles: Sequence[tuple[str, Estimate | Profile]]) -> str:
    """How the points of a profile share labels."""
    smoothed = any(isinstance(profile, Profile) and profile.smoothed for _, profile in profiles)
    return "kernel-smoothed" if smoothed else "each level's own"


def _decisions(estimates: EstimateSet) -> Iterator[str]:
    if not estimates.gaps:
        return
    yield "Gaps between targets are paired by item."
    decided = estimates.decisions
    if decided is not None:
        same = "" if decided.margin is None else f"; two targets are equivalent if it lies within ±{decided.margin:g}"
        yield (
            f"A verdict is that of the interval that holds for all gaps together ({decided.adjustment}){same}; rank"
            " sets follow from it, and p-values are Holm's."
        )


def _best_of_n(estimates: EstimateSet, config: Mapping[str, Any]) -> Iterator[str]:
    if not estimates.best_of_n:
        return
    settings = config.get("best_of_n") or {}
    yield (
        f"Best-of-N values come from {settings.get('candidates')} candidates per item and {settings.get('scores')}"
        " judge scores of each, averaged over all subsets so that no score both selects a candidate and values it;"
        " intervals are over prompts (Student's t)."
    )


def _level(estimates: EstimateSet) -> float:
    for methods in estimates.values():
        for estimate in methods.values():
            return estimate.level
    return estimates.best_of_n[0].estimate.level if estimates.best_of_n else 0.95
