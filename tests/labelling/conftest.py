"""Tables to label in, with and without a plan."""

from __future__ import annotations

from pathlib import Path

import pytest
from labelling.by_hand import auxeval, write_table


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """120 items of two models, not labelled."""
    monkeypatch.chdir(tmp_path)
    return write_table(tmp_path / "answers.jsonl")


@pytest.fixture
def planned(table: Path) -> Path:
    """The same under a plan of at most 90 labels in sheets of 30."""
    words = "--gap new,old --noninferior 0.02 --max 90 --sheet 30 --gold gold --signals judge --id id --model model"
    assert auxeval("labels", "plan", str(table), *words.split(), "--question", "question", "--answer", "answer") == 0
    return table
