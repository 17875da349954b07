"""Coupling of preferences with answers, and examples for the regressor."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import numpy as np
import pytest
from scripted import Call, ScriptedAsker, collect, config, fences, items, plain

EPISODE = {"coupling": "episode", "draws": 3}


async def test_independent_calls_share_no_conversation() -> None:
    done = await collect(config(estimate=["one_step"]), some=items(1))
    assert all(len(call.messages) == 1 for call in done.asker.calls)
    assert done.asker.of("episode") == []


async def test_an_episode_asks_the_preference_where_the_answer_was_given() -> None:
    done = await collect(config(estimate=["one_step"], design=EPISODE), some=items(1))
    answer = done.asker.of("answer", target="sim/a")[0]
    fresh = {call.label.draw: call for call in done.asker.of("episode", target="sim/a")}
    assert set(fresh) == {1, 2, 3}
    assert len({answer.draw, *(call.draw for call in fresh.values())}) == 4
    assert {call.prompt for call in fresh.values()} == {answer.prompt}
    for call in done.asker.of("preference", target="sim/a"):
        own = answer if call.label.draw == 0 else fresh[call.label.draw]
        assert [message["role"] for message in call.messages] == ["user", "assistant", "user"]
        assert call.messages[0]["content"] == answer.prompt
        assert call.messages[1]["content"] == plain(own)
        assert "CHAIN A" in fences(call.prompt)
    assert Counter((row.target, row.draw) for row in done.table("preferences")) == {
        (target, draw): 1 for target in ("sim/a", "sim/b") for draw in range(4)
    }
    assert len(done.table("responses", stage="answer")) == 2
    assert len(done.table("responses", stage="episode")) == 6
    assert all(row.phi == 1.0 for row in done.table("responses", stage="episode"))


async def test_orders_of_episodes_are_random_and_fixed_by_the_seed() -> None:
    found = []
    for seed in (0, 0, 1):
        run = config(estimate=["one_step"], design=EPISODE, seed=seed)
        done = await collect(run, some=items(50))
        found.append({(row.item_id, row.target, row.draw): row.order for row in done.table("preferences")})
    assert found[0] == found[1] != found[2]
    share = np.mean([order == "ab" for order in found[0].values()])
    assert abs(share - 0.5) < 4.5 * 0.5 / np.sqrt(len(found[0]))


async def test_an_episode_without_an_answer_has_no_preference() -> None:
    def answering(call: Call) -> Any:
        from pipeline.models.types import Failed

        return Failed("", "server", "down") if call.label.stage == "answer" else plain(call)

    done = await collect(config(estimate=["one_step"], design=EPISODE), answering, items(1))
    reasons = {(row.draw, row.verdict_reason) for row in done.table("preferences")}
    assert reasons == {(0, "missing_input"), (1, None), (2, None), (3, None)}
    assert {row.draw for row in done.table("taus", tau=None)} == {0}


IN_CONTEXT = {"draws": 1, "labeled": 6, "tau": {"variant": "in_context", "examples": 3}}


async def test_examples_are_labeled_and_of_other_items() -> None:
    def answering(call: Call) -> str:
        wrong = call.model == "sim/b" and not call.schema
        return "Answer: 41\nConfidence: 9" if wrong else plain(call)

    run = config(estimate=["one_step"], design=IN_CONTEXT)
    done = await collect(run, answering, items(12))
    from scripted import benchmark_of

    from pipeline.benchmark.items import draw_labeled

    labeled = draw_labeled(benchmark_of(items(12)), 6, run.seed)
    questions = {f"What is 41 + 1, case {item_id[1:]}?" for item_id in labeled}
    used = set()
    for call in done.asker.of("tau"):
        shown = fences(call.prompt)
        examples = {text for name, text in shown.items() if name.startswith("EXAMPLE") and name.endswith("QUESTION")}
        assert len(examples) == 3
        assert examples <= questions
        assert shown["QUESTION"] not in examples
        verdict = "wrong" if call.label.target == "sim/b" else "correct"
        assert call.prompt.count(f"The target's own answer was {verdict}.") == 3
        used |= examples
    assert len(used) == 4
    assert {row.variant for row in done.table("taus")} == {"in_context"}
    assert all(row.tau == 0.25 for row in done.table("taus"))


@pytest.mark.parametrize("failing", ["answer", "auxiliary", "preference"])
async def test_items_that_cannot_serve_as_examples_are_left_out_and_block_nobody(failing: str) -> None:
    run = config(estimate=["one_step"], design=IN_CONTEXT)
    probe = await collect(run, some=items(12))
    shown = [fences(call.prompt)["EXAMPLE 1 QUESTION"] for call in probe.asker.of("tau")]
    question = Counter(shown).most_common(1)[0][0]

    def answering(call: Call) -> str:
        text = call.messages[0]["content"]
        broken = call.label.stage == failing and fences(text)["QUESTION"] == question
        return "Well\nthen" if broken else plain(call)

    done = await asyncio.wait_for(collect(run, answering, items(12)), 20)
    assert done.summary.items == 12
    counts = Counter(
        len([name for name in fences(call.prompt) if name.endswith("QUESTION")]) - 1 for call in done.asker.of("tau")
    )
    assert set(counts) == {2 if failing == "preference" else 3}


async def test_without_any_example_there_is_no_prediction() -> None:
    def answering(call: Call) -> str:
        return "garbage" if call.label.stage == "preference" else plain(call)

    done = await asyncio.wait_for(
        collect(
            config(estimate=["one_step"], design={**IN_CONTEXT, "form_limit": 1}), ScriptedAsker(answering), items(8)
        ),
        20,
    )
    assert {row.tau_reason for row in done.table("taus")} == {"missing_input"}
