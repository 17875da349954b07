"""Simulated models: a known world, the models that live in it, and the transports that reach them."""

from __future__ import annotations

from collections.abc import Iterable

from pipeline.models.simulated.settings import SIMULATED_MODELS, Simulation, simulation_settings
from pipeline.models.simulated.transport import SimulatedTransport, simulated_endpoint
from pipeline.models.simulated.world import World, WorldItem
from pipeline.models.spec import ModelSpec
from pipeline.models.transport import Transport

__all__ = [
    "SIMULATED_MODELS",
    "SimulatedTransport",
    "Simulation",
    "World",
    "WorldItem",
    "simulated_endpoint",
    "simulated_transports",
    "simulation_settings",
]


def simulated_transports(world: World, specs: Iterable[ModelSpec]) -> dict[str, Transport]:
    """The transports a gateway needs for the simulated models among these entries, by transport name.

    ``simulated`` answers in process. Where a ``sim/…`` model is to go through LiteLLM, ``litellm`` is LiteLLM's
    transport with the world registered as a provider. LiteLLM is imported only when that is opened.

    Raises:
        ConfigError: an entry names no simulated model, or its settings cannot be used.
    """
    transports: dict[str, Transport] = {}
    for spec in specs:
        if spec.transport == "simulated":
            simulation_settings(spec.model, spec.simulate)
            transports.setdefault("simulated", SimulatedTransport(world))
        elif spec.transport == "litellm" and spec.provider == "sim":
            simulation_settings(spec.model, spec.simulate)
            transports.setdefault("litellm", _through_litellm(world))
    return transports


def _through_litellm(world: World) -> Transport:
    from pipeline.models.simulated.provider import AnnouncingTransport
    from pipeline.models.transports import default_transport

    return AnnouncingTransport(default_transport("litellm"), world)
