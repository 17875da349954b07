"""Every error a user can cause, each with the exit code of the command line.

AuxevalError            1  something went wrong
├── InputError          2  the user's input is wrong: nothing was asked of any model
│   ├── ConfigError     2  a run configuration that cannot be used
│   ├── DataError       2  a benchmark, table or label file that cannot be used
│   ├── ReplayMissError 2  a replay needs a response that was not recorded
│   └── RunLockedError  2  the run is already open elsewhere
└── StoppedEarly        3  a run stopped before its end and can be resumed
"""

from __future__ import annotations

from pathlib import Path


class AuxevalError(Exception):
    """Base of all errors that this package raises on purpose: one line that names what, where and the mend."""

    exit_code: int = 1


class InputError(AuxevalError):
    """The user's input is wrong."""

    exit_code = 2


class ConfigError(InputError):
    """A run configuration that cannot be used."""


class DataError(InputError):
    """A benchmark, table or label file that cannot be used."""


class ReplayMissError(InputError):
    """A replay needs a response that was not recorded."""


class RunLockedError(InputError):
    """The run is already open in another process."""


class StoppedEarly(AuxevalError):
    """A run stopped before its end; everything paid for is stored and the run can be resumed.

    Attributes:
        run: the run directory.
        resume_command: the command that carries on.
    """

    exit_code = 3

    def __init__(self, message: str, *, run: Path | None = None, resume_command: str | None = None) -> None:
        super().__init__(message)
        self.run = run
        self.resume_command = resume_command
