"""Provenance of a run: how to write about it, its command, seeds, versions, every number's rule, its prompts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pipeline.report.document_tables import trace
from pipeline.report.methods_text import methods_paragraph
from pipeline.report.page_values import Folded, Listed, Part, Prose, Quoted
from pipeline.report.run_folder import RunFolder
from pipeline.report.values import Cell

_MOST_PROMPT = 20_000


def provenance(run: RunFolder) -> tuple[Part, ...]:
    """The parts."""
    paragraph = methods_paragraph(run.estimates, run.manifest, run.config)
    every = "Every estimate: what it is about, from how many labels, by which rule"
    prompts = tuple(
        Folded(name, (Quoted(text if len(text) <= _MOST_PROMPT else text[:_MOST_PROMPT] + "\n… [cut here]"),))
        for name, text in run.prompts.items()
    )
    kept: tuple[Part, ...] = ()
    if prompts:
        kept = (Prose("Prompts", heading=True), Prose("As kept in the run's folder prompts/.", note=True), *prompts)
    return (Prose(paragraph), Listed(tuple(_made(run))), Folded(every, (trace(run.estimates),)), *kept)


def _made(run: RunFolder) -> Iterator[tuple[str, Cell]]:
    manifest, benchmark = run.manifest, run.benchmark
    yield "Command", manifest.get("command")
    yield "Run", manifest.get("run_id")
    yield "State", _state(manifest)
    yield "Started", manifest.get("created_at")
    yield "Calls", _calls(manifest)
    yield "Cost", _cost(run)
    yield "Graded by", benchmark.get("grading")
    yield "Profile axis", benchmark.get("profile")
    yield "Left out", ", ".join(f"{n} {why}" for why, n in (benchmark.get("skipped") or {}).items()) or "nothing"
    yield "Configuration (SHA-256)", manifest.get("config_sha256")
    yield "Benchmark (SHA-256)", benchmark.get("sha256")
    yield "Seed", manifest.get("seed")
    yield "Seeds of the benchmark", ", ".join(f"{k} {v}" for k, v in (benchmark.get("seeds") or {}).items()) or "–"
    yield "Versions", ", ".join(f"{name} {version}" for name, version in (manifest.get("versions") or {}).items())
    yield "Platform", manifest.get("platform")


def run_summary(run: RunFolder) -> tuple[tuple[str, Cell], ...]:
    """What the numbers come from, in a line."""
    items, labeled = run.benchmark.get("items"), int(run.items["labeled"].sum())
    return (
        ("Benchmark", f"{run.benchmark.get('name')}, {items} items, {labeled} labeled"),
        ("Calls", _calls(run.manifest)),
        ("Cost", _cost(run)),
    )


def _state(manifest: Mapping[str, Any]) -> str:
    if manifest.get("state") == "stopped":
        return f"stopped early: {manifest.get('reason') or 'no reason given'}"
    return str(manifest.get("state") or "unknown")


def _calls(manifest: Mapping[str, Any]) -> str:
    calls = manifest.get("calls") or {}
    counted = (int(calls.get(name) or 0) for name in ("answered", "cached", "failed", "tokens"))
    answered, cached, failed, tokens = (f"{count:,}" for count in counted)
    return f"{answered} asked, {cached} cached, {failed} failed; {tokens} tokens"


def _cost(run: RunFolder) -> str:
    stages = ((run.manifest.get("calls") or {}).get("stages") or {}).values()
    unknown = sum(int(entry.get("cost_unknown") or 0) for entry in stages)
    cost = float(run.manifest.get("cost_usd") or 0.0)
    told = "none (simulated)" if run.simulated and cost == 0.0 else f"${cost:.4f}"
    bound = run.manifest.get("cost_upper_bound") or {}
    if bound:
        told += (
            f", of which ${float(bound['usd']):.4f} is an upper bound: {bound['calls']:,} attempts without a reply or"
            " without usage count at the most that they may have cost"
        )
    return f"{told} + {unknown:,} calls of unknown price" if unknown else told


def run_warnings(run: RunFolder) -> Iterator[str]:
    """What must be known of the run itself before its numbers are read."""
    if run.simulated:
        yield (
            f"Simulated: the replies of {', '.join(run.simulated)} were made up by this program. The numbers show how"
            " the methods work; they say nothing about any real model."
        )
    if run.manifest.get("state") == "stopped":
        yield f"The run stopped early ({run.manifest.get('reason')}); auxeval resume carries on."
