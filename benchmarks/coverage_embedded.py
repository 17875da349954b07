"""Coverage of the offline run's intervals: many seeds of the simulated world, each a whole run kept in memory.

    python benchmarks/coverage_embedded.py --seeds 200 --out docs/studies/embedded-coverage.txt

Every seed writes its own problems, world and draw of 50 labels, and goes through the collector, the tables and the
estimation of a real run. To save time the simulated models are asked without cache, limits and retries between; the
first seed is also collected through the gateway, and both must give the same tables. Finished seeds are kept beside
the output, so that a second start carries on.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import sys
import tempfile
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from pipeline.collection.collector import Collector
from pipeline.config import RunConfig
from pipeline.evaluation.document import EstimateSet
from pipeline.models.budget import Budget
from pipeline.models.gateway import Gateway
from pipeline.models.reading import to_reply
from pipeline.models.simulated import SimulatedTransport, simulated_transports, simulation_settings
from pipeline.models.types import Answered, Asker, CallLabel, Message, Outcome, ReplySchema, Request
from pipeline.runs.estimation import estimate_run
from pipeline.runs.frames import RunTables
from pipeline.runs.setup import Prepared, default_config, prepare
from pipeline.tables.schemas import TABLES, items_schema
from pipeline.tables.signals import assemble_signals
from pipeline.tables.store import RowSpool, write_frame, write_rows
from pipeline.testing import MemoryCache

NOMINAL = 0.95
MEANS = ("naive", "one_step", "one_step_paper", "one_step_pool", "lace")
LEVELS = (1, 2, 3, 4, 5)
HEAD = """Coverage of 95 % intervals over seeds of the simulated world (simulated models, embedded benchmark).
Each seed: its own 200 problems, difficulties and replies, 50 of them labeled.
All are about problems like these: the expected accuracy over all problems of this kind, its difference between two
models, and the level's own at each level (lace_profile, unsmoothed).
"""


def expected_accuracy(ability: float, levels: Sequence[int] = LEVELS) -> float:
    """E φ over problems of the embedded kind: equal shares of the levels, item effects N(0, 0.7²)."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    weights = weights / weights.sum()
    return float(np.mean([weights @ (1 / (1 + np.exp(0.8 * (level - 3) + 0.7 * nodes - ability))) for level in levels]))


def config_of(seed: int, coupling: str, draws: int) -> RunConfig:
    """The embedded default with another seed."""
    config = default_config()
    design = config.design.model_copy(update={"coupling": coupling, "draws": draws})
    return config.model_copy(update={"seed": seed, "design": design})


class WorldAsker:
    """Asks the simulated models directly: the replies that the gateway would bring, without what lies between."""

    def __init__(self, prepared: Prepared) -> None:
        self._specs = prepared.specs
        self._endpoints = {name: spec.endpoint for name, spec in prepared.specs.items()}
        self._transport = SimulatedTransport(prepared.world)

    async def ask(
        self,
        model: str,
        messages: Sequence[Message],
        *,
        label: CallLabel,
        draw: int = 0,
        params: Mapping[str, Any] | None = None,
        schema: ReplySchema | None = None,
    ) -> Outcome:
        """One call; see :meth:`pipeline.models.types.Asker.ask`."""
        spec = self._specs[model]
        sent = {**spec.params, **(params or {})}
        if schema is not None:
            body = {"name": schema.name, "schema": dict(schema.json_schema), "strict": True}
            sent["response_format"] = {"type": "json_schema", "json_schema": body}
        request = Request(spec.model, self._endpoints[model], tuple(messages), sent, draw)
        raw = await self._transport.send(spec, request, timeout_s=60.0)
        return Answered(request, "", to_reply(raw, latency_s=0.0, price=None), cached=False)


async def collect(prepared: Prepared, folder: Path, *, through_gateway: bool = False) -> None:
    """Ask everything and write every table but items and signals."""
    specs = prepared.specs
    gateway = Gateway(
        specs,
        cache=MemoryCache(),
        budget=Budget(),
        record=lambda record: None,
        transports=simulated_transports(prepared.world, specs.values()),
    )
    asker: Asker = gateway if through_gateway else WorldAsker(prepared)
    with RowSpool(folder / "spool") as spool:
        collector = Collector(
            prepared.config,
            prepared.benchmark,
            prepared.labeled,
            asker,
            prepared.prompts,
            lambda row: spool.add(row.table, {name: getattr(row, name) for name in row.__slots__}),
        )
        async with gateway:
            await collector.run()
        spool.write(folder, [schema for name, schema in TABLES.items() if name != "items"])


def assert_same_tables(prepared: Prepared) -> None:
    """Both ways of asking give the same rows (request keys aside, which only the gateway computes)."""
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as two:
        asyncio.run(collect(prepared, Path(one)))
        asyncio.run(collect(prepared, Path(two), through_gateway=True))
        for name in ("responses", "preferences", "scores", "taus"):
            left, right = getattr(RunTables(Path(one)), name), getattr(RunTables(Path(two)), name)
            if not left.drop("request_key").equals(right.drop("request_key")):
                raise AssertionError(f"the gateway gives another table {name}")


