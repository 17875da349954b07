"""The page on simulated models names every model and every setting, with its default."""

from __future__ import annotations

import re
from pathlib import Path

from pipeline.models.simulated import SIMULATED_MODELS, Simulation

PAGE = (Path(__file__).resolve().parent.parent.parent / "docs" / "simulated.md").read_text("utf-8")


def test_every_model_and_its_ability_is_named() -> None:
    for name, settings in SIMULATED_MODELS.items():
        row = next(line for line in PAGE.splitlines() if line.startswith("|") and f"`{name}`" in line)
        assert f"{settings.ability:g}".replace("-", "−") in row, name


def test_every_setting_is_described_with_its_default() -> None:
    rows = [line.split("|") for line in PAGE.splitlines() if line.startswith("| `")]
    shown = {
        key: cells[2].strip()
        for cells in rows
        for key in re.findall(r"`([a-z_]+)`", cells[1])
        if "sim/" not in cells[1]
    }
    assert set(shown) == set(Simulation.model_fields)
    for key, field in Simulation.model_fields.items():
        words = re.findall(r"[\w.]+", shown[key])
        if isinstance(field.default, bool | str):
            assert words == [str(field.default).lower()], key
        else:
            assert field.default in map(float, words), key
