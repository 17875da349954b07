"""Runs the examples of a page in a folder of its own, offline: commands in process, servers on loopback."""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from pipeline.cli import main
from pipeline.config import RolesConfig, parse_config
from tests.docs.page_examples import ROOT, Block, Command
from tests.fault_server import FaultServer
from tests.server_models import SimulatedReplies

EMBEDDED = ("make run", "auxeval run", "auxeval run --yes")
"""Commands that are all the embedded default: it is run once, and its output and folder are lent to every page."""

REAL_MODELS = "examples/gsm8k.yaml"
"""The configuration that needs keys and the hub; pages that use it meet stand-ins for its models and items."""

_STAND_IN_ITEMS = 24

_SERVER = re.compile(r"(?:python tests/fault_server\.py|vllm serve) .*--port (\d+)")
_INTERRUPT_AFTER = 200
_RUN_ID = re.compile(r"\b20\d{6}-quickstart-[0-9a-f]{6}\b")


class ExampleError(AssertionError):
    """An example does not do what its page says."""


class EmbeddedRun:
    """The embedded default, run when it is first asked for.

    Args:
        folder: an empty folder, or one that already holds such a run.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._printed = folder / "printed.txt"

    def lend(self, folder: Path) -> list[str]:
        """Put the run and its cache into a folder; what running it printed."""
        if not self._printed.exists():
            with _inside(self.folder):
                code, text = _in_process(["run", "--yes"])
            if code:
                raise ExampleError(text)
            self._printed.write_text(text, encoding="utf-8")
        (folder / ".auxeval").symlink_to(self.folder / ".auxeval")
        shutil.copytree(self.folder / "runs", folder / "runs", dirs_exist_ok=True)
        return self._printed.read_text(encoding="utf-8").splitlines()

    @property
    def run_id(self) -> str | None:
        """The id of the run, once there is one."""
        return next((path.name for path in self.folder.glob("runs/*-quickstart-*")), None)


class PageRunner:
    """One page's folder, servers and Python names.

    Args:
        folder: an empty folder; the repository's examples and test files are put beside.
        embedded: the embedded run to lend.
    """

    def __init__(self, folder: Path, embedded: EmbeddedRun) -> None:
        self.folder, self._embedded = folder, embedded
        self._names: dict[str, Any] = {}
        self._servers: dict[str, FaultServer] = {}
        self._stack = contextlib.ExitStack()
        self._last_code = 0
        shutil.copytree(ROOT / "examples", folder / "examples")
        shutil.copytree(ROOT / "tests" / "tables" / "fixtures", folder / "logs")
        shutil.copy(ROOT / ".env.example", folder)
        (folder / "tests").symlink_to(ROOT / "tests")

    def __enter__(self) -> PageRunner:
        self._stack.enter_context(_inside(self.folder))
        return self

    def __exit__(self, *_error: object) -> None:
        self._stack.close()

    def python(self, block: Block) -> list[str]:
        """Run a Python block, with the names of the page's blocks before it; what it prints."""
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile("\n".join(block.lines), "page", "exec"), self._names)  # noqa: S102
        return printed.getvalue().splitlines()

    def configuration(self, block: Block) -> None:
        """Check a fragment of a run configuration: its keys and values are possible."""
        given = {"roles": {"targets": ["target"]}, "estimate": ["naive"], **yaml.safe_load("\n".join(block.lines))}
        named = RolesConfig.model_validate(given["roles"]).names()
        given["models"] = {name: {"model": "sim/medium"} for name in named} | given.get("models", {})
        parse_config(given, base=self.folder)

    def command(self, command: Command) -> list[str]:
        """Run a command; the lines it prints, on either stream.

        Raises:
            ExampleError: it fails and the page does not say so.
        """
        text = self._here(command.text)
        if text == "echo $?":
            code, self._last_code = self._last_code, 0
            return [str(code)]
        if self._last_code:
            raise ExampleError(
                f"the command before {command.text!r} ended with {self._last_code}, the page says nothing"
            )
        self._last_code, printed = self._run(text, command)
        return [self._there(line) for line in printed.splitlines()]

    def finish(self) -> None:
        """The last command of a block ended well, or the page said that it does not.

        Raises:
            ExampleError: it did not.
        """
        code, self._last_code = self._last_code, 0
        if code:
            raise ExampleError(f"exit code {code}, and no `echo $?` after it")

    def _run(self, text: str, command: Command) -> tuple[int, str]:
        if text in EMBEDDED:
            return 0, "\n".join(self._embedded.lend(self.folder))
        served = _SERVER.match(text)
        if served is not None:
            return 0, self._serve(served[1], "vllm" in text)
        if text.startswith("curl -s "):
            with urllib.request.urlopen(text.split()[-1], timeout=20) as reply:
                return 0, reply.read().decode()
        if command.output[:1] == ("^C",):
            return self._interrupted(text)
        if REAL_MODELS in text:
            self._stand_in()
        words = shlex.split(text, comments=True)
        if words[0] == "auxeval" and not set(words) & {"|", ">", "&&", ";", "2>&1"}:
            return _in_process(words[1:])
        return _in_shell(text)

    def _serve(self, port: str, vllm: bool) -> str:
        """Start what plays a server of the page's; its address is put into the examples' configurations."""
        server = self._stack.enter_context(FaultServer(replies=SimulatedReplies()))
        self._servers[port] = server
        for file in self.folder.glob("examples/*.yaml"):
            file.write_text(file.read_text("utf-8").replace(f"127.0.0.1:{port}", f"127.0.0.1:{server.port}"), "utf-8")
        return "" if vllm else server.url

    def _stand_in(self) -> None:
        """Send the example with real models to a server on loopback, for embedded items; once a page."""
        if REAL_MODELS in self._servers:
            return
        server = self._stack.enter_context(FaultServer(replies=SimulatedReplies()))
        self._servers[REAL_MODELS] = server
        path = self.folder / REAL_MODELS
        config = yaml.safe_load(path.read_text("utf-8"))
        for name, entry in config["models"].items():
            price = {"input_per_million": 0.5, "output_per_million": 2.0}
            entry |= {"model": f"openai/{name}", "transport": "direct", "api_base": server.url, "price": price}
            del entry["api_key_env"]
        config["benchmark"] = {"preset": "embedded", "limit": _STAND_IN_ITEMS}
        path.write_text(yaml.safe_dump(config), "utf-8")

    def _here(self, text: str) -> str:
        for port, server in self._servers.items():
            text = text.replace(f"127.0.0.1:{port}", f"127.0.0.1:{server.port}")
        return _RUN_ID.sub(self._embedded.run_id or "", text) if self._embedded.run_id else text

    def _there(self, line: str) -> str:
        for port, server in self._servers.items():
            line = line.replace(f"127.0.0.1:{server.port}", f"127.0.0.1:{port}")
        return line

    def _interrupted(self, text: str) -> tuple[int, str]:
        """A command that gets Ctrl-C once the servers have answered a few hundred calls more."""
        before = self._answered()
        for server in self._servers.values():
            server.latency_s = 0.02
        process = subprocess.Popen(
            [sys.executable, "-m", "pipeline", *shlex.split(text)[1:]],
            env={**os.environ, "PYTHONPATH": str(ROOT)}, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        deadline = time.monotonic() + 120
        while self._answered() < before + _INTERRUPT_AFTER and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.002)
        process.send_signal(signal.SIGINT)
        printed, _ = process.communicate(timeout=120)
        for server in self._servers.values():
            server.latency_s = 0.0
        return process.returncode, f"^C\n{printed}"

    def _answered(self) -> int:
        return sum(server.seen.answered for server in self._servers.values())


