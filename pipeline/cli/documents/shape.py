"""What all documents have in common: closed objects, whose fields say in their docstrings what they hold."""

from __future__ import annotations

from pydantic import ConfigDict, with_config
from typing_extensions import TypedDict


@with_config(ConfigDict(extra="forbid", use_attribute_docstrings=True))
class Shape(TypedDict):
    """Base of every object in a document."""
