"""Starts the ``auxeval`` command: Ctrl-C while its modules are still being imported ends it with one line."""

from __future__ import annotations

import os
import signal
from types import FrameType


def main() -> None:
    """The command, with exit code 130 and no traceback for an interrupt before it has begun."""
    with_default = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # nohup and shells' & ignore it
    if with_default:
        signal.signal(signal.SIGINT, _interrupted)
    from pipeline.cli import main as command  # what takes the first third of a second

    try:
        command()
    finally:
        if with_default:
            signal.signal(signal.SIGINT, signal.SIG_DFL)  # the interpreter shuts down: nothing is left to clean up


def _interrupted(_number: int, frame: FrameType | None) -> None:
    """Leave at once from within an import, where an exception may be swallowed or come out as another; else raise."""
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            os.write(2, b"auxeval: interrupted\n")
            os._exit(130)
        frame = frame.f_back
    raise KeyboardInterrupt
