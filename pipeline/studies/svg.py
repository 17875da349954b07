"""Small line charts with bands and markers as SVG text, written by hand so that no plotting library is needed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

PALETTE = ("#1f6fb4", "#d1495b", "#2a9d5c", "#8a5fbf", "#e08e1b", "#4d4d4d", "#17a2b8", "#b0785c")
MARGIN_LEFT, MARGIN_RIGHT, MARGIN_TOP, MARGIN_BOTTOM = 62.0, 16.0, 40.0, 52.0


@dataclass(frozen=True, slots=True)
class Series:
    """One curve.

    Attributes:
        label: its name in the legend; empty leaves it out.
        x, y: points in drawing order; a non-finite y breaks the line.
        low, high: ends of a shaded band around it.
        dashed: dashed line.
        markers: a dot at every point.
        line: join the points.
        color: any CSS colour; by default the next of a fixed palette.
    """

    label: str
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] | None = None
    high: Sequence[float] | None = None
    dashed: bool = False
    markers: bool = False
    line: bool = True
    color: str | None = None


def line_chart(
    series: Sequence[Series],
    *,
    title: str = "",
    x_label: str = "",
    y_label: str = "",
    width: int = 680,
    height: int = 420,
    log_x: bool = False,
    log_y: bool = False,
    y_range: tuple[float, float] | None = None,
    reference: float | None = None,
    legend_from: float = 0.0,
) -> str:
    """The chart as SVG text.

    Args:
        series: curves, drawn in order.
        log_x, log_y: logarithmic axes (all values must be > 0).
        y_range: limits of the vertical axis; by default those of the data and bands.
        reference: height of a thin horizontal line (a nominal level, a ratio of one).
        legend_from: where the legend begins, as a share of the height from the top.

    Raises:
        ValueError: no finite point, lengths that differ, or a value ≤ 0 on a logarithmic axis.
    """
    for entry in series:
        lengths = {len(part) for part in (entry.x, entry.y, entry.low, entry.high) if part is not None}
        if len(lengths) != 1:
            raise ValueError(f"series {entry.label!r} has parts of different lengths")
    x_axis = _Axis.over(_finite(value for entry in series for value in entry.x), log_x)
    heights = [value for entry in series for part in (entry.y, entry.low, entry.high) for value in part or ()]
    if reference is not None:
        heights.append(reference)
    y_axis = _Axis.over(y_range if y_range is not None else _finite(heights), log_y)
    frame = _Frame(x_axis, y_axis, float(width), float(height))
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" font-family="sans-serif" font-size="12" role="img">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        f'<text x="{width / 2:g}" y="22" text-anchor="middle" font-size="14">{escape(title)}</text>',
        *frame.axes(x_label, y_label),
    ]
    if reference is not None:
        level = frame.y(reference)
        parts.append(f'<path d="M{frame.left:g} {level:.1f}H{frame.right:g}" stroke="#999999" stroke-width="1"/>')
    colors = [entry.color or PALETTE[index % len(PALETTE)] for index, entry in enumerate(series)]
    for entry, color in zip(series, colors, strict=True):
        parts += _band(entry, escape(color, {'"': "&quot;"}), frame)
    for entry, color in zip(series, colors, strict=True):
        parts += _curve(entry, escape(color, {'"': "&quot;"}), frame)
    parts += _legend(series, colors, frame, round(legend_from * height))
    parts.append("</svg>")
    return "\n".join(parts) + "\n"


@dataclass(frozen=True, slots=True)
class _Axis:
    low: float
    high: float
    log: bool

    @classmethod
    def over(cls, values: Sequence[float], log: bool) -> _Axis:
        if not values:
            raise ValueError("a chart needs at least one finite point")
        low, high = min(values), max(values)
        if log and low <= 0:
            raise ValueError("a logarithmic axis needs values above 0")
        if low == high:
            low, high = (low / 2, high * 2) if log else (low - 0.5, high + 0.5)
        return cls(low, high, log)

    def share(self, value: float) -> float:
        """Where on the axis, 0 to 1 (clipped a little outside)."""
        if self.log:
            place = math.log(max(value, 1e-300) / self.low) / math.log(self.high / self.low)
        else:
            place = (value - self.low) / (self.high - self.low)
        return min(max(place, -0.02), 1.02)

    def ticks(self) -> list[float]:
        if self.log:
            first, last = math.floor(math.log10(self.low)), math.ceil(math.log10(self.high))
            marks = [mantissa * 10.0**power for power in range(first, last + 1) for mantissa in (1, 2, 5)]
            return [mark for mark in marks if self.low * 0.999 <= mark <= self.high * 1.001] or [self.low, self.high]
        rough = (self.high - self.low) / 5.0
        unit = 10.0 ** math.floor(math.log10(rough))
        step = min((multiple * unit for multiple in (1, 2, 2.5, 5, 10) if multiple * unit >= rough), default=rough)
        start = math.ceil(self.low / step - 1e-9)
        return [index * step for index in range(start, math.floor(self.high / step + 1e-9) + 1)]


@dataclass(frozen=True, slots=True)
class _Frame:
    x_axis: _Axis
    y_axis: _Axis
    width: float
    height: float

    @property
    def left(self) -> float:
        return MARGIN_LEFT

    @property
    def right(self) -> float:
        return self.width - MARGIN_RIGHT

    @property
    def bottom(self) -> float:
        return self.height - MARGIN_BOTTOM

    def x(self, value: float) -> float:
        return self.left + self.x_axis.share(value) * (self.right - self.left)

    def y(self, value: float) -> float:
        return self.bottom - self.y_axis.share(value) * (self.bottom - MARGIN_TOP)

    def axes(self, x_label: str, y_label: str) -> list[str]:
        parts = []
        for mark in self.y_axis.ticks():
            level = self.y(mark)
            parts.append(f'<path d="M{self.left:g} {level:.1f}H{self.right:g}" stroke="#e6e6e6"/>')
            parts.append(f'<text x="{self.left - 6:g}" y="{level + 4:.1f}" text-anchor="end">{mark:.4g}</text>')
        for mark in self.x_axis.ticks():
            place = self.x(mark)
            parts.append(f'<path d="M{place:.1f} {self.bottom:g}v4" stroke="#333333"/>')
            parts.append(f'<text x="{place:.1f}" y="{self.bottom + 18:g}" text-anchor="middle">{mark:.6g}</text>')
        middle = (MARGIN_TOP + self.bottom) / 2
        parts.append(
            f'<path d="M{self.left:g} {MARGIN_TOP:g}V{self.bottom:g}H{self.right:g}" fill="none" stroke="#333333"/>'
        )
        centre, below = (self.left + self.right) / 2, self.bottom + 38
        parts.append(f'<text x="{centre:g}" y="{below:g}" text-anchor="middle">{escape(x_label)}</text>')
        parts.append(
            f'<text transform="translate(16 {middle:g}) rotate(-90)" text-anchor="middle">{escape(y_label)}</text>'
        )
        return parts


def _finite(values: object) -> list[float]:
    return [float(value) for value in values if math.isfinite(value)]  # type: ignore[attr-defined]


def _band(entry: Series, color: str, frame: _Frame) -> list[str]:
    if entry.low is None or entry.high is None:
        return []
    ends = [
        (frame.x(x), frame.y(low), frame.y(high))
        for x, low, high in zip(entry.x, entry.low, entry.high, strict=True)
        if math.isfinite(low) and math.isfinite(high)
    ]
    if len(ends) < 2:
        return []
    outline = [f"{x:.1f} {high:.1f}" for x, _, high in ends] + [f"{x:.1f} {low:.1f}" for x, low, _ in reversed(ends)]
    return [f'<path d="M{"L".join(outline)}Z" fill="{color}" fill-opacity="0.15"/>']


def _curve(entry: Series, color: str, frame: _Frame) -> list[str]:
    parts = []
    if entry.line:
        path, pen_up = "", True
        for x, y in zip(entry.x, entry.y, strict=True):
            if math.isfinite(y):
                path += f"{'M' if pen_up else 'L'}{frame.x(x):.1f} {frame.y(y):.1f}"
            pen_up = not math.isfinite(y)
        dash = ' stroke-dasharray="6 4"' if entry.dashed else ""
        parts.append(f'<path d="{path}" fill="none" stroke="{color}" stroke-width="1.8"{dash}/>')
    if entry.markers:
        parts += [
            f'<circle cx="{frame.x(x):.1f}" cy="{frame.y(y):.1f}" r="3" fill="{color}"/>'
            for x, y in zip(entry.x, entry.y, strict=True)
            if math.isfinite(y)
        ]
    return parts


def _legend(series: Sequence[Series], colors: Sequence[str], frame: _Frame, down: int) -> list[str]:
    parts, row = [], 0
    for entry, color in zip(series, colors, strict=True):
        if not entry.label:
            continue
        level = MARGIN_TOP + down + 12 + 16 * row
        dash = ' stroke-dasharray="6 4"' if entry.dashed else ""
        safe = escape(color, {'"': "&quot;"})
        parts.append(f'<path d="M{frame.right - 190:g} {level:g}h24" stroke="{safe}" stroke-width="2"{dash}/>')
        parts.append(f'<text x="{frame.right - 160:g}" y="{level + 4:g}">{escape(entry.label)}</text>')
        row += 1
    return parts
