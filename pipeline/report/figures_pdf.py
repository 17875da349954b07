"""The report's own SVG figures as PDF: the few shapes that charts.py draws, in vectors, text in Helvetica."""

from __future__ import annotations

import re
import zlib
from xml.etree import ElementTree

_INK = (0.12, 0.16, 0.22)
_SCALE = 0.75
"""Points per SVG unit."""
_WIDTHS = (
    "278 278 355 556 556 889 667 191 333 333 389 584 278 333 278 278 556 556 556 556 556 556 556 556 556 556 278 278"
    " 584 584 584 556 1015 667 667 722 722 667 611 778 722 278 500 667 556 833 722 778 667 778 722 667 611 722 667 944"
    " 667 667 611 278 278 278 469 556 333 556 556 500 556 556 278 556 556 222 222 500 222 833 556 556 556 556 333"
    " 500 278 556 500 722 500 500 500 334 260 334 584"
)
_ADVANCE = {chr(32 + k): int(width) for k, width in enumerate(_WIDTHS.split())}
_SPOKEN = {"−": "-", "λ": "lambda", "τ": "tau", "φ": "phi", "≤": "<=", "≥": ">="}
_STEP = re.compile(r"([MLlZ])|(-?\d+(?:\.\d+)?)")


def svg_to_pdf(svg: str) -> bytes:
    """One page of the figure's own size; deterministic.

    Letters outside Latin-1 are spelled out where there is a word for them, else shown as ``?``.

    Args:
        svg: made by :mod:`pipeline.report.charts`.
    """
    root = ElementTree.fromstring(svg)
    width, height = float(root.get("width", "0")), float(root.get("height", "0"))
    drawn = [f"{_SCALE} 0 0 {-_SCALE} 0 {_number(height * _SCALE)} cm"]
    for element in root:
        drawn += _shape(element)
    content = zlib.compress("\n".join(drawn).encode("latin-1", "replace"), 9)
    box = f"[0 0 {_number(width * _SCALE)} {_number(height * _SCALE)}]"
    opacity = " ".join(f"/O{k} << /ca {k / 100:g} >>" for k in range(101))
    font = "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica{} /Encoding /WinAnsiEncoding >>"
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        (
            f"<< /Type /Page /Parent 2 0 R /MediaBox {box} /Contents 4 0 R /Resources <<"
            f" /Font << /F1 5 0 R /F2 6 0 R >> /ExtGState << {opacity} >> >> >>"
        ).encode(),
        b"<< /Filter /FlateDecode /Length %d >>\nstream\n%b\nendstream" % (len(content), content),
        font.format("").encode(),
        font.format("-Bold").encode(),
    ]
    return _file(objects)


def _file(objects: list[bytes]) -> bytes:
    body, offsets = bytearray(b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n"), []
    for number, content in enumerate(objects, 1):
        offsets.append(len(body))
        body += b"%d 0 obj\n%b\nendobj\n" % (number, content)
    start = len(body)
    body += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    for offset in offsets:
        body += b"%010d 00000 n \n" % offset
    body += b"trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, start)
    return bytes(body)


def _number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")


def _shape(element: ElementTree.Element) -> list[str]:
    tag = element.tag.rpartition("}")[2]
    if tag == "line":
        x1, y1, x2, y2 = (_number(float(element.get(name, "0"))) for name in ("x1", "y1", "x2", "y2"))
        return _painted(element, [f"{x1} {y1} m {x2} {y2} l"])
    if tag == "circle":
        return _painted(element, _circle(*(float(element.get(name, "0")) for name in ("cx", "cy", "r"))))
    if tag == "path":
        return _painted(element, _path(element.get("d", "")))
    return _words(element) if tag == "text" else []


def _painted(element: ElementTree.Element, path: list[str]) -> list[str]:
    """The path with the element's stroke and fill; lines of the frame are pale."""
    faint = {"grid": 0.85, "axis": 0.6}.get(element.get("class", ""))
    stroke = (faint,) * 3 if faint is not None else _colour(element.get("stroke"))
    fill = None if element.tag.endswith("line") else _colour(element.get("fill"))
    style = [f"{_number(float(element.get('stroke-width', '1')))} w"]
    dashes = element.get("stroke-dasharray")
    style.append(f"[{dashes}] 0 d" if dashes else "[] 0 d")
    if stroke:
        style.append(" ".join(_number(c) for c in stroke) + " RG")
    if fill:
        style.append(" ".join(_number(c) for c in fill) + " rg")
    style.append(f"/O{round(100 * float(element.get('fill-opacity', '1')))} gs")
    return [*style, *path, "B" if stroke and fill else "f" if fill else "S" if stroke else "n"]


def _colour(value: str | None) -> tuple[float, ...] | None:
    if value is None or not value.startswith("#"):
        return None
    return tuple(int(value[k : k + 2], 16) / 255 for k in (1, 3, 5))


def _circle(x: float, y: float, r: float) -> list[str]:
    """Four Bézier arcs."""
    k = 0.5523 * r
    arcs = [
        ((x + r, y + k), (x + k, y + r), (x, y + r)),
        ((x - k, y + r), (x - r, y + k), (x - r, y)),
        ((x - r, y - k), (x - k, y - r), (x, y - r)),
        ((x + k, y - r), (x + r, y - k), (x + r, y)),
    ]
    bends = [" ".join(_number(value) for point in arc for value in point) + " c" for arc in arcs]
    return [f"{_number(x + r)} {_number(y)} m", *bends, "h"]


def _path(described: str) -> list[str]:
    """M, L, l and Z with absolute or relative pairs."""
    made: list[str] = []
    step, pair, at = "M", [], (0.0, 0.0)
    for letter, number in _STEP.findall(described):
        if letter == "Z":
            made.append("h")
        elif letter:
            step = letter
        else:
            pair.append(float(number))
        if len(pair) == 2:
            at = (at[0] + pair[0], at[1] + pair[1]) if step == "l" else (pair[0], pair[1])
            made.append(f"{_number(at[0])} {_number(at[1])} {'m' if step == 'M' else 'l'}")
            step, pair = ("L" if step == "M" else step), []
    return made


def _words(element: ElementTree.Element) -> list[str]:
    letters = "".join(_SPOKEN.get(c, c) for c in element.text or "").encode("cp1252", "replace").decode("latin-1")
    length = 12 * sum(_ADVANCE.get(c, 556) for c in letters) / 1000
    shift = {"end": length, "middle": length / 2}.get(element.get("text-anchor", "start"), 0.0)
    x, y = float(element.get("x", "0")) - shift, float(element.get("y", "0"))
    escaped = letters.replace("\\", "\\\\").replace("(", "\\(").replace(")", "\\)")
    face = "F2" if element.get("class") == "head" else "F1"
    ink = " ".join(_number(c) for c in _INK)
    return [f"/O100 gs {ink} rg BT /{face} 12 Tf 1 0 0 -1 {_number(x)} {_number(y)} Tm ({escaped}) Tj ET"]
