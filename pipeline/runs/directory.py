"""The run directory: its name, its files, its lock."""

from __future__ import annotations

import json
import os
import re
import secrets
import shlex
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pipeline.config import RunConfig, load_config
from pipeline.enclosure import refuse_ways_out
from pipeline.errors import ConfigError, InputError, RunLockedError
from pipeline.foreign_json import read_json
from pipeline.runs.own_runs import flag_needed, own_config, permit_recorded, source_of

__all__ = ["LostManifest", "RunDirectory", "find_run", "is_run_id", "new_run_id", "write_atomically"]

_LEDGER_NAME = re.compile(r"^[0-9a-f]{24}$")
_RUN_ID = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$")


class LostManifest(InputError):
    """The manifest of a run is gone or damaged; it can be made again from the log and the cache."""


def is_run_id(name: str) -> bool:
    """Whether a name can be a run's: one step of a path, and no way out of the folder of runs."""
    return _RUN_ID.match(name) is not None


def write_atomically(path: Path, text: str) -> None:
    """Replace a file in one step: readers see the old text or the new, never half of it."""
    draft = path.with_name(path.name + ".draft")
    with draft.open("w", encoding="utf-8", errors="backslashreplace", newline="\n") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)


def new_run_id(config: RunConfig, *, today: datetime | None = None) -> str:
    """``<date>-<name>-<6 hex of the config hash>``."""
    day = (today or datetime.now(UTC)).strftime("%Y%m%d")
    return f"{day}-{config.name}-{config.digest()[:6]}"


