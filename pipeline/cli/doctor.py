"""``auxeval doctor``: keys, models, prices, cache and disk, checked before a long run."""

from __future__ import annotations

import shutil
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pipeline.cli.output import json_option, print_facts, print_json

if TYPE_CHECKING:
    from pipeline.cli.documents.care import DoctorDocument
    from pipeline.runs.setup import Prepared

_ENOUGH_BYTES = 2**30


@dataclass(frozen=True, slots=True)
class _Finding:
    """One check: what was looked at, whether it is fine, and what was found or how to mend it."""

    check: str
    ok: bool
    detail: str


@click.command()
@click.argument("config", required=False, type=click.Path(path_type=Path))
@click.option("--no-calls", is_flag=True, help="Do not reach the models (nothing is spent).")
@json_option
@click.pass_context
def command(context: click.Context, config: Path | None, no_calls: bool, as_json: bool) -> None:
    """Check what a run of CONFIG needs; every model is reached by a few cheap calls. Exit 2 if anything is wrong."""
    findings = [_python(), _disk(), _cache(), _math()]
    proposals: dict[str, dict[str, float]] = {}
    if config is not None:
        checked, proposals = _config(config, calls=not no_calls)
        findings += checked
    if as_json:
        document: DoctorDocument = {
            "schema": 1,
            "command": "doctor",
            "ok": all(finding.ok for finding in findings),
            "checks": [{"check": f.check, "ok": f.ok, "detail": f.detail} for f in findings],
            "proposals": proposals,
        }
        print_json(document)
    else:
        print_facts([("ok" if finding.ok else "BAD", finding.check, finding.detail) for finding in findings])
    if not all(finding.ok for finding in findings):
        context.exit(2)


def _python() -> _Finding:
    import platform

    return _Finding("python", True, platform.python_version())


def _disk() -> _Finding:
    free = shutil.disk_usage(Path.cwd()).free
    room = f"{free / 2**30:.1f} GiB free in the working directory"
    return _Finding(
        "disk", free >= _ENOUGH_BYTES, room if free >= _ENOUGH_BYTES else f"{room}: less than 1 GiB is risky"
    )


def _cache() -> _Finding:
    from pipeline.errors import AuxevalError
    from pipeline.models.cache import ReplyCache, default_cache_dir

    folder = default_cache_dir()
    if not folder.exists():
        return _Finding("cache", True, f"{folder}: not there yet; the first run makes it")
    try:
        with ReplyCache(folder) as cache:
            return _Finding("cache", True, f"{folder}: {len(cache)} replies; auxeval cache verify reads them all")
    except AuxevalError as error:
        return _Finding("cache", False, str(error))


def _math() -> _Finding:
    from importlib.util import find_spec

    if find_spec("math_verify") is None:
        return _Finding("extra math", True, "not installed: grading: math needs pip install 'auxeval[math]'")
    return _Finding("extra math", True, "installed")


def _config(path: Path, *, calls: bool) -> tuple[list[_Finding], dict[str, dict[str, float]]]:
    from pipeline.errors import AuxevalError
    from pipeline.runs.interface import load_env_file
    from pipeline.runs.own_runs import config_of_file
    from pipeline.runs.setup import prepare

    load_env_file()
    try:
        config = config_of_file(path, asks=calls)
        prepared = prepare(config)
    except AuxevalError as error:
        return [_Finding("config", False, str(error))], {}
    findings = [_Finding("config", True, f"{path}: {len(prepared.benchmark.items)} items")]
    findings += _prices(prepared)
    if any(spec.transport == "litellm" and spec.api_base for spec in prepared.specs.values()):
        findings += _differences()
    if calls:
        from pipeline.runs.interface import in_any_loop

        reached, proposals = in_any_loop(_reach(prepared))
        return findings + reached, proposals
    return findings, {}


def _differences() -> list[_Finding]:
    """What a server of one's own may send that only the other transport reads."""
    from pipeline.models.transports import TRANSPORT_DIFFERENCES

    return [
        _Finding(
            "transport litellm",
            True,
            f"{row.what}: {row.litellm} ({row.reason}); transport: direct has it {row.direct}",
        )
        for row in TRANSPORT_DIFFERENCES
    ]


def _prices(prepared: Prepared) -> list[_Finding]:
    from pipeline.models.pricing import find_price

    findings = []
    for name, spec in prepared.specs.items():
        listed = find_price(spec)
        needed = prepared.config.budget.usd is not None
        if listed is None:
            detail = "unknown; add price: {input_per_million: …, output_per_million: …} to count money"
            findings.append(_Finding(f"price {name}", not needed, detail))
        else:
            price = listed.price
            origin = listed.source if listed.guess is None else f"{listed.source}, a guess: {listed.guess}"
            tiers = "".join(f"; above {start:,} tokens ${p.input:g}, ${p.output:g}" for start, p in price.above.items())
            detail = f"${price.input:g} in, ${price.output:g} out per million tokens ({origin}){tiers}"
            findings.append(_Finding(f"price {name}", True, detail))
    return findings


async def _reach(prepared: Prepared) -> tuple[list[_Finding], dict[str, dict[str, float]]]:
    """Every model at once, by a handful of cheap calls that no cache keeps, and what would suit their servers."""
    import asyncio

    from pipeline.models.local.transport import with_servers
    from pipeline.models.probing import probe
    from pipeline.models.transports import default_transport
    from pipeline.runs.embeddings import embeds_only

    real = {name: spec for name, spec in prepared.specs.items() if "sim" not in (spec.transport[:3], spec.provider)}
    names = sorted({spec.transport for spec in real.values()})
    carriers = with_servers({name: default_transport(name) for name in names}, real.values())
    await asyncio.gather(*(carrier.open() for carrier in carriers.values()))
    try:
        turns = defaultdict[str | None, asyncio.Lock](asyncio.Lock)
        asked = [
            probe(spec, carriers[spec.transport], embeds=embeds_only(prepared.config, name), turn=turns[spec.api_base])
            for name, spec in real.items()
        ]
        probes = dict(zip(real, await asyncio.gather(*asked), strict=True))
    finally:
        await asyncio.gather(*(carrier.close() for carrier in carriers.values()))
    findings = []
    for name, spec in prepared.specs.items():
        if name not in probes:
            findings.append(_Finding(f"model {name}", True, f"{spec.model}: simulated, in process"))
            continue
        findings.append(_Finding(f"model {name}", probes[name].ok, probes[name].model))
        if probes[name].server:
            findings.append(_Finding(f"server {name}", True, probes[name].server))
        if probes[name].proposals:
            wanted = ", ".join(f"{key}: {value:g}" for key, value in probes[name].proposals.items())
            findings.append(_Finding(f"better {name}", True, wanted))
    return findings, {name: dict(each.proposals) for name, each in probes.items() if each.proposals}
