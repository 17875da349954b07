"""Negotiation: which response format a model takes, and which parameters it refuses, learnt once per model."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Any, Literal

from pipeline.models.spec import ModelSpec
from pipeline.models.transport import TransportError
from pipeline.models.types import Reply, ReplySchema

Rung = Literal["json_schema", "json_object", "prompt"]
_UNCLEAR_AT_MOST = 3
"""Replies that say nothing of a format before it is taken for granted: calls wait in line until it is certain."""
LADDER: tuple[Rung, ...] = ("json_schema", "json_object", "prompt")
_EXTRAS = ("logprobs", "top_logprobs")
"""What adds to a reply and changes nothing of it: a model that refuses it is asked without."""


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
        self, spec: ModelSpec, learnt: Mapping[str, Any] | None, changed: Callable[[dict[str, Any]], None]
    ) -> None:
        learnt = learnt or {}
        rung = learnt.get("response_format")
        self._droppable = (*spec.drop_params, *_EXTRAS)
        self.rung: Rung = rung if rung in LADDER else "json_schema"
        self.dropped: tuple[str, ...] = tuple(name for name in learnt.get("dropped", ()) if name in self._droppable)
        self._unclear = 0
        self.gate = asyncio.Lock()
        self._spec = spec
        self._changed = changed
        self._format_certain = rung in LADDER
        self._params_certain = "dropped" in learnt

    def to_dict(self) -> dict[str, Any]:
        """What is known: ``response_format`` (a rung, absent until certain) and ``dropped`` parameters."""
        learnt: dict[str, Any] = {}
        if self._format_certain:
            learnt["response_format"] = self.rung
        if self._params_certain and (self.dropped or self._spec.drop_params):
            learnt["dropped"] = list(self.dropped)
        return learnt

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
        return not self._params_certain and any(name in params for name in self._droppable)

    def answered(self, params: Mapping[str, Any], reply: Reply) -> bool:
        """A call with these parameters was answered; whether its reply counts.

        That a model takes a response format is certain only once a reply *was* JSON. A server that ignores the format
        made all of a judge null while the report said "structured output": what is whole and no JSON steps down, and
        its call is asked again in the next form. A reply that was cut off or refused says nothing either way.
        """
        news = False
        if not self._format_certain and "response_format" in params:
            form = _form(reply)
            if form == "prose":
                self._step_down(params)
                return False
            self._unclear += form == "unclear"
            news = self._format_certain = form == "json" or self._unclear >= _UNCLEAR_AT_MOST
        if not self._params_certain and any(name in params for name in self._droppable):
            news = self._params_certain = True
        if news:
            self._changed(self.to_dict())
        return True

    def refused(self, params: Mapping[str, Any], error: TransportError) -> bool:
        """Learn from a 400; whether the call is worth asking again in another form."""
        if error.kind != "unsupported_parameter" or error.param is None:
            return False
        if error.param == "response_format" and "response_format" in params:
            self._step_down(params)
            return True
        if error.param in params and error.param in self._droppable:
            if error.param not in self.dropped:
                both = (
                    _EXTRAS if error.param == "logprobs" else (error.param,)
                )  # the one has no sense without the other
                self.dropped = (*self.dropped, *(name for name in both if name not in self.dropped))
                self._params_certain = True
                self._changed(self.to_dict())
            return True
        return False

    def _step_down(self, params: Mapping[str, Any]) -> None:
        """The next rung of the ladder, unless another call has stepped there meanwhile."""
        if params["response_format"]["type"] != self.rung:
            return
        self.rung = LADDER[LADDER.index(self.rung) + 1]
        if self.rung == "prompt":
            self._format_certain = True
            self._changed(self.to_dict())


def _form(reply: Reply) -> Literal["json", "prose", "unclear"]:
    """What a reply says of the response format it was asked for; fences and words around an object are forgiven."""
    start, end = reply.text.find("{"), reply.text.rfind("}")
    if start >= 0:
        try:
            return "json" if isinstance(json.loads(reply.text[start : end + 1]), dict) else "unclear"
        except (ValueError, RecursionError):
            return "unclear"
    return "prose" if reply.text.strip() and reply.outcome == "ok" else "unclear"
