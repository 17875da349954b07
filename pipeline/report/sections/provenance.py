"""Provenance: every number with its method, estimand and labels; the command, the seeds, the prompts, the methods."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from pipeline.estimators import Estimate, Profile
from pipeline.report.markup import Cell, facts, section, table, text
from pipeline.report.methods_text import methods_paragraph
from pipeline.report.run_folder import RunFolder

_MOST_PROMPT = 20_000


def provenance(run: RunFolder) -> str:
    """The section."""
    paragraph = methods_paragraph(run.estimates, run.manifest, run.config)
    return section(
        "methods",
        "Methods and provenance",
        f"<p>{text(paragraph)}</p>",
        facts(_made(run)),
        "<details><summary>Every estimate: what it is about, from how many labels, by which rule</summary>",
        _trace(run),
        "</details>",
        _prompts(run),
    )


def _made(run: RunFolder) -> Iterator[tuple[str, Cell]]:
    manifest, benchmark = run.manifest, run.benchmark
    yield "Command", manifest.get("command")
    yield "Run", manifest.get("run_id")
    yield "Configuration (SHA-256)", manifest.get("config_sha256")
    yield "Benchmark (SHA-256)", benchmark.get("sha256")
    yield "Seed", manifest.get("seed")
    yield "Seeds of the benchmark", ", ".join(f"{k} {v}" for k, v in (benchmark.get("seeds") or {}).items()) or "–"
    yield "Versions", ", ".join(f"{name} {version}" for name, version in (manifest.get("versions") or {}).items())
    yield "Platform", manifest.get("platform")


def _trace(run: RunFolder) -> str:
    rows: list[list[Cell]] = []
    for target, methods in run.estimates.items():
        for method, estimate in methods.items():
            rows.append([f"targets → {target} → {method}", *_about(estimate)])
    for position, gap in enumerate(run.estimates.gaps):
        rows.append([f"gaps[{position}]: {gap.a} − {gap.b}", *_about(gap.estimate)])
    for position, entry in enumerate(run.estimates.best_of_n):
        name = f"best_of_n[{position}]: {entry.target}, {entry.measure}, N {entry.n}, J {entry.j}"
        rows.append([name, *_about(entry.estimate)])
    return table(
        ["entry of estimates.json", "method", "about", "labels", "level", "interval", "diagnostics"],
        rows,
        caption=f"Every estimate, made by: {run.manifest.get('command')}",
        numeric=(3, 4),
        source="estimates.json",
    )


def _about(estimate: Estimate | Profile) -> list[Cell]:
    told = estimate.diagnostics
    labels = estimate.n if isinstance(estimate, Estimate) else told.get("n_labeled", "–")
    target = (
        told.get("covers") or told.get("target") or (estimate.target if isinstance(estimate, Profile) else "population")
    )
    kinds = told.get("interval")
    forms = ", ".join(dict.fromkeys(map(str, kinds))) if isinstance(kinds, list) else str(kinds or "–")
    return [estimate.method, str(target), labels, f"{estimate.level:g}", forms, _scalars(told)]


def _scalars(told: Any) -> str:
    kept = {
        key: f"{value:.4g}" if isinstance(value, float) else value
        for key, value in told.items()
        if isinstance(value, int | float | str) and key not in ("covers", "target", "interval", "n_labeled", "note")
    }
    return ", ".join(f"{key} {value if isinstance(value, str) else json.dumps(value)}" for key, value in kept.items())


def _prompts(run: RunFolder) -> str:
    """The prompt files as they were when the run was made."""
    prompts = []
    for name, content in run.prompts.items():
        cut = content if len(content) <= _MOST_PROMPT else content[:_MOST_PROMPT] + "\n… [cut here]"
        prompts.append(f"<details><summary>{text(name)}</summary><pre>{text(cut)}</pre></details>")
    if not prompts:
        return ""
    return f'<h3>Prompts</h3><p class="note">As kept in the run\'s folder prompts/.</p>{"".join(prompts)}'
