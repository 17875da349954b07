"""What of a text is thought, what is the reply, and where the reply's own turn ends."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Turn:
    """A model's text, taken apart.

    Attributes:
        thought: what it thought aloud; None where it did not. Nothing is ever read from it.
        text: the reply itself.
        closed: whether the thought ended; where it did not, there is no reply.
    """

    thought: str | None
    text: str
    closed: bool = True


# Each pattern is a list of fixed words: a text of any length is scanned once.
_NAMES = "thinking|think|thoughts|thought|reasoning|reflection|analysis|scratchpad|seed:think"
_TAG = re.compile(
    rf"(?P<quoted>`)?(?:<(?P<close>/)?(?P<name>{_NAMES})>|\[(?P<close2>/)?THINK\]|◁(?P<close3>/)?think▷"
    r"|<\|(?P<mark>begin|end)_of_thought\|>)(?(quoted)`)",
    re.IGNORECASE,
)
_CHANNEL = re.compile(
    r"<\|channel\|>[ \t]{0,4}(?P<name>[a-z]{1,20})[^<\n]{0,100}(?:<\|constrain\|>[^<\n]{0,40})?<\|message\|>"
)
_CHANNEL_END = re.compile(r"<\|(?:end|return|call|start|channel)\|>")
_BARE_CHANNEL = re.compile(r"\s*analysis(?=[A-Z\W])")
_BARE_FINAL = "assistantfinal"
_OPENING = re.compile(
    r"\s*(?:<s>|<bos>|<\|begin_of_text\|>|<\|im_start\|>(?:assistant)?|<\|assistant\|>|<\|ASSISTANT\|>"
    r"|<start_of_turn>(?:model)?|<\|start_header_id\|>assistant<\|end_header_id\|>|<\|start\|>assistant)\s*"
)
_END = re.compile(
    r"<\|(?:im_end|im_start|eot_id|eom_id|endoftext|end_of_text|end|return|eos|user|start_header_id|end_of_turn)\|>"
    r"|</s>|<eos>|<(?:end|start)_of_turn>|<｜end▁of▁sentence｜>|<\|END_OF_TURN_TOKEN\|>|\[/?INST\]"
)


_EOS = re.compile(r"<(?:EOS|BOS|PAD)_TOKEN>")  # Command R writes it between two tries at its last line


def read_turn(text: str) -> Turn:
    """Thought and reply of a text.

    Thought stands in harmony channels other than ``final``, between ``<think>`` (``<thinking>``, ``<reasoning>``, …)
    and its closing tag, or before a closing tag that was never opened; after an opening tag that is never closed
    everything is thought. A tag that is quoted as code is text. The reply ends at the first turn marker
    (``<|im_end|>``, ``</s>``, …).
    """
    if "<|channel|>" in text:
        turn = _channels(text)
    elif _BARE_FINAL in text and _BARE_CHANNEL.match(text):
        # Harmony without its special tokens, as servers that strip them deliver it.
        thought, _, rest = text.rpartition(_BARE_FINAL)
        turn = Turn(thought, rest)
    else:
        turn = _tags(text)
    return Turn(turn.thought, _own(turn.text), turn.closed)


def _channels(text: str) -> Turn:
    messages = list(_CHANNEL.finditer(text))
    thought, final = [text[: messages[0].start()] if messages else text], None
    for place, message in enumerate(messages):
        last = messages[place + 1].start() if place + 1 < len(messages) else len(text)
        end = _CHANNEL_END.search(text, message.end(), last)
        content = text[message.end() : end.start() if end else last]
        if message["name"] == "final":
            final = content
        else:
            thought.append(content)
    kept = "\n".join(part for part in map(_unmarked, thought) if part.strip())
    return Turn(kept or None, final or "", closed=final is not None)


def _unmarked(text: str) -> str:
    return _OPENING.sub("", text, count=1)


def _tags(text: str) -> Turn:
    if "<" not in text and "[" not in text and "◁" not in text:
        return Turn(None, text)
    thought: list[str] = []
    kept: list[str] = []
    position, name = 0, None
    for tag in _TAG.finditer(text):
        if tag["quoted"]:
            continue
        closing = bool(tag["close"] or tag["close2"] or tag["close3"] or tag["mark"] == "end")
        own = (tag["name"] or "think").lower()
        if name is None and closing:  # never opened: all before it was thought
            thought += [*kept, text[position : tag.start()]]
            kept, position = [], tag.end()
        elif name is None:
            kept.append(text[position : tag.start()])
            position, name = tag.end(), own
        elif closing and own == name:
            thought.append(text[position : tag.start()])
            position, name = tag.end(), None
    if name is not None:
        return Turn("".join([*thought, *kept, text[position:]]).strip(), "", closed=False)
    kept.append(text[position:])
    joined = "".join(thought).strip()
    return Turn(joined or None, "".join(kept).strip() if thought else text)


def _own(text: str) -> str:
    """The reply up to its first turn marker; markers that open it are no end of it."""
    if "<" not in text and "[" not in text:
        return text
    text = _EOS.sub("\n", text)
    opening = _OPENING.match(text)
    start = opening.end() if opening else 0
    for end in _END.finditer(text, start):
        if end[0] == "</s>" and "<s>" in text[start : end.start()]:
            continue  # struck-out text in HTML
        return text[start : end.start()].rstrip()
    return text[start:]
