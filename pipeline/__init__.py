"""auxeval: evaluate language models with fewer gold labels and honest error bars.

    import pipeline
    result = pipeline.run("examples/quickstart.yaml")
    result.estimates["strong"]["one_step"]

Names load on first use; ``pipeline.estimators`` is usable alone on arrays.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pipeline.errors import AuxevalError as AuxevalError
    from pipeline.errors import InputError as InputError
    from pipeline.errors import StoppedEarly as StoppedEarly
    from pipeline.evaluation.document import Evaluation as Evaluation
    from pipeline.evaluation.interface import estimate as estimate
    from pipeline.runs.interface import RunResult as RunResult
    from pipeline.runs.interface import load_run as load_run
    from pipeline.runs.interface import replay as replay
    from pipeline.runs.interface import resume as resume
    from pipeline.runs.interface import run as run
    from pipeline.runs.interface import run_async as run_async

_HOMES = {
    "AuxevalError": "errors",
    "InputError": "errors",
    "RunResult": "runs.interface",
    "Evaluation": "evaluation.document",
    "StoppedEarly": "errors",
    "estimate": "evaluation.interface",
    "load_run": "runs.interface",
    "replay": "runs.interface",
    "resume": "runs.interface",
    "run": "runs.interface",
    "run_async": "runs.interface",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("auxeval")
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
