"""``auxeval doctor``: keys, models, prices, cache and disk, checked before a long run."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pipeline.cli.output import json_option, print_json

if TYPE_CHECKING:
    from pipeline.cli.documents.care import DoctorDocument
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
        for finding in findings:
            click.echo(f"{'ok  ' if finding.ok else 'BAD '} {finding.check:<22} {finding.detail}")
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
    from pipeline.config import load_config
    from pipeline.errors import AuxevalError
    from pipeline.runs.interface import load_env_file
    from pipeline.runs.setup import prepare

    load_env_file()
    try:
        config = load_config(path)
        prepared = prepare(config)
    except AuxevalError as error:
        return [_Finding("config", False, str(error))]
    findings = [_Finding("config", True, f"{path}: {len(prepared.benchmark.items)} items")]
    findings += _prices(prepared)
    if calls:
        from pipeline.runs.interface import in_any_loop

        findings += in_any_loop(_reach(prepared.specs, prepared))
    return findings


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
    """One call of at most 16 tokens to every model, kept out of the user's cache."""
    import tempfile

    from pipeline.errors import AuxevalError
    from pipeline.models.budget import Budget
    from pipeline.models.cache import ReplyCache
    from pipeline.models.gateway import Gateway
    from pipeline.models.types import Answered, CallLabel

    findings = []
    with tempfile.TemporaryDirectory(prefix="auxeval-doctor-") as folder, ReplyCache(folder) as cache:
        for name, spec in specs.items():
            if spec.transport == "simulated" or spec.provider == "sim":
                findings.append(_Finding(f"model {name}", True, f"{spec.model}: simulated, in process"))
                continue
            label = CallLabel(stage="doctor", item="-", role="doctor")
            message = [{"role": "user", "content": "Reply with the word: ready"}]
            try:
                async with Gateway({name: spec}, cache=cache, budget=Budget(), record=lambda record: None) as gateway:
                    outcome = await gateway.ask(name, message, label=label, params={"max_tokens": 16})
            except AuxevalError as error:
                findings.append(_Finding(f"model {name}", False, str(error)))
                continue
            if isinstance(outcome, Answered):
                served = outcome.reply.served_model or spec.model
                findings.append(
                    _Finding(f"model {name}", True, f"{served} answered in {outcome.reply.latency_s:.1f} s")
                )
            else:
                findings.append(_Finding(f"model {name}", False, f"{outcome.kind}: {outcome.message}"))
    return findings
