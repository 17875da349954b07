"""The process that holds a served model: `python -m pipeline.models.local.child SETTINGS`; it ends with its parent."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from typing import Any

_PARENT_POLL_S = 1.0


def main(settings: dict[str, Any]) -> None:
    """Serve until standard input closes or the parent is gone, however it ended.

    The first line on standard output is the server's address.

    Args:
        settings: ``file``, ``alias``, ``port`` (0: any), ``slots``, ``context`` (tokens a slot), ``threads``.
    """
    _end_with(os.getppid())
    from xllamacpp import CommonParams, Server  # its library takes a while to load; only this process needs it

    params = CommonParams()
    params.model.path = settings["file"]
    params.model_alias = {settings["alias"]} if isinstance(params.model_alias, set) else settings["alias"]
    params.hostnames = ["127.0.0.1"]
    params.port = settings["port"]
    params.n_parallel = settings["slots"]
    params.n_ctx = settings["slots"] * settings["context"]
    params.cpuparams.n_threads = settings["threads"]
    params.endpoint_props = False  # reading stays; what is switched off is changing it
    server = Server(params)
    print(server.listening_address, flush=True)
    sys.stdin.buffer.read()
    os._exit(0)


def _end_with(parent: int) -> None:
    """A parent killed outright closes our standard input; a pipe that a third process inherited would not say so."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_PARENT_POLL_S)
        os._exit(0)

    threading.Thread(target=watch, daemon=True).start()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
