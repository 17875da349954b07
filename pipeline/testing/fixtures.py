"""The pytest fixture ``cassette``; load it with ``pytest_plugins = ["pipeline.testing"]`` in ``conftest.py``."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.testing.recorded import CassettePlayer


@pytest.fixture
def cassette(tmp_path: Path) -> CassettePlayer:
    """Replays cassettes into the test's own folder; a call that was not recorded fails the test."""
    return CassettePlayer(tmp_path)
