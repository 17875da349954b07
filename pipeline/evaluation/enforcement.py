"""The one place where data are held against what a method supports: run it, leave it out and say so, or refuse."""

from __future__ import annotations

from collections.abc import Callable
from warnings import catch_warnings, simplefilter

import numpy as np

from pipeline.errors import InputError
from pipeline.estimators import Estimate, Profile
from pipeline.evaluation.document import LeftOut
from pipeline.evaluation.features import Feature
from pipeline.evaluation.methods import Method
from pipeline.evaluation.options import Options
from pipeline.tables.signal_checks import ALL, Notice

Result = Estimate | Profile


def enforced(
    method: Method,
    name: str,
    features: frozenset[Feature],
    options: Options,
    step: Callable[[], Result],
    notices: list[Notice],
) -> Result | LeftOut:
    """What a method gives on these data, or why it gives nothing.

    Args:
        method: the method.
        name: the target, or the pair ``a − b``.
        features: what the data have.
        options: whether the method was asked for by name.
        step: runs it.
        notices: grows with what the estimator warns of.

    Raises:
        InputError: the method was asked for by name and cannot be had; one line with the mend.
    """
    asked = options.by_name and method.name in options.methods
    for feature in Feature:
        support = method.on(feature)
        if feature not in features or support.how == "handled":
            continue
        if support.how == "refused" and asked:
            raise InputError(f"{_where(name, method.name)}: {feature.value}: {support.reason}")
        return LeftOut(name, method.name, f"{feature.value}: {support.reason}")
    with catch_warnings(record=True) as caught:
        simplefilter("always")
        try:
            result = step()
        except (ValueError, TypeError, np.linalg.LinAlgError) as error:
            if asked:
                raise InputError(f"{_where(name, method.name)}: {error}") from error
            return LeftOut(name, method.name, str(error))
    notices += [Notice("estimator", f"{method.name}: {' '.join(str(entry.message).split())}", name) for entry in caught]
    return result


def _where(name: str, method: str) -> str:
    return method if name == ALL else f"target {name}, {method}"
