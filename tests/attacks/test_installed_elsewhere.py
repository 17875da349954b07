"""A wheel that is installed elsewhere, by the command as its users start it, attacked the same."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import yaml

from tests.attacks.conftest import ROOT

MODULE = "attacker_metric"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, unpacked where no checkout is."""
    pytest.importorskip("hatchling", reason="the build backend comes with the test extra")
    folder = tmp_path_factory.mktemp("installed")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = folder.glob("auxeval-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "site")
        assert "auxeval = pipeline.start:main" in archive.read(
            next(name for name in archive.namelist() if name.endswith("entry_points.txt"))
        ).decode("utf-8")
    return folder / "site"


@pytest.fixture
def command(installed: Path, tmp_path: Path) -> Command:
    """The installed command in an empty folder, beside a module and a pipeline.py that leave a trace when run."""
    trace = f"open({str(tmp_path / 'trace')!r}, 'w').close()\n"
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / f"{MODULE}.py").write_text(f"{trace}def grade(a, g):\n    return 1.0\n", encoding="utf-8")
    (tmp_path / "work" / "pipeline.py").write_text(trace, encoding="utf-8")
    return Command(installed, tmp_path)


class Command:
    """Starts ``auxeval`` of an installation, as its console script does."""

    def __init__(self, installed: Path, folder: Path) -> None:
        self.work, self.trace = folder / "work", folder / "trace"
        self._environment = {**os.environ, "PYTHONPATH": str(installed), "XDG_STATE_HOME": str(folder / "state")}

    def __call__(self, line: str) -> subprocess.CompletedProcess[str]:
        script = "from pipeline.start import main; main()"
        return subprocess.run(
            [sys.executable, "-P", "-c", script, *line.split()], cwd=self.work, env=self._environment,
            capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip

    def refused(self, line: str) -> str:
        """The one line of a command that refuses its input."""
        ended = self(line)
        assert ended.returncode == 2, (line, ended.stderr)
        told = [part for part in ended.stderr.splitlines() if part.startswith("auxeval: ")]
        assert len(told) == 1
        assert "Traceback" not in ended.stderr
        assert not self.trace.exists()
        return told[0]


def test_what_comes_from_elsewhere_is_data(command: Command) -> None:
    assert command("run --limit 4 --yes --quiet --run-id own").returncode == 0
    assert not command.trace.exists()  # the user's own pipeline.py is not taken for the package
    runs = command.work / "runs"
    (command.work / "private.csv").write_text("id,question,gold\n1,secret,7\n", encoding="utf-8")
    for benchmark, told, line in (
        ({"grading": f"python:{MODULE}:grade"}, f"--allow-code {MODULE}", "resume foreign"),
        ({"preset": "custom", "path": str(command.work / "private.csv")}, "outside it", "replay foreign"),
    ):
        foreign = runs / "foreign"
        shutil.copytree(runs / "own", foreign)
        config = yaml.safe_load((foreign / "config.yaml").read_text("utf-8"))
        config["benchmark"].update(benchmark)
        (foreign / "config.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
        assert told in command.refused(line)
        shutil.rmtree(foreign)
    (runs / "own" / "report.html").unlink()
    (runs / "own" / "report.html").symlink_to(command.work / "private.csv")
    assert "leads out of its folder" in command.refused("report own")
    assert (command.work / "private.csv").read_text("utf-8").endswith("7\n")


def test_what_is_damaged_is_told_with_its_mend(command: Command) -> None:
    assert command("run --limit 4 --yes --quiet --run-id own").returncode == 0
    own = command.work / "runs" / "own"
    (own / "manifest.json").write_text("{", encoding="utf-8")
    assert "auxeval resume runs/own --rebuild" in command.refused("report own")
    assert command("resume own --rebuild --quiet").returncode == 0
    assert json.loads((own / "manifest.json").read_text("utf-8"))["state"] == "done"
    database = command.work / ".auxeval" / "cache" / "cache.db"
    os.truncate(database, database.stat().st_size // 2)
    assert "auxeval cache repair --cache-dir .auxeval/cache" in command.refused("cache stats")
    assert command("cache repair --cache-dir .auxeval/cache").returncode == 0
    assert command("cache verify").returncode == 0
