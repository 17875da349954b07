"""A client of a Dask scheduler, or one line that says why there is none."""

from __future__ import annotations

import logging
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pipeline.errors import InputError
from pipeline.foreign_json import read_json

_CONNECT_S = "10s"


@contextmanager
def scheduler_client(address: str) -> Iterator[Any]:
    """A client of the scheduler at an address, or of the one that wrote a ``--scheduler-file``.

    Raises:
        InputError: the dask extra is missing, the address is none, or no scheduler answers there.
    """
    Client = import_distributed().Client
    logs = logging.getLogger("distributed")
    level = logs.level
    logs.setLevel(logging.CRITICAL)  # what goes wrong is said once, below
    try:
        where = _from_scheduler_file(Path(address)) if address.endswith(".json") else address
        _check_address(where)
        opened = Client(where, timeout=_CONNECT_S)
    except (OSError, ValueError) as unreachable:
        raise InputError(
            f"no Dask scheduler answers at {address} ({_reason(unreachable)}); start one with dask scheduler, and give"
            " the address that it prints, as in tcp://host:8786"
        ) from None
    finally:
        logs.setLevel(level)
    with opened:
        yield opened


def import_distributed() -> Any:
    """Dask's module.

    Raises:
        InputError: the dask extra is missing.
    """
    try:
        import distributed
    except ImportError:
        raise InputError("Dask is not installed; it comes with the dask extra: pip install 'auxeval[dask]'") from None
    return distributed


def _from_scheduler_file(path: Path) -> str:
    if not path.is_file():
        raise ValueError("no such file")
    values = read_json(path.read_bytes())
    return str(values.get("address")) if isinstance(values, dict) else ""


def _check_address(address: str) -> None:
    """Refuse what Dask would take for the name of something else, or wait for in vain."""
    host, colon, port = address.rpartition("://")[2].rpartition(":")
    if not (host and colon and port.isdecimal()):
        raise ValueError("not an address HOST:PORT")
    try:
        socket.getaddrinfo(host.strip("[]"), int(port))
    except (socket.gaierror, OverflowError):
        raise ValueError(f"no host is called {host}") from None


def _reason(error: BaseException) -> str:
    words = " ".join(str(error).split()) or type(error).__name__
    return words if len(words) <= 160 else f"{words[:160]}…"
