"""Models served on this machine: weights, bad input, the life of the server. The extra itself is stood in for."""

from __future__ import annotations

import asyncio
import hashlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest

import pipeline
from pipeline.config import ModelConfig, parse_config
from pipeline.errors import ConfigError
from pipeline.models.local import server as server_module
from pipeline.models.local import transport as transport_module
from pipeline.models.local import weights as weights_module
from pipeline.models.local.server import LocalServer, check_can_serve, check_port
from pipeline.models.local.weights import CATALOGUE, LocalModel, fetch_weights, keep_weights, local_model, weights_file
from pipeline.models.spec import ModelSpec
from pipeline.runs.connecting import check_workers

STAND_IN = Path(__file__).parent / "served"
CONTENT = b"GGUF and then some weights"


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalModel]:
    """A catalogue with a tiny model under the real one's name, and a stand-in for the extra."""
    tiny = LocalModel(
        name="smollm2-135m",
        title="Tiny (Apache-2.0)",
        requirement="tiny-weights==1.0",
        member="tiny_weights/tiny.gguf",
        sha256=hashlib.sha256(CONTENT).hexdigest(),
        bytes=len(CONTENT),
        context=512,
    )
    for module in (weights_module, transport_module):
        monkeypatch.setattr(module, "CATALOGUE", {tiny.name: tiny})
    monkeypatch.setenv("AUXEVAL_CACHE_DIR", str(tmp_path / "store" / "cache"))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(STAND_IN), str(Path(pipeline.__file__).parents[1])]))
    monkeypatch.setenv("FAKE_LLAMA_PIDS", str(tmp_path / "pids"))
    monkeypatch.syspath_prepend(str(STAND_IN))
    yield tiny
    sys.modules.pop("xllamacpp", None)


def pids(tmp_path: Path) -> list[int]:
    """The processes of all servers that were started."""
    file = tmp_path / "pids"
    return [int(line) for line in file.read_text(encoding="ascii").split()] if file.exists() else []


def alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and was not yet waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def gone(pid: int) -> bool:
    """Whether a process has ended within a generous time."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if not alive(pid):
            return True
        time.sleep(0.05)
    return False


def test_the_catalogue_is_what_a_configuration_may_name() -> None:
    names = next(part for part in get_args(ModelConfig.model_fields["serve"].annotation) if part is not type(None))
    assert set(CATALOGUE) == set(get_args(names))
    assert all(name == each.name and len(each.sha256) == 64 for name, each in CATALOGUE.items())


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"api_base": "http://127.0.0.1:1/v1"}, "give one of them"),
        ({"model": "anthropic/claude"}, "openai/NAME"),
        ({"api_key_env": "SOME_KEY"}, "takes no key"),
        ({"headers_env": {"X-Key": "SOME_KEY"}}, "takes no key"),
        ({"serve": "gpt-7"}, "smollm2-135m"),
    ],
)
def test_what_has_no_meaning_for_a_served_entry_is_refused(entry: dict[str, object], message: str) -> None:
    values = {"model": "openai/smollm2", "transport": "direct", "serve": "smollm2-135m", **entry}
    with pytest.raises(ConfigError, match=message):
        parse_config({"models": {"small": values}, "roles": {"targets": ["small"]}})


def test_there_is_one_line_for_an_unknown_model() -> None:
    with pytest.raises(ConfigError, match="no local model 'gpt-7'"):
        local_model("gpt-7")


def test_weights_are_kept_once_and_checked_at_each_use(model: LocalModel, tmp_path: Path) -> None:
    source = tmp_path / "mine.gguf"
    source.write_bytes(CONTENT)
    kept = keep_weights(model, source)
    assert kept == weights_file(model) == tmp_path / "store" / "models" / "tiny.gguf"
    assert fetch_weights(model) == kept
    assert keep_weights(model, kept) == kept
    kept.write_bytes(CONTENT[:-1])
    with pytest.raises(ConfigError, match=r"damaged .*delete it"):
        fetch_weights(model)


@pytest.mark.parametrize(
    ("content", "message"),
    [(None, "no such file"), (b"GGUF but cut", "damaged or of another version"), (b"<html>", "no GGUF file")],
)
def test_a_file_that_is_not_the_weights_is_refused(
    model: LocalModel, tmp_path: Path, content: bytes | None, message: str
) -> None:
    source = tmp_path / "mine.gguf"
    if content is not None:
        source.write_bytes(content)
    with pytest.raises(ConfigError, match=message):
        keep_weights(model, source)
    assert not weights_file(model).exists()


INSTALLER = """
import pathlib, sys
target = pathlib.Path(sys.argv[sys.argv.index("--target") + 1])
assert "--no-deps" in sys.argv and "--only-binary=:all:" in sys.argv and sys.argv[-1] == "tiny-weights==1.0"
(target / "tiny_weights").mkdir(parents=True)
(target / "tiny_weights" / "tiny.gguf").write_bytes({content!r})
"""


@pytest.mark.parametrize(("content", "fits"), [(CONTENT, True), (b"GGUF of somebody else", False)])
def test_weights_are_fetched_by_the_installer_and_believed_by_their_hash(
    model: LocalModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes, fits: bool
) -> None:
    script = tmp_path / "installer.py"
    script.write_text(INSTALLER.format(content=content), encoding="utf-8")
    monkeypatch.setattr(weights_module, "_installer", lambda: (sys.executable, str(script)))
    if fits:
        assert fetch_weights(model).read_bytes() == CONTENT
    else:
        with pytest.raises(ConfigError, match="SHA-256"):
            fetch_weights(model)
        assert not weights_file(model).exists()


def test_without_a_network_one_line_says_what_to_do(
    model: LocalModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "installer.py"
    script.write_text("import sys; sys.exit('ERROR: no route to the index')", encoding="utf-8")
    monkeypatch.setattr(weights_module, "_installer", lambda: (sys.executable, str(script)))
    with pytest.raises(ConfigError, match=r"no route to the index.*--model-file"):
        fetch_weights(model)


def test_a_missing_extra_and_too_little_memory_are_said_first(
    model: LocalModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_module, "_free_bytes", lambda: 10_000_000)
    with pytest.raises(ConfigError, match="10 MB are free"):
        check_can_serve(model.bytes)
    monkeypatch.setattr(server_module, "_free_bytes", lambda: None)
    check_can_serve(model.bytes)
    monkeypatch.setattr(server_module, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"pip install 'auxeval\[laptop\]'"):
        check_can_serve(model.bytes)


def test_a_taken_port_is_said() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(ConfigError, match="--port"):
            check_port(taken.getsockname()[1])


def test_the_server_that_cannot_start_says_why(model: LocalModel, tmp_path: Path) -> None:
    weights = tmp_path / "broken.gguf"
    weights.write_bytes(b"not weights")
    with pytest.raises(ConfigError, match="failed to load model"):
        asyncio.run(LocalServer(model, weights).url())


CONFIG = {
    "benchmark": {"preset": "embedded", "limit": 6},
    "models": {
        name: {"model": "openai/small", "serve": "smollm2-135m", "transport": transport, "params": {"temperature": t}}
        for name, transport, t in (("cool", "direct", 0.0), ("warm", "litellm", 1.0))
    },
    "roles": {"targets": ["cool", "warm"]},
    "design": {"form_limit": 1},
}


def test_a_run_serves_its_model_over_both_transports_and_leaves_nothing_behind(
    model: LocalModel, tmp_path: Path
) -> None:
    source = tmp_path / "mine.gguf"
    source.write_bytes(CONTENT)
    keep_weights(model, source)
    result = pipeline.run(CONFIG, runs_dir=tmp_path / "runs", run_id="one", yes=True)
    assert result.state == "done"
    assert result.manifest["calls"]["answered"] == 12
    assert result.manifest["cost_usd"] == 0
    assert all(gone(pid) for pid in pids(tmp_path))
    started = len(pids(tmp_path))
    # Its replies are known by the weights, not by the port: a second run asks, and starts, nothing.
    again = pipeline.run(CONFIG, runs_dir=tmp_path / "runs", run_id="two", yes=True)
    assert again.manifest["calls"]["answered"] == 0
    assert len(pids(tmp_path)) == started


def test_a_server_that_dies_is_started_again(
    model: LocalModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_LLAMA_DIES_ONCE", str(tmp_path / "died"))
    weights_file(model).parent.mkdir(parents=True)
    weights_file(model).write_bytes(CONTENT)
    config = {**CONFIG, "roles": {"targets": ["cool"]}}
    result = pipeline.run(config, runs_dir=tmp_path / "runs", run_id="one", yes=True)
    assert result.state == "done"
    assert result.manifest["calls"]["failed"] == 0
    assert len(pids(tmp_path)) == 2


PARENT = """
import asyncio, pathlib, sys
from pipeline.models.local.server import LocalServer
from pipeline.models.local.weights import CATALOGUE
async def main():
    print(await LocalServer(CATALOGUE["smollm2-135m"], pathlib.Path(sys.argv[1])).url(), flush=True)
    await asyncio.sleep(600)
asyncio.run(main())
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_however_the_parent_ends_the_server_ends_too(model: LocalModel, tmp_path: Path, number: signal.Signals) -> None:
    weights = tmp_path / "tiny.gguf"
    weights.write_bytes(CONTENT)
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, str(weights)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline().startswith("http://127.0.0.1:")
        (child,) = pids(tmp_path)
        assert alive(child)
        parent.send_signal(number)
    assert gone(child)


def test_workers_elsewhere_cannot_reach_a_server_here() -> None:
    spec = ModelSpec("small", "openai/smollm2", api_base=CATALOGUE["smollm2-135m"].endpoint)
    with pytest.raises(ConfigError, match="workers elsewhere need api_base"):
        check_workers(None, {"small": spec})
