"""auxeval init: what it writes is taken, asks for one key only, and runs."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path

import pytest
import yaml

from pipeline.cli import main
from pipeline.cli.init import PROVIDERS
from pipeline.config import load_config


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory without any key."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AUXEVAL_CACHE_DIR", str(tmp_path / "cache"))
    for provider in PROVIDERS:
        monkeypatch.delenv(str(provider.key), raising=False)
    return tmp_path


def _auxeval(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        main(list(words))
    out, err = capsys.readouterr()
    return int(ended.value.code or 0), out, err


@pytest.mark.parametrize("provider", PROVIDERS, ids=lambda provider: str(provider.key))
def test_one_key_is_enough(
    provider: object, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    key = str(provider.key)  # type: ignore[attr-defined]
    monkeypatch.setenv(key, "k-123456789")
    assert _auxeval(capsys, "init", "--benchmark", "gsm8k")[0] == 0
    config = load_config("auxeval.yaml")
    assert {entry.api_key_env for entry in config.model_entries.values()} == {key}
    assert "k-123456789" not in Path("auxeval.yaml").read_text()


@pytest.mark.parametrize("provider", PROVIDERS, ids=lambda provider: str(provider.key))
def test_litellm_has_prices_of_the_models_named(provider: object) -> None:
    package = Path(str(find_spec("litellm").origin)).parent  # type: ignore[union-attr]
    prices = json.loads((package / "model_prices_and_context_window_backup.json").read_text(encoding="utf-8"))
    for role in ("target", "other", "judge"):
        model = getattr(provider, role)
        assert model in prices or model.split("/", 1)[1] in prices, model


def test_without_a_key_it_runs_on_simulated_models(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = _auxeval(capsys, "init")
    assert (code, "no key is set" in out) == (0, True)
    assert _auxeval(capsys, "run", "auxeval.yaml", "--limit", "15", "--yes", "--quiet")[0] == 0


def test_traces_are_judged_by_the_columns_that_the_file_has(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{"trace": f"t{k}", "input": "Q?", "output": "A", "version": "v", "rating": k % 2} for k in range(4)]
    Path("traces.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert _auxeval(capsys, "init", "mine.yaml", "--judge", "traces.jsonl")[0] == 0
    fields = yaml.safe_load(Path("mine.yaml").read_text())["benchmark"]["fields"]
    assert fields == {"id": "trace", "question": "input", "response": "output", "model": "version", "gold": "rating"}
    assert _auxeval(capsys, "run", "mine.yaml", "--yes", "--quiet")[0] == 0


def test_an_own_benchmark_is_named_as_the_configuration_sees_it(capsys: pytest.CaptureFixture[str]) -> None:
    Path("data").mkdir()
    Path("data/my set.csv").write_text("id,question,answer\n1,Two?,2\n2,Three?,3\n")
    Path("configs").mkdir()
    assert _auxeval(capsys, "init", "configs/c.yaml", "--benchmark", "data/my set.csv")[0] == 0
    assert load_config("configs/c.yaml").benchmark.path == Path("data/my set.csv").resolve()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["init", "--benchmark", "gsm8k", "--judge", "x.jsonl"], "give one of --benchmark, --judge and --table"),
        (["init", "taken.yaml"], "taken.yaml: is there already"),
        (["init", "--judge", "gone.jsonl"], "no such file: gone.jsonl"),
        (["init", "--judge", "odd.csv"], "odd.csv: no column that looks like the id"),
    ],
)
def test_what_cannot_be_written_is_one_line(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("taken.yaml").write_text("mine")
    Path("odd.csv").write_text("a,b\n1,2\n")
    code, _, err = _auxeval(capsys, *words)
    assert (code, message in err, err.count("\n")) == (2, True, 1), err
    assert Path("taken.yaml").read_text() == "mine"


def test_a_table_needs_none(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = _auxeval(capsys, "init", "--table", "t.csv")
    assert (code, "auxeval look t.csv" in out) == (0, True)
    assert not Path("auxeval.yaml").exists()
