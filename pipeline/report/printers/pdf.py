"""Prints the SVG figures of a folder as PDF, through the extra ``pdf``."""

from __future__ import annotations

from pathlib import Path

from pipeline.errors import InputError


def figures_as_pdf(folder: Path) -> tuple[Path, ...]:
    """Write ``NAME.pdf`` beside every ``NAME.svg``; what was written.

    Raises:
        InputError: the extra is not installed, or Cairo is not on this machine.
    """
    try:
        import cairosvg
    except (ImportError, OSError) as error:  # without the Cairo library the import itself fails
        why = "is not installed: pip install 'auxeval[pdf]'" if isinstance(error, ImportError) else f"fails ({error})"
        raise InputError(f"--pdf: the extra pdf {' '.join(why.split())[:160]}") from None
    made = []
    for drawing in sorted(folder.glob("*.svg")):
        target = drawing.with_suffix(".pdf")
        cairosvg.svg2pdf(url=str(drawing), write_to=str(target))
        made.append(target)
    return tuple(made)
