"""The report's figures as small hand-made SVG: a forest plot, a curve with its bands."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pipeline.report.markup import text

_STYLE = (
    "text{font:12px system-ui,sans-serif;fill:currentColor}.axis{stroke:currentColor;stroke-opacity:.35}"
    ".grid{stroke:currentColor;stroke-opacity:.12}.head{font-weight:600}"
)
COLOURS = ("#2f6fde", "#c2620a", "#0d8a62", "#9a4fd8", "#d43c3c", "#0b86a3", "#5d8016", "#c7358f")
WIDTH = 720
Scale = Callable[[float], float]


@dataclass(frozen=True, slots=True)
class Interval:
    """One row of a forest plot; ``low`` and ``high`` None draw a point alone, ``value`` None only the label."""

    label: str
    value: float | None
    low: float | None = None
    high: float | None = None
    group: int = 0


@dataclass(frozen=True, slots=True)
class Curve:
    """A line with a band, or with whiskers where ``dashed``; points without a value break the line."""

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
    rounded = 0.0 if abs(value) < 1e-12 else value
    return f"{round(100 * rounded, 8):g} %" if percent else f"{rounded:g}"


def _number(value: float, percent: bool) -> str:
    if percent:
        return f"{100 * value:.1f}"
    return f"{value:.3f}" if abs(value) < 100 else f"{value:.4g}"


def _short(label: str, most: int) -> str:
    return label if len(label) <= most else label[: most - 1] + "…"


def _line(x1: float, y1: float, x2: float, y2: float, style: str) -> str:
    return f'<line x1="{x1:.1f}" x2="{x2:.1f}" y1="{y1:.1f}" y2="{y2:.1f}" {style}/>'


def _text(x: float, y: float, content: str, *, anchor: str = "start", style: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{style}>{text(content)}</text>'


def forest_plot(rows: Sequence[Interval], *, title: str, percent: bool, zero: bool = False) -> str:
    """Estimates and intervals, one row each, with the numbers beside them; ``zero`` marks the line of no difference."""
    ends = [v for row in rows for v in (row.value, row.low, row.high) if v is not None]
    low, high = _range([*ends, 0.0] if zero else ends)
    left, right, step = 200, 150, 21
    bottom = 14 + step * len(rows)

    def x(value: float) -> float:
        return left + (value - low) / (high - low) * (WIDTH - left - right)

    parts = []
    for tick in _ticks(low, high):
        parts.append(_line(x(tick), 6, x(tick), bottom, 'class="grid"'))
        parts.append(_text(x(tick), bottom + 17, _label(tick, percent), anchor="middle"))
    if zero:
        parts.append(_line(x(0), 6, x(0), bottom, 'class="axis"'))
    for position, row in enumerate(rows):
        parts += _forest_row(row, 20 + step * position, left, x, percent)
    return _svg(WIDTH, bottom + 28, title, "".join(parts))


def _forest_row(row: Interval, y: float, left: float, x: Scale, percent: bool) -> list[str]:
    if row.value is None:
        return [_text(8, y + 4, _short(row.label, 60), style=' class="head"')]
    colour = COLOURS[row.group % len(COLOURS)]
    parts = [_text(left - 12, y + 4, _short(row.label, 28), anchor="end")]
    if not math.isfinite(row.value):
        return [*parts, _text(WIDTH - 145, y + 4, "–")]
    label = _number(row.value, percent)
    if row.low is None or row.high is None:
        parts.append(f'<path d="M{x(row.value):.1f} {y - 5:.1f}l5 5l-5 5l-5 -5Z" fill="none" stroke="{colour}"/>')
    elif math.isfinite(row.low) and math.isfinite(row.high):
        parts.append(_line(x(row.low), y, x(row.high), y, f'stroke="{colour}" stroke-width="2.5"'))
        parts.append(f'<circle cx="{x(row.value):.1f}" cy="{y:.1f}" r="4.5" fill="{colour}"/>')
        label += f" [{_number(row.low, percent)}, {_number(row.high, percent)}]"
    else:
        parts.append(f'<circle cx="{x(row.value):.1f}" cy="{y:.1f}" r="4.5" fill="{colour}"/>')
    return [*parts, _text(WIDTH - 145, y + 4, label)]


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
    curves: Sequence[Curve],
    *,
    title: str,
    x_label: str,
    percent: bool,
    ticks: Sequence[tuple[float, str]] = (),
    zero: bool = False,
) -> str:
    """Curves with pointwise bands (darker) and simultaneous ones (lighter); dashed ones with whiskers.

    Args:
        curves: first the main one.
        title: for screen readers.
        x_label: the axis.
        percent: values are shares.
        ticks: names of the levels of a category, whose points are then joined by nothing.
        zero: mark the line of no difference.
    """
    height, left, right, top, bottom = 340, 58, 20, 34, 52
    xs = [value for curve in curves for value in curve.x]
    ys = [v for c in curves for v in (*c.y, *c.low, *c.high, *c.outer_low, *c.outer_high)]
    (x0, x1), (y0, y1) = _range(xs, 0.04), _range([*ys, 0.0] if zero else ys)

    def x(value: float) -> float:
        return left + (value - x0) / (x1 - x0) * (WIDTH - left - right)

    def y(value: float) -> float:
        return height - bottom - (value - y0) / (y1 - y0) * (height - top - bottom)

    base = height - bottom
    parts = [_line(left, base, WIDTH - right, base, 'class="axis"')]
    for tick in _ticks(y0, y1):
        parts.append(_line(left, y(tick), WIDTH - right, y(tick), 'class="grid"'))
        parts.append(_text(left - 6, y(tick) + 4, _label(tick, percent), anchor="end"))
    if zero:
        parts.append(_line(left, y(0), WIDTH - right, y(0), 'class="axis"'))
    room = max(4, int((WIDTH - left - right) / (6.5 * max(len(ticks), 1)))) if ticks else 16
    for place, name in ticks or [(tick, f"{round(tick, 10):g}") for tick in _ticks(x0, x1, 8)]:
        parts.append(_text(x(place), base + 18, _short(name, room), anchor="middle"))
    parts.append(_text((left + WIDTH) / 2, height - 8, x_label, anchor="middle"))
    for number, curve in enumerate(curves):
        drawn = _points if ticks else _curve
        parts += drawn(curve, COLOURS[number % len(COLOURS)], x, y, (14.0 if ticks else 5.0) * number)
    return _svg(WIDTH, height, title, "".join(parts) + _legend(curves, left, bool(ticks)))


def _curve(curve: Curve, colour: str, x: Scale, y: Scale, shift: float) -> list[str]:
    across = [x(value) + (shift if curve.dashed else 0.0) for value in curve.x]
    parts = []
    if curve.dashed and curve.low:
        for px, low, high in zip(across, curve.low, curve.high, strict=True):
            if math.isfinite(low) and math.isfinite(high):
                parts.append(_line(px, y(low), px, y(high), f'stroke="{colour}" stroke-width="1.5"'))
    else:
        for lows, highs, opacity in ((curve.outer_low, curve.outer_high, 0.12), (curve.low, curve.high, 0.22)):
            area = _area(across, [y(v) for v in lows], [y(v) for v in highs]) if lows else ""
            if area:
                parts.append(f'<path d="{area}" fill="{colour}" fill-opacity="{opacity}"/>')
    dash = ' stroke-dasharray="5 4"' if curve.dashed else ""
    line = _path(list(zip(across, (y(v) for v in curve.y), strict=True)))
    if line:
        parts.append(f'<path d="{line}" fill="none" stroke="{colour}" stroke-width="2"{dash}/>')
    for px, v in zip(across, curve.y, strict=True):
        if math.isfinite(v):
            parts.append(f'<circle cx="{px:.1f}" cy="{y(v):.1f}" r="3" fill="{colour}"/>')
    return parts


def _points(curve: Curve, colour: str, x: Scale, y: Scale, shift: float) -> list[str]:
    """Levels of a category stand in no order: points and whiskers, joined by nothing."""
    across = [x(value) + shift for value in curve.x]
    parts = []
    for lows, highs, style in (
        (curve.outer_low, curve.outer_high, 'stroke-width="1"'),
        (curve.low, curve.high, 'stroke-width="3"'),
    ):
        for px, low, high in zip(across, lows, highs, strict=False):
            if math.isfinite(low) and math.isfinite(high):
                parts.append(_line(px, y(low), px, y(high), f'stroke="{colour}" {style}'))
    for px, v in zip(across, curve.y, strict=True):
        if math.isfinite(v):
            parts.append(f'<circle cx="{px:.1f}" cy="{y(v):.1f}" r="4.5" fill="{colour}"/>')
    return parts


def _legend(curves: Sequence[Curve], left: float, points: bool) -> str:
    parts, across = [], left
    for number, curve in enumerate(curves):
        colour = COLOURS[number % len(COLOURS)]
        band = " (band: point by point; lighter: the whole curve)" if curve.outer_low else ""
        if points:
            band = " (thick: this level; thin: all levels at once)" if curve.outer_low else ""
        name = _short(curve.name, 40) + (" (whiskers)" if curve.dashed and curve.low and not points else band)
        dash = ' stroke-dasharray="5 4"' if curve.dashed and not points else ""
        parts.append(_line(across, 14, across + 22, 14, f'stroke="{colour}" stroke-width="2.5"{dash}'))
        parts.append(_text(across + 28, 18, name))
        across += 52 + 6.2 * len(name)
    return "".join(parts)
