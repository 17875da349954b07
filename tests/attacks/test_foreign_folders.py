"""A run folder, a cache or a sheet from elsewhere: what it names or links outside itself is not reached."""

from __future__ import annotations

import csv
import gzip
import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from fault_server import FaultServer

import pipeline
from pipeline import code_permission
from pipeline.cli import main
from pipeline.errors import ConfigError, DataError, InputError
from pipeline.models.cache import ReplyCache
from pipeline.runs.directory import RunDirectory
from pipeline.tables import compressed
from pipeline.tables.column_roles import ColumnRoles
from pipeline.tables.store import read_table

MODULE = "attacker_metric"
SECRET = "a line that nobody else may read"
COMMANDS = {
    "resume": ["resume", "{run}"],
    "replay": ["replay", "{run}", "--out", "again"],
    "plan": ["plan", "{run}"],
    "export": ["export", "{run}", "out.jsonl.gz"],
    "config check": ["config", "check", "{run}/config.yaml"],
    "plan of its file": ["plan", "{run}/config.yaml"],
}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The victim's working folder, with an own run, a private file, and a module that leaves a trace when imported."""
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("AUXEVAL_CACHE_DIR", str(work / "cache"))
    monkeypatch.setattr(code_permission, "_PERMITTED", set())
    (work / "private.csv").write_text(f"id,question,gold\n1,{SECRET},7\n2,what?,8\n", encoding="utf-8")
    (work / f"{MODULE}.py").write_text(
        f"open({str(tmp_path / 'trace')!r}, 'w').close()\ndef grade(answer, gold):\n    return float(answer == gold)\n"
    )
    return work


def _config(**benchmark: Any) -> dict[str, Any]:
    return {
        "schema": 1, "name": "own", "benchmark": {"preset": "embedded", "limit": 4, **benchmark},
        "models": {"m": {"model": "sim/strong"}}, "roles": {"targets": ["m"]}, "design": {"labeled": 4},
        "estimate": ["naive"],
    }  # fmt: skip


