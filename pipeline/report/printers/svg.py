"""Prints a figure as SVG: axes with round ticks, a line at zero, bands and whiskers, one colour per target."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise

from pipeline.report.values import Axis, Drawn, Figure, Series, clean

COLOURS = ("#2f6fde", "#c2620a", "#0d8a62", "#9a4fd8", "#d43c3c", "#0b86a3", "#5d8016", "#c7358f")
"""At least 3 : 1 against both of the page's backgrounds; neighbours differ in lightness too."""
GREY = "#7b8492"
_STYLE = (
    "text{font:12px system-ui,sans-serif;fill:currentColor}.axis{stroke:currentColor;stroke-opacity:.45}"
    ".grid{stroke:currentColor;stroke-opacity:.13}.mark{stroke:currentColor;stroke-opacity:.6;stroke-dasharray:2 3}"
)
_LETTER = 7.5
"""Width of a letter at 12 px, in the widest of the fonts that are commonly the default; wide scripts take twice it."""
_ROW = 24
Scale = Callable[[float], float]


def colour(tone: int | None) -> str:
    """The colour of a target, in every picture; targets beyond the palette repeat it, with hollow points."""
    return GREY if tone is None or tone < 0 else COLOURS[tone % len(COLOURS)]


def standalone(drawing: str) -> str:
    """An SVG that is a file of its own: on white, whatever the viewer's theme."""
    space = 'xmlns="http://www.w3.org/2000/svg" color="#1f2937" style="background:#fff"'
    begun = drawing.replace("<svg ", f"<svg {space} ", 1)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{begun}\n'


def _text(value: str) -> str:
    return escape(clean(value), quote=True)


def _size(text: str) -> float:
    return sum(_LETTER * (2 if ord(letter) > 0x2E7F else 1) for letter in text)


def _short(label: str, room: float) -> str:
    label = clean(label)
    if _size(label) <= room:
        return label
    kept = ""
    for letter in label:
        if _size(kept + letter) > room - _LETTER:
            break
        kept += letter
    return f"{kept}…"


def _ticks(low: float, high: float, count: int) -> list[float]:
    """Round numbers inside [low, high], about ``count``."""
    reach = high - low
    if not reach > 0:
        return [low]
    rough = reach / max(count, 1)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(s * power for s in (1, 2, 2.5, 5, 10) if s * power >= rough * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [k * step for k in range(first, math.floor(high / step + 1e-9) + 1)]


def _log_ticks(low: float, high: float) -> list[float]:
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    marks = [digit * 10.0**power for power in powers for digit in (1, 2, 5)]
    return [mark for mark in marks if low * 0.999 <= mark <= high * 1.001] or [low, high]


def _label(value: float, percent: bool) -> str:
    value = 0.0 if abs(value) < 1e-12 else value
    return f"{round(100 * value, 8):g} %" if percent else f"{value:.6g}"


@dataclass(frozen=True, slots=True)
class _Placed:
    """An axis with its ends: where a value stands between ``begin`` and ``end`` (pixels)."""

    axis: Axis
    low: float
    high: float
    begin: float
    end: float

    @classmethod
    def over(cls, axis: Axis, values: Sequence[float], begin: float, end: float) -> _Placed:
        finite = [value for value in (*values, *axis.marks) if math.isfinite(value)]
        if axis.log and any(value <= 0.0 for value in finite):
            raise ValueError("a logarithmic axis needs values above 0")
        low, high = (min(finite), max(finite)) if finite else (0.0, 1.0)
        if axis.names:
            low, high = -0.5, len(axis.names) - 0.5
        elif axis.log:
            low, high = (low / 2, high * 2) if low == high else (low, high)
        else:
            low, high = (low - 0.5, high + 0.5) if low == high else (low, high)
            pad = 0.04 * (high - low)
            low, high = low - pad, high + pad
        low = low if axis.low is None else axis.low
        high = high if axis.high is None else axis.high
        return cls(axis, low, high, begin, end)

    def at(self, value: float) -> float:
        """Pixels; a little outside at most."""
        if self.axis.log:
            share = math.log(max(value, 1e-300) / self.low) / math.log(self.high / self.low)
        else:
            share = (value - self.low) / ((self.high - self.low) or 1.0)
        return self.begin + min(max(share, -0.02), 1.02) * (self.end - self.begin)

    def ticks(self, count: int) -> list[tuple[float, str]]:
        """(value, label), none of whose labels runs into the next."""
        if self.axis.names:
            return [(float(k), name) for k, name in enumerate(self.axis.names)]
        for fewer in range(count, 0, -1):
            values = _log_ticks(self.low, self.high) if self.axis.log else _ticks(self.low, self.high, fewer)
            if self.axis.log and fewer < count:
                values = values[:: count - fewer + 1]
            named = [(value, _label(value, self.axis.percent)) for value in values]
            places = [(self.at(value), _size(label)) for value, label in named]
            if all(abs(b[0] - a[0]) > (a[1] + b[1]) / 2 + 6 for a, b in pairwise(places)):
                return named
        return named[:1]


def _line(x1: float, y1: float, x2: float, y2: float, style: str) -> str:
    return f'<line x1="{x1:.1f}" x2="{x2:.1f}" y1="{y1:.1f}" y2="{y2:.1f}" {style}/>'


def _put(x: float, y: float, content: str, anchor: str = "start", room: float = math.inf) -> str:
    written = _short(content, room)
    hint = "" if written == clean(content) else f"<title>{_text(content)}</title>"
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(written)}{hint}</text>'


