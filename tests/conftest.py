"""Fixtures shared by the whole suite: the folder of real data, and counted skips."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(autouse=True, scope="session")
def _own_state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What is recorded of runs lands in a folder of the session, not in the home of whoever runs the suite."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


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