def _foreign(place: Path, **changes: Any) -> Path:
    """A finished run whose folder came from elsewhere, with its config changed by another hand."""
    pipeline.run(_config(), run_id="own", yes=True)
    folder = place / "foreign"
    shutil.copytree("runs/own", folder)
    config = yaml.safe_load((folder / "config.yaml").read_text("utf-8"))
    for section, values in changes.items():
        config[section] = {**config.get(section, {}), **values}
    (folder / "config.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    return folder


def _ends(*command: str) -> int:
    with pytest.raises(SystemExit) as end:
        main(list(command))
    return int(end.value.code or 0)


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("path", ["{place}/private.csv", "../private.csv", "link.csv"])
def test_no_command_reads_a_file_outside_a_foreign_folder(
    place: Path, command: str, path: str, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = _foreign(place, benchmark={"preset": "custom", "path": path.format(place=place)})
    (folder / "link.csv").symlink_to(place / "private.csv")
    if path != "link.csv":
        (folder / "link.csv").unlink()
    manifest = json.loads((folder / "manifest.json").read_text("utf-8"))
    manifest.pop("benchmark")  # nothing to compare with
    (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    capsys.readouterr()
    assert _ends(*(part.format(run="foreign") for part in COMMANDS[command])) == 2
    out, err = capsys.readouterr()
    assert "outside it" in err or "leads out of its folder" in err
    assert SECRET not in out + err
    assert len(err.strip().splitlines()) == 1
    assert not (place / "again" / "tables").exists()


def test_prompts_outside_a_foreign_folder_are_not_read(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    secret = place / "private.md"
    secret.write_text(f"---\nrole: answer\n---\n{SECRET}\n", encoding="utf-8")
    folder = _foreign(place, prompts={"answer": [str(secret)]})
    shutil.rmtree(folder / "prompts")
    for command in (*COMMANDS.values(), ["report", "{run}"]):
        if "config.yaml" not in command[-1]:
            assert _ends(*(part.format(run="foreign") for part in command)) == 2
            out, err = capsys.readouterr()
            assert SECRET not in out + err


def test_its_author_starts_it_once_and_carries_it_on_from_then(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "items.csv").write_text("id,question,gold\n1,2 + 3?,5\n2,7 + 6?,13\n", encoding="utf-8")
    config = {
        **_config(),
        "benchmark": {"preset": "custom", "path": str(place / "items.csv")},
        "design": {"labeled": 2},
    }
    pipeline.run(config, run_id="mine", yes=True)
    for command in ("resume", "plan"):
        assert _ends(command, "mine") == 0
    shutil.copytree("runs/mine", "runs/moved")
    capsys.readouterr()
    assert _ends("resume", "moved") == 2
    mend = capsys.readouterr().err.rpartition(": auxeval ")[2].split()
    assert _ends(*mend) == 0
    assert _ends("resume", "moved") == 0


LINKS = ["manifest.json.draft", "config.yaml.draft", "calls.jsonl", "tables", "report.html", ".holder.json.draft",
         "figures", ".spool", "audit.json"]  # fmt: skip


@pytest.mark.parametrize("name", LINKS)
@pytest.mark.parametrize("command", ["resume", "replay", "report", "labels export", "audit", "run"])
def test_no_link_in_a_folder_is_followed_out_of_it(
    place: Path, name: str, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, outside = _foreign(place), place / "outside"
    entry = folder / name
    if entry.is_dir():
        shutil.rmtree(entry)
        outside.mkdir()
    else:
        entry.unlink(missing_ok=True)
        outside.write_text("kept", encoding="utf-8")
    entry.symlink_to(outside)
    shutil.rmtree(place / "runs")
    shutil.copytree(folder, place / "runs" / "own", symlinks=True)
    arguments = {"labels export": ["sheet.csv"], "run": []}.get(command, [])
    if command == "run":
        (place / "c.yaml").write_text(yaml.safe_dump(_config()), encoding="utf-8")
        assert _ends("run", "c.yaml", "--run-id", "own", "--yes") == 2
    else:
        assert _ends(*command.split(), "own", *arguments) == 2
    assert "leads out of its folder" in capsys.readouterr().err
    assert list(outside.iterdir()) == [] if outside.is_dir() else outside.read_text("utf-8") == "kept"


def test_a_replay_writes_into_no_folder_with_a_way_out(place: Path) -> None:
    pipeline.run(_config(), run_id="own", yes=True)
    (place / "outside").mkdir()
    (place / "again").mkdir()
    (place / "again" / "tables").symlink_to(place / "outside")
    assert _ends("replay", "own", "--out", "again") == 2
    assert list((place / "outside").iterdir()) == []


def test_a_pipe_in_a_folder_does_not_hold_a_command(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = _foreign(place)
    (folder / "audit.json").unlink(missing_ok=True)
    os.mkfifo(folder / "audit.json")
    assert _ends("replay", "foreign") == 2
    assert "is a pipe" in capsys.readouterr().err


def test_a_manifest_of_gigabytes_is_not_read(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = _foreign(place)
    with (folder / "manifest.json").open("wb") as file:
        file.truncate(1 << 33)  # a sparse file
    assert _ends("report", "foreign") == 2
    assert "larger than" in capsys.readouterr().err


def test_a_table_of_kilobytes_with_billions_of_rows_is_not_read(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import polars as pl

    folder = place / "run" / "tables"
    folder.mkdir(parents=True)
    pl.DataFrame({"a": [1]}).select(pl.repeat(1, 2_000_000).alias("a")).write_parquet(folder / "items.parquet")
    monkeypatch.setattr(compressed, "_LEAST_WIDE_ROWS", 1000)
    with pytest.raises(DataError, match="say that they hold 2,000,000 rows"):
        read_table(folder, "items")


def test_a_cassette_that_unpacks_to_gigabytes_is_refused(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compressed, "_LEAST_BOMB_BYTES", 1 << 20)
    monkeypatch.setattr(compressed, "_GZIP_SHRINKS_AT_MOST", 1 << 30)
    with gzip.open(place / "bomb.jsonl.gz", "wb") as file:
        file.write(b'{"kind": "auxeval cassette", "schema": 1}\n' + b" " * (1 << 26))
    for command in (["replay", "bomb.jsonl.gz"], ["cache", "import", "bomb.jsonl.gz"]):
        assert _ends(*command) == 2


def test_links_in_a_cache_are_not_followed(place: Path) -> None:
    cache = place / "foreign-cache"
    ReplyCache(cache).close()
    (place / "outside").mkdir()
    (cache / "quarantine").symlink_to(place / "outside")
    with pytest.raises(DataError, match="leads out of its folder"):
        ReplyCache(cache)


def test_a_foreign_folder_gets_no_key(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its config.yaml says where keys go: the key of one's own provider would have gone to another host."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-victim-0123456789abcdef")
    entries = {
        "direct": {"api_base": "http://collector.example/v1", "api_key_env": "OPENAI_API_KEY", "transport": "direct"},
        "litellm": {"api_base": "http://collector.example/v1", "transport": "litellm"},
        "headers": {"api_base": "http://collector.example/v1", "transport": "direct",
                    "headers_env": {"X-Key": "OPENAI_API_KEY"}},
    }  # fmt: skip
    for name, entry in entries.items():
        folder = _foreign(place, models={"m": {"model": "openai/gpt", **entry}})
        with pytest.raises(InputError, match="gets no key") as refused:
            pipeline.resume(folder)
        assert "collector.example" in str(refused.value), name
        shutil.rmtree(folder)
        shutil.rmtree(place / "runs")


def test_ones_own_run_keeps_its_key_and_its_address(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OWN_KEY", "sk-own-0123456789abcdef")
    with FaultServer(keep_bodies=True) as server:
        entry = {"model": "openai/gpt", "api_base": server.url, "api_key_env": "OWN_KEY", "transport": "direct",
                 "params": {"max_tokens": 20}}  # fmt: skip
        pipeline.run({**_config(), "models": {"m": entry}}, run_id="keyed", yes=True)
        assert pipeline.resume("keyed").state == "done"
        assert "sk-own" in server.headers[0]["Authorization"]


def test_a_manifest_or_a_sheet_from_elsewhere_names_no_code(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = _foreign(place)
    manifest = json.loads((folder / "manifest.json").read_text("utf-8"))
    manifest["benchmark"]["grading"] = f"python:{MODULE}:grade"
    (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    (place / "sheet.csv").write_text("request_key,why,right,correct_answer\nabc,unread,yes,\n", encoding="utf-8")
    assert _ends("audit", "foreign", "sheet.csv") == 2
    assert f"--allow-code {MODULE}" in capsys.readouterr().err
    with pytest.raises(ConfigError, match="--allow-code"):
        ColumnRoles.from_dict({"gold": "g", "answer": "a", "grading": f"python:{MODULE}:grade"})
    assert not (place.parent / "trace").exists()


def test_the_resume_line_carries_the_permission_where_none_is_recorded(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline.run(_config(grading=f"python:{MODULE}:grade"), run_id="mine", yes=True)
    assert RunDirectory(Path("runs/mine")).resume_command == "auxeval resume runs/mine"
    shutil.copytree("runs/mine", "moved")
    assert RunDirectory(Path("moved")).resume_command == f"auxeval resume moved --allow-code {MODULE}"
    monkeypatch.setenv("XDG_STATE_HOME", str(place / "another-machine"))
    assert RunDirectory(Path("runs/mine")).resume_command == f"auxeval resume runs/mine --allow-code {MODULE}"


def test_without_a_home_a_run_is_recorded_in_the_working_folder(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocked = place / "no-folder"
    blocked.write_text("", encoding="utf-8")
    monkeypatch.setenv("XDG_STATE_HOME", str(blocked))
    pipeline.run(_config(grading=f"python:{MODULE}:grade"), run_id="mine", yes=True)
    assert RunDirectory(Path("runs/mine")).resume_command == "auxeval resume runs/mine"


def test_an_edited_source_is_told_at_resume(place: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = place / "c.yaml"
    file.write_text(yaml.safe_dump(_config()), encoding="utf-8")
    pipeline.run(file, run_id="r", yes=True, limit=3)
    pipeline.resume("r")
    file.write_text("# a remark\n" + file.read_text("utf-8"), encoding="utf-8")
    pipeline.resume("r")
    assert "edited" not in caplog.text
    file.write_text(file.read_text("utf-8").replace("limit: 4", "limit: 5"), encoding="utf-8")
    assert pipeline.resume("r").manifest["benchmark"]["items"] == 3
    assert f"{file} was edited since" in caplog.text


def test_labels_into_a_foreign_run_read_no_file_outside_it(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The truth of simulated targets is computed from the benchmark's items, wherever the folder says they are."""
    pipeline.run({**_config(), "design": {"labeled": 2}}, run_id="own", yes=True)
    folder = place / "foreign"
    shutil.copytree("runs/own", folder)
    assert _ends("labels", "export", "foreign", "sheet.csv", "-n", "2") == 0
    with (place / "sheet.csv").open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    with (place / "sheet.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys())
        writer.writeheader()
        writer.writerows({**row, "gold": "3"} for row in rows)
    config = yaml.safe_load((folder / "config.yaml").read_text("utf-8"))
    config["benchmark"].update(preset="custom", path=str(place / "private.csv"))
    (folder / "config.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    capsys.readouterr()
    assert _ends("labels", "import", "foreign", "sheet.csv") == 2
    out, err = capsys.readouterr()
    assert "outside it" in err
    assert SECRET not in out + err
