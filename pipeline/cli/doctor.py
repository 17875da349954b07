"""``auxeval doctor``: keys, models, prices, cache and disk, checked before a long run."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pipeline.cli.output import json_option, print_facts, print_json

if TYPE_CHECKING:
    from pipeline.cli.documents.care import DoctorDocument
    from pipeline.models.cache import ReplyCache
    from pipeline.models.spec import ModelSpec
    from pipeline.runs.setup import Prepared

__all__ = ["command"]

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
    """Check what a run of CONFIG needs; each model is reached with one cheap call. Exit 2 if anything is wrong."""
    findings = [_python(), _disk(), _cache(), _math()]
    if config is not None:
        findings += _config(config, calls=not no_calls)
    if as_json:
        document: DoctorDocument = {
            "schema": 1,
            "command": "doctor",
            "ok": all(finding.ok for finding in findings),
            "checks": [{"check": f.check, "ok": f.ok, "detail": f.detail} for f in findings],
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


def _config(path: Path, *, calls: bool) -> list[_Finding]:
    from pipeline.errors import AuxevalError
    from pipeline.runs.interface import load_env_file
    from pipeline.runs.own_runs import config_of_file
    from pipeline.runs.setup import prepare

    load_env_file()
    try:
        config = config_of_file(path, asks=calls)
        prepared = prepare(config)
    except AuxevalError as error:
        return [_Finding("config", False, str(error))]
    findings = [_Finding("config", True, f"{path}: {len(prepared.benchmark.items)} items")]
    findings += _prices(prepared)
    if any(spec.transport == "litellm" and spec.api_base for spec in prepared.specs.values()):
        findings += _differences()
    if calls:
        from pipeline.runs.interface import in_any_loop

        findings += in_any_loop(_reach(prepared.specs, prepared))
    return findings


def _differences() -> list[_Finding]:
    """What a server of one's own may send that only the other transport reads."""
    from pipeline.models.transport_differences import TRANSPORT_DIFFERENCES

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
        known = find_price(spec)
        needed = prepared.config.budget.usd is not None
        if known is None:
            detail = "unknown; add price: {input_per_million: …, output_per_million: …} to count money"
            findings.append(_Finding(f"price {name}", not needed, detail))
        else:
            price = known.price
            detail = f"${price.input:g} in, ${price.output:g} out per million tokens ({known.source})"
            findings.append(_Finding(f"price {name}", True, detail))
    return findings


async def _reach(specs: Mapping[str, ModelSpec], prepared: Prepared) -> list[_Finding]:
    """One cheap call to every model, kept out of the user's cache."""
    import tempfile

    from pipeline.models.cache import ReplyCache
    from pipeline.runs.embeddings import embeds_only

    findings = []
    with tempfile.TemporaryDirectory(prefix="auxeval-doctor-") as folder, ReplyCache(folder) as cache:
        for name, spec in specs.items():
            if spec.transport == "simulated" or spec.provider == "sim":
                findings.append(_Finding(f"model {name}", True, f"{spec.model}: simulated, in process"))
            else:
                findings.append(await _ask(spec, cache, embeds=embeds_only(prepared.config, name)))
    return findings


async def _ask(spec: ModelSpec, cache: ReplyCache, *, embeds: bool) -> _Finding:
    """The vector of one word from a model that only embeds, at most 16 tokens from any other."""
    from pipeline.errors import AuxevalError
    from pipeline.models.budget import Budget
    from pipeline.models.embeddings import EMBEDDING_PARAMS
    from pipeline.models.gateway import Gateway
    from pipeline.models.types import Answered, CallLabel

    text = "ready" if embeds else "Reply with the word: ready"
    params = EMBEDDING_PARAMS if embeds else {"max_tokens": 16}
    gateway = Gateway({spec.name: spec}, cache=cache, budget=Budget(), record=lambda record: None)
    label = CallLabel(stage="doctor", item="-", role="doctor")
    check = f"model {spec.name}"
    try:
        async with gateway:
            outcome = await gateway.ask(spec.name, [{"role": "user", "content": text}], label=label, params=params)
    except AuxevalError as error:
        return _Finding(check, False, str(error))
    if not isinstance(outcome, Answered):
        return _Finding(check, False, f"{outcome.kind}: {outcome.message}")
    served, did = outcome.reply.served_model or spec.model, "embedded" if embeds else "answered"
    return _Finding(check, True, f"{served} {did} in {outcome.reply.latency_s:.1f} s")
