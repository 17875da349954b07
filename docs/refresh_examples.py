"""Runs the examples of the pages and writes what they print into them: python docs/refresh_examples.py [PAGE …]"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from tests.docs.page_examples import PAGES
from tests.docs.page_runner import EmbeddedRun
from tests.docs.pages import run_page


def refresh(page: Path, folder: Path, embedded: EmbeddedRun) -> bool:
    """Write a page's outputs anew, and say what failed; whether all of its examples work."""
    text = page.read_text(encoding="utf-8")
    result = run_page(text, folder, embedded)
    if result.fresh != text:
        page.write_text(result.fresh, encoding="utf-8")
    print(f"{page.name}: {len(result.stale)} outputs written", *result.failed, sep="\n", flush=True)
    return not result.failed


def main(pages: list[Path]) -> int:
    """Refresh these pages; 1 if an example fails, which no new output can mend."""
    with tempfile.TemporaryDirectory() as name:
        folders = [Path(name) / str(number) for number in range(len(pages) + 1)]
        for folder in folders:
            folder.mkdir()
        embedded = EmbeddedRun(folders[0])
        worked = [refresh(page, folder, embedded) for page, folder in zip(pages, folders[1:], strict=True)]
    return int(not all(worked))


if __name__ == "__main__":
    sys.exit(main([Path(name) for name in sys.argv[1:]] or PAGES))
