"""What becomes of replies that are invalid, cut off, refused or missing, and of runs that must stop."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from scripted import Call, ScriptedAsker, collect, config, fences, items, plain, reply

from pipeline.collection.rows import Row
from pipeline.errors import DataError
from pipeline.models.stopping import RunStopped
from pipeline.models.types import Failed, FailureKind, Reply

Said = Callable[[Call], "str | Reply | Failed"]


def failure(kind: FailureKind = "server", message: str = "overloaded") -> Failed:
    return Failed("", kind, message, 503)


def on(stage: str, said: str | Reply | Failed, *, repaired: str | Reply | Failed | None = None) -> Said:
    """A world in which one stage goes wrong, and its repairs perhaps not."""

    def answering(call: Call) -> str | Reply | Failed:
        if call.label.stage != stage:
            return plain(call)
        again = len(call.messages) > 1
        return (said if repaired is None else repaired) if again else said

    return answering


async def test_an_invalid_reply_is_repaired_once() -> None:
    done = await collect(
        config(estimate=["lace"]), on("pointwise", "about 85 I guess", repaired='{"score": 0.85}'), items(1)
    )
    rows = done.table("scores")
    assert [(row.score, row.score_reason, row.repaired) for row in rows] == [(0.85, None, True)] * 6
    calls = done.asker.of("pointwise", target="sim/a")
    assert len(calls) == 6
    repair = next(call for call in calls if len(call.messages) > 1)
    assert [message["role"] for message in repair.messages] == ["user", "assistant", "user"]
    assert repair.messages[1]["content"] == "about 85 I guess"
    assert fences(repair.prompt) == {"PREVIOUS REPLY": "about 85 I guess"}
    assert '"score": <number from 0 to 1>' in repair.prompt
    assert "it has no JSON object with the key 'score'" in repair.prompt
    assert repair.schema is not None
    assert repair.label.part == "pointwise_1:repair"
    assert {row.request_key for row in rows} <= {call.key for call in done.asker.calls if len(call.messages) > 1}
    assert done.summary.stages["pointwise"].repairs == 6


@pytest.mark.parametrize(
    ("said", "repaired", "reason", "calls"),
    [
        ("nothing useful", None, "invalid", 2),
        ('{"verdict": "A"} {"verdict": "B"}', None, "invalid", 2),
        (reply("", "empty"), None, "invalid", 2),
        ("nothing useful", failure(), "failed", 2),
        ("nothing useful", reply("No.", "refused", "content_filter"), "refused", 2),
        (reply('{"verdict": "A"', "truncated", "length"), None, "truncated", 1),
        (reply('{"verdict": "A"}', "truncated", "length"), None, "truncated", 1),
        (reply("", "empty", "stop", "thinking"), None, "truncated", 1),
        (reply("", "refused", "content_filter"), None, "refused", 1),
        (failure(), None, "failed", 1),
        (failure("content_policy"), None, "refused", 1),
        (failure("context_too_long"), None, "failed", 1),
    ],
)
async def test_verdicts_that_cannot_be_had_are_null_with_a_reason(
    said: Any, repaired: Any, reason: str, calls: int
) -> None:
    """Never a tie: an outage of the judge is no verdict."""
    run = config(estimate=["lace"])
    done = await collect(run, on("pairwise", said, repaired=repaired), items(1), stop_on_failures=False)
    rows = done.table("preferences")
    assert [(row.verdict, row.verdict_reason, row.wins) for row in rows] == [(None, reason, None)] * 12
    assert len(done.asker.of("pairwise")) == 12 * calls


async def test_half_a_swap_pair_is_no_preference() -> None:
    def answering(call: Call) -> str:
        bad = call.label.stage == "preference" and call.label.order == "ba"
        return "garbage" if bad else plain(call)

    done = await collect(config(estimate=["one_step"]), answering, items(1))
    assert Counter(row.verdict_reason for row in done.table("preferences")) == {None: 6, "invalid": 6}
    assert {row.tau_reason for row in done.table("taus")} == {"missing_input"}
    assert done.asker.of("tau") == []


@pytest.mark.parametrize(
    ("said", "outcome", "reason"),
    [
        (reply("Well, it is", "truncated", "length"), "truncated", "truncated"),
        (reply("", "truncated", "length", "thinking"), "truncated", "truncated"),
        (reply("I can't help.", "refused", "content_filter"), "refused", "refused"),
        (failure(), "failed", "failed"),
        (failure("content_policy"), "refused", "refused"),
    ],
)
async def test_missing_answers_are_null_and_nobody_judges_them(said: Any, outcome: str, reason: str) -> None:
    done = await collect(config(), on("answer", said), items(1))
    for row in done.table("responses", stage="answer"):
        assert (row.outcome, row.phi, row.phi_reason) == (outcome, None, reason)
        assert (row.confidence, row.confidence_reason) == (None, reason)
    assert done.asker.of("pointwise") == []
    assert done.asker.of("pairwise") == []
    assert {row.score_reason for row in done.table("scores")} == {"missing_input"}
    assert {row.verdict_reason for row in done.table("preferences") if row.pair != "chains"} == {"missing_input"}
    assert len(done.asker.of("answer")) == 2


async def test_an_empty_answer_is_asked_for_once_more() -> None:
    done = await collect(
        config(estimate=["naive"]), on("answer", reply("", "empty"), repaired="Answer: 42\nConfidence: 5"), items(1)
    )
    assert [(row.phi, row.outcome) for row in done.table("responses")] == [(1.0, "ok")] * 2
    still = await collect(config(estimate=["naive"]), on("answer", reply(" ", "empty")), items(1))
    assert {(row.phi, row.phi_reason, row.outcome) for row in still.table("responses")} == {(None, "empty", "failed")}
    assert len(still.asker.of("answer")) == 4


async def test_a_missing_confidence_is_asked_for_where_it_is_a_signal() -> None:
    world = on("answer", "Answer: 42\nConfidence: very", repaired="Confidence: 64")
    done = await collect(config(estimate=["lace"]), world, items(1))
    rows = done.table("responses", stage="answer")
    assert [(row.confidence, row.phi, row.text) for row in rows] == [(0.64, 1.0, "Answer: 42\nConfidence: very")] * 2
    unused = await collect(config(estimate=["naive"]), world, items(1))
    assert {row.confidence_reason for row in unused.table("responses")} == {"invalid"}
    assert len(unused.asker.calls) == 2


async def test_a_repair_cannot_change_the_answer() -> None:
    world = on("answer", "Answer: 41", repaired="Answer: 42\nConfidence: 64")
    done = await collect(config(estimate=["lace"]), world, items(1))
    assert {(row.answer, row.phi, row.confidence) for row in done.table("responses", stage="answer")} == {
        ("41", 0.0, 0.64)
    }


async def test_cut_off_replies_are_asked_again_only_if_configured() -> None:
    def answering(call: Call) -> str | Reply:
        if call.label.stage == "answer" and call.label.item == "i0" and call.params.get("max_tokens") != 9000:
            return reply("Well", "truncated", "length")
        return plain(call)

    run = config(estimate=["naive"])
    kept = await collect(run, answering, items(3))
    assert len(kept.asker.calls) == 6
    again = await collect(config(estimate=["naive"], retry_truncated={"max_tokens": 9000}), answering, items(3))
    longer = [call for call in again.asker.calls if call.params]
    asked = {(call.label.item, call.params["max_tokens"], call.label.part) for call in longer}
    assert asked == {("i0", 9000, "longer")}
    assert len(again.asker.calls) == 8
    assert {row.outcome for row in again.table("responses")} == {"ok"}
    first = {call.key for call in kept.asker.calls}
    assert {call.key for call in longer}.isdisjoint(first)
    assert first < {call.key for call in again.asker.calls}


async def test_cut_off_twice_stays_cut_off() -> None:
    world = on("answer", reply("Well", "truncated", "length"))
    done = await collect(config(estimate=["naive"], retry_truncated={"max_tokens": 9000}), world, items(1))
    assert {row.phi_reason for row in done.table("responses")} == {"truncated"}
    assert len(done.asker.calls) == 4


async def test_too_many_failures_of_a_model_stop_the_run_with_the_commonest_errors() -> None:
    messages = ["overloaded"] * 5 + ["gateway down"] * 3 + ["odd"] * 2 + ["rare"]
    count = 0

    def answering(call: Call) -> str | Failed:
        nonlocal count
        if call.label.stage != "pointwise":
            return plain(call)
        count += 1
        return failure(message=messages[count % len(messages)])

    rows: list[Row] = []
    with pytest.raises(RunStopped) as stop:
        await collect(config(estimate=["lace"]), answering, items(200), rows=rows)
    assert stop.value.kind == "failure_limit"
    assert "5 of 5 calls failed, more than the 20% of stage_failure_limit" in stop.value.reason
    assert stop.value.reason.startswith("stage pointwise, model ")
    for common in ("overloaded (4×)", "gateway down (1×)"):
        assert common in stop.value.reason
    assert count < 5 + 200


async def test_one_dead_target_among_many_stops_the_run_though_its_stage_is_below_the_limit() -> None:
    targets = [f"sim/{name}" for name in "abcdefgh"]
    run = config(estimate=["naive"], roles={"targets": targets})
    with pytest.raises(RunStopped, match="stage answer, model sim/c: "):
        await collect(run, lambda call: failure() if call.model == "sim/c" else plain(call), items(60))


async def test_a_few_failures_of_each_of_many_models_add_up_to_those_of_a_stage() -> None:
    targets = [f"sim/{name}" for name in "abcdefgh"]
    run = config(estimate=["naive"], roles={"targets": targets})
    with pytest.raises(RunStopped, match="stage answer: "):
        await collect(run, lambda call: failure(), items(4))


async def test_failures_below_the_limit_or_among_the_first_few_do_not_stop_it() -> None:
    def answering(call: Call) -> str | Failed:
        return failure() if call.label.item in ("i3", "i7") else plain(call)

    run = config(estimate=["naive"], roles={"targets": ["sim/a"]})
    done = await collect(run, answering, items(20))
    assert Counter(row.phi_reason for row in done.table("responses")) == {None: 18, "failed": 2}
    all_failed = await collect(run, lambda call: failure(), items(4))
    assert all_failed.summary.stages["answer"].failed == 4
    lenient = config(estimate=["naive"], roles={"targets": ["sim/a"]}, stage_failure_limit=1.0)
    assert len((await collect(lenient, lambda call: failure(), items(60))).table("responses")) == 60
    await collect(run, lambda call: failure(), items(60), stop_on_failures=False)
    await collect(run, lambda call: failure("not_recorded"), items(60))


async def test_a_stopped_asker_stops_the_run_after_what_is_in_flight_has_landed() -> None:
    class Stopping(ScriptedAsker):
        asked = 0

        async def ask(self, *args: Any, **more: Any) -> Any:
            self.asked += 1
            if self.asked > 30:
                raise RunStopped("budget is used up", "budget")
            return await super().ask(*args, **more)

    asker, rows = Stopping(delay_s=0.05), []
    with pytest.raises(RunStopped, match="budget is used up") as stop:
        await collect(config(estimate=["naive"]), asker, items(500), rows=rows)
    assert stop.value.kind == "budget"
    assert len(rows) == 30
    assert asker.live == 0
    assert asker.asked < 200


@pytest.mark.parametrize("coupling", ["independent", "episode"])
async def test_a_stop_leaves_nobody_waiting_for_examples(coupling: str) -> None:
    class Stopping(ScriptedAsker):
        limit = 0

        async def ask(self, *args: Any, **more: Any) -> Any:
            if len(self.calls) > self.limit:
                raise RunStopped("interrupted")
            return await super().ask(*args, **more)

    run = config(estimate=["one_step"], design={"coupling": coupling, "tau": {"variant": "in_context"}})
    for limit in range(0, 300, 17):
        asker = Stopping()
        asker.limit = limit
        with pytest.raises(RunStopped):
            await asyncio.wait_for(collect(run, asker, items(40)), 10)


async def test_cancelling_ends_every_task() -> None:
    asker = ScriptedAsker(delay_s=60)
    task = asyncio.ensure_future(collect(config(), asker, items(50)))
    while not asker.live:  # noqa: ASYNC110 (however slow the machine)
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.sleep(0)
    assert asker.live == 0
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_an_error_of_the_sink_goes_up() -> None:
    class Full(list[Row]):
        def append(self, row: Row) -> None:
            if len(self) == 3:
                raise DataError("disk full")
            super().append(row)

    asker = ScriptedAsker(delay_s=0.001)
    with pytest.raises(DataError, match="disk full"):
        await collect(config(estimate=["naive"]), asker, items(2000), rows=Full())
    assert len(asker.calls) < 1000
