"""One model call: request to reply, with cache, single flight, limits, budget and retries."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pipeline.models.budget import Budget as Budget
    from pipeline.models.budget import Spent as Spent
    from pipeline.models.cache import ReplyCache as ReplyCache
    from pipeline.models.cache import default_cache_dir as default_cache_dir
    from pipeline.models.gateway import Gateway as Gateway
    from pipeline.models.identity import request_key as request_key
    from pipeline.models.spec import ModelSpec as ModelSpec
    from pipeline.models.stopping import RunStopped as RunStopped
    from pipeline.models.transport import RawReply as RawReply
    from pipeline.models.transport import Transport as Transport
    from pipeline.models.transport import TransportError as TransportError

_HOMES = {
    "Budget": "budget",
    "Gateway": "gateway",
    "ModelSpec": "spec",
    "RawReply": "transport",
    "ReplyCache": "cache",
    "RunStopped": "stopping",
    "Spent": "budget",
    "Transport": "transport",
    "TransportError": "transport",
    "default_cache_dir": "cache",
    "request_key": "identity",
}

__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    """Import on first use: the parts that call models load libraries that the rest never needs."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
