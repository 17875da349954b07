"""The plan: only what the estimates need, and as many calls as the collector then makes."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from scripted import BOTH, benchmark_of, collect, config, items

from pipeline.collection.stages import plan_calls, stage_plan


def planned(run: Any, count: int = 3) -> dict[str, int]:
    calls: Counter[str] = Counter()
    for entry in plan_calls(run, benchmark_of(items(count))):
        calls[entry.stage] += entry.calls
    return dict(calls)


@pytest.mark.parametrize(
    ("changes", "stages"),
    [
        ({"estimate": ["naive"]}, {"answer": 6}),
        ({"estimate": ["one_step"]}, {"answer": 6, "auxiliary": 18, "preference": 36, "tau": 18}),
        (
            {"estimate": ["one_step"], "design": {"algorithm": "features"}},
            {"answer": 6, "auxiliary": 18, "preference": 36},
        ),
        (
            {"estimate": ["one_step"], "design": {"coupling": "episode"}},
            {"answer": 6, "auxiliary": 18, "episode": 12, "preference": 18, "tau": 18},
        ),
        ({"estimate": ["lace"]}, {"answer": 6, "anchor": 9, "pointwise": 18, "pairwise": 36}),
        (
            {"estimate": ["lace_profile"], "design": {"judge_prompts": 1}},
            {"answer": 6, "anchor": 9, "pointwise": 6, "pairwise": 36},
        ),
        ({"estimate": ["repeated_decoding"], "design": {"answers": 12}}, {"answer": 72}),
        (
            {"estimate": ["best_of_n"], "best_of_n": {"candidates": 4, "scores": 3, "n": [2], "j": [1]}},
            {"candidates": 24, "candidate_scores": 72},
        ),
        (
            {"estimate": ["lace"], "roles": {"anchors": {"weak": "sim/w", "medium": "sim/a", "strong": "sim/w"}}},
            {"answer": 6, "anchor": 3, "pointwise": 18, "pairwise": 30},  # sim/a is not compared with itself
        ),
        (
            {"estimate": ["lace"], "roles": {"judge": ["sim/j", "sim/k"], "anchors": None}},
            {"answer": 6, "pointwise": 36},
        ),
        (
            {"estimate": ["lace"], "roles": {"judge": ["sim/j", "sim/k"], "anchors": ["sim/x", "sim/y"]}},
            {"answer": 6, "anchor": 6, "pointwise": 36, "pairwise": 48},
        ),
        ({"estimate": ["lace"], "roles": {"judge": None, "anchors": ["sim/x"]}}, {"answer": 6, "anchor": 3}),
        ({"estimate": ["lace"], "roles": {"judge": None, "anchors": None}}, {"answer": 6}),
    ],
)
async def test_calls_are_those_that_are_needed_and_those_that_are_made(
    changes: dict[str, Any], stages: dict[str, int]
) -> None:
    run = config(**changes)
    assert planned(run) == stages
    done = await collect(run, some=items(3))
    assert dict(Counter(call.label.stage for call in done.asker.calls)) == stages
    made = Counter((call.label.stage, call.label.role, call.model) for call in done.asker.calls)
    assert made == {
        (entry.stage, entry.role, entry.model): entry.calls for entry in plan_calls(run, benchmark_of(items(3)))
    }


async def test_prompt_tokens_are_near_what_is_sent_once_reply_lengths_are_known() -> None:
    run = config(estimate=["naive", "one_step", "lace"])
    done = await collect(run)
    sent: Counter[tuple[str, str]] = Counter()
    for call in done.asker.calls:
        sent[call.label.stage, call.model] += sum(len(message["content"]) for message in call.messages)
    chain = len("Written by sim/x, draw 0.\nAnswer: 42\nConfidence: 80") / 4
    lengths = {
        (stage, model): chain - (5 if stage in ("answer", "anchor") else 0)
        for stage in ("answer", "anchor", "auxiliary", "candidates")
        for model in ("sim/a", "sim/b", "sim/x", "sim/y", "sim/w", "sim/m", "sim/s")
    }
    for entry in plan_calls(run, benchmark_of(items()), reply_tokens=lengths):
        assert entry.prompt_tokens == pytest.approx(sent[entry.stage, entry.model] / 4, rel=0.05)


def test_one_auxiliary_model_writes_both_chains() -> None:
    assert stage_plan(config(roles={"auxiliary": "sim/x"})).auxiliary == ("sim/x", "sim/x")
    assert stage_plan(config()).auxiliary == ("sim/x", "sim/y")


def test_variants_have_names() -> None:
    names = [
        stage_plan(config(BOTH, design={"tau": {"variant": variant, "rubric": rubric}})).variant
        for variant in ("zero_shot", "in_context")
        for rubric in ("default", "correctness")
    ]
    assert names == ["zero_shot", "zero_shot_correctness", "in_context", "in_context_correctness"]
