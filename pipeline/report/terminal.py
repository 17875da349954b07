"""Estimates as tables for a terminal: 80 columns, plain where nobody looks, text never taken for markup."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pipeline.estimators.results import Estimate, Profile
from pipeline.evaluation.document import EstimateSet
from pipeline.report.text_tables import TextTable, plain

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

__all__ = ["METHOD_LABELS", "number", "print_estimates", "span", "worth"]

METHOD_LABELS: Mapping[str, str] = {
    "gold_all": "gold, all items",
    "naive": "naive",
    "repeated_decoding": "repeated decoding",
    "one_step": "one-step",
    "one_step_pool": "one-step, pool",
    "one_step_paper": "one-step, λ = 1",
    "lace": "LACE mean",
    "lace_deployment": "LACE, deployment",
    "lace_profile": "LACE profile",
    "lace_profile_shrunk": "LACE profile, shrunk (option)",
    "truth": "simulated truth",
}


_LARGE = 1e6
"""From here on decimals say nothing."""


def number(value: float, *, percent: bool, digits: int = 1) -> str:
    """A number for people: 0.8123 as 81.2 in percent, or with four digits; a dash where there is none."""
    if not math.isfinite(value):
        return "–"
    if not percent and abs(value) >= _LARGE:
        return f"{value:.7g}"
    return f"{100 * value:.{digits}f}" if percent else f"{value:.{digits + 2}f}"


def span(low: float, high: float, *, percent: bool) -> str:
    """An interval for people."""
    return f"[{number(low, percent=percent)}, {number(high, percent=percent)}]"


def _is_share(estimates: Sequence[Estimate]) -> bool:
    """Whether every number is a share, so that percent reads best."""
    return all(0.0 <= e.value <= 1.0 and e.low >= -0.5 and e.high <= 1.5 for e in estimates if math.isfinite(e.value))


def _single(estimates: EstimateSet) -> list[Estimate]:
    return [e for methods in estimates.values() for e in methods.values() if isinstance(e, Estimate)]


def print_estimates(console: Console, estimates: EstimateSet, *, title: str = "", profiles: bool = True) -> None:
    """Every estimate: a table of means, one of profiles, one of gaps, the best-of-N values, then the warnings."""
    for block in _blocks(estimates, title=title, profiles=profiles):
        console.print(block)


def _blocks(estimates: EstimateSet, *, title: str, profiles: bool) -> Iterator[RenderableType]:
    from rich.text import Text

    if any(isinstance(e, Estimate) for methods in estimates.values() for e in methods.values()):
        yield _means(estimates, title)
    if profiles:
        for target, methods in estimates.items():
            for method, profile in methods.items():
                if method.startswith("lace_profile") and not method.endswith("_band") and isinstance(profile, Profile):
                    along = f" along {profile.diagnostics['column']}" if "column" in profile.diagnostics else ""
                    how = ", shrunk to the groups' mean (option)" if "shrunk" in method else ""
                    yield _profile(f"{target}: profile{along}{how}", profile)
    if any(isinstance(gap.estimate, Estimate) for gap in estimates.gaps):
        yield _gaps(estimates)
    decided = estimates.extra.get("decisions")
    if decided:
        yield _ranks(decided)
    if estimates.best_of_n:
        yield _best_of_n(estimates)
    for warning in estimates.warnings:
        yield Text(plain(f"! {warning.message}"), style="yellow")


def worth(estimate: Estimate, naive: Estimate | Profile | None) -> str:
    """Labels that the plain mean would need for the same standard error, as the estimate says or from both SEs.

    n·(SE_naive/SE)²; about a finite pool of M items, where even the plain mean gets exact, s²/(SE² + s²/M) with
    s² = n·SE_naive².
    """
    told = estimate.diagnostics.get("effective_labels")
    if isinstance(told, float) and math.isfinite(told):
        return f"{told:.0f}"
    if not isinstance(naive, Estimate) or estimate is naive or not estimate.se > 0 or not naive.se > 0:
        return ""
    spread, pool = naive.n * naive.se**2, estimate.diagnostics.get("n_pool")
    within = spread / pool if pool and estimate.diagnostics.get("target") == "pool" else 0.0
    return f"{spread / (estimate.se**2 + within):.0f}"


def _means(estimates: EstimateSet, title: str) -> TextTable:
    single = _single(estimates)
    percent = _is_share(single)
    level = f"{100 * single[0].level:.0f} % interval"
    unit = "%" if percent else "value"
    table = TextTable(
        title,
        [
            ("target", False),
            ("method", False),
            (unit, True),
            ("SE", True),
            (level, True),
            ("labels", True),
            ("worth", True),
        ],
    )
    for position, (target, methods) in enumerate(estimates.items()):
        if position:
            table.section()
        shown = target
        for method, estimate in methods.items():
            if not isinstance(estimate, Estimate):
                continue
            known = method in ("gold_all", "truth")
            table.add(
                shown,
                METHOD_LABELS.get(method, method),
                number(estimate.value, percent=percent),
                "" if known else number(estimate.se, percent=percent, digits=2 if percent else 1),
                "" if known else span(estimate.low, estimate.high, percent=percent),
                str(estimate.n),
                "" if known else worth(estimate, methods.get("naive")),
            )
            shown = ""
    return table


def _profile(title: str, profile: Profile) -> TextTable:
    percent = bool(all(-0.5 <= v <= 1.5 for v in profile.value if math.isfinite(v)))
    verdicts = profile.diagnostics.get("verdict") or [""] * len(profile.at)
    table = TextTable(
        title,
        [
            ("at", True),
            ("%" if percent else "value", True),
            ("SE", True),
            (f"{100 * profile.level:.0f} % interval", True),
            ("effective labels", True),
            ("signals", False),
        ],
    )
    for position, at in enumerate(profile.at):
        shown = str(at) if isinstance(at, str) else f"{float(at):.4g}"
        table.add(
            shown,
            number(profile.value[position], percent=percent),
            number(profile.se[position], percent=percent, digits=2 if percent else 1),
            span(profile.low[position], profile.high[position], percent=percent),
            f"{profile.n_effective[position]:.1f}",
            str(verdicts[position]),
        )
    return table


def _gaps(estimates: EstimateSet) -> TextTable:
    percent = _is_share(_single(estimates))
    table = TextTable(
        "Paired gaps",
        [("a − b", False), ("method", False), ("gap", True), ("SE", True), ("interval", True), ("decided", False)],
    )
    for gap in estimates.gaps:
        estimate = gap.estimate
        if not isinstance(estimate, Estimate):
            continue
        decided = "a > b" if estimate.low > 0 else "a < b" if estimate.high < 0 else "no"
        table.add(
            f"{gap.a} − {gap.b}",
            METHOD_LABELS.get(gap.method.removesuffix("_gap"), gap.method).removesuffix(" mean"),
            number(estimate.value, percent=percent),
            number(estimate.se, percent=percent, digits=2 if percent else 1),
            span(estimate.low, estimate.high, percent=percent),
            decided,
        )
    return table


def _ranks(decided: Mapping[str, Any]) -> TextTable:
    """The ranks each target could hold, all together with the stated probability."""
    table = TextTable(
        f"Ranks (joint, {100 * decided['level']:.0f} %)",
        [("target", False), ("rank", True), ("could be", True), ("better than, for certain", False)],
    )
    for entry in decided["rank_sets"]:
        beaten = [p["b"] for p in decided["pairs"] if p["a"] == entry["name"] and p["low"] > 0]
        beaten += [p["a"] for p in decided["pairs"] if p["b"] == entry["name"] and p["high"] < 0]
        reach = str(entry["best"]) if entry["best"] == entry["worst"] else f"{entry['best']} to {entry['worst']}"
        table.add(entry["name"], str(entry["rank"]), reach, ", ".join(beaten) or "–")
    return table


def _best_of_n(estimates: EstimateSet) -> TextTable:
    table = TextTable(
        "Best of N by the mean of J scores",
        [
            ("target", False),
            ("measure", False),
            ("N", True),
            ("J", True),
            ("value", True),
            ("SE", True),
            ("interval", True),
            ("prompts", True),
        ],
    )
    for entry in estimates.best_of_n:
        estimate = entry.estimate
        table.add(
            entry.target,
            entry.measure,
            str(entry.n),
            str(entry.j),
            number(estimate.value, percent=False),
            number(estimate.se, percent=False),
            span(estimate.low, estimate.high, percent=False),
            str(estimate.n),
        )
    return table
