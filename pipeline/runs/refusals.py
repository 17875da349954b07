"""What an estimator refuses, as one line that names target and estimate."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from pipeline.errors import InputError

__all__ = ["named_refusals"]


@contextmanager
def named_refusals(target: str, method: str) -> Iterator[None]:
    """What an estimator refuses becomes one line that names target and method."""
    try:
        yield
    except (ValueError, TypeError, np.linalg.LinAlgError) as error:
        raise InputError(f"target {target}, estimate {method}: {error}") from error
