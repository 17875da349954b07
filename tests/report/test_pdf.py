"""Figures as PDF, through an extra that may not be there."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from pipeline.errors import InputError
from pipeline.report.printers.pdf import figures_as_pdf
from pipeline.report.printers.svg import standalone, svg
from pipeline.report.values import Figure, Series


def test_without_the_extra_one_line_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cairosvg", None)
    with pytest.raises(InputError, match=r"auxeval\[pdf\]"):
        figures_as_pdf(tmp_path)


def test_every_figure_becomes_one(tmp_path: Path) -> None:
    pytest.importorskip("cairosvg", reason="the extra pdf is not installed", exc_type=(ImportError, OSError))
    figure = Figure("t", (Series("s", [1.0, 2.0], [0.1, 0.2], [0.0, 0.1], [0.2, 0.3]),))
    (tmp_path / "a.svg").write_text(standalone(svg(figure)), encoding="utf-8")
    (made,) = figures_as_pdf(tmp_path)
    assert made.name == "a.pdf"
    assert made.read_bytes().startswith(b"%PDF")