@contextlib.contextmanager
def _inside(folder: Path) -> Iterator[None]:
    """The folder as working directory, and an environment without anything of the user's."""
    before, environment = Path.cwd(), dict(os.environ)
    for name in [name for name in os.environ if name.startswith("AUXEVAL_") or name.endswith("_API_KEY")]:
        del os.environ[name]
    os.environ |= {"HF_HUB_OFFLINE": "1", "NO_PROXY": "127.0.0.1", "COLUMNS": "80"}
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    os.chdir(folder)
    try:
        with _loopback_alone():
            yield
    finally:
        os.chdir(before)
        os.environ.clear()
        os.environ.update(environment)


@contextlib.contextmanager
def _loopback_alone() -> Iterator[None]:
    """No name is looked up but this machine's, so that no example reaches a network."""
    look_up = socket.getaddrinfo

    def guarded(host: Any, *rest: Any, **named: Any) -> Any:
        if host not in (None, "127.0.0.1", "localhost", "::1", b"127.0.0.1"):
            raise ExampleError(f"an example wants to reach {host}")
        return look_up(host, *rest, **named)

    socket.getaddrinfo = guarded
    try:
        yield
    finally:
        socket.getaddrinfo = look_up


def _in_process(words: list[str]) -> tuple[int, str]:
    """``auxeval`` with these words: exit code, and what it prints on both streams; no number may be undefined."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed), warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        try:
            main(words)
        except SystemExit as stop:
            code = stop.code
    return int(code or 0), printed.getvalue()


def _in_shell(text: str) -> tuple[int, str]:
    done = subprocess.run(
        ["bash", "-c", text], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        timeout=120,
    )  # fmt: skip
    return done.returncode, done.stdout
