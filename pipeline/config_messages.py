"""What is wrong with a configuration, as one line that names the place and the mend."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ValidationError

Section = type[BaseModel]


def one_line(error: ValidationError, source: str, root: Section, mappings: Mapping[str, Section]) -> str:
    """The first problem of a validation error.

    Args:
        error: of the whole configuration.
        source: what to call the file.
        root: the model of the whole configuration.
        mappings: keys that map names to sections, and the model of those sections.
    """
    first = error.errors(include_url=False, include_input=True)[0]
    # Of a value that may have several forms, Pydantic names each form by its type: no key of the file.
    where = ".".join(str(part) for part in first["loc"] if "constrained-" not in str(part))
    rest = len(error.errors()) - 1
    more = f" (and {rest} more)" if rest else ""
    if first["type"] == "extra_forbidden":
        key = str(first["loc"][-1])
        return f"{source}: unknown key {where!r}{_near(key, _known_keys(first['loc'], root, mappings))}{more}"
    if first["type"] == "missing":
        return f"{source}: missing key {where!r}{more}"
    if first["type"] == "literal_error":
        more = _near_value(first) + more
        where = where.removesuffix(".[key]")
    message = str(first["msg"]).removeprefix("Value error, ").replace("\n", " ")
    return f"{source}: {where}: {message}{more}" if where else f"{source}: {message}{more}"


def _near_value(problem: Any) -> str:
    """The nearest of the values that would have been taken."""
    choices = re.findall(r"'([^']*)'", str(problem["ctx"]["expected"]))
    match = difflib.get_close_matches(str(problem["input"]), choices, n=1)
    return f"; did you mean {match[0]!r}?" if match else ""


def _near(key: str, choices: list[str]) -> str:
    match = difflib.get_close_matches(key, choices, n=1)
    return f"; did you mean {match[0]!r}?" if match else f" (known: {', '.join(sorted(choices))})"


def _known_keys(location: tuple[int | str, ...], root: Section, mappings: Mapping[str, Section]) -> list[str]:
    """The keys allowed where an unknown one was found."""
    section: Section | None = root
    named: Section | None = None
    for part in location[:-1]:
        if named is not None:  # the name of an entry
            section, named = named, None
        elif part in mappings:
            named = mappings[str(part)]
        elif section is not None and not isinstance(part, int):
            section = _inner(section, part)
    if section is None:
        return []
    return [info.alias or name for name, info in section.model_fields.items()]


def _inner(section: Section, key: str) -> Section | None:
    """The section that a key holds, if it holds one."""
    info = section.model_fields.get(key)
    annotation = getattr(info, "annotation", None)
    candidates = [annotation, *getattr(annotation, "__args__", ())]
    return next((kind for kind in candidates if isinstance(kind, type) and issubclass(kind, BaseModel)), None)
