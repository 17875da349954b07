"""CPU time and peak memory against size: fitted exponents, and one SVG of both panels with all paths."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape

import numpy as np

WIDTH, HEIGHT, LEFT = 360, 260, 60
COLOURS = ("#1b6ca8", "#c0392b", "#2e8b57", "#8e44ad", "#b8860b", "#34495e")


@dataclass(frozen=True, slots=True)
class Point:
    """What one size took."""

    size: int
    cpu: float
    wall: float
    peak: float
    extra: float


HEAD = f"{'case':<46} {'size':>10} {'CPU s':>8} {'wall s':>8} {'peak MB':>8} {'extra MB':>8}"


def line(title: str, point: Point) -> str:
    """One row under ``HEAD``."""
    values = f"{point.cpu:8.2f} {point.wall:8.2f} {point.peak:8.0f} {point.extra:8.0f}"
    return f"{title:<46} {point.size:>10} {values}"


def exponent(points: Sequence[Point], key: str) -> float:
    """Slope of log value on log size."""
    values = np.maximum([getattr(point, key) for point in points], 1e-9)
    return float(np.polyfit(np.log([point.size for point in points]), np.log(values), 1)[0])


def exponents(points: Sequence[Point]) -> str:
    """Both slopes in words, or nothing for one size."""
    if len(points) < 2:
        return ""
    return f"  exponents: CPU time {exponent(points, 'cpu'):.2f}, peak memory {exponent(points, 'peak'):.2f}"


def draw(path: Path, found: Mapping[str, Sequence[Point]]) -> None:
    """Two panels with logarithmic axes, and a legend with the exponents."""
    height = HEIGHT + 50 + 16 * len(found)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {2 * (WIDTH + LEFT)} {height}"'
        ' font-family="sans-serif" font-size="11">',
        '<rect width="100%" height="100%" fill="white"/>',
    ]
    for panel, (title, key) in enumerate((("CPU seconds", "cpu"), ("peak MB", "peak"))):
        parts += _panel(panel * (WIDTH + LEFT) + LEFT, title, key, found)
    for number, (name, points) in enumerate(found.items()):
        y = HEIGHT + 64 + 16 * number
        parts.append(f'<circle cx="{LEFT + 4}" cy="{y - 4}" r="3" fill="{COLOURS[number % len(COLOURS)]}"/>')
        text = escape(f"{name} {exponents(points).strip().removeprefix('exponents:')}")
        parts.append(f'<text x="{LEFT + 14}" y="{y}">{text}</text>')
    path.write_text("\n".join([*parts, "</svg>"]) + "\n", encoding="utf-8")


def _panel(base: int, title: str, key: str, found: Mapping[str, Sequence[Point]]) -> list[str]:
    sizes = [math.log10(point.size) for points in found.values() for point in points]
    values = [math.log10(max(getattr(point, key), 1e-3)) for points in found.values() for point in points]
    low_x, high_x = math.floor(min(sizes)), max(math.ceil(max(sizes)), math.floor(min(sizes)) + 1)
    low_y, high_y = math.floor(min(values)), max(math.ceil(max(values)), math.floor(min(values)) + 1)

    def place(size: float, value: float) -> tuple[float, float]:
        x = base + (math.log10(size) - low_x) / (high_x - low_x) * (WIDTH - 20)
        return x, 30 + (high_y - math.log10(max(value, 1e-3))) / (high_y - low_y) * HEIGHT

    parts = [f'<text x="{base}" y="18" font-weight="bold">{title} against size</text>']
    for power in range(low_y, high_y + 1):
        x, y = place(10.0**low_x, 10.0**power)
        parts.append(f'<path d="M{x:.1f} {y:.1f}h{WIDTH - 20}" stroke="#ddd"/>')
        parts.append(f'<text x="{x - 6:.1f}" y="{y + 4:.1f}" text-anchor="end">{10.0**power:g}</text>')
    for power in range(low_x, high_x + 1):
        x, y = place(10.0**power, 10.0**low_y)
        parts.append(f'<text x="{x:.1f}" y="{y + 16:.1f}" text-anchor="middle">1e{power}</text>')
    for number, points in enumerate(found.values()):
        colour = COLOURS[number % len(COLOURS)]
        dots = [place(point.size, getattr(point, key)) for point in points]
        joined = " ".join(f"{x:.1f},{y:.1f}" for x, y in dots)
        parts.append(f'<polyline points="{joined}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in dots]
    return parts
