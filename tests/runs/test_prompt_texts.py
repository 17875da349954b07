"""The patterns of a run's prompts, filled, are what a call was asked."""

import re

import pytest

from pipeline.collection.prompts import load_prompts, render
from pipeline.config import RunConfig
from pipeline.report.asked_prompts import place
from pipeline.runs.prompt_texts import asked_prompts
from pipeline.runs.setup import default_config

_TEXTS = {
    "question": "Which <b>one</b>?",
    "response": "I say B.",
    "response_a": "first",
    "response_b": "second",
    "chain_a": "w1",
    "chain_b": "w2",
    "preference": "CHAIN A",
}


@pytest.fixture
def config() -> RunConfig:
    return default_config()


@pytest.mark.parametrize("choices", [None, ["one", "two"]])
@pytest.mark.parametrize("stage", ["answer", "anchor", "auxiliary", "pairwise", "preference", "tau", "pointwise"])
def test_a_filled_pattern_is_the_rendered_prompt_but_for_the_markers_hash(
    stage: str, choices: list[str] | None, config: RunConfig
) -> None:
    prompts = load_prompts()
    name = "pointwise_1" if stage == "pointwise" else stage
    pattern = asked_prompts(prompts, config).patterns[name][0 if choices else 1]
    filled = pattern.replace(place("choices"), "A. one\nB. two")
    for variable, text in _TEXTS.items():
        filled = filled.replace(place(variable), text)
    sent = render(prompts[stage][0], {**_TEXTS, "choices": choices, "examples": None, "rubric": "default"})
    assert filled == re.sub(r"<<<((?:END )?[A-Z ]+) [0-9a-f]{12}>>>", r"<<<\1 …>>>", sent)


def test_the_phrase_is_the_regressors(config: RunConfig) -> None:
    phrase = asked_prompts(load_prompts(), config).phrase
    assert phrase({"ab": "first", "ba": "second"}) == "CHAIN A, in both orders of showing them"
    assert phrase({"ab": "first", "ba": None}) is None
    assert phrase({}) is None
