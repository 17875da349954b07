"""Permission to import a module that a configuration names: given on the command line, or by its own author."""

from __future__ import annotations

import hashlib
import re
import sys
from importlib.machinery import ModuleSpec, PathFinder
from importlib.metadata import PackageNotFoundError, packages_distributions, requires
from pathlib import Path

from pipeline.errors import ConfigError

_PERMITTED: set[str] = set()


def permit(module: str) -> None:
    """Allow this process to import a module for grading: a person named it.

    Raises:
        ConfigError: a module of the standard library or of a dependency, whose functions grade nothing.
    """
    top = module.partition(".")[0]
    if not re.fullmatch(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", module) or top in _never():
        raise ConfigError(
            f"the module {module[:80]!r} cannot be allowed: only a module of your own can grade, never one of the"
            " standard library or of a dependency"
        )
    _PERMITTED.add(module)


def _never() -> frozenset[str]:
    """Top-level modules that no configuration may name: ``os:system`` is a function of two texts to no good end."""
    names = {*sys.stdlib_module_names, *sys.builtin_module_names, "pipeline"}
    try:
        needed = {re.split(r"[ ;<>=!\[~]", line, maxsplit=1)[0].lower() for line in requires("auxeval") or ()}
    except PackageNotFoundError:
        needed = set()
    for module, packages in packages_distributions().items():
        if needed & {package.lower() for package in packages}:
            names.add(module)
    return frozenset(names)


def trust_grading(grading: str | None) -> None:
    """Allow the module of a configuration that its own author runs."""
    if grading is not None and grading.startswith("python:"):
        permit(grading.split(":")[1])


def require_permission(grading: str | None) -> None:
    """Refuse to import what only data has named: a cassette, a run folder or a configuration from elsewhere.

    Raises:
        ConfigError: the module was not allowed; says how to.
    """
    if grading is None or not grading.startswith("python:"):
        return
    module = grading.split(":")[1]
    if module not in _PERMITTED:
        raise ConfigError(
            f"benchmark.grading: {grading[:120]!r} would run code of the module {module[:80]!r}, and what comes from"
            f" elsewhere runs none; if you know that code, repeat the command with --allow-code {module[:80]}"
        )


def digest_of_module(module: str) -> str | None:
    """SHA-256 of the file that an import of the module would run, found without running anything."""
    paths = [str(Path.cwd()), *sys.path]
    spec: ModuleSpec | None = None
    parts = module.split(".")
    for depth in range(len(parts)):
        spec = PathFinder.find_spec(".".join(parts[: depth + 1]), paths)
        if spec is None:
            return None
        paths = list(spec.submodule_search_locations or ())
    if spec is None or spec.origin is None:
        return None
    try:
        return hashlib.sha256(Path(spec.origin).read_bytes()).hexdigest()
    except OSError:
        return None
