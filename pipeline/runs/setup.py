"""Everything a run needs before its first call: configuration, items, labels, prompts, model entries."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pipeline.benchmark.items import Benchmark, Item, draw_labeled, load_benchmark
from pipeline.code_permission import trust_grading
from pipeline.collection.prompts import PromptSet, load_prompts
from pipeline.collection.stages import estimate_tokens, stage_plan
from pipeline.config import ModelConfig, RunConfig, load_config, parse_config
from pipeline.config_sections import PriceConfig, RateConfig, ServiceConfig
from pipeline.errors import ConfigError, InputError
from pipeline.models.local.server import SLOTS
from pipeline.models.local.transport import check_served
from pipeline.models.local.weights import local_model
from pipeline.models.providers import with_credentials
from pipeline.models.spec import ModelSpec
from pipeline.models.types import Price
from pipeline.runs.directory import RunDirectory
from pipeline.runs.own_runs import config_of_file, own_config


def default_config() -> RunConfig:
    """The embedded default: simulated models on the embedded benchmark."""
    return load_config(Path(__file__).resolve().parent.parent / "default.yaml")


def resolve_config(
    config: RunConfig | Mapping[str, Any] | str | Path | None,
    *,
    limit: int | None = None,
    budget_usd: float | None = None,
    trusted: bool = False,
) -> RunConfig:
    """A configuration from whatever the caller has, with the command line's overrides.

    ``trusted``: its author runs it, so that the grading it names may be imported.

    Raises:
        ConfigError: it cannot be used.
    """
    if config is None:
        resolved = default_config()
    elif isinstance(config, RunConfig):
        resolved = config
    elif isinstance(config, Mapping):
        resolved = parse_config(config, base=Path.cwd())
    else:
        resolved = load_config(config) if trusted else config_of_file(Path(config))
    if trusted:
        trust_grading(resolved.benchmark.grading)
    resolved = _with_given_targets(resolved)
    if limit is not None:
        if limit < 1:
            raise ConfigError(f"limit must be at least 1, got {limit}")
        # A pilot of a sample is a part of that sample, so that its replies serve the whole run.
        size = "limit" if resolved.benchmark.sample is None else "sample"
        benchmark = resolved.benchmark.model_copy(update={size: limit})
        resolved = resolved.model_copy(update={"benchmark": benchmark})
    if budget_usd is not None:
        if budget_usd < 0:
            raise ConfigError(f"budget must not be negative, got {budget_usd}")
        resolved = resolved.model_copy(update={"budget": resolved.budget.model_copy(update={"usd": budget_usd})})
    return resolved


def _with_given_targets(config: RunConfig) -> RunConfig:
    """Where responses exist already, the models of the file are the targets.

    Raises:
        ConfigError: the configuration names a target that the file does not have.
    """
    if not config.judges_what_exists:
        return config
    responders = load_benchmark(config.benchmark, config.seed).responders
    strange = [name for name in config.roles.targets if name not in responders]
    if strange:
        raise ConfigError(
            f"roles.targets: {strange[0]!r} has no response in {config.benchmark.path}; it has {', '.join(responders)}"
        )
    targets = config.roles.targets or responders
    return config.model_copy(update={"roles": config.roles.model_copy(update={"targets": targets})})


_SETTINGS = ("attempt_timeout_s", "call_deadline_s", "max_attempts", "drain_s", "stage_failure_limit")
_MODEL_SETTINGS = ("max_concurrency", "rpm", "tpm")


def with_settings(config: RunConfig, settings: Mapping[str, Any]) -> RunConfig:
    """The configuration with what may change in the middle of a run: it is in no request and in no table.

    Args:
        config: the run's.
        settings: ``attempt_timeout_s``, …, or ``models.NAME.max_concurrency``, ``.rpm``, ``.tpm`` → value.

    Raises:
        ConfigError: another key, an entry that is not there, or a value that it does not take.
    """
    values = config.canonical()
    for key, value in settings.items():
        first, _, rest = key.partition(".")
        name, _, last = rest.rpartition(".")
        if key in _SETTINGS:
            values[key] = value
        elif key == "design.form_limit":
            values["design"]["form_limit"] = value
        elif first == "models" and last in _MODEL_SETTINGS and name in config.model_entries:
            entry = values["models"].setdefault(name, {"model": name})
            entry[last] = value
        else:
            models = ", ".join(f"models.{name}.{{{','.join(_MODEL_SETTINGS)}}}" for name in config.model_entries)
            raise ConfigError(f"--set {key}: only {', '.join(_SETTINGS)}, {models} can change while a run is under way")
    return parse_config(values, source="--set") if settings else config


@dataclass(frozen=True, slots=True)
class Prepared:
    """A run that is ready to ask."""

    config: RunConfig
    benchmark: Benchmark
    labeled: frozenset[str]
    prompts: PromptSet
    specs: Mapping[str, ModelSpec]
    world: Any
    stop_on_form: bool = True
    """Whether a target that mostly gives no usable answer stops the run."""

    @property
    def simulated(self) -> tuple[str, ...]:
        """The entries whose replies are simulated."""
        return tuple(name for name, entry in self.config.model_entries.items() if entry.is_simulated)

    def facts(self) -> dict[str, Any]:
        """What the manifest says about the items, labels and prompts."""
        return {
            "benchmark": {
                "name": self.benchmark.name,
                "items": len(self.benchmark.items),
                "sha256": self.benchmark.hash,
                "grading": self.benchmark.grading,
                "profile": self.benchmark.profile_name,
                "profile_kind": self.benchmark.profile_kind,
                "left_out": dict(self.benchmark.skipped),
                "skipped": dict(self.benchmark.skipped),
                "seeds": dict(self.benchmark.seeds),
            },
            "labeled": len(self.labeled),
            "targets": list(self.config.roles.targets),
            "prompts": self.prompts.digests(),
            "simulated": list(self.simulated),
            "models": {name: spec.model for name, spec in self.specs.items()},
        }


def prepare(config: RunConfig, directory: RunDirectory | None = None, *, need_keys: bool = True) -> Prepared:
    """Load items and prompts, draw the labels, resolve the model entries.

    Args:
        config: the configuration.
        directory: a run that is carried on; its own prompts are used, and its items must still be the same.
        need_keys: False where nothing will be sent (replay, plan): missing keys are then no error.

    Raises:
        InputError: anything that cannot be used, before anything is asked.
    """
    benchmark = load_benchmark(config.benchmark, config.seed)
    labeled = draw_labeled(benchmark, config.labeled, config.seed)
    prompts = run_prompts(config, directory)
    if directory is not None:
        recorded = (directory.manifest().get("benchmark") or {}).get("sha256")
        if recorded is not None and recorded != benchmark.hash:
            raise InputError(
                f"{directory.path}: the benchmark has changed since this run was started; bring the old file back, or"
                " start a new run"
            )
        _refuse_edited_prompts(directory, prompts)
    world = _world(config, benchmark)
    specs = {name: _spec(name, entry, config, world, need_keys) for name, entry in config.model_entries.items()}
    prepared = Prepared(config, benchmark, labeled, prompts, specs, world)
    if directory is None:  # lengths are estimates: a run that was begun is not held up by them
        _refuse_too_long(prepared)
    return prepared


def _refuse_edited_prompts(directory: RunDirectory, prompts: PromptSet) -> None:
    """An edited prompt asks another question: its replies are not mixed with those before.

    Raises:
        InputError: names the first that differs from what the manifest says.
    """
    recorded = directory.manifest().get("prompts")
    if not isinstance(recorded, dict) or not recorded:
        return
    digests = prompts.digests()  # a stage that came after the run was started is not in its record
    changed = sorted(name for name, digest in recorded.items() if digests.get(name) != digest)
    if changed:
        raise InputError(
            f"{directory.path / 'prompts'}: the prompt {changed[0]!r} was edited since this run was started; bring the"
            " old text back, or start a new run (auxeval run CONFIG), which asks nothing twice that has not changed"
        )


def check_ready(prepared: Prepared) -> None:
    """Refuse, before anything is written or asked, what no call could survive.

    Raises:
        ConfigError: an unknown provider, a missing key variable, an unknown price under ``budget.usd``.
        ConfigError: a model is to be served here and cannot be.
        InputError: text features are asked for and the embed extra is missing.
    """
    from pipeline.models.budget import Budget
    from pipeline.models.pricing import find_price, require_prices
    from pipeline.models.providers import check_credentials

    check_credentials(prepared.specs)
    check_served(prepared.specs.values())
    design = prepared.config.design
    if design.algorithm == "features" and design.embedding is None and "one_step" in prepared.config.estimate:
        from pipeline.tables.embedding import StaticEmbedder

        StaticEmbedder()
    usd = prepared.config.budget.usd
    if usd is not None:
        require_prices(
            prepared.specs, {name: find_price(spec) for name, spec in prepared.specs.items()}, Budget(usd=usd)
        )


def _refuse_too_long(prepared: Prepared) -> None:
    """Refuse responses that a judge cannot read whole: their lengths are there before anything is asked."""
    config, items = prepared.config, [item for item in prepared.benchmark.items if item.given]
    plan = stage_plan(config)
    if not items or not plan.judges:
        return
    from pipeline.models.pricing import listed_window

    lengths = [(_judged_tokens(item, bool(plan.direct)), item.item_id) for item in items]
    longest, name = max(lengths)
    for judge in plan.judges:
        entry = config.model_entry(judge)
        window = entry.window or (None if entry.is_simulated else listed_window(entry.model))
        if window is not None and longest > window:
            more = sum(length > window for length, _ in lengths)
            raise ConfigError(
                f"{config.benchmark.path}: {more} of {len(items)} items are longer than the window of judge {judge}:"
                f" {name!r} has about {longest:,.0f} tokens of question, context and response, and {window:,} fit;"
                f" shorten the context, leave such items out, or name a judge that reads more (models.{judge}.window"
                " says how much)"
            )


def _judged_tokens(item: Item, compared: bool) -> float:
    """About how many tokens the longest prompt about an item has: of two responses where two are compared."""
    sizes = sorted(estimate_tokens(part.text + (part.context or "")) for part in item.given.values())
    return estimate_tokens(item.question + (item.reference or "")) + sum(sizes[-2:] if compared else sizes[-1:])


def _world(config: RunConfig, benchmark: Benchmark) -> Any:
    """What simulated models know; None where no entry is simulated."""
    if not any(entry.is_simulated for entry in config.model_entries.values()):
        return None
    from pipeline.models.simulated.world import World

    # A judge of given responses knows what a reference says, since there is no gold answer to know.
    items = [replace(item, gold=item.gold or item.reference) for item in benchmark.items]
    return World.from_items(items, seed=config.seed)


def _spec(name: str, entry: ModelConfig, config: RunConfig, world: Any, need_keys: bool) -> ModelSpec:
    api_base = entry.api_base
    if entry.is_simulated:
        from pipeline.models.simulated.transport import simulated_endpoint

        api_base = simulated_endpoint(world, entry.model, entry.simulate)
    served = None if entry.serve is None else local_model(entry.serve)
    if served is not None:
        api_base = served.endpoint
    spec = ModelSpec(
        name=name,
        model=entry.model,
        api_base=api_base,
        api_key_env=entry.api_key_env,
        headers_env=entry.headers_env,
        transport=entry.resolved_transport,
        params=entry.params,
        drop_params=entry.drop_params,
        max_concurrency=entry.max_concurrency if served is None else SLOTS,
        rpm=entry.rpm,
        tpm=entry.tpm,
        price=_price(entry),
        simulate=entry.simulate,
        attempt_timeout_s=config.attempt_timeout_s,
        call_deadline_s=config.call_deadline_s,
        max_attempts=config.max_attempts,
    )
    spec = with_credentials(spec, needed=need_keys)
    sent = json.dumps([entry.params, entry.model, entry.api_base])
    if any(len(secret) >= 8 and secret in sent for secret in spec.secrets):
        raise ConfigError(f"models.{name}: the value of its key variable stands in the entry itself; take it out there")
    return spec


def _price(entry: ModelConfig) -> Price | None:
    """What the entry says; a model served here costs time alone."""
    if entry.price is not None:
        return price_of(entry.price)
    return None if entry.serve is None else Price(0.0, 0.0)


def price_of(stated: PriceConfig) -> Price:
    """The price of a configuration, as the cost of a call is computed from it."""
    services = {name: _tiered(service) for name, service in stated.services.items()}
    return replace(_tiered(stated), services=services)


def _tiered(stated: ServiceConfig) -> Price:
    return replace(_rate(stated), above={tier.above_tokens: _rate(tier) for tier in stated.tiers})


def _rate(stated: RateConfig) -> Price:
    return Price(
        stated.input_per_million,
        stated.output_per_million,
        stated.cached_input_per_million,
        stated.cache_write_per_million,
        stated.reasoning_per_million,
    )


def run_prompts(config: RunConfig, directory: RunDirectory | None) -> PromptSet:
    """The run's own prompts where it was started before, so that an upgrade changes no request of a running run."""
    variant, rubric = config.design.tau.variant, config.design.tau.rubric
    saved = directory.path / "prompts" if directory is not None else None
    if saved is None or not (saved / "repair.md").exists():
        if directory is not None:
            own_config(config, directory.path)
        given: dict[str, Sequence[Path]] = {str(stage): files for stage, files in config.prompts.items()}
        return load_prompts(given, tau_variant=variant, tau_rubric=rubric)
    own = {stage.name: sorted(stage.rglob("*.md")) for stage in sorted(saved.iterdir()) if stage.is_dir()}
    try:
        return load_prompts(own, tau_variant=variant, tau_rubric=rubric, folder=saved)
    except InputError as error:
        raise InputError(
            f"{error}; move {saved} away and resume: the prompts of the configuration are taken where they are the same"
        ) from None


def save_prompts(prompts: PromptSet, folder: Path) -> None:
    """Keep the prompts of a run beside it, as they were: ``<stage>/<k>/<name>.md`` and ``repair.md``."""
    files = {
        f"{stage}/{k}/{prompt.name}.md": prompt
        for stage, templates in prompts.stages.items()
        for k, prompt in enumerate(templates)
    }
    for relative, prompt in {**files, "repair.md": prompts.repair}.items():
        path = folder / relative
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(prompt.source)
