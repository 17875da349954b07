"""The report's figures as small hand-made SVG: a forest plot, a curve with its bands."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from pipeline.report.markup import text

__all__ = ["Curve", "Interval", "curve_chart", "forest_plot", "standalone"]

_STYLE = (
    "text{font:12px system-ui,sans-serif;fill:currentColor}.axis{stroke:currentColor;stroke-opacity:.35}"
    ".grid{stroke:currentColor;stroke-opacity:.1}.bar{stroke-width:2.5}.muted{opacity:.6}"
)
COLOURS = ("#2563eb", "#d97706", "#059669", "#9333ea", "#dc2626", "#0891b2", "#4d7c0f", "#be185d")


@dataclass(frozen=True, slots=True)
class Interval:
    """One row of a forest plot; ``low`` and ``high`` None draw a point alone."""

    label: str
    value: float
    low: float | None
    high: float | None
    group: int = 0


@dataclass(frozen=True, slots=True)
class Curve:
    """A line with an optional band; points without a value break the line."""

    name: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    outer_low: tuple[float, ...] = ()
    outer_high: tuple[float, ...] = ()
    dashed: bool = False


def standalone(svg: str) -> str:
    """An SVG that is a file of its own."""
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + svg.replace("<svg ", '<svg color="#1f2937" ', 1) + "\n"


def _svg(width: int, height: int, title: str, body: str) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
        f' role="img" aria-label="{text(title)}"><title>{text(title)}</title><style>{_STYLE}</style>{body}</svg>'
    )


def _ticks(low: float, high: float, count: int = 5) -> list[float]:
    """Round numbers inside [low, high]."""
    span = high - low
    if not span > 0:
        return [low]
    rough = span / count
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(s * power for s in (1, 2, 2.5, 5, 10) if s * power >= rough * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [k * step for k in range(first, math.floor(high / step + 1e-9) + 1)]


def _range(values: Sequence[float], pad: float = 0.04) -> tuple[float, float]:
    finite = [value for value in values if math.isfinite(value)]
    low, high = (min(finite), max(finite)) if finite else (0.0, 1.0)
    if low == high:
        low, high = low - 0.5, high + 0.5
    return low - pad * (high - low), high + pad * (high - low)


def _label(value: float, percent: bool) -> str:
    return f"{100 * value:g} %" if percent else f"{value:g}"


def forest_plot(rows: Sequence[Interval], *, title: str, percent: bool, zero: bool = False) -> str:
    """Estimates and intervals, one row each; ``zero`` marks the line of no difference."""
    ends = [v for row in rows for v in (row.value, row.low, row.high) if v is not None]
    low, high = _range([*ends, 0.0] if zero else ends)
    left, right, step = 210, 20, 22
    width, height = 720, 30 + step * len(rows) + 26

    def x(value: float) -> float:
        return left + (value - low) / (high - low) * (width - left - right)

    bottom = 12 + step * len(rows)
    parts = []
    for tick in _ticks(low, high):
        parts.append(f'<line class="grid" x1="{x(tick):.1f}" x2="{x(tick):.1f}" y1="8" y2="{bottom}"/>')
        parts.append(
            f'<text x="{x(tick):.1f}" y="{bottom + 18}" text-anchor="middle">{_label(round(tick, 10), percent)}</text>'
        )
    if zero:
        parts.append(f'<line class="axis" x1="{x(0):.1f}" x2="{x(0):.1f}" y1="6" y2="{bottom}"/>')
    for position, row in enumerate(rows):
        y = 20 + step * position
        colour = COLOURS[row.group % len(COLOURS)]
        parts.append(f'<text x="{left - 10}" y="{y + 4}" text-anchor="end">{text(row.label[:34])}</text>')
        if row.low is not None and row.high is not None and math.isfinite(row.low) and math.isfinite(row.high):
            parts.append(
                f'<line class="bar" stroke="{colour}" x1="{x(row.low):.1f}" x2="{x(row.high):.1f}" y1="{y}" y2="{y}"/>'
            )
        if math.isfinite(row.value):
            shape = (
                f'<circle cx="{x(row.value):.1f}" cy="{y}" r="4.5" fill="{colour}"/>'
                if row.low is not None
                else f'<path d="M{x(row.value):.1f} {y - 6}l6 6-6 6-6-6z" fill="none" stroke="{colour}"/>'
            )
            parts.append(shape)
    return _svg(width, height, title, "".join(parts))


def _path(points: Sequence[tuple[float, float]]) -> str:
    drawn, pen = [], "M"
    for px, py in points:
        if math.isfinite(px) and math.isfinite(py):
            drawn.append(f"{pen}{px:.1f} {py:.1f}")
            pen = "L"
        else:
            pen = "M"
    return "".join(drawn)


def _area(xs: Sequence[float], lows: Sequence[float], highs: Sequence[float]) -> str:
    kept = [(a, b, c) for a, b, c in zip(xs, lows, highs, strict=True) if math.isfinite(b) and math.isfinite(c)]
    if len(kept) < 2:
        return ""
    forth = [f"{a:.1f} {c:.1f}" for a, _, c in kept]
    back = [f"{a:.1f} {b:.1f}" for a, b, _ in reversed(kept)]
    return f"M{'L'.join(forth)}L{'L'.join(back)}Z"


def curve_chart(
    curves: Sequence[Curve], *, title: str, x_label: str, percent: bool, ticks: Sequence[tuple[float, str]] = ()
) -> str:
    """Curves with pointwise bands (darker) and simultaneous ones (lighter); ``ticks`` name the levels of a category."""
    width, height, left, right, top, bottom = 720, 330, 58, 20, 14, 52
    xs = [value for curve in curves for value in curve.x]
    ys = [v for c in curves for v in (*c.y, *c.low, *c.high, *c.outer_low, *c.outer_high)]
    (x0, x1), (y0, y1) = _range(xs, 0.03), _range(ys)

    def x(value: float) -> float:
        return left + (value - x0) / (x1 - x0) * (width - left - right)

    def y(value: float) -> float:
        return height - bottom - (value - y0) / (y1 - y0) * (height - top - bottom)

    base = height - bottom
    parts = [f'<line class="axis" x1="{left}" x2="{width - right}" y1="{base}" y2="{base}"/>']
    for tick in _ticks(y0, y1):
        parts.append(f'<line class="grid" x1="{left}" x2="{width - right}" y1="{y(tick):.1f}" y2="{y(tick):.1f}"/>')
        parts.append(
            f'<text x="{left - 6}" y="{y(tick) + 4:.1f}" text-anchor="end">{_label(round(tick, 10), percent)}</text>'
        )
    for place, name in ticks or [(tick, f"{round(tick, 10):g}") for tick in _ticks(x0, x1, 8)]:
        parts.append(f'<text x="{x(place):.1f}" y="{base + 18}" text-anchor="middle">{text(name[:16])}</text>')
    parts.append(
        f'<text class="muted" x="{(left + width) / 2:.0f}" y="{height - 8}" text-anchor="middle">{text(x_label)}</text>'
    )
    for number, curve in enumerate(curves):
        colour = COLOURS[number % len(COLOURS)]
        across = [x(value) for value in curve.x]
        for lows, highs, opacity in ((curve.outer_low, curve.outer_high, 0.1), (curve.low, curve.high, 0.2)):
            if lows:
                area = _area(across, [y(v) for v in lows], [y(v) for v in highs])
                parts.append(f'<path d="{area}" fill="{colour}" fill-opacity="{opacity}"/>')
        dash = ' stroke-dasharray="5 4"' if curve.dashed else ""
        line = _path(list(zip(across, (y(v) for v in curve.y), strict=True)))
        parts.append(f'<path d="{line}" fill="none" stroke="{colour}" stroke-width="2"{dash}/>')
        if not curve.dashed:
            parts += [
                f'<circle cx="{px:.1f}" cy="{y(v):.1f}" r="3" fill="{colour}"/>'
                for px, v in zip(across, curve.y, strict=True)
                if math.isfinite(v)
            ]
        parts.append(
            f'<text x="{left + 10 + 170 * number}" y="{top + 4}" style="fill:{colour}">{text(curve.name[:26])}</text>'
        )
    return _svg(width, height, title, "".join(parts))
