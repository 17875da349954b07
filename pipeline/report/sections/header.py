"""The head of the page: what ran, warnings first, and links to the sections."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pipeline.report.markup import facts, text
from pipeline.report.run_folder import RunFolder

_LINKS = {
    "leaderboard": "Leaderboard",
    "profiles": "Profiles",
    "gaps": "Gaps",
    "best-of-n": "Best of N",
    "repeats": "Repeats",
    "one-step": "One-step",
    "signals": "Signals",
    "judges": "Judges",
    "self-check": "Self-check",
    "cost": "Cost",
    "items": "Items",
    "methods": "Methods",
}


def header(run: RunFolder, present: Sequence[str]) -> str:
    """The head; ``present`` are the sections that the page has."""
    manifest, benchmark = run.manifest, run.benchmark
    links = "".join(f'<a href="#{name}">{label}</a>' for name, label in _LINKS.items() if name in present)
    skipped = ", ".join(f"{count} {reason}" for reason, count in (benchmark.get("skipped") or {}).items())
    described = facts(
        [
            ("Run", manifest.get("run_id")),
            ("State", _state(manifest)),
            ("Targets", ", ".join(run.targets)),
            ("Benchmark", f"{benchmark.get('name')}, {benchmark.get('items')} items"),
            ("Left out", skipped or "nothing"),
            ("Labeled items", int(run.items["labeled"].sum())),
            ("Graded by", benchmark.get("grading")),
            ("Profile axis", benchmark.get("profile")),
            ("Calls", _calls(manifest)),
            ("Cost", _cost(run)),
            ("Started", manifest.get("created_at")),
            ("Made by", manifest.get("command")),
        ]
    )
    badge = ' <span class="badge">simulated models</span>' if run.simulated else ""
    return (
        '<header><button type="button" id="theme" aria-pressed="false">Dark</button>'
        f"<h1>{text(run.config.get('name'))}{badge}</h1>{_warnings(run)}{described}"
        f'<nav aria-label="Sections">{links}</nav></header>'
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
    price = "none (simulated)" if run.simulated and cost == 0.0 else f"${cost:.4f}"
    bound = run.manifest.get("cost_upper_bound") or {}
    if bound:
        price += (
            f", of which ${float(bound['usd']):.4f} is an upper bound: {bound['calls']:,} attempts without a reply or"
            " without usage count at the most that they may have cost"
        )
    return f"{price} + {unknown:,} calls of unknown price" if unknown else price


def _warnings(run: RunFolder) -> str:
    lines = []
    if run.simulated:
        lines.append(
            f"Simulated: the replies of {', '.join(run.simulated)} were made up by this program. The numbers show how"
            " the methods work; they say nothing about any real model."
        )
    if run.manifest.get("state") == "stopped":
        lines.append(f"The run stopped early ({run.manifest.get('reason')}); auxeval resume carries on.")
    lines += [warning.message for warning in run.estimates.warnings]
    if not lines:
        return ""
    listed = "".join(f"<li>{text(line)}</li>" for line in lines)
    return f'<div class="warnings" role="note"><strong>Before you use these numbers</strong><ul>{listed}</ul></div>'


def footer(run: RunFolder) -> str:
    """The foot."""
    version = (run.manifest.get("versions") or {}).get("auxeval")
    return (
        f"<footer><p>auxeval {text(version)}, run {text(run.manifest.get('run_id'))}. This page needs no network; the"
        " tables, estimates and figures lie beside it.</p></footer>"
    )
