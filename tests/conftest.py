"""Fixtures shared by the whole suite: the folder of real data, and counted skips."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def shared_path() -> Path:
    """The folder of real data: AUXEVAL_SHARED, by default ``../shared``; skips where it is absent."""
    folder = Path(os.environ.get("AUXEVAL_SHARED", "../shared"))
    folder = folder if folder.is_absolute() else ROOT / folder
    if not (folder / "data").is_dir():
        reason = f"real data not found at {folder} (set AUXEVAL_SHARED)"
        if os.environ.get("AUXEVAL_REQUIRE_SHARED") == "1":
            pytest.fail(reason)
        pytest.skip(reason)
    return folder