def svg(figure: Figure) -> str:
    """The figure as one SVG element of an HTML page.

    Raises:
        ValueError: a value ≤ 0 on a logarithmic axis.
    """
    rows = figure.y.names
    width = figure.width
    legend, below = _legend(figure, width)
    top = 10 + below
    height = figure.height or (top + _ROW * len(rows) + 46 if rows else 340)
    beside = max((_size(text) for text in figure.y.beside), default=0.0)
    left = min(max((_size(clean(name)) for name in rows), default=34) + 18, width * 0.36)
    if figure.y.label and not rows:
        left += 18
    right = width - 14 - beside - (10 if beside else 0)
    bottom = height - 46
    ends = [(s.low, s.high, s.outer_low, s.outer_high) for s in figure.series]
    along = {
        across: [v for s, e in zip(figure.series, ends, strict=True) if s.across is across for p in e for v in p]
        for across in (True, False)
    }
    x = _Placed.over(figure.x, [*along[True], *(v for s in figure.series for v in s.x)], left, right)
    span = (top, bottom) if rows else (bottom, top)
    y = _Placed.over(figure.y, [*along[False], *(v for s in figure.series for v in s.y)], *span)
    parts = [*_frame(figure, x, y, beside), *legend]
    if figure.diagonal:
        low, high = max(x.low, y.low), min(x.high, y.high)
        parts.append(_line(x.at(low), y.at(low), x.at(high), y.at(high), 'class="mark"'))
    dodged = _dodged(figure)
    for k, series in enumerate(figure.series):
        parts += _series(series, _tone(series, k), x, y, dodged[k])
    title = _text(figure.title)
    return (
        f'<svg viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
        f' role="img" aria-label="{title}"><title>{title}</title><style>{_STYLE}</style>{"".join(parts)}</svg>'
    )


def _tone(series: Series, place: int) -> int:
    return place if series.tone is None else series.tone


def _dodged(figure: Figure) -> list[float]:
    """Pixels by which each series steps aside, so that whiskers at one level stand beside each other."""
    several = [k for k, s in enumerate(figure.series) if (figure.x.names or s.whiskers) and not s.across]
    step = min(9.0, 60.0 / max(len(several), 1))
    return [
        (several.index(k) - (len(several) - 1) / 2) * step if k in several and len(several) > 1 else 0.0
        for k in range(len(figure.series))
    ]