def estimates(prepared: Prepared, folder: Path, labeled: Collection[str]) -> EstimateSet:
    """What the run estimates when these items are labeled."""
    rows = (
        {**asdict(item), "choices": None, "labeled": item.item_id in labeled, "split": "test"}
        for item in prepared.benchmark.items
    )
    kind = prepared.benchmark.profile_kind
    write_rows(folder, items_schema(kind), rows)
    tables, config = RunTables(folder), prepared.config
    frame, schema = assemble_signals(
        tables.items,
        tables.responses,
        tables.preferences,
        tables.scores,
        targets=config.roles.targets,
        missing_reply=config.missing_reply,
        kind=kind,
    )
    write_frame(folder, schema, frame)
    return estimate_run(config, RunTables(folder))


def one_seed(seed: int, coupling: str, draws: int) -> list[dict[str, Any]]:
    """Every interval of one run beside what it is to cover."""
    prepared = prepare(config_of(seed, coupling, draws))
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as name:
        folder = Path(name)
        asyncio.run(collect(prepared, folder))
        got = estimates(prepared, folder, prepared.labeled)
    abilities = {
        target: simulation_settings(entry.model, entry.simulate).ability
        for target in got.targets
        for entry in (prepared.config.model_entry(target),)
    }
    records = []
    for target, methods in got.targets.items():
        law = expected_accuracy(abilities[target])
        records += [_record(seed, target, method, methods[method], law) for method in MEANS if method in methods]
        records += _profile_records(seed, target, methods["lace_profile"], abilities[target])
    for gap in got.gaps:
        if gap.method == "lace_gap":
            difference = expected_accuracy(abilities[gap.a]) - expected_accuracy(abilities[gap.b])
            records.append(_record(seed, f"{gap.a} - {gap.b}", gap.method, gap.estimate, difference))
    return records


def _record(seed: int, target: str, method: str, estimate: Any, truth: float) -> dict[str, Any]:
    return {
        "seed": seed,
        "target": target,
        "method": method,
        "value": estimate.value,
        "low": estimate.low,
        "high": estimate.high,
        "truth": truth,
    }


def _profile_records(seed: int, target: str, profile: Any, ability: float) -> Iterator[dict[str, Any]]:
    for place, at in enumerate(profile.at):
        yield {
            "seed": seed,
            "target": target,
            "method": f"lace_profile at {float(at):g}",
            "value": float(profile.value[place]),
            "low": float(profile.low[place]),
            "high": float(profile.high[place]),
            "truth": expected_accuracy(ability, (int(at),)),
        }


def summary(records: list[dict[str, Any]]) -> str:
    """Coverage by method and target, with the exact 99 % interval of a coverage estimated from so many seeds."""
    names = f"{'target':<16}{'method':<20}{'count':>6}{'coverage':>10}{'99 % interval':>18}"
    lines = [f"{names}{'width':>8}{'bias':>9}{'RMSE':>8}"]
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for record in records:
        groups.setdefault((record["target"], record["method"]), []).append(record)
    for (
        record
    ) in records:  # pooled, last: intervals of one seed depend on each other, so that these have no exact interval
        groups.setdefault(("all", record["method"].partition(" at ")[0]), []).append(record)
    for (target, method), rows in groups.items():
        hits = sum(row["low"] <= row["truth"] <= row["high"] for row in rows)
        errors = np.array([row["value"] - row["truth"] for row in rows])
        width = float(np.mean([row["high"] - row["low"] for row in rows]))
        low, high = clopper_pearson(hits, len(rows), 0.99)
        mark = "" if high >= NOMINAL else "  below nominal"
        span = "" if target == "all" else f"[{low:.3f}, {high:.3f}]"
        lines.append(
            f"{target:<16}{method:<20}{len(rows):>6}{hits / len(rows):>10.3f}{span:>18}"
            f"{width:>8.3f}{errors.mean():>+9.4f}{math.sqrt(float(np.mean(errors**2))):>8.4f}{mark}"
        )
    return "\n".join(lines)


def clopper_pearson(hits: int, count: int, level: float) -> tuple[float, float]:
    """The exact interval of a binomial share."""
    from scipy.special import betaincinv

    tail = (1 - level) / 2
    low = float(betaincinv(hits, count - hits + 1, tail)) if hits else 0.0
    high = float(betaincinv(hits + 1, count - hits, 1 - tail)) if hits < count else 1.0
    return low, high


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--coupling", choices=("independent", "episode"), default="independent")
    parser.add_argument("--out", type=Path, default=None)
    given = parser.parse_args()
    partial = given.out.with_suffix(".partial.jsonl") if given.out else None
    done: dict[int, list[dict[str, Any]]] = {}
    if partial and partial.exists():
        for line in partial.read_text("utf-8").splitlines():
            rows = json.loads(line)
            done[rows[0]["seed"]] = rows
    assert_same_tables(prepare(config_of(0, given.coupling, given.draws)))
    started, fresh = time.perf_counter(), 0
    for seed in range(given.seeds):
        if seed in done:
            continue
        done[seed] = one_seed(seed, given.coupling, given.draws)
        fresh += 1
        if partial:
            with partial.open("a", encoding="utf-8") as file:
                file.write(json.dumps(done[seed]) + "\n")
        pace = (time.perf_counter() - started) / fresh
        print(f"\rseed {seed + 1}/{given.seeds}, {pace:.1f} s each", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    command = (
        f"python benchmarks/coverage_embedded.py --seeds {given.seeds} --draws {given.draws}"
        f" --coupling {given.coupling}"
    )
    text = f"{HEAD}\n$ {command}\n\n{summary([row for seed in range(given.seeds) for row in done[seed]])}\n"
    if given.out:
        given.out.write_text(text, "utf-8")
        if partial:
            partial.unlink(missing_ok=True)
    print(text)


if __name__ == "__main__":
    main()
