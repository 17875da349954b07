"""What all documents have in common: closed objects whose fields say what they hold; of results, read off the class."""

from __future__ import annotations

import re
import types
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from inspect import getdoc
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import numpy as np
from pydantic import ConfigDict, Field, with_config
from typing_extensions import TypedDict

_SHAPE = re.compile(r"^\([A-Z][\w, ]*\)(?: or \([A-Z][\w, ]*\))*,? (?:or )?")
"""``(G,)`` and ``(G,) or (G, q)`` before a meaning, which no reader of JSON needs."""


@with_config(ConfigDict(extra="forbid", use_attribute_docstrings=True))
class Shape(TypedDict):
    """Base of every object in a document."""


class Document(Shape):
    """Base of every document that names its command; the schema of a command says which."""

    schema: Annotated[int, Field(description="Version of this shape.")]
    command: Annotated[str, Field(description="The command.")]


def shape_of(kind: type, name: str, *, certain: tuple[str, ...] = (), **more: tuple[Any, str]) -> Any:
    """The shape in which a dataclass is written down, with the meanings that its docstring gives.

    Args:
        kind: the dataclass.
        name: of the shape.
        certain: floats that are always finite; the others are null where they are not.
        more: fields of the document that the dataclass does not have, or types other than its own: (type, meaning);
            an empty meaning keeps that of the docstring.
    """
    hints, meanings = get_type_hints(kind), _meanings(kind)
    shape: dict[str, Any] = {}
    for entry in fields(kind):
        own, meaning = more.pop(entry.name, (None, ""))
        written = own or (float if entry.name in certain else _written(hints[entry.name]))
        shape[entry.name] = Annotated[written, Field(description=meaning or meanings[entry.name])]
    shape |= {key: Annotated[written, Field(description=meaning)] for key, (written, meaning) in more.items()}
    make: Any = TypedDict  # made from names that are known at run time only
    made = make(name, shape)
    made.__doc__ = (getdoc(kind) or "").partition("\n\n")[0]
    return with_config(ConfigDict(extra="forbid"))(made)


def _meanings(kind: type) -> Mapping[str, str]:
    """The entries of Attributes in a docstring; ``low, high: …`` speaks of both."""
    section = (getdoc(kind) or "").partition("Attributes:\n")[2]
    entries = re.findall(r"^ {4}([\w, ]+): (.*(?:\n {8}.*)*)", section, flags=re.M)
    texts = {name.strip(): " ".join(text.split()) for names, text in entries for name in names.split(",")}
    plain = {name: _SHAPE.sub("", text).replace("``", "`") for name, text in texts.items()}
    plain = {name: re.sub(r"\b(None|NaN)\b", "null", text) for name, text in plain.items()}
    return {name: text[:1].upper() + text[1:] if text[:2].islower() else text for name, text in plain.items()}


def _written(hint: Any) -> Any:
    """The type of a field's JSON value."""
    origin, parts = get_origin(hint), get_args(hint)
    if hint is float:
        return float | None
    if origin is np.ndarray:
        return list[float | None] if parts[1] == np.dtype[np.float64] else list[Any]
    if origin is tuple:
        return list[_written(parts[0])]  # type: ignore[misc]
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return dict[str, Any]
    if origin in (types.UnionType, Union):
        return Union[tuple(_written(part) for part in parts)]  # noqa: UP007
    return shape_of(hint, hint.__name__) if isinstance(hint, type) and is_dataclass(hint) else hint
