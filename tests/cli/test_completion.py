"""Tab in a real shell: commands, options, names of runs and studies."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

AUXEVAL = Path(sys.executable).with_name("auxeval")

BASH = """
eval "$(_AUXEVAL_COMPLETE=bash_source auxeval)"
complete -p auxeval >/dev/null || exit 9
COMP_WORDS=({words})
COMP_CWORD=$(( ${{#COMP_WORDS[@]}} - 1 ))
_auxeval_completion auxeval
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
FISH = """
_AUXEVAL_COMPLETE=fish_source auxeval | source
complete -C '{line}'
"""


def offered(shell: str, words: list[str], folder: Path) -> str:
    found = shutil.which(shell)
    if found is None:
        pytest.skip(f"{shell} is not installed")
    if not AUXEVAL.exists():
        pytest.skip("the auxeval command is not installed beside this Python")
    quoted = " ".join(f"'{word}'" for word in words)
    script = {"bash": BASH, "fish": FISH}[shell].format(words=quoted, line=" ".join(words))
    env = {**os.environ, "PATH": f"{AUXEVAL.parent}{os.pathsep}{os.environ['PATH']}", "HOME": str(folder)}
    options = {"bash": ["--norc", "--noprofile"], "fish": ["--no-config"]}[shell]
    done = subprocess.run(
        [found, *options, "-c", script], cwd=folder, env=env, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("shell", ["bash", "fish"])
def test_tab_offers_commands_options_and_runs(shell: str, tmp_path: Path) -> None:
    run = tmp_path / "runs" / "first-run"
    run.mkdir(parents=True)
    (run / "config.yaml").write_text("schema: 1\n")
    commands = offered(shell, ["auxeval", "re"], tmp_path)
    assert all(name in commands for name in ("resume", "replay", "report"))
    assert "doctor" not in commands
    assert "--half-width" in offered(shell, ["auxeval", "plan", "--half"], tmp_path)
    assert "first-run" in offered(shell, ["auxeval", "resume", "fi"], tmp_path)