@dataclass(frozen=True, slots=True)
class RunDirectory:
    """Where one run keeps everything but its responses (those live in the cache)."""

    path: Path

    @property
    def config_file(self) -> Path:
        """The resolved configuration."""
        return self.path / "config.yaml"

    @property
    def manifest_file(self) -> Path:
        """Versions, hashes, seeds, state, counts, cost."""
        return self.path / "manifest.json"

    @property
    def calls_file(self) -> Path:
        """One line per logical call."""
        return self.path / "calls.jsonl"

    @property
    def tables(self) -> Path:
        """The Parquet tables."""
        return self.path / "tables"

    @property
    def estimates_file(self) -> Path:
        """Every estimate."""
        return self.path / "estimates.json"

    @property
    def report_file(self) -> Path:
        """The HTML report."""
        return self.path / "report.html"

    @property
    def ledger_name(self) -> str | None:
        """What the ledger of money calls this run: made once, whatever becomes of manifest and log."""
        with suppress(OSError, UnicodeDecodeError):
            name = (self.path / ".ledger").read_text(encoding="ascii").strip()
            return name if _LEDGER_NAME.match(name) else None
        return None

    def name_in_ledger(self, paid_as: Callable[[], str | None]) -> str:
        """:attr:`ledger_name`; where it is lost, what the ledger says by the calls of the run, or a new one."""
        name = self.ledger_name
        if name is None:
            name = paid_as() or secrets.token_hex(12)
            write_atomically(self.path / ".ledger", name + "\n")
        return name

    @property
    def spool(self) -> Path:
        """Rows of a collection that is not finished."""
        return self.path / ".spool"

    @property
    def resume_command(self) -> str:
        """The command that carries this run on, with the permission for code where none was recorded for it."""
        with suppress(InputError):
            module = flag_needed(self.config(), self.path)
            if module is not None:
                return f"auxeval resume {shlex.quote(str(self.path))} --allow-code {module}"
        return f"auxeval resume {shlex.quote(str(self.path))}"

    def config(self) -> RunConfig:
        """The configuration this run was started with.

        Raises:
            InputError: it is damaged; says what starts the run again, which asks nothing twice.
        """
        try:
            return load_config(self.config_file)
        except ConfigError as error:
            if not self.manifest_file.exists():  # no run yet
                raise
            raise ConfigError(f"{error}; {_started_again(self.path)}") from None

    def own_config(self, *, asks: bool = False) -> RunConfig:
        """The same for what reads all that it names, or asks: see :func:`pipeline.runs.own_runs.own_config`."""
        return own_config(self.config(), self.path, asks=asks)

    def manifest(self) -> dict[str, Any]:
        """The manifest as plain values; empty before the first save.

        Raises:
            LostManifest: it is gone or damaged; says what makes it again.
            InputError: it was written by a newer schema.
        """
        if not self.manifest_file.exists():
            if self.calls_file.is_file() and self.calls_file.stat().st_size:
                raise self._lost_manifest("gone", "")
            return {}
        try:
            manifest = read_json(self.manifest_file.read_text(encoding="utf-8"))
            if not isinstance(manifest, dict) or not isinstance(manifest.get("schema", 1), int):
                raise ValueError("no manifest")
        except (ValueError, IsADirectoryError):
            raise self._lost_manifest("damaged", " --rebuild") from None
        if manifest.get("schema", 1) > 1:
            raise InputError(f"{self.manifest_file}: written by a newer auxeval; upgrade to read this run")
        return manifest

    def _lost_manifest(self, what: str, flag: str) -> LostManifest:
        return LostManifest(
            f"{self.manifest_file}: {what}; nothing that was paid for is lost: {self.resume_command}{flag} makes it"
            " again from the log and the cache"
        )

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the run for this process; what is written meanwhile is for its owner alone.

        Raises:
            RunLockedError: another process holds it; names its pid and host.
        """
        from filelock import FileLock, Timeout

        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.mkdir(exist_ok=True, mode=0o700)
        with suppress(PermissionError):
            self.path.chmod(0o700)  # replies, prompts and items are no business of others on this machine
        holder = self.path / ".holder.json"
        lock = FileLock(str(self.path / ".lock"), timeout=0, mode=0o600)
        try:
            lock.acquire()
        except Timeout:
            raise RunLockedError(
                f"{self.path}: this run is already open ({_describe(holder)}); wait or stop it"
            ) from None
        before = os.umask(0o077)
        try:
            write_atomically(holder, json.dumps({"pid": os.getpid(), "host": socket.gethostname()}))
            yield
        finally:
            os.umask(before)
            holder.unlink(missing_ok=True)
            lock.release()

    def held(self) -> bool:
        """Whether a process has the run open now; taken for granted where that cannot be found out."""
        try:
            with self.locked():
                return False
        except (RunLockedError, OSError):
            return True


def _describe(holder: Path) -> str:
    try:
        lock = read_json(holder.read_text(encoding="utf-8"))
        return f"pid {lock['pid']} on {lock['host']}"
    except (OSError, ValueError, KeyError, TypeError):
        return "by another process"


def create_run(config: RunConfig, *, run_id: str | None, runs_dir: Path) -> RunDirectory:
    """The directory of a run, new or carried on.

    An existing directory with the same configuration is the same run; with another it is refused.

    Raises:
        InputError: a bad run id, or an id that another configuration already uses.
    """
    name = run_id or new_run_id(config)
    if not _RUN_ID.match(name):
        raise InputError(f"run id {name!r}: use letters, digits, dots, dashes and underscores, at most 128")
    _refuse_file(runs_dir)
    directory = RunDirectory(runs_dir / name)
    if directory.path.exists():
        refuse_ways_out(directory.path)
    if directory.config_file.exists():
        try:
            same = directory.config().digest() == config.digest()
        except ConfigError as error:
            raise InputError(f"{directory.path}: holds a run that cannot be read ({error})") from None
        if not same:
            raise InputError(f"{directory.path}: holds a run with another configuration; choose another --run-id")
    return directory


def _started_again(folder: Path) -> str:
    """What brings a run without its configuration back."""
    source = source_of(folder) or "CONFIG"
    return (
        "nothing that was paid for is lost: move this folder away, then: auxeval run"
        f" {shlex.quote(str(source))} --run-id {folder.name} --runs-dir {shlex.quote(str(folder.parent))}"
    )


def _refuse_file(runs_dir: Path) -> None:
    if runs_dir.exists() and not runs_dir.is_dir():
        raise InputError(f"{runs_dir}: is a file; runs are kept in a folder (--runs-dir)")


def find_run(run: str | Path, runs_dir: Path = Path("runs")) -> RunDirectory:
    """A run given as a directory or as an id under ``runs_dir``.

    Raises:
        InputError: neither exists, or it holds no run; names the nearest ids.
    """
    _refuse_file(runs_dir)
    for candidate in (Path(run), runs_dir / run):
        if (candidate / "config.yaml").is_file():
            refuse_ways_out(candidate)
            permit_recorded(candidate)
            return RunDirectory(candidate)
        if (candidate / "manifest.json").is_file() or (candidate / "calls.jsonl").is_file():
            raise InputError(f"{candidate / 'config.yaml'}: is gone or no file; {_started_again(candidate)}")
    run_ids = sorted(p.parent.name for p in runs_dir.glob("*/config.yaml")) if runs_dir.is_dir() else []
    from difflib import get_close_matches

    near = get_close_matches(str(run), run_ids, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else "; auxeval runs list shows what is there"
    raise InputError(f"no run {str(run)!r}, as a directory or under {runs_dir}/{hint}")
