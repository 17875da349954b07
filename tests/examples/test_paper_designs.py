"""The real-data designs of the one-step paper: every configuration is valid, and runs on simulated models."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from pipeline.config import load_config

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "paper"
EVERY = sorted(file.stem for file in FOLDER.glob("*.yaml"))
DESIGNS = [name for name in EVERY if not name.startswith("lace-")]
LACE = [name for name in EVERY if name.startswith("lace-")]


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("run_tables", FOLDER / "run_tables.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["run_tables"] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", EVERY)
def test_every_design_is_a_valid_configuration_without_keys_in_it(name: str) -> None:
    config = load_config(FOLDER / f"{name}.yaml")
    assert config.name == f"paper-{name}"
    assert all(entry.api_key_env for entry in config.models.values())
    assert set(config.roles.names()) == set(config.models)


def test_the_designs_are_those_of_the_paper() -> None:
    facts = {}
    for name in DESIGNS:
        config = load_config(FOLDER / f"{name}.yaml")
        design = config.design
        facts[name] = (config.benchmark.preset, design.labeled, design.answers, len(config.roles.targets), config.seed)
        if "one_step" in config.estimate:
            assert design.draws == 10
            assert len(config.roles.auxiliary) == (1 if name.endswith("config1") else 2)
    for config_name in ("config1", "config2"):
        assert facts[f"table1-{config_name}"] == ("gpqa-diamond", 50, 1, 10, 0)
        assert facts[f"table2-{config_name}"] == ("aime2025", 15, 1, 10, 0)
        assert facts[f"table3-{config_name}"] == ("gsm8k", 100, 1, 10, 0)
        assert facts[f"table9-{config_name}"] == ("gsm8k", 200, 1, 10, 0)
        assert facts[f"table10-{config_name}"] == ("gpqa-diamond", "gold", 1, 10, 0)
        assert facts[f"table11-{config_name}"] == ("aime2025", "gold", 1, 10, 0)
    assert facts["table4"] == ("aime2025", 15, 1, 5, 0)
    assert facts["table5"] == ("aime2025", 15, 1, 5, 1)
    assert facts["table6"] == ("gpqa-diamond", 50, 12, 5, 0)
    assert facts["table7"] == ("aime2025", 25, 1, 5, 0)
    assert load_config(FOLDER / "table8.yaml").design.tau.rubric == "correctness"
    assert load_config(FOLDER / "table4.yaml").roles.auxiliary == ("gpt-5-mini", "qwq-32b")


def test_reduced_designs_run_offline_and_print_the_papers_columns(
    script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    small = ["--simulated", "--limit", "10", "--labeled", "5", "--draws", "1"]
    one_step, repeated, larger = script.main(["table3-config2", "table6", "table9-config2", *small])
    assert len(one_step.lines) == 10
    assert all(line.truth is not None and line.one_step is not None for line in one_step.lines)
    assert one_step.lines[0].one_step.diagnostics["power"] == 1.0
    assert one_step.lines[0].tuned.diagnostics["power_rule"] == "pooled"
    assert one_step.lines[0].naive.n == 5
    assert larger.lines[0].naive.n == 10
    assert repeated.lines[0].repeated.diagnostics["repeats"] == 4
    shown = capsys.readouterr().out
    for column in ("Model", "GT%", "Naive%", "One-step%", "Improv.", "SE", "λ", "Gap to GT"):
        assert column in shown
    assert "embedded problems instead of gsm8k" in shown
    assert "simulated models" in shown
    assert "table3-config2 against table9-config2" in shown


def test_improvement_is_the_reduction_in_absolute_error(script: ModuleType) -> None:
    from pipeline.estimators import naive_mean

    naive, closer = naive_mean([1.0, 0.0]), naive_mean([1.0, 1.0, 0.0])
    line = script.Line("m", 0.7, naive, closer, None, None)
    assert script.improvement(line, closer) == pytest.approx(abs(0.5 - 0.7) - abs(2 / 3 - 0.7))
    assert script.improvement(script.Line("m", None, naive, closer, None, None), closer) is None


def test_without_the_benchmark_the_embedded_problems_stand_in_and_are_named(
    script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from pipeline.errors import DataError

    asked = []

    def absent(config: object, seed: int) -> None:
        raise DataError("gpqa-diamond: not here")

    def run(config: object, **settings: object) -> object:
        asked.append(config)
        raise SystemExit("enough")

    monkeypatch.setattr(script, "load_benchmark", absent)
    monkeypatch.setattr(script.pipeline, "run", run)
    with pytest.raises(SystemExit, match="enough"):
        script.main(["table6", "--runs-dir", str(tmp_path)])
    assert asked[0].benchmark.preset == "embedded"
    assert "gpqa-diamond: not here; the embedded problems stand in" in capsys.readouterr().err
    with pytest.raises(DataError):
        script.main(["table6", "--benchmark", "gpqa.jsonl"])


def test_unknown_designs_are_refused(script: ModuleType) -> None:
    with pytest.raises(SystemExit):
        script.main(["table99"])


def test_the_lace_designs_have_the_papers_benchmarks_and_cast() -> None:
    presets = {}
    for name in LACE:
        config = load_config(FOLDER / f"{name}.yaml")
        presets[name] = config.benchmark.preset
        assert config.roles.targets == ("claude-haiku-3", "ministral-3b", "qwen3-32b")
        assert set(config.roles.anchors) == {"weak", "medium", "strong"}
        assert config.roles.judge == (config.roles.anchors["strong"],)
        assert config.design.judge_prompts == 3
        assert config.benchmark.sample == (None if name == "lace-math500" else 500)
    benchmarks = {name.removeprefix("lace-"): preset for name, preset in presets.items() if "table29" not in name}
    assert benchmarks == {
        "math500": "math500", "scienceqa": "scienceqa", "mmlu": "mmlu", "winogrande": "winogrande",
        "hellaswag": "hellaswag", "truthfulqa": "truthfulqa", "gsm8k": "gsm8k", "arc": "arc-challenge",
    }  # fmt: skip
    assert {name for name in LACE if "table29" in name} == {"lace-table29-llama-3.1-8b", "lace-table29-gpt-oss-20b"}


def test_a_lace_design_runs_offline_to_its_last_table(
    script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(script, "LACE_LEAST", 60)
    monkeypatch.setattr(script, "LACE_REPS", 2)
    script.main(["lace-math500", "--simulated"])
    printed = capsys.readouterr().out
    for part in (
        "as Table 2",
        "RE of each cell",
        "Signal families",
        "as Table 27",
        "as Table 28",
        "as Table 30",
        "strat",
    ):
        assert part in printed
    assert "3 cells" in printed
    assert "simulated models" in printed
