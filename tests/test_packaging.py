"""What is shipped: the wheel runs without a checkout, the schema file is fresh, start-up stays light."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import pipeline
from pipeline.config import config_json_schema

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = Path(pipeline.__file__).parent


def test_the_schema_for_editors_is_that_of_the_code() -> None:
    shipped = json.loads((PACKAGE / "config.schema.json").read_text(encoding="utf-8"))
    assert shipped == config_json_schema(), "run: auxeval config schema > pipeline/config.schema.json"


@pytest.fixture(scope="module")
def installed_wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from the checkout and unpacked where no checkout is."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = folder.glob("auxeval-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "site")
    return folder / "site"


def test_the_wheel_holds_prompts_types_and_defaults(installed_wheel: Path) -> None:
    for name in ("py.typed", "default.yaml", "config.schema.json", "prompts/answer.md", "prompts/pairwise.md"):
        assert (installed_wheel / "pipeline" / name).is_file(), name
    assert not (installed_wheel / "tests").exists()


def test_the_wheel_runs_where_no_checkout_is(installed_wheel: Path, tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(installed_wheel)}
    where = subprocess.run(
        [sys.executable, "-c", "import pipeline; print(pipeline.__file__)"],
        cwd=tmp_path, env=environment, check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
    assert str(installed_wheel) in where
    command = [sys.executable, "-m", "pipeline", "run", "--limit", "12", "--yes", "--json", "--quiet"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert set(json.loads(done.stdout)["targets"]) == {"strong", "medium", "weak"}


@pytest.mark.parametrize(
    "code",
    [
        "import pipeline.cli; pipeline.cli._run(['--help'])",
        "import pipeline.cli; pipeline.cli._run(['estimate', '--help'])",
        "import pipeline.cli; pipeline.cli._run(['report', '--help'])",
        "import pipeline.estimators as e; e.naive_mean; e.one_step_mean; e.lace_mean; e.lace_profile",
    ],
)
def test_start_up_loads_nothing_heavy(code: str) -> None:
    heavy = ("litellm", "sklearn", "scipy.stats", "matplotlib", "pandas", "datasets")
    check = f"{code}\nimport sys\nprint([m for m in {heavy!r} if m in sys.modules], file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert done.stderr.strip().splitlines()[-1] == "[]"


def test_a_table_without_answers_loads_no_reader_of_answers() -> None:
    code = "import pipeline.evaluation.interface, sys; print('pipeline.benchmark.extraction' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_importing_the_package_changes_no_warning_filter() -> None:
    code = "import warnings; b = list(warnings.filters); import pipeline, pipeline.estimators, pipeline.config\n"
    done = subprocess.run(
        [sys.executable, "-c", code + "assert list(warnings.filters) == b"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_no_pickle_is_read_anywhere() -> None:
    for path in PACKAGE.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert "import pickle" not in text, path
        assert "pickle.load" not in text, path
