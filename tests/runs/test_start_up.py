"""Before the first call: an interrupt says what it means, and a warning is said once."""

from __future__ import annotations

import logging
import re
from pathlib import Path
from typing import Any

import pytest

import pipeline.runs.interface as interface
from pipeline.cli import main
from pipeline.models.spec import ModelSpec
from pipeline.runs.directory import RunDirectory
from pipeline.runs.manifest import Manifest
from pipeline.runs.setup import prepare, resolve_config


def call(*words: str) -> int:
    with pytest.raises(SystemExit) as caught:
        main(list(words))
    return int(caught.value.code or 0)


def test_an_interrupt_before_the_run_exists(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(interface, "prepare", interrupted)
    assert call("run", "--quiet") == 130
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.strip() == "auxeval: interrupted before anything was asked; there is nothing to resume"
    assert not Path("runs").exists()


def test_an_interrupt_of_a_run_that_exists_can_be_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def interrupted(directory: RunDirectory, prepared: Any, *_: object) -> None:
        directory.config_file.write_text(prepared.config.to_yaml())
        raise KeyboardInterrupt

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(interface, "_collect", interrupted)
    assert call("run", "--quiet", "--run-id", "x") == 3
    assert capsys.readouterr().err.strip().splitlines()[-1] == "auxeval resume runs/x"


@pytest.mark.parametrize(("quiet", "budget", "times"), [(False, 1.0, 1), (True, 1.0, 0), (False, None, 0)])
def test_unbounded_replies_are_told_of_once(
    quiet: bool, budget: float | None, times: int, caplog: pytest.LogCaptureFixture
) -> None:
    config = resolve_config(None, limit=5, budget_usd=budget)
    ready = prepare(config)
    specs = {
        "free": ModelSpec(name="free", model="openai/a"),
        "bounded": ModelSpec(name="bounded", model="openai/b", params={"max_tokens": 9}),
    }
    ready = type(ready)(config, ready.benchmark, ready.labeled, ready.prompts, specs, None)
    with caplog.at_level(logging.WARNING):
        interface._tell_of_unbounded_replies(ready, quiet)
    found = [record.getMessage() for record in caplog.records]
    assert len(found) == times
    assert all("models free name no max_tokens" in message and "4096" in message for message in found)


@pytest.mark.parametrize(
    ("old", "new", "told"), [("seed:", "seed: 3", True), ("call_deadline_s:", "call_deadline_s: 70", False)]
)
def test_a_config_edited_since_the_run_began_is_told_of(
    old: str, new: str, told: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    config = resolve_config(None, limit=4)
    directory = RunDirectory(tmp_path)
    directory.config_file.write_text(config.to_yaml())
    Manifest(directory).start(config, {})
    edited = re.sub(rf"^{old} .*$", new, config.to_yaml(), flags=re.MULTILINE)
    assert edited != config.to_yaml()
    directory.config_file.write_text(edited)
    interface._tell_of_an_edited_config(directory, directory.config())
    assert any("was edited since the run began" in record.getMessage() for record in caplog.records) is told
