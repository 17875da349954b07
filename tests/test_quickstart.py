"""The embedded default and the commented example are one configuration, and every model in it exists."""

from __future__ import annotations

from pathlib import Path

import yaml

import pipeline
from pipeline.config import load_config
from pipeline.models.simulated import simulation_settings

DEFAULT = Path(pipeline.__file__).parent / "default.yaml"
EXAMPLE = Path(__file__).resolve().parent.parent / "examples" / "quickstart.yaml"


def test_the_commented_example_equals_the_default() -> None:
    assert yaml.safe_load(EXAMPLE.read_text("utf-8")) == yaml.safe_load(DEFAULT.read_text("utf-8"))
    assert load_config(EXAMPLE).digest() == load_config(DEFAULT).digest()


def test_the_default_needs_no_key_and_every_model_exists() -> None:
    config = load_config(DEFAULT)
    for name, entry in config.model_entries.items():
        assert entry.is_simulated, name
        assert entry.resolved_transport == "simulated"
        simulation_settings(entry.model, entry.simulate)


def test_the_default_is_the_promised_design() -> None:
    config = load_config(DEFAULT)
    assert config.benchmark.preset == "embedded"
    assert len(config.roles.targets) == 3
    assert len(config.roles.auxiliary) == 2
    assert (config.design.labeled, config.design.draws) == (50, 10)
    assert {"naive", "one_step", "lace", "lace_profile"} <= set(config.estimate)
