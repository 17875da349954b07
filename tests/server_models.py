"""The test server as a provider worth asking: replies of simulated models that know the questions of one benchmark."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from pipeline.benchmark.items import load_benchmark
from pipeline.config import BenchmarkConfig
from pipeline.models.simulated import SIMULATED_MODELS, World, simulation_settings
from pipeline.models.simulated.model import SimulatedModel, SimulatedReply, UnknownQuestionError


class SimulatedReplies:
    """A chat body in, a reply out: ``strong`` answers as ``sim/strong``, other names as a model of middling ability.

    The k-th request with one body gets the k-th draw, so that no other order of requests matters.

    Args:
        benchmark: a preset that needs no file (``embedded``), or a GSM8K-like file.
        seed: of the world.
    """

    def __init__(self, benchmark: str = "embedded", *, seed: int = 0) -> None:
        config = BenchmarkConfig() if benchmark == "embedded" else BenchmarkConfig(preset="gsm8k", path=Path(benchmark))
        self._world = World.from_items(load_benchmark(config, seed).items, seed=seed)
        self._models: dict[str, SimulatedModel] = {}
        self._asked: Counter[str] = Counter()

    def __call__(self, body: dict[str, Any], digest: str) -> tuple[str, str]:
        """Text and finish reason."""
        draw = self._asked[digest]
        self._asked[digest] += 1
        try:
            reply = self._reply(body, f"{digest}/{draw}")
        except UnknownQuestionError:
            return "ready", "stop"
        return reply.text, reply.finish_reason

    def _reply(self, body: dict[str, Any], key: str) -> SimulatedReply:
        name = str(body["model"])
        if name not in self._models:
            known = f"sim/{name}" if f"sim/{name}" in SIMULATED_MODELS else name
            self._models[name] = SimulatedModel(known, simulation_settings(known), self._world)
        return self._models[name].reply(body["messages"], body, key)
