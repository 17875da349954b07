"""Configurations: what is refused, in which words; paths, overrides and identity."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pipeline.config import RunConfig, config_json_schema, load_config, parse_config
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
        ({"estimate": ["best_of_n"], "roles": {"targets": ["t"], "judge": "t"}}, r"add best_of_n: \{candidates"),
        (
            {"estimate": ["one_step", "best_of_n", "repeated_decoding"]},
            r"auxiliary: .* \(for one_step\); .*regressor: .*judge: .*\(for best_of_n\); best_of_n: .*design.answers",
        ),
        ({"estimate": []}, "names nothing to estimate"),
        ({"roles": {"targets": ["t"], "judge": ["t", "t"]}}, "names a judge twice"),
        ({"roles": {"targets": ["t"], "anchors": ["t", "t"]}}, "names a model twice; a mapping"),
        ({"roles": {"targets": ["t"], "anchors": {"chains": "t"}}}, "'chains' is the name of another comparison"),
        ({"roles": {"targets": ["t"], "anchors": {"x y": "t"}}}, "roles.anchors"),
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
        ({"estimate": ["niave"]}, "did you mean 'naive'"),
        ({"benchmark": {"preset": "gsm8"}}, "did you mean 'gsm8k'"),
        ({"prompts": {"pointwize": ["x.md"]}}, "prompts.pointwize: .*did you mean 'pointwise'"),
        ({"design": {"labeled": 0}}, "design.labeled: "),
        ({"confirm_above_usd": float("inf")}, "confirm_above_usd: .*finite"),
        (
            {"models": {"t": {"model": "x/y", "params": {"temperature": float("nan")}}}},
            "models.t.params.temperature.*finite",
        ),
        ({"models": {"t": {"model": "x/y", "params": {"num_retries": 2}}}}, "may not contain num_retries: retries are"),
        ({"models": {"t": {"model": "x/y", "params": {"timeout": 2}}}}, "may not contain timeout: .*attempt_timeout_s"),
        ({"models": {"t": {"model": "x/y", "api_base": "http://[::1"}}}, "models.t: api_base is not a URL"),
        ({"models": {"t": {"model": "x/y", "api_base": "http://h:99999/v1"}}}, "models.t: api_base is not a URL"),
        ({"models": {"t": {"model": "x/y", "api_base": "localhost:8000/v1"}}}, "must start with http://"),
        ({"models": {"t": {"model": "x/y", "api_base": "http://me:hunter22@h/v1"}}}, "holds credentials"),
        ({"models": {"t": {"model": "x/y", "api_base": "http://h/v1?api_key=hunter22"}}}, "holds credentials"),
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


def test_a_key_given_twice_is_not_dropped_silently(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text("seed: 1\nroles: {targets: [sim/strong]}\nestimate: [naive]\nseed: 2\n")
    with pytest.raises(ConfigError, match="line 4, column 1: the key 'seed' stands there twice"):
        load_config(path)


def test_numbers_with_exponents_are_numbers(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text(
        "models: {t: {model: sim/strong, params: {temperature: 1e-1, x: -2.5E3, y: 1e}}}\n"
        "roles: {targets: t}\nestimate: [naive]\n"
    )
    assert load_config(path).models["t"].params == {"temperature": 0.1, "x": -2500.0, "y": "1e"}


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


def test_a_pilot_of_a_sample_is_a_part_of_it() -> None:
    from pipeline.benchmark.items import load_benchmark
    from pipeline.runs.setup import resolve_config

    given = {"roles": {"targets": ["sim/weak"]}, "estimate": ["naive"], "benchmark": {"sample": 20}}
    whole, pilot = (resolve_config(given, limit=limit).benchmark for limit in (None, 5))
    ids = [{item.item_id for item in load_benchmark(part, 0).items} for part in (whole, pilot)]
    assert len(ids[1]) == 5
    assert ids[1] < ids[0]


@pytest.mark.parametrize(
    ("roles", "estimate", "labeled"),
    [
        ({"targets": ["t"]}, ("naive", "lace", "lace_profile"), "gold"),
        ({"targets": ["t", "x/u"]}, ("naive", "lace", "lace_profile", "gaps"), "gold"),
        ({"targets": ["t"], "judge": "t"}, ("naive", "lace", "lace_profile"), 50),
        ({"targets": ["t"], "anchors": ["x/a", "x/b"]}, ("naive", "lace", "lace_profile"), 50),
        ({"targets": ["t"], "auxiliary": "t", "regressor": "t"}, ("naive", "one_step", "lace", "lace_profile"), 50),
    ],
)
def test_what_is_left_out_is_derived_from_the_roles(
    roles: dict[str, Any], estimate: tuple[str, ...], labeled: Any
) -> None:
    config = parse_config({"models": BASE["models"], "roles": roles})
    assert (config.estimate, config.labeled, config.design.labeled) == (estimate, labeled, labeled)
    again = parse_config(config.canonical())
    assert again == config
    assert again.digest() == config.digest()


def test_one_judge_is_written_as_it_always_was_so_that_old_runs_keep_their_identity() -> None:
    one = parse_config({"models": BASE["models"], "roles": {"targets": ["t"], "judge": ["t"]}}).canonical()["roles"]
    assert (one["judge"], one["anchors"]) == ("t", None)
    two = parse_config(
        {"models": BASE["models"], "roles": {"targets": ["t"], "judge": ["t", "x/y"], "anchors": ["x/a"]}}
    )
    assert two.canonical()["roles"]["judge"] == ["t", "x/y"]
    assert two.roles.anchors == {"x/a": "x/a"}


def test_every_key_has_a_sentence() -> None:
    schema = config_json_schema()
    sections = {"RunConfig": schema, **schema["$defs"]}
    keys = {
        f"{name}.{key}": entry for name, part in sections.items() for key, entry in part.get("properties", {}).items()
    }
    assert len(keys) > 60
    assert not [key for key, entry in keys.items() if not entry.get("description")]


def test_the_order_in_which_anchors_are_written_changes_nothing() -> None:
    names = {"strong": "x/s", "zebra": "x/z", "weak": "x/w", "ape": "x/a"}
    one, two = (
        parse_config({"models": BASE["models"], "roles": {"targets": ["t"], "anchors": dict(order)}})
        for order in (names.items(), reversed(names.items()))
    )
    assert list(one.roles.anchors) == list(two.roles.anchors) == ["weak", "strong", "ape", "zebra"]
    assert one.digest() == two.digest()
