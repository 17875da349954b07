"""Stands in for the extra laptop: the same two names, with an OpenAI-compatible server that answers by rote."""

from __future__ import annotations

import json
import os
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

__all__ = ["CommonParams", "Server"]


class CommonParams:
    """Holds whatever is set."""

    def __init__(self) -> None:
        self.model = SimpleNamespace(path="")
        self.cpuparams = SimpleNamespace(n_threads=1)
        self.model_alias = ""
        self.hostnames: list[str] = []
        self.port = 0
        self.n_parallel = 1
        self.n_ctx = 0
        self.endpoint_props = True


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if os.environ.get("FAKE_LLAMA_DIES_ONCE") and not Path(os.environ["FAKE_LLAMA_DIES_ONCE"]).exists():
            Path(os.environ["FAKE_LLAMA_DIES_ONCE"]).touch()
            os._exit(9)
        reply: dict[str, Any] = {
            "model": "fake",
            "choices": [{"message": {"role": "assistant", "content": "Answer: 4"}, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": len(str(body["messages"])), "completion_tokens": 3},
        }
        data = json.dumps(reply).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        pass


class Server:
    """Listens from its creation on; a file of weights that does not begin as one is refused."""

    def __init__(self, params: CommonParams) -> None:
        if not Path(params.model.path).read_bytes().startswith(b"GGUF"):
            print("error: failed to load model", file=sys.stderr, flush=True)
            sys.exit(1)
        server = ThreadingHTTPServer((params.hostnames[0], params.port), _Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.listening_address = f"http://127.0.0.1:{server.server_address[1]}"
        log = os.environ.get("FAKE_LLAMA_PIDS")
        if log:
            with Path(log).open("a", encoding="ascii") as stream:
                stream.write(f"{os.getpid()}\n")
