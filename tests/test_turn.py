"""Thought is told from the reply, and the reply's own turn ends where the next one begins."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.turn import read_turn

TURNS = [
    ("Answer: 5", None, "Answer: 5"),
    ("<think>a</think>b", "a", "b"),
    ("<Thinking>\na\n</Thinking>\n\nb", "a", "b"),
    ("<reasoning>a</reasoning> b", "a", "b"),
    ("a</think>b", "a", "b"),
    ("<think>a<think>b</think>c</think>d", "a<think>bc", "d"),
    ("x <think>a</think> y", "a", "x  y"),
    ("[THINK]a[/THINK]b", "a", "b"),
    ("◁think▷a◁/think▷b", "a", "b"),
    ("<|begin_of_thought|>a<|end_of_thought|>b", "a", "b"),
    ("The tag `<think>` opens a thought.", None, "The tag `<think>` opens a thought."),
    ("<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>final<|message|>b<|return|>", "a", "b"),
    ("<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>commentary<|message|>c<|end|>"
     "<|start|>assistant<|channel|>final<|message|>b", "a\nc", "b"),
    ("<|start|>assistant<|channel|>final<|message|>b", None, "b"),
    ("analysisWe add.assistantfinalAnswer: 5", "analysisWe add.", "Answer: 5"),
    ("5<|im_end|>\nUser: next", None, "5"),
    ("<|im_start|>assistant\n5<|im_end|>", None, "5"),
    ("5</s>", None, "5"), ("5<|eot_id|>6", None, "5"), ("5<|endoftext|>Human: 6", None, "5"),
    ("<s> 5</s>", None, "5"), ("not <s>4</s> but 5", None, "not <s>4</s> but 5"),
    ("5<end_of_turn>", None, "5"), ("5<｜end▁of▁sentence｜>", None, "5"), ("[5, 6]", None, "[5, 6]"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "thought", "reply"), TURNS)
def test_turns(text: str, thought: str | None, reply: str) -> None:
    turn = read_turn(text)
    assert (turn.thought, turn.text, turn.closed) == (thought, reply, True)


@pytest.mark.parametrize(
    "text", ["<think>Answer: 5", "Answer: 5\n<think>no", "<|channel|>analysis<|message|>Answer: 5", "<reasoning>\n5\n"]
)
def test_thought_that_never_ends_leaves_no_reply(text: str) -> None:
    turn = read_turn(text)
    assert (turn.text, turn.closed) == ("", False)
    assert turn.thought


@given(st.text(alphabet="ab<>/|`\n think", max_size=80), st.text(alphabet="ab \n", min_size=1, max_size=20))
def test_what_is_thought_is_never_text(thought: str, reply: str) -> None:
    assert read_turn(f"<think>SECRET {thought.replace('think>', '')}</think>{reply}").text.strip() == reply.strip()


@given(st.text(max_size=200))
def test_reading_a_turn_twice_changes_nothing(text: str) -> None:
    once = read_turn(text).text
    assert read_turn(once).text in (once, once.strip()) or "<" in once or "[" in once
