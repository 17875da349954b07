"""The collector over a scripted world: who is asked what, and what becomes of the replies."""

from __future__ import annotations

import asyncio
import random
from collections import Counter, defaultdict
from dataclasses import asdict
from typing import Any

import pytest
from scripted import Call, ScriptedAsker, collect, config, fences, items, plain, reply

from pipeline.benchmark.items import Item
from pipeline.models.types import Reply
from pipeline.tables.schemas import TABLES

BEST_OF_N = {"candidates": 3, "scores": 4, "n": [2], "j": [1]}


async def test_rows_have_the_columns_and_unique_keys_of_their_tables() -> None:
    run = config(estimate=["naive", "one_step", "lace", "best_of_n"], best_of_n=BEST_OF_N, design={"answers": 2})
    done = await collect(run)
    by_table: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in done.rows:
        by_table[row.table].append(asdict(row))
    assert set(by_table) == set(TABLES) - {"items"}
    for name, rows in by_table.items():
        schema = TABLES[name]
        assert all(set(row) == set(schema.columns) for row in rows)
        keys = [tuple(row[column] for column in schema.key) for row in rows]
        assert len(set(keys)) == len(keys)
        for column in schema.reason_columns:
            value = column.removesuffix("_reason")
            assert all((row[value] is None) == (row[column] is not None) for row in rows)
    assert done.summary.items == 5
    assert done.summary.rows == {name: len(rows) for name, rows in by_table.items()}


async def test_both_orders_are_asked_and_mapped_back() -> None:
    done = await collect(config())
    for target in ("sim/a", "sim/b"):
        for level in ("weak", "medium", "strong"):
            ab, ba = sorted(
                done.table("preferences", item_id="i0", target=target, pair=level), key=lambda row: row.order
            )
            assert (ab.verdict, ab.wins, ba.verdict, ba.wins) == ("first", True, "first", False)
            assert ab.rater == "sim/judge"
        shown = {call.label.order: fences(call.prompt) for call in done.asker.of("pairwise", item="i0", part="weak")}
        assert shown["ab"]["RESPONSE A"] == shown["ba"]["RESPONSE B"]
        assert shown["ab"]["RESPONSE B"] == shown["ba"]["RESPONSE A"] == "Written by sim/w, draw 0.\nAnswer: 42"
    chains = done.asker.of("preference", item="i0", target="sim/a", draw=1)
    assert {call.model for call in chains} == {"sim/a"}
    assert {call.label.order: fences(call.prompt)["CHAIN A"].split("\n")[0] for call in chains} == {
        "ab": "Written by sim/x, draw 2.",
        "ba": "Written by sim/y, draw 3.",
    }


async def test_judges_see_no_gold_no_name_no_confidence() -> None:
    item = Item("i0", "What is asked?", "xyzzy", profile=1.0)

    def answering(call: Call) -> str:
        return plain(call) if call.schema else "Hm.\nAnswer: plugh\n**Confidence:** 73%"

    run = config(estimate=["lace", "one_step", "best_of_n"], best_of_n=BEST_OF_N, design={"labeled": 1})
    done = await collect(run, answering, [item], grading="exact")
    judged = [call for call in done.asker.calls if call.schema]
    assert {call.label.stage for call in judged} == {"pointwise", "pairwise", "preference", "tau", "candidate_scores"}
    for call in judged:
        text = "\n".join(message["content"] for message in call.messages)
        assert "xyzzy" not in text
        assert "sim/" not in text
        if call.label.role == "judge":
            assert "onfidence" not in text
            assert "73" not in text
    assert all("xyzzy" not in message["content"] for call in done.asker.calls for message in call.messages)


async def test_draws_are_independent_requests() -> None:
    def constant(call: Call) -> str:
        return plain(call) if call.schema else "Same text.\nAnswer: 42\nConfidence: 80"

    run = config(
        estimate=["one_step", "best_of_n", "repeated_decoding"],
        best_of_n=BEST_OF_N,
        design={"answers": 3},
        roles={"auxiliary": "sim/x", "targets": ["sim/a"]},
    )
    done = await collect(run, constant, items(1))
    for stage in ("answer", "candidates", "auxiliary", "candidate_scores", "tau"):
        calls = done.asker.of(stage)
        assert len({call.key for call in calls}) == len(calls)
    assert len({call.draw for call in done.asker.of("auxiliary")}) == 6
    texts = [call for call in done.asker.calls if call.model == "sim/a" and not call.schema]
    assert len({call.key for call in texts}) == 3 + 3


