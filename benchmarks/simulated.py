"""CPU time of a simulated reply, by kind of prompt, through the transport alone.

python benchmarks/simulated.py --calls 4000
"""

from __future__ import annotations

import argparse
import asyncio
import time

from pipeline.benchmark.embedded import embedded_items
from pipeline.collection.prompts import load_prompts, render
from pipeline.models.simulated import SimulatedTransport, World
from pipeline.models.spec import ModelSpec
from pipeline.models.types import Request


async def measure(calls: int) -> None:
    items, prompts = embedded_items(), load_prompts()
    world = World.from_items(items)
    transport = SimulatedTransport(world)
    spec = ModelSpec("sim/medium", "sim/medium", transport="simulated")
    texts: dict[str, list[str]] = {}
    for stage in ("answer", "auxiliary", "preference", "tau", "pointwise", "pairwise"):
        texts[stage] = []
        for item in items:
            chain = f"{item.metadata['solution']}\n\nAnswer: {item.gold}"
            names = ("response", "response_a", "response_b", "chain_a", "chain_b")
            known = {"question": item.question, "choices": None, "preference": "CHAIN A", **dict.fromkeys(names, chain)}
            texts[stage].append(render(prompts[stage][0], known))
    for stage, rendered in texts.items():
        requests = [
            Request(
                spec.model, None, ({"role": "user", "content": rendered[k % len(rendered)]},), {}, k // len(rendered)
            )
            for k in range(calls)
        ]
        for request in requests[: len(items)]:
            await transport.send(spec, request, timeout_s=60)
        started = time.process_time()
        for request in requests:
            await transport.send(spec, request, timeout_s=60)
        print(f"{stage:<12}{(time.process_time() - started) / calls * 1e6:6.0f} µs a reply")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--calls", type=int, default=4000)
    asyncio.run(measure(parser.parse_args().calls))


if __name__ == "__main__":
    main()
