"""A whole offline run shows what coupling is worth: variance falls with episodes, and only with them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pipeline.testing import run_scripted

CONFIG: dict[str, Any] = {
    "name": "coupling",
    "seed": 1,
    "roles": {"targets": ["sim/weak"], "auxiliary": ["sim/aux-a", "sim/aux-b"], "regressor": "sim/regressor"},
    "estimate": ["naive", "one_step"],
}


def diagnostics(folder: Path, coupling: str) -> dict[str, Any]:
    """What the one-step estimate with λ = 1 says of itself when every item is labeled."""
    design = {"labeled": "gold", "draws": 5, "coupling": coupling}
    run = run_scripted({**CONFIG, "design": design}, {}, folder=folder)
    return dict(run.estimates["sim/weak"]["one_step_paper"].diagnostics)


@pytest.mark.slow
def test_variance_falls_with_episodes_alone(tmp_path: Path) -> None:
    episode = diagnostics(tmp_path / "episode", "episode")
    apart = diagnostics(tmp_path / "apart", "independent")
    assert episode["variance_reduction"] > 0.05
    assert episode["within_item_test_p"] < 1e-4
    assert apart["variance_reduction"] < -0.1
    assert apart["within_item_test_p"] > 1e-3