async def test_anchor_that_is_a_target_lends_its_answer() -> None:
    run = config(estimate=["lace"], roles={"anchors": {"weak": "sim/w", "medium": "sim/m", "strong": "sim/a"}})
    done = await collect(run, some=items(1))
    assert {call.model for call in done.asker.of("anchor")} == {"sim/w", "sim/m"}
    call = done.asker.of("pairwise", target="sim/b", part="strong", order="ab")[0]
    assert fences(call.prompt)["RESPONSE B"] == "Written by sim/a, draw 0.\nAnswer: 42"
    assert not done.asker.of("pairwise", target="sim/a", part="strong"), "an answer is not compared with itself"
    assert {row.pair for row in done.table("preferences", target="sim/a")} == {"weak", "medium"}
    assert len(done.table("responses", model="sim/a")) == 1


async def test_values_are_graded_and_parsed() -> None:
    def answering(call: Call) -> str:
        return plain(call) if call.schema else f"Answer: {42 if call.model == 'sim/a' else 41}\nConfidence: 0.35"

    done = await collect(config(), answering, items(1))
    rows = {row.model: row for row in done.table("responses", stage="answer")}
    assert (rows["sim/a"].phi, rows["sim/b"].phi) == (1.0, 0.0)
    assert (rows["sim/a"].answer, rows["sim/a"].confidence, rows["sim/a"].outcome) == ("42", 0.35, "ok")
    assert {row.score for row in done.table("scores")} == {0.75}
    assert {row.tau for row in done.table("taus")} == {0.25}
    assert {row.prompt for row in done.table("scores")} == {"pointwise_1", "pointwise_2", "pointwise_3"}


async def test_the_regressor_is_told_the_preference_of_both_orders() -> None:
    said: dict[tuple[str, ...], str] = {}
    for verdicts in (("A", "B"), ("B", "A"), ("A", "A"), ("tie", "tie"), ("A", "tie"), ("tie", "A")):
        by_order = dict(zip(("ab", "ba"), verdicts, strict=True))

        def answering(call: Call, by_order: dict[str, str] = by_order) -> str:
            if call.label.stage == "preference":
                return f'{{"reason": "", "verdict": "{by_order[str(call.label.order)]}"}}'
            return plain(call)

        done = await collect(config(estimate=["one_step"]), answering, items(1))
        line = next(line for line in done.asker.of("tau")[0].prompt.split("\n") if line.startswith("The target's pref"))
        said[verdicts] = line.split(": ", 1)[1]
    assert said == {
        ("A", "B"): "CHAIN A, in both orders of showing them",
        ("B", "A"): "CHAIN B, in both orders of showing them",
        ("A", "A"): "none that lasts: it chose a different chain when the order of showing them was swapped",
        ("tie", "tie"): "neither chain",
        ("A", "tie"): "CHAIN A in one order of showing them, neither chain in the other",
        ("tie", "A"): "CHAIN B in one order of showing them, neither chain in the other",
    }


async def test_no_answer_is_wrong_and_flagged() -> None:
    def answering(call: Call) -> str:
        return plain(call) if call.schema else "I would rather\nnot say.\nConfidence: 10"

    row = (await collect(config(estimate=["naive"]), answering, items(1))).table("responses")[0]
    assert (row.answer, row.phi, row.phi_reason, row.outcome) == (None, 0.0, None, "no_answer")


async def test_items_without_gold_have_no_phi() -> None:
    some = [Item("i0", "q", "42"), Item("i1", "q2", None)]
    done = await collect(config(estimate=["naive"], design={"labeled": "gold"}), some=some)
    assert {(row.item_id, row.phi, row.phi_reason) for row in done.table("responses")} == {
        ("i0", 1.0, None),
        ("i1", None, "missing_input"),
    }


async def test_rows_do_not_depend_on_the_order_in_which_replies_arrive() -> None:
    class Jittery(ScriptedAsker):
        async def ask(self, *args: Any, **more: Any) -> Any:
            await asyncio.sleep(chance.random() * 0.01)
            return await super().ask(*args, **more)

    found = []
    for seed in (1, 2):
        chance = random.Random(seed)
        done = await collect(config(design={"coupling": "episode"}), Jittery(), items(4))
        found.append(sorted(repr(row) for row in done.rows))
    assert found[0] == found[1]


