"""Negotiation: which response format a model takes, and which parameters it refuses, learnt once per model."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Literal

from pipeline.models.spec import ModelSpec
from pipeline.models.transport import TransportError
from pipeline.models.types import ReplySchema

__all__ = ["LADDER", "Negotiation", "Rung"]

Rung = Literal["json_schema", "json_object", "prompt"]
LADDER: tuple[Rung, ...] = ("json_schema", "json_object", "prompt")


class Negotiation:
    """What one model entry was found to take.

    Until the first success (or a record of an earlier run) one call at a time goes out with what is not yet certain,
    so that a model refuses each rung of the ladder once, not once per call in flight.

    Args:
        spec: the model entry.
        known: as ``to_dict`` gave it in an earlier run of the same model, or None.
        changed: told whenever something was learnt.
    """

    def __init__(
        self, spec: ModelSpec, known: Mapping[str, Any] | None, changed: Callable[[dict[str, Any]], None]
    ) -> None:
        known = known or {}
        rung = known.get("response_format")
        self.rung: Rung = rung if rung in LADDER else "json_schema"
        self.dropped: tuple[str, ...] = tuple(name for name in known.get("dropped", ()) if name in spec.drop_params)
        self.gate = asyncio.Lock()
        self._spec = spec
        self._changed = changed
        self._format_certain = rung in LADDER
        self._params_certain = "dropped" in known

    def to_dict(self) -> dict[str, Any]:
        """What is known: ``response_format`` (a rung, absent until certain) and ``dropped`` parameters."""
        known: dict[str, Any] = {}
        if self._format_certain:
            known["response_format"] = self.rung
        if self._params_certain and (self.dropped or self._spec.drop_params):
            known["dropped"] = list(self.dropped)
        return known

    def params(self, overrides: Mapping[str, Any] | None, schema: ReplySchema | None) -> dict[str, Any]:
        """The parameters of a call: the entry's, overridden, without those refused, with the response format."""
        params = {**self._spec.params, **overrides} if overrides else dict(self._spec.params)
        for name in [name for name, value in params.items() if value is None]:
            del params[name]
        for name in self.dropped:
            params.pop(name, None)
        if schema is not None and self.rung == "json_schema":
            body = {"name": schema.name, "schema": dict(schema.json_schema), "strict": True}
            params["response_format"] = {"type": "json_schema", "json_schema": body}
        elif schema is not None and self.rung == "json_object":
            params["response_format"] = {"type": "json_object"}
        return params

    def uncertain(self, params: Mapping[str, Any]) -> bool:
        """Whether a call with these parameters may still teach something."""
        if not self._format_certain and "response_format" in params:
            return True
        return not self._params_certain and any(name in params for name in self._spec.drop_params)

    def succeeded(self, params: Mapping[str, Any]) -> None:
        """A call with these parameters was answered."""
        news = False
        if not self._format_certain and "response_format" in params:
            news = self._format_certain = True
        if not self._params_certain and any(name in params for name in self._spec.drop_params):
            news = self._params_certain = True
        if news:
            self._changed(self.to_dict())

    def refused(self, params: Mapping[str, Any], error: TransportError) -> bool:
        """Learn from a 400; whether the call is worth asking again in another form."""
        if error.kind != "unsupported_parameter" or error.param is None:
            return False
        if error.param == "response_format" and "response_format" in params:
            sent = params["response_format"]["type"]
            if sent == self.rung:
                self.rung = LADDER[LADDER.index(self.rung) + 1]
                if self.rung == "prompt":
                    self._format_certain = True
                    self._changed(self.to_dict())
            return True
        if error.param in params and error.param in self._spec.drop_params:
            if error.param not in self.dropped:
                self.dropped = (*self.dropped, error.param)
                self._params_certain = True
                self._changed(self.to_dict())
            return True
        return False
