"""In-context examples never include the item itself or a copy of its question."""

from __future__ import annotations

import pytest

from pipeline.collection.collector import example_pool
from pipeline.collection.examples import Example, Examples
from pipeline.config import RunConfig

CONFIG = {
    "schema": 1, "name": "x", "benchmark": {"preset": "embedded"},
    "models": {"t": {"model": "sim/medium"}, "a": {"model": "sim/aux-a"}, "r": {"model": "sim/regressor"}},
    "roles": {"targets": ["t"], "auxiliary": ["a"], "regressor": "r"},
    "design": {"tau": {"variant": "in_context"}}, "estimate": ["one_step"],
}  # fmt: skip


def test_no_two_examples_ask_the_same() -> None:
    config = RunConfig.model_validate(CONFIG)
    questions = {f"{k:02d}": f"question {k % 6}" for k in range(24)}
    pool = example_pool(config, frozenset(questions), questions)
    assert pool
    assert len({questions[name] for name in pool}) == len(pool)


@pytest.mark.parametrize("item", ["a", "copy of a", "z"])
async def test_neither_the_item_nor_a_copy_of_it_is_shown(item: str) -> None:
    questions = {"a": "q", "copy of a": "q", "b": "r", "c": "s", "z": "t"}
    examples = Examples(["a", "b", "c"], ["t"], 2, questions)
    for name in ("a", "b", "c"):
        examples.offer(name, "t", Example(questions[name], None, "", "", "A", True))
    shown = [example.question for example in await examples.of_others(item, "t")]
    assert len(shown) == 2
    assert questions[item] not in shown