async def test_work_is_pulled_not_spawned() -> None:
    run = config(
        {"roles": {"targets": ["sim/a"]}, "models": {"sim/a": {"model": "sim/a", "max_concurrency": 8}}},
        estimate=["naive"],
        design={"labeled": 10},
    )
    most_tasks = 0

    def answering(call: Call) -> str:
        nonlocal most_tasks
        most_tasks = max(most_tasks, len(asyncio.all_tasks()))
        return plain(call)

    done = await collect(run, ScriptedAsker(answering, delay_s=0.0005), items(3000))
    assert done.summary.items == 3000
    assert 4 <= done.asker.most_live <= 80  # how many are in the air at once is a matter of timing; that some are, not
    assert most_tasks < 400


async def test_replies_at_hand_without_waiting_leave_nobody_asleep() -> None:
    done = await asyncio.wait_for(collect(config(estimate=["naive"]), some=items(400)), 60)
    assert done.summary.items == 400


async def test_all_slots_fill_before_the_first_reply() -> None:
    run = config(
        {"roles": {"targets": ["sim/a"]}, "models": {"sim/a": {"model": "sim/a", "max_concurrency": 200}}},
        estimate=["naive"],
        design={"labeled": 10},
    )
    release = asyncio.Event()

    class AllAtOnce(ScriptedAsker):
        async def ask(self, *args: Any, **more: Any) -> Any:
            self.waiting = getattr(self, "waiting", 0) + 1
            if self.waiting == 200:
                release.set()
            await release.wait()
            return await super().ask(*args, **more)

    done = await asyncio.wait_for(collect(run, AllAtOnce(), items(400)), 60)
    assert done.summary.items == 400


async def test_stages_overlap_across_items() -> None:
    """A judge is asked about one item while another's answer is still awaited: there is no barrier."""
    release = asyncio.Event()

    class OneIsSlow(ScriptedAsker):
        async def ask(self, model: str, messages: Any, **more: Any) -> Any:
            if more["label"].item == "i0" and more["label"].stage == "answer":
                await release.wait()
            elif more["label"].stage == "pointwise":
                release.set()
            return await super().ask(model, messages, **more)

    done = await asyncio.wait_for(collect(config(estimate=["lace"]), OneIsSlow(), items(3)), 10)
    assert done.summary.items == 3


async def test_progress_is_told() -> None:
    told: list[tuple[int, int]] = []
    await collect(config(estimate=["naive"]), some=items(4), progress=lambda done, total: told.append((done, total)))
    assert told == [(1, 4), (2, 4), (3, 4), (4, 4)]


async def test_choices_reach_models_and_letters_are_graded() -> None:
    def answering(call: Call) -> str:
        return plain(call) if call.schema else "Paris it is.\nAnswer: Paris\nConfidence: 99"

    item = Item("i0", "Capital of France?", "B", ("Rome", "Paris"))
    done = await collect(config(), answering, [item], grading="choice")
    assert all(fences(call.prompt)["CHOICES"] == "A. Rome\nB. Paris" for call in done.asker.calls)
    assert {(row.answer, row.phi) for row in done.table("responses", stage="answer")} == {("B", 1.0)}


@pytest.mark.parametrize("cap", ["max_tokens", "max_completion_tokens"])
async def test_chains_have_their_own_cap_and_may_be_cut_off(cap: str) -> None:
    def answering(call: Call) -> str | Reply:
        if call.label.stage == "auxiliary":
            cut = reply("First, we", "truncated", "length")
            hidden = reply("", "truncated", "length", "thinking about it")
            return cut if call.model == "sim/x" else hidden
        return plain(call)

    models = {"sim/x": {"model": "sim/x", "params": {cap: 99}}}
    done = await collect(config(estimate=["one_step"], models=models), answering, items(1))
    calls = done.asker.of("auxiliary")
    assert len(calls) == 6
    assert {call.model: dict(call.params) for call in calls} == {"sim/x": {cap: 2048}, "sim/y": {"max_tokens": 2048}}
    shown = fences(done.asker.of("preference", order="ab")[0].prompt)
    assert (shown["CHAIN A"], shown["CHAIN B"]) == ("First, we", "thinking about it")
    assert Counter(row.outcome for row in done.table("responses", stage="auxiliary")) == {"truncated": 6}
    assert all(row.verdict for row in done.table("preferences"))
