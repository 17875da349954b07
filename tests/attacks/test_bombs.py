"""Files that are bombs: one line, exit 2, little time and memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.config import load_config
from pipeline.config_values import read_yaml
from pipeline.errors import ConfigError

BOMBS = {
    "deep lists": "a: " + "[" * 20_000 + "]" * 20_000,
    "deep mappings": "a: " + "{b: " * 20_000 + "1" + "}" * 20_000,
    "aliases": "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 40)),
    "an alias of itself": "a: &a [*a]\n",
    "an integer of 5,000 digits": f"seed: {'7' * 5000}\n",
    "a date that is none": "seed: 2024-99-99\n",
}


@pytest.mark.parametrize("kind", BOMBS)
def test_yaml_bombs_are_one_line(kind: str, tmp_path: Path) -> None:
    file = tmp_path / "c.yaml"
    file.write_text(BOMBS[kind], encoding="utf-8")
    with pytest.raises(ConfigError) as refused:
        load_config(file)
    assert "\n" not in str(refused.value)
    assert "not valid YAML" in str(refused.value)
    assert len(str(refused.value)) < 600


def test_honest_aliases_are_read() -> None:
    assert read_yaml("a: &a {x: 1}\nb: *a\nc: [*a, *a]\n") == {"a": {"x": 1}, "b": {"x": 1}, "c": [{"x": 1}] * 2}
