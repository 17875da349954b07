"""The mathematics: arrays in, frozen dataclasses out. NumPy, SciPy and scikit-learn only.

Names are loaded on first use, so that importing this package costs NumPy alone.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pipeline.estimators.localities import Categorical as Categorical
    from pipeline.estimators.localities import Gaussian as Gaussian
    from pipeline.estimators.localities import Ordinal as Ordinal
    from pipeline.estimators.localities import rule_of_thumb_bandwidth as rule_of_thumb_bandwidth
    from pipeline.estimators.results import Estimate as Estimate
    from pipeline.estimators.results import Profile as Profile
    from pipeline.estimators.signals import fill_missing_signals as fill_missing_signals
    from pipeline.estimators.signals import standardize_signals as standardize_signals

_EXPORTS: dict[str, tuple[str, ...]] = {
    "results": ("Estimate", "Profile"),
    "localities": ("Categorical", "Gaussian", "Ordinal", "rule_of_thumb_bandwidth"),
    "signals": ("fill_missing_signals", "standardize_signals"),
}
_MODULE_OF = {name: module for module, names in _EXPORTS.items() for name in names}

__all__ = sorted(_MODULE_OF)


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
