"""report.html: one self-contained page about a run, and its figures beside it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pipeline.estimators import Estimate
from pipeline.report.charts import standalone
from pipeline.report.item_browser import item_browser
from pipeline.report.markup import facts, section, text
from pipeline.report.methods_text import methods_paragraph, tables_latex, tables_markdown
from pipeline.report.one_step_paragraph import OneStepCosts, StageCost, one_step_paragraph
from pipeline.report.run_folder import RunFolder
from pipeline.report.sections import figures, numbers
from pipeline.report.sections_quality import quality

__all__ = ["write_report"]

_ASSETS = Path(__file__).resolve().parent / "assets"


def write_report(folder: Path) -> None:
    """Write ``report.html`` and ``figures/`` of the run in ``folder``; the same run gives the same bytes.

    Raises:
        InputError: the run has no estimates yet, or a file of it is damaged.
    """
    run = RunFolder(folder)
    _write(folder / "report.html", _page(run))
    target = folder / "figures"
    target.mkdir(exist_ok=True)
    for name, svg in figures(run):
        _write(target / name, standalone(svg))
    _write(target / "tables.md", tables_markdown(run.estimates))
    _write(target / "tables.tex", tables_latex(run.estimates))
    _write(target / "methods.txt", methods_paragraph(run.estimates, run.manifest, run.config) + "\n")


def _write(path: Path, content: str) -> None:
    draft = path.with_name(path.name + ".draft")
    draft.write_text(content, encoding="utf-8", errors="backslashreplace", newline="\n")
    draft.replace(path)


def _page(run: RunFolder) -> str:
    title = f"{run.config.get('name')}: auxeval report"
    style = (_ASSETS / "report.css").read_text(encoding="utf-8")
    script = (_ASSETS / "report.js").read_text(encoding="utf-8")
    sections = [*numbers(run), _one_step(run), *quality(run), item_browser(run), _methods(run)]
    body = "".join(part for part in sections if part)
    header = _header(run, body)
    policy = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{text(title)}</title><style>{style}</style></head><body>"
        f'<a class="skip" href="#main">Skip to the results</a>{header}<main id="main">{body}</main>'
        f"<footer>{_footer(run)}</footer><script>{script}</script></body></html>\n"
    )


def _header(run: RunFolder, body: str) -> str:
    manifest, benchmark = run.manifest, run.manifest.get("benchmark") or {}
    simulated = '<span class="badge">simulated models</span>' if run.simulated else ""
    links = [("leaderboard", "Leaderboard"), ("profiles", "Profiles"), ("gaps", "Gaps"), ("best-of-n", "Best of N")]
    links += [
        ("one-step", "One-step"),
        ("signals", "Signals"),
        ("judges", "Judges"),
        ("cost", "Cost"),
        ("items", "Items"),
    ]
    navigation = "".join(f'<a href="#{identity}">{name}</a>' for identity, name in links if f'id="{identity}"' in body)
    skipped = ", ".join(f"{count} {reason}" for reason, count in (benchmark.get("skipped") or {}).items())
    described = facts(
        [
            ("Run", manifest.get("run_id")),
            ("Benchmark", f"{benchmark.get('name')}, {benchmark.get('items')} items"),
            ("Left out", skipped or "nothing"),
            ("Labeled items", manifest.get("labeled")),
            ("Graded by", benchmark.get("grading")),
            ("Profile axis", benchmark.get("profile")),
            ("Calls", _calls(manifest)),
            ("Started", manifest.get("created_at")),
            ("Seed", manifest.get("seed")),
            ("Made by", manifest.get("command")),
        ]
    )
    name = text(run.config.get("name"))
    return (
        f'<header><button type="button" id="theme">Light or dark</button><h1>{name} {simulated}</h1>'
        f'{_warnings(run)}{described}<nav aria-label="Sections">{navigation}</nav></header>'
    )


def _calls(manifest: Mapping[str, Any]) -> str:
    calls = manifest.get("calls") or {}
    cost = manifest.get("cost_usd")
    money = "" if cost is None else f", ${cost:.4f}"
    return f"{calls.get('answered', 0)} asked, {calls.get('cached', 0)} cached, {calls.get('failed', 0)} failed{money}"


def _warnings(run: RunFolder) -> str:
    found = run.estimates.warnings
    if not found:
        return ""
    lines = "".join(f"<li>{text(warning.message)}</li>" for warning in found)
    return f'<div class="warnings" role="note"><strong>Before you use these numbers</strong><ul>{lines}</ul></div>'


def _one_step(run: RunFolder) -> str:
    """The paragraph per target: is there information, was it worth the calls."""
    paragraphs = []
    coupling = (run.config.get("design") or {}).get("coupling", "independent")
    for target, methods in run.estimates.items():
        estimate = methods.get("one_step")
        if not isinstance(estimate, Estimate):
            continue
        pool, repeated = methods.get("one_step_pool"), methods.get("repeated_decoding")
        paragraphs.append(
            one_step_paragraph(
                target,
                estimate,
                _costs(run, estimate.n),
                coupling=coupling,
                pool=pool if isinstance(pool, Estimate) else None,
                components=repeated.diagnostics.get("components") if isinstance(repeated, Estimate) else None,
            )
        )
    if not paragraphs:
        return ""
    return section("one-step", "Was the one-step correction worth it?", *(f"<p>{text(p)}</p>" for p in paragraphs))


def _costs(run: RunFolder, labeled: int) -> OneStepCosts:
    """Calls and money per target on the labeled items: every stage's share of items and of targets."""
    stages = (run.manifest.get("calls") or {}).get("stages") or {}
    items = max(int((run.manifest.get("benchmark") or {}).get("items") or 1), 1)
    share = labeled / items / max(len(run.targets), 1)

    def cost(*names: str) -> StageCost:
        counted = [stages[name] for name in names if name in stages]
        unknown = any(entry["cost_unknown"] for entry in counted)
        usd = None if unknown else share * sum(entry["cost_usd"] for entry in counted)
        return StageCost(round(share * sum(entry["calls"] for entry in counted)), usd)

    return OneStepCosts(answers=cost("answer"), auxiliary=cost("auxiliary", "episode", "preference", "tau"))


def _methods(run: RunFolder) -> str:
    paragraph = methods_paragraph(run.estimates, run.manifest, run.config)
    return section("methods", "Methods", f"<p>{text(paragraph)}</p>")


def _footer(run: RunFolder) -> str:
    versions = run.manifest.get("versions") or {}
    named = ", ".join(f"{name} {version}" for name, version in versions.items())
    return f"<p>Configuration {text(run.manifest.get('config_sha256'))[:12]}…; {text(named)}.</p>"
