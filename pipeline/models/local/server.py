"""LocalServer: a model served on 127.0.0.1 by a child process that ends with this one."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import socket
import sys
import tempfile
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import IO

from pipeline.errors import ConfigError
from pipeline.models.local.weights import LocalModel

SLOTS = 1
"""Requests a server of ours answers at once: on few cores more are no faster, and one gives the same bytes again."""

_START_S = 180.0
_STOP_S = 5.0
_ROOM_BYTES = 256 * 2**20
"""What the server needs beyond the weights: its library, the context of a small model."""


def check_can_serve(size: int, *, what: str = "serve") -> None:
    """Refuse before anything is asked what cannot be served here.

    Args:
        size: bytes of the weights.
        what: how to begin the message.

    Raises:
        ConfigError: the extra is missing, or there is too little memory.
    """
    if find_spec("xllamacpp") is None:
        raise ConfigError(f"{what}: the extra laptop is not installed; pip install 'auxeval[laptop]'")
    free = _free_bytes()
    if free is not None and free < size + _ROOM_BYTES:
        raise ConfigError(
            f"{what}: the model needs {(size + _ROOM_BYTES) / 1e6:.0f} MB of memory and {free / 1e6:.0f} MB are free;"
            " close something, or name a server elsewhere with api_base"
        )


def check_port(port: int) -> None:
    """Refuse a port that somebody else listens on.

    Raises:
        ConfigError: it is taken, or not ours to take.
    """
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            raise ConfigError(
                f"port {port} cannot be used ({error.strerror}); give another with --port, or none for any free one"
            ) from None


@dataclass(frozen=True, slots=True)
class _Running:
    process: asyncio.subprocess.Process
    url: str
    log: IO[bytes]


class LocalServer:
    """One model on 127.0.0.1, started when first asked for, and again where it has died.

    Args:
        model: the model.
        weights: its file.
        slots: requests that it answers at once.
        port: where it listens; 0 is any free port.
    """

    def __init__(self, model: LocalModel, weights: Path, *, slots: int = SLOTS, port: int = 0) -> None:
        self.model, self.slots = model, slots
        self._weights, self._port = weights, port
        self._running: _Running | None = None
        self._starting = asyncio.Lock()

    async def url(self) -> str:
        """The base URL of its OpenAI-compatible interface.

        Raises:
            ConfigError: it does not start; one line with its last words.
        """
        async with self._starting:
            if self._running is not None and self._running.process.returncode is None:
                return self._running.url
            await self._end()
            self._running = await self._start()
            return self._running.url

    async def wait(self) -> int:
        """The exit code of the server's process, once it has one."""
        assert self._running is not None, "url() comes before wait()"
        return await self._running.process.wait()

    async def close(self) -> None:
        """End the server; safe to call twice."""
        async with self._starting:
            await self._end()

    async def _start(self) -> _Running:
        settings = {
            "file": str(self._weights),
            "alias": self.model.name,
            "port": self._port,
            "slots": self.slots,
            "context": self.model.context,
            "threads": max(1, (os.cpu_count() or 1) - 1),  # its threads wait for each other by spinning
        }
        log = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as the process that writes to it
        # A session of its own: Ctrl-C in the terminal is ours to handle, and calls in flight are let land.
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-P", "-m", "pipeline.models.local.child", json.dumps(settings),  # -P: as math_grading says
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=log, start_new_session=True,
        )  # fmt: skip
        assert process.stdout is not None
        try:
            line = await asyncio.wait_for(process.stdout.readline(), _START_S)
        except TimeoutError:
            line = b""
        except asyncio.CancelledError:
            await _kill(process)
            log.close()
            raise
        address = line.decode("utf-8", "replace").strip()
        if not address.startswith("http://127.0.0.1:"):
            code = await _kill(process)
            message = f"serve {self.model.name}: the server did not start: {_last_words(log, code)}"
            log.close()
            raise ConfigError(message)
        return _Running(process, f"{address}/v1", log)

    async def _end(self) -> None:
        running, self._running = self._running, None
        if running is None:
            return
        if running.process.stdin is not None:
            running.process.stdin.close()
        try:
            await asyncio.wait_for(running.process.wait(), _STOP_S)
        except TimeoutError:
            await _kill(running.process)
        running.log.close()


async def _kill(process: asyncio.subprocess.Process) -> int:
    if process.returncode is None:
        process.kill()
    return await process.wait()


def _last_words(log: IO[bytes], code: int) -> str:
    """Why a server ended, in one line."""
    if code == -signal.SIGKILL:
        return "it was killed, as the system does where memory is short"
    log.seek(0)
    lines = [line.strip() for line in log.read().decode("utf-8", "replace").splitlines() if line.strip()]
    telling = [line for line in lines if re.search(r"error|failed|cannot|unable|invalid", line, re.IGNORECASE)]
    return (telling or lines or [f"exit code {code}"])[-1][:300]


def _free_bytes() -> int | None:
    """Memory that can be had without pushing anything out; None where the system does not say."""
    try:
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        return None
    return None
