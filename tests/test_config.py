"""Configurations: what is refused, in which words; paths, overrides and identity."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pipeline.config import RunConfig, load_config, parse_config
from pipeline.errors import ConfigError

BASE: dict[str, Any] = {
    "models": {"t": {"model": "sim/strong"}},
    "roles": {"targets": ["t"]},
    "estimate": ["naive"],
}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"nmae": "x"}, r"unknown key 'nmae'; did you mean 'name'\?"),
        ({"design": {"labled": 3}}, r"unknown key 'design.labled'; did you mean 'labeled'\?"),
        ({"models": {"t": {"model": "sim/strong", "max_concurency": 2}}}, r"did you mean 'max_concurrency'\?"),
        ({"models": {"t": {}}}, "missing key 'models.t.model'"),
        ({"roles": {"targets": ["q"]}}, "unknown model 'q' in roles"),
        ({"roles": {"targets": []}}, "roles.targets"),
        ({"roles": {"targets": ["t", "t"]}}, "names a target twice"),
        ({"estimate": ["lace"]}, "estimate lace needs roles.judge"),
        ({"estimate": ["best_of_n"], "roles": {"targets": ["t"], "judge": "t"}}, "needs a best_of_n section"),
        ({"best_of_n": {"scores": 3, "j": [3]}}, "no unbiased estimator exists"),
        ({"best_of_n": {"candidates": 3, "n": [4]}}, "needs at least as many candidates"),
        ({"schema": 2}, "schema 2 is newer"),
        ({"benchmark": {"limit": 3, "sample": 3}}, "limit or sample, not both"),
        ({"benchmark": {"preset": "custom"}}, "custom needs a path"),
        ({"benchmark": {"grading": "vibes"}}, "must be one of exact, choice"),
        ({"models": {"t": {"model": "x/y", "transport": "direct"}}}, "needs api_base"),
        ({"models": {"t": {"model": "x/y", "params": {"stream": True}}}}, "params may not contain stream"),
        ({"name": "../evil"}, "name"),
        ({"budget": {"usd": -1}}, "budget.usd"),
    ],
)
def test_a_wrong_configuration_is_one_line_that_names_the_place(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        parse_config({**BASE, **change}, source="c.yaml")
    assert str(caught.value).startswith("c.yaml: ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["a: [", "- 1\n- 2\n", "\ttabs: 1"])
def test_what_is_no_configuration_at_all_is_one_line(tmp_path: Path, text: str) -> None:
    path = tmp_path / "c.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        load_config(path)
    assert "\n" not in str(caught.value)


def test_paths_are_relative_to_the_file(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    path = tmp_path / "sub" / "c.yaml"
    path.write_text(
        "benchmark: {preset: custom, path: ../items.jsonl}\nroles: {targets: [sim/strong]}\nestimate: naive\n"
    )
    config = load_config(path)
    assert config.benchmark.path == tmp_path / "items.jsonl"
    assert config.estimate == ("naive",)


def test_the_resolved_configuration_reads_back_as_itself(tmp_path: Path) -> None:
    config = parse_config(BASE)
    path = tmp_path / "c.yaml"
    path.write_text(config.to_yaml(), encoding="utf-8")
    again = load_config(path)
    assert again == config
    assert again.digest() == config.digest()


def _with(**change: Any) -> RunConfig:
    return parse_config({**BASE, **change})


def test_identity_is_what_the_run_is_not_what_it_may_spend() -> None:
    assert _with(budget={"usd": 1.0}).digest() == _with().digest()
    assert _with(seed=1).digest() != _with().digest()
    assert _with(design={"labeled": 7}).digest() != _with().digest()
