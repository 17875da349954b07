"""A run's prompts as patterns for its report: rendered with marks where an item's texts stand."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, cast

from pipeline.collection.comparisons import chains_phrase
from pipeline.collection.prompts import Prompt, PromptSet, render
from pipeline.collection.rows import Order, Verdict
from pipeline.collection.stages import stage_plan
from pipeline.config import RunConfig
from pipeline.errors import ConfigError
from pipeline.report.asked_prompts import AskedPrompts, place

_NONCE = re.compile(r"<<<((?:END )?[A-Z ]+) [0-9a-f]{12}>>>")
_TEXTS = ("question", "response", "response_a", "response_b", "chain_a", "chain_b", "preference")


def asked_prompts(prompts: PromptSet, config: RunConfig) -> AskedPrompts:
    """The patterns of every prompt that asks about one item; a prompt that cannot take marks is left out.

    The marker's nonce, a hash of the texts, is written as "…"; labeled examples of other items are left out.
    """
    patterns = {}
    # Where no confidence is asked for, a target is asked as an anchor is.
    asked = {**prompts.stages, "answer": prompts[stage_plan(config).answer_prompt]}
    for name, prompt in _named(asked):
        try:
            patterns[name] = (_pattern(prompt, config, True), _pattern(prompt, config, False))
        except ConfigError:
            continue
    return AskedPrompts(patterns, _phrase)


def _named(asked: Mapping[str, tuple[Prompt, ...]]) -> Iterator[tuple[str, Prompt]]:
    for stage, templates in asked.items():
        for k, prompt in enumerate(templates):
            yield (f"{stage}_{k + 1}" if stage == "pointwise" else stage), prompt


def _pattern(prompt: Prompt, config: RunConfig, choices: bool) -> str:
    variables: dict[str, Any] = {name: place(name) for name in _TEXTS}
    variables |= {
        "choices": [place("choices")] if choices else None,
        "examples": (),
        "rubric": config.design.tau.rubric,
    }
    rendered = render(prompt, variables).replace(f"A. {place('choices')}", place("choices"))
    return _NONCE.sub(r"<<<\1 …>>>", rendered)


def _phrase(texts: Mapping[str, str | None]) -> str | None:
    return chains_phrase(cast(Mapping[Order, Verdict | None], texts)) if texts else None
