"""report.html: one self-contained page about a run."""

from __future__ import annotations

import html
from pathlib import Path

from pipeline.report.document import read_estimates

__all__ = ["write_report"]


def write_report(folder: Path) -> None:
    """Write ``report.html`` of the run in ``folder``."""
    text = html.escape(read_estimates(folder / "estimates.json").to_json())
    (folder / "report.html").write_text(f"<!doctype html><meta charset=utf-8><pre>{text}</pre>", encoding="utf-8")
