"""The tutorial notebook is the one its script makes: every cell runs, every output is what it prints."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from docs.tutorials.make_notebook import NOTEBOOK, executed_cells


def test_the_notebook_runs_and_prints_what_it_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AUXEVAL_CACHE_DIR", raising=False)
    written: list[dict[str, Any]] = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    fresh = executed_cells()
    assert [cell["source"] for cell in written] == [cell["source"] for cell in fresh]
    for before, now in zip(written, fresh, strict=True):
        shown = ["".join(output["text"]) for output in before.get("outputs", [])]
        printed = ["".join(output["text"]) for output in now.get("outputs", [])]
        assert [re.sub(r"\d+\.\d+", "#", text) for text in shown] == [re.sub(r"\d+\.\d+", "#", t) for t in printed]