def _frame(figure: Figure, x: _Placed, y: _Placed, beside: float) -> Iterator[str]:
    top, bottom = min(y.begin, y.end), max(y.begin, y.end)
    ticks = x.ticks(8)
    for value, name in ticks:
        place = x.at(value)
        if not figure.x.names:
            yield _line(place, top, place, bottom, 'class="grid"')
        room = (x.end - x.begin) / len(ticks) - 4 if figure.x.names else math.inf
        yield _put(place, bottom + 17, name, "middle", room)
    for k, (value, name) in enumerate(y.ticks(6)):
        place = y.at(value)
        if not figure.y.names:
            yield _line(x.begin, place, x.end, place, 'class="grid"')
        yield _put(x.begin - 8, place + 4, name, "end", x.begin - 14)
        if k < len(figure.y.beside):
            yield _put(x.end + 10, place + 4, figure.y.beside[k])
    yield _line(x.begin, bottom, x.end, bottom, 'class="axis"')
    if not figure.y.names:
        yield _line(x.begin, top, x.begin, bottom, 'class="axis"')
    for value in figure.x.marks:
        yield _line(x.at(value), top, x.at(value), bottom, f'class="{"axis" if value == 0.0 else "mark"}"')
    for value in figure.y.marks:
        yield _line(x.begin, y.at(value), x.end, y.at(value), f'class="{"axis" if value == 0.0 else "mark"}"')
    if figure.x.label:
        yield _put((x.begin + x.end) / 2, bottom + 36, figure.x.label, "middle", x.end - x.begin)
    if figure.y.label and not figure.y.names:
        middle = (top + bottom) / 2
        label = escape(_short(figure.y.label, bottom - top))
        yield f'<text transform="translate(14 {middle:.1f}) rotate(-90)" text-anchor="middle">{label}</text>'


def _legend(figure: Figure, width: int) -> tuple[list[str], int]:
    """The legend in as many lines as it needs, and their height; none for a single series without a name."""
    named = [(series, _tone(series, k)) for k, series in enumerate(figure.series) if series.label]
    if not named or (figure.y.names and len(named) < 2):
        return [], 0
    parts, across, line = [], 14.0, 0
    for series, tone in named:
        room = min(_size(series.label), width * 0.7)
        if across > 14.0 and across + 30 + room > width - 10:
            across, line = 14.0, line + 1
        level = 14 + 18 * line
        parts.append(_line(across, level, across + 22, level, _stroke(series, tone, 2.5)))
        parts.append(_put(across + 28, level + 4, series.label, room=room + 1))
        across += 28 + room + 18
    return parts, 18 * (line + 1) + 6


def _stroke(series: Series, tone: int, wide: float) -> str:
    dash = ' stroke-dasharray="5 4"' if series.dashed else ""
    return f'stroke="{colour(tone)}" stroke-width="{wide:g}"{dash}'


def _series(series: Series, tone: int, x: _Placed, y: _Placed, aside: float) -> Iterator[str]:
    across = [x.at(value) + aside if math.isfinite(value) else math.nan for value in series.x]
    heights = [y.at(value) if math.isfinite(value) else math.nan for value in series.y]
    whiskers = series.whiskers or series.across or bool(x.axis.names)
    thin = bool(len(series.outer_low))
    for lows, highs, outer in ((series.outer_low, series.outer_high, True), (series.low, series.high, False)):
        if not len(lows):
            continue
        if whiskers:
            wide = 1.2 if outer else (3.2 if thin else 2.2)
            yield from _whiskers(series, tone, (across, heights), (lows, highs), (x, y), wide)
        else:
            area = _area(across, [y.at(v) for v in lows], [y.at(v) for v in highs])
            opacity = 0.11 if outer else 0.2
            yield f'<path d="{area}" fill="{colour(tone)}" fill-opacity="{opacity}"/>' if area else ""
    path = _path(across, heights)
    if series.line and not x.axis.names and not y.axis.names and path:
        yield f'<path d="{path}" fill="none" {_stroke(series, tone, 2)}/>'
    if series.markers:
        yield from (_point(px, py, tone, 4.5 if whiskers else 3) for px, py in zip(across, heights, strict=True))


