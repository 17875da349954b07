"""The runs that were started here: what each may reach outside its folder, kept where no run folder can say it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from urllib.parse import urlsplit

from pipeline.code_permission import digest_of_module, permit
from pipeline.config import RunConfig, load_config
from pipeline.errors import ConfigError, InputError
from pipeline.foreign_json import read_json

__all__ = ["config_of_file", "edited_source", "flag_needed", "own_config", "permit_recorded", "record_run", "source_of"]

_MOST_RECORDS = 10_000
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True, slots=True)
class _Record:
    """What the author of a run let it reach when it was started.

    Attributes:
        folder: of the run.
        files: its benchmark and its prompts.
        addresses: where its keys go.
        module: that grades, and the SHA-256 of its file.
        source: the configuration file, and the digest of what it said.
    """

    folder: str
    files: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()
    module: tuple[str, str] | None = None
    source: tuple[str, str] | None = None


def record_run(config: RunConfig, folder: Path, source: Path | None) -> None:
    """Remember, outside the run folder, what this run may reach: its author has just started it.

    Args:
        config: as it runs.
        folder: of the run.
        source: the file that it was read from, if any.
    """
    module = _module(config)
    digest = digest_of_module(module) if module is not None else None
    record = _Record(
        str(folder.resolve()),
        tuple(str(path) for path in _files(config, folder)),
        tuple(_addresses(config)),
        (module, digest) if module is not None and digest is not None else None,
        (str(source.resolve()), load_config(source).digest()) if source is not None else None,
    )
    if record == _recorded(folder):
        return
    for file in _places():
        with suppress(OSError):
            file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            with os.fdopen(descriptor, "a", encoding="ascii") as records:
                records.write(json.dumps(asdict(record)) + "\n")
            return


def permit_recorded(folder: Path) -> None:
    """Allow the module that was recorded for a run folder, while the module's file is still the same."""
    record = _recorded(folder)
    if record is not None and record.module is not None and digest_of_module(record.module[0]) == record.module[1]:
        with suppress(ConfigError):
            permit(record.module[0])


def flag_needed(config: RunConfig, folder: Path) -> str | None:
    """The module that ``--allow-code`` must name for the run to be carried on from its folder; None where none must."""
    module, record = _module(config), _recorded(folder)
    if module is None or (record is not None and record.module == (module, digest_of_module(module))):
        return None
    return module


def own_config(config: RunConfig, folder: Path, *, asks: bool = False) -> RunConfig:
    """The configuration of a run folder, once it reaches nothing that its author here has not let it reach.

    Args:
        config: of the run.
        folder: of the run.
        asks: models will be asked, so that keys leave for the addresses that it names.

    Raises:
        InputError: it names a file outside the folder, or an address that a key would be sent to, and was not started
            here; says how its author starts it.
    """
    record = _recorded(folder) or _Record("")
    strange = [f"the file {path} outside it" for path in _files(config, folder) if str(path) not in record.files]
    if asks:
        strange += [f"the address {base} for a key" for base in _addresses(config) if base not in record.addresses]
    if strange:
        mend = f"auxeval run {folder / 'config.yaml'} --run-id {folder.name} --runs-dir {folder.parent}"
        raise InputError(
            f"{folder}: names {strange[0][:300]}, and was not started here with it; a folder from elsewhere reads only"
            f" itself and gets no key; if all that its config.yaml names is yours: {mend}"
        )
    return config


def config_of_file(file: Path, *, asks: bool = False) -> RunConfig:
    """A configuration that a person names to look at it; that of a run folder reaches what :func:`own_config` lets it.

    Raises:
        ConfigError, InputError: it cannot be used, or reaches too far.
    """
    config = load_config(file)
    return own_config(config, file.parent, asks=asks) if (file.parent / "manifest.json").is_file() else config


def source_of(folder: Path) -> Path | None:
    """The configuration file that a run was started from, where it is known and still there."""
    record = _recorded(folder)
    source = Path(record.source[0]) if record is not None and record.source is not None else None
    return source if source is not None and source.is_file() else None


def edited_source(folder: Path) -> Path | None:
    """The configuration file that a run was started from, where it says something else by now."""
    record = _recorded(folder)
    path = source_of(folder)
    if record is None or record.source is None or path is None or path == (folder / "config.yaml").resolve():
        return None
    try:
        return None if load_config(path).digest() == record.source[1] else path
    except ConfigError:  # in the middle of an edit
        return path


def _module(config: RunConfig) -> str | None:
    grading = config.benchmark.grading or ""
    return grading.split(":")[1] if grading.startswith("python:") else None


def _files(config: RunConfig, folder: Path) -> Iterable[Path]:
    """Files outside the run folder that the run reads."""
    root = folder.resolve()
    saved = (folder / "prompts" / "repair.md").exists()
    prompts = [] if saved else [path for paths in config.prompts.values() for path in paths]
    for path in (*([config.benchmark.path] if config.benchmark.path is not None else []), *prompts):
        if root not in path.resolve().parents:
            yield path


def _addresses(config: RunConfig) -> Iterable[str]:
    """Addresses off this machine that a key of its environment is sent to because the configuration says so."""
    for entry in config.model_entries.values():
        # LiteLLM takes a provider's usual variable where the entry names none.
        keyed = entry.api_key_env is not None or bool(entry.headers_env) or entry.resolved_transport == "litellm"
        if keyed and entry.api_base is not None and urlsplit(entry.api_base).hostname not in _LOOPBACK:
            yield entry.api_base


def _recorded(folder: Path) -> _Record | None:
    """What was recorded last for a run folder."""
    here = str(folder.resolve())
    for file in _places():
        try:
            lines = file.read_text(encoding="ascii").splitlines()[-_MOST_RECORDS:]
        except (OSError, ValueError):
            continue
        for line in reversed(lines):
            with suppress(ValueError, KeyError, TypeError):
                values = read_json(line)
                if values["folder"] == here:
                    module, source = (tuple(values[name]) if values[name] else None for name in ("module", "source"))
                    return _Record(here, tuple(values["files"]), tuple(values["addresses"]), module, source)
    return None


def _places() -> Iterable[Path]:
    """Where records are kept: the state of this user, else (a container without a home) that of the working folder."""
    root = os.environ.get("XDG_STATE_HOME")
    with suppress(RuntimeError):  # no home
        yield (Path(root) if root else Path.home() / ".local" / "state") / "auxeval" / "runs.jsonl"
    yield Path(".auxeval") / "state" / "runs.jsonl"
