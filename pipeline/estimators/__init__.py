"""The mathematics, as families: arrays in, frozen dataclasses out. NumPy, SciPy and scikit-learn only.

Every public name is an attribute of this package, listed once in ``__init__.pyi``; the thirty that most work begins
with are in ``__all__``. Examples take ``np`` and these names as imported. Names are
loaded on first use, so that importing this package costs NumPy alone.
"""

from __future__ import annotations

import ast
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

_MODULE_OF: dict[str, str] = {}
__all__: list[str] = []
for _node in ast.parse(Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8")).body:
    if isinstance(_node, ast.ImportFrom):
        _MODULE_OF.update((_alias.name, str(_node.module)) for _alias in _node.names)
    elif isinstance(_node, ast.Assign):
        __all__ += ast.literal_eval(_node.value)


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if _MODULE_OF[name] == __name__:
        return import_module(f"{__name__}.{name}")
    value = getattr(import_module(_MODULE_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(_MODULE_OF)


class _Package(ModuleType):
    """Keeps a family from hiding the function it is named after: Python sets a package here when it is imported."""

    def __setattr__(self, name: str, value: Any) -> None:
        if not (isinstance(value, ModuleType) and _MODULE_OF.get(name, __name__) != __name__):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