def _point(x: float, y: float, tone: int, radius: float) -> str:
    if not (math.isfinite(x) and math.isfinite(y)):
        return ""
    hollow = tone >= len(COLOURS)
    fill = f'fill="none" stroke="{colour(tone)}" stroke-width="1.8"' if hollow else f'fill="{colour(tone)}"'
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:g}" {fill}/>'


def _whiskers(
    series: Series,
    tone: int,
    places: tuple[Sequence[float], Sequence[float]],
    ends: tuple[Sequence[float], Sequence[float]],
    axes: tuple[_Placed, _Placed],
    wide: float,
) -> Iterator[str]:
    for px, py, low, high in zip(*places, *ends, strict=True):
        if not (math.isfinite(low) and math.isfinite(high)):
            continue
        if series.across:
            yield _line(axes[0].at(low), py, axes[0].at(high), py, _stroke(series, tone, wide))
        else:
            yield _line(px, axes[1].at(low), px, axes[1].at(high), _stroke(series, tone, wide))


def _path(xs: Sequence[float], ys: Sequence[float]) -> str:
    drawn, pen = [], "M"
    for px, py in zip(xs, ys, strict=True):
        if math.isfinite(px) and math.isfinite(py):
            drawn.append(f"{pen}{px:.1f} {py:.1f}")
        pen = "L" if math.isfinite(px) and math.isfinite(py) else "M"
    return "".join(drawn)


def _area(xs: Sequence[float], lows: Sequence[float], highs: Sequence[float]) -> str:
    kept = [(a, b, c) for a, b, c in zip(xs, lows, highs, strict=True) if math.isfinite(b) and math.isfinite(c)]
    if len(kept) < 2:
        return ""
    forth = [f"{a:.1f} {c:.1f}" for a, _, c in kept]
    back = [f"{a:.1f} {b:.1f}" for a, b, _ in reversed(kept)]
    return f"M{'L'.join(forth)}L{'L'.join(back)}Z"


def _strip(axis: Axis, room: int) -> _Placed:
    assert axis.low is not None
    assert axis.high is not None
    return _Placed(axis, axis.low, axis.high, 8.0, room - 8.0)


def drawn_cell(cell: Drawn, axis: Axis, room: int, text: str) -> str:
    """A cell of a drawn column, on the same axis as its neighbours above and below."""
    at = _strip(axis, room).at
    parts = [_line(at(mark), 0, at(mark), 22, 'class="axis"') for mark in axis.marks]
    if math.isfinite(cell.low) and math.isfinite(cell.high):
        parts.append(_line(at(cell.low), 11, at(cell.high), 11, f'stroke="{colour(cell.tone)}" stroke-width="3"'))
    if math.isfinite(cell.value):
        parts.append(_point(at(cell.value), 11, cell.tone, 4.5))
    label = _text(text)
    size = f'viewBox="0 0 {room} 22" width="{room}" height="22"'
    return f'<svg {size} role="img" aria-label="{label}">{"".join(parts)}</svg>'


def axis_strip(axis: Axis, room: int) -> str:
    """The ticks above a drawn column."""
    placed = _strip(axis, room)
    parts = []
    for value, name in placed.ticks(4):
        half = _size(name) / 2
        place = min(max(placed.at(value), half + 1), room - half - 1)
        parts.append(_put(place, 12, name, "middle"))
        parts.append(_line(placed.at(value), 16, placed.at(value), 20, 'class="axis"'))
    return (
        f'<svg viewBox="0 0 {room} 20" width="{room}" height="20" role="img" aria-label="axis of the column">'
        f"<style>{_STYLE}</style>{''.join(parts)}</svg>"
    )
