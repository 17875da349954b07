"""The reference pages are those of the code."""

from __future__ import annotations

import pytest

from docs.generate_reference import FOLDER, HOMES, PAGES


@pytest.mark.parametrize("name", PAGES)
def test_the_reference_is_fresh(name: str) -> None:
    written = (HOMES.get(name, FOLDER) / name).read_text(encoding="utf-8")
    assert written == PAGES[name](), "run: python docs/generate_reference.py"
