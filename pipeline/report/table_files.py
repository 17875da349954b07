"""Writes the estimates of a table into a folder: estimates.json, estimates.csv and a self-contained report.html."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path
from typing import Any

from pipeline.errors import DataError
from pipeline.estimators import Estimate, Profile
from pipeline.evaluation.document import Decisions, EstimateSet
from pipeline.evaluation.methods import SHRUNK, SHRUNK_NOTE, method_label
from pipeline.evaluation.rehearsal import Rehearsed, rehearsed_of
from pipeline.report.terminal import about

_COLUMNS = ("target", "method", "at", "value", "se", "low", "high", "level", "n", "worth", "verdict")
_STYLE = """body{font:15px/1.45 system-ui,sans-serif;margin:2rem auto;max-width:72rem;overflow-x:auto;
padding:0 1rem;color:#1a1a1a}
table{border-collapse:collapse;margin:.5rem 0 1.5rem}
td,th{padding:.25rem .7rem;text-align:right;border-bottom:1px solid #ddd;white-space:nowrap}
td:first-child,th:first-child,td:nth-child(2),th:nth-child(2){text-align:left}th{border-bottom:2px solid #888}
.warn{color:#7a4a00}svg{overflow:visible}@media(prefers-color-scheme:dark){body{background:#161616;color:#e6e6e6}
td{border-color:#333}.warn{color:#e0b060}}"""


def write_table_report(
    folder: Path,
    estimates: EstimateSet,
    *,
    title: str,
    sentences: Sequence[str] = (),
) -> tuple[Path, ...]:
    """Write the three files.

    Raises:
        DataError: the folder cannot be written.
    """
    contents = {
        "estimates.json": estimates.to_json(),
        "estimates.csv": csv_text(estimates),
        "report.html": html_text(estimates, title=title, sentences=sentences),
    }
    paths = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in contents.items():
            path = folder / name
            draft = path.with_name(name + ".draft")
            draft.write_text(text, encoding="utf-8", newline="\n")
            draft.replace(path)
            paths.append(path)
    except OSError as error:
        raise DataError(f"--out {folder} cannot be written: {error.strerror or error}") from error
    return tuple(paths)


def _rows(estimates: EstimateSet) -> Iterator[dict[str, Any]]:
    """One row per number: means, profile points, gaps and best-of-N values."""
    for target, methods in estimates.items():
        for method, estimate in methods.items():
            yield from _estimate_rows(target, method, estimate)
    for gap in estimates.gaps:
        yield from _estimate_rows(f"{gap.a} − {gap.b}", gap.method, gap.estimate)
    for entry in estimates.best_of_n:
        method = f"best_of_{entry.n}_by_{entry.j}_{entry.measure}"
        yield from _estimate_rows(entry.target, method, entry.estimate)


def _estimate_rows(target: str, method: str, estimate: Estimate | Profile) -> Iterator[dict[str, Any]]:
    shared = {"target": target, "method": method, "level": estimate.level}
    if isinstance(estimate, Estimate):
        numbers = {name: getattr(estimate, name) for name in ("value", "se", "low", "high", "n", "worth", "verdict")}
        yield {**shared, "at": None, **numbers}
        return
    for k, at in enumerate(estimate.at.tolist()):
        numbers = {name: float(getattr(estimate, name)[k]) for name in ("value", "se", "low", "high", "worth")}
        yield {**shared, "at": at, **numbers, "n": None, "verdict": estimate.verdict[k]}


def csv_text(estimates: EstimateSet) -> str:
    """Every number with its interval; an empty cell where there is none."""
    text = io.StringIO()
    writer = csv.DictWriter(text, _COLUMNS, lineterminator="\n")
    writer.writeheader()
    for row in _rows(estimates):
        writer.writerow({key: _cell(value) for key, value in row.items()})
    return text.getvalue()


def _cell(value: Any) -> Any:
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return ""
    return repr(value) if isinstance(value, float) else value


def html_text(estimates: EstimateSet, *, title: str, sentences: Sequence[str] = ()) -> str:
    """A page without scripts or outside links: intervals drawn beside the numbers, then the warnings."""
    rows = list(_rows(estimates))
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">',
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body><h1>{escape(title)}</h1>",
        f"<p><strong>{escape(estimates.headline)}</strong></p>" if estimates.headline else "",
        _html_warnings(estimates),
        _html_ranks(estimates.decisions),
        f"<h2>Estimates {about(estimates)}</h2>",
    ]
    means = [row for row in rows if row["at"] is None]
    gaps = [row for row in means if row["target"] not in estimates]
    parts.append(_html_table([row for row in means if row["target"] in estimates], place="labels"))
    parts += [f"<p>{escape(sentence)}</p>" for sentence in sentences[:6]]
    if sentences[6:]:
        parts.append(f"<details><summary>{len(sentences) - 6} more such sentences</summary>")
        parts += [*(f"<p>{escape(sentence)}</p>" for sentence in sentences[6:]), "</details>"]
    if gaps:
        parts += ["<h2>Paired gaps</h2>", _html_table(gaps, place="labels")]
    if any(SHRUNK in method for methods in estimates.values() for method in methods):
        parts.append(f"<p>{escape(SHRUNK_NOTE[0].upper() + SHRUNK_NOTE[1:])}</p>")
    for target, method in dict.fromkeys((row["target"], row["method"]) for row in rows if row["at"] is not None):
        chosen = [row for row in rows if row["at"] is not None and (row["target"], row["method"]) == (target, method)]
        parts.append(f"<h2>{escape(str(target))}: {escape(method_label(method))}</h2>")
        parts.append(_html_table(chosen, place="at"))
    rehearsed = rehearsed_of(estimates)
    if rehearsed:
        parts.append(_html_rehearsal(rehearsed))
    return "\n".join([*parts, "</body></html>", ""])


def _html_warnings(estimates: EstimateSet) -> str:
    """What must be known before the numbers are read."""
    messages = [warning.message for warning in estimates.warnings]
    messages += [f"{entry.target}: {entry.method} is left out: {entry.reason}" for entry in estimates.left_out]
    listed = "".join(f'<li class="warn">{escape(text)}</li>' for text in messages)
    return f"<ul>{listed}</ul>" if messages else ""


def _html_table(rows: Sequence[dict[str, Any]], place: str) -> str:
    ends = [
        row[key] for row in rows for key in ("low", "high", "value") if row[key] is not None and math.isfinite(row[key])
    ]
    low, high = (min(ends), max(ends)) if ends else (0.0, 1.0)
    lines = [f"<table><tr><th>target</th><th>{'method' if place == 'labels' else 'at'}</th><th>value</th><th>SE</th>"]
    lines.append(
        f"<th>interval</th><th></th><th>{'labels' if place == 'labels' else ''}</th><th>worth</th><th>signals</th></tr>"
    )
    for row in rows:
        name = method_label(row["method"]) if place == "labels" else _shown(row["at"])
        worth = _shown(row["worth"], 1)
        lines.append(
            f"<tr><td>{escape(str(row['target']))}</td><td>{escape(str(name))}</td><td>{_shown(row['value'])}</td>"
            f"<td>{_shown(row['se'])}</td><td>[{_shown(row['low'])}, {_shown(row['high'])}]</td>"
            f"<td>{_bar(row, low, high)}</td><td>{_shown(row['n']) if place == 'labels' else ''}</td><td>{worth}</td>"
            f"<td>{escape(str(row['verdict'] or ''))}</td></tr>"
        )
    return "\n".join([*lines, "</table>"])


def _html_ranks(decided: Decisions | None) -> str:
    """The ranks each model could hold, and the joint intervals behind them; empty with a single model."""
    if decided is None:
        return ""
    level = f"{100 * decided.level:g} %"
    lines = [f"<h2>Ranks (all together, {level})</h2><table><tr><th>model</th><th>rank</th><th>could be</th></tr>"]
    for entry in sorted(decided.rank_sets, key=lambda entry: entry.rank):
        reach = str(entry.best) if entry.best == entry.worst else f"{entry.best} to {entry.worst}"
        lines.append(f"<tr><td>{escape(entry.name)}</td><td>{entry.rank}</td><td>{reach}</td></tr>")
    lines = [*lines, "</table>"] if decided.rank_sets else []
    lines.append("<details><summary>Joint intervals of all gaps</summary><table><tr><th>a − b</th>")
    lines.append("<th>gap</th><th>joint interval</th><th>p (Holm)</th><th>verdict</th></tr>")
    for pair in decided.pairs:
        lines.append(
            f"<tr><td>{escape(pair.a)} − {escape(pair.b)}</td><td>{_shown(pair.value)}</td>"
            f"<td>[{_shown(pair.low)}, {_shown(pair.high)}]</td><td>{_shown(pair.p_adjusted)}</td>"
            f"<td>{escape(pair.said)}</td></tr>"
        )
    return "\n".join([*lines, "</table></details><p>Source: estimates.json, decisions.</p>"])


def _shown(value: Any, digits: int = 4) -> str:
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return "–" if value is not None else ""
    if isinstance(value, float):
        return f"{value:.{digits}f}" if abs(value) < 1e4 else f"{value:.{digits}g}"
    return escape(str(value))


def _bar(row: dict[str, Any], low: float, high: float) -> str:
    """The interval as a line with a dot, 160 pixels wide."""
    if any(row[key] is None or not math.isfinite(row[key]) for key in ("low", "high", "value")):
        return ""
    width = 160.0
    left, right, dot = (width * (row[key] - low) / ((high - low) or 1.0) for key in ("low", "high", "value"))
    return (
        f'<svg width="{width:.0f}" height="14" role="img" aria-label="interval">'
        f'<line x1="{left:.1f}" x2="{right:.1f}" y1="7" y2="7" stroke="#4477aa" stroke-width="2"/>'
        f'<circle cx="{dot:.1f}" cy="7" r="3.5" fill="#4477aa"/></svg>'
    )


def _html_rehearsal(rehearsed: Sequence[Rehearsed]) -> str:
    head = "<h2>Rehearsal</h2><table><tr><th>target</th><th>method</th><th>labels</th><th>RMSE</th><th>coverage</th>"
    lines = [head + "<th>half-width</th><th>efficiency</th></tr>"]
    lines += [
        f"<tr><td>{escape(row.target)}</td><td>{escape(row.method)}</td><td>{row.labels}</td><td>{row.rmse:.4f}</td>"
        f"<td>{100 * row.coverage:.1f} %</td><td>{row.half_width:.4f}</td><td>{row.efficiency:.2f}</td></tr>"
        for row in rehearsed
    ]
    return "\n".join([*lines, "</table>"])
