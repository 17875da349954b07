"""The item × target matrix of a page: an index that is searched at once, details in blocks that open on demand."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import polars as pl

from pipeline.report.asked_prompts import AskedPrompts
from pipeline.report.item_details import ItemDetails
from pipeline.report.page_values import Part, Stream
from pipeline.report.printers.html import fragment
from pipeline.report.run_folder import RunFolder
from pipeline.report.values import clean

BLOCK = 200
"""Items of one block; a block is unpacked when one of its items is opened."""
_HELD = 5 * BLOCK
"""Items whose rows are in memory at once: a run of 20,000 items took 840 MB with all of them."""
_ROOM, _ROOM_PER_ITEM, _ROOM_ITEMS = 12_500_000, 2_500, 2_000
"""Most bytes of all blocks together up to 2,000 items, and for each item more."""
_CUTS = (4_000, 2_800, 2_000, 1_400, 1_000, 700, 500, 350, 250, 120)
"""Characters beyond which a text is cut, and says so: the first that fits the room."""
_SAMPLED = 60
_HEAD = 160
_MOST_LEVELS = 40
_STATES = {
    "": "all items",
    "right": "right answers",
    "wrong": "wrong answers",
    "ungraded": "no outcome φ",
    "null": "something is null",
    "swap": "verdict changes with the order",
    "against": "judge against gold",
    "differ": "targets differ",
    "labeled": "labeled",
    "unlabeled": "not labeled",
}
_PACKED = 4
"""Effort of gzip: the next levels take twice as long for 2 % less."""


@dataclass(frozen=True, slots=True)
class Items:
    """What a page's matrix holds, made block by block while the page is written.

    Attributes:
        targets: the columns.
        blocks: lists of at most ``BLOCK`` items, each as ``ItemDetails`` gives it.
        note: how to use it.
        axis: name of the profile.
        levels: its values, where they are few.
        roles: what the page needs to say what each call was asked.
    """

    targets: tuple[str, ...]
    blocks: Callable[[], Iterator[list[dict[str, Any]]]]
    note: str
    axis: str = "profile"
    levels: tuple[str, ...] = ()
    roles: Mapping[str, Any] = field(default_factory=dict)


def matrix(items: Items) -> tuple[Part, ...]:
    """The matrix as a part of a page."""
    return (Stream(lambda: _pieces(items)),)


def _pieces(items: Items) -> Iterator[str]:
    yield fragment(
        "items.html.j2", note=items.note, targets=items.targets, axis=items.axis, levels=items.levels, states=_STATES
    )
    index: list[list[Any]] = []
    for number, block in enumerate(items.blocks()):
        index += [_entry(item) for item in block]
        yield data_block(f"block-{number}", block)
    names = {"targets": [clean(name) for name in items.targets], "axis": clean(items.axis)}
    empty = {"anchors": [], "prompts": {}, "judge": "", "regressor": "", "levels": {}}
    yield data_block("item-index", {"block": BLOCK, **names, **empty, **items.roles, "items": index})


def data_block(identity: str, value: Any) -> str:
    """JSON as gzip and base64 inside a script that is never run: nothing in it can end the element."""
    written = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    raw = written.encode("utf-8", "backslashreplace")
    packed = base64.b64encode(gzip.compress(raw, _PACKED, mtime=0)).decode("ascii")
    return f'<script type="application/octet-stream" id="{identity}">{packed}</script>'


def item_parts(run: RunFolder, asked: AskedPrompts | None = None) -> tuple[Part, ...]:
    """The items of a run.

    Args:
        run: the run.
        asked: its prompts; without them the page does not say what calls were asked.
    """
    return (Stream(lambda: _pieces(_of_run(run, asked))),)


def _of_run(run: RunFolder, asked: AskedPrompts | None) -> Items:
    items = run.items.sort("item_id")
    details = ItemDetails(run, asked=asked)
    levels = tuple(_levels(run))
    run.forget()
    details.cut = cut = _fitting_cut(details, items)
    prompts = (
        " Prompts are printed as rendered from the run's own files with the texts of this page; the hash in the markers"
        " around a text is left out, and so are repairs, labeled examples and the draws after the first."
        if asked is not None
        else ""
    )
    note = (
        "An item opens on the outputs of all targets side by side. Search looks into ids and the beginnings of"
        " questions; “in full texts” looks into questions, answers and replies as printed here. Texts beyond"
        f" {cut:,} characters are cut on this page, and say so; the tables beside it hold them whole, and the chains of"
        f" auxiliary models too.{prompts}"
    )
    named = (run.config.get("roles") or {}) if asked is not None else {}
    anchors = named.get("anchors") or {}
    roles = {
        "anchors": [clean(name) for name in run.anchors],
        "prompts": asked.shown() if asked is not None else {},
        "judge": clean(_named(named.get("judge")) or "the judge"),
        "regressor": clean(str(named.get("regressor") or "the regressor")),
        "levels": {level: clean(str(model)) for level, model in anchors.items() if model},
    }

    def blocks() -> Iterator[list[dict[str, Any]]]:
        rows = items.iter_rows(named=True)
        while held := list(islice(rows, _HELD)):
            details.hold(held)
            yield from (details.of(held[start : start + BLOCK]) for start in range(0, len(held), BLOCK))

    return Items(run.targets, blocks, note, run.axis, levels, roles)


def _named(role: Any) -> str:
    return ", ".join(map(str, role)) if isinstance(role, list) else str(role or "")


def _fitting_cut(details: ItemDetails, items: pl.DataFrame) -> int:
    """The longest texts that fit, judged by items spread over the run."""
    rows = list(items.gather_every(max(1, items.height // _SAMPLED)).iter_rows(named=True))
    room = _ROOM + _ROOM_PER_ITEM * max(0, items.height - _ROOM_ITEMS)
    details.hold(rows)
    for cut in _CUTS[:-1]:
        details.cut = cut
        if len(data_block("sample", details.of(rows))) / max(len(rows), 1) * items.height <= room:
            return cut
    return _CUTS[-1]


def _levels(run: RunFolder) -> list[str]:
    """The values of the profile, where they are few; as the index writes them."""
    values = run.items["profile"].drop_nulls().unique().sort().to_list()
    return [_level(value) for value in values] if len(values) <= _MOST_LEVELS else []


def _level(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else clean(str(value))


def _entry(item: Mapping[str, Any]) -> list[Any]:
    """[id, question's head, labeled, level, φ per target, flags per target].

    Flags: 1 something is null, 2 a verdict changes with the order, 4 the judge's mean score is on the other side of ½.
    """
    answers = item["targets"]
    return [
        item["id"],
        item["question"][:_HEAD],
        int(item["labeled"]),
        None if item["profile"] is None else _level(item["profile"]),
        [None if a is None else a["phi"] for a in answers],
        [1 if a is None else _flags(a) for a in answers],
    ]


def _flags(answer: Mapping[str, Any]) -> int:
    phi = answer["phi"]
    scores = [score for _, score in answer["scores"] if isinstance(score, int | float)]
    mean = sum(scores) / len(scores) if scores else None
    against = phi is not None and mean is not None and mean != 0.5 and (mean > 0.5) != (phi >= 0.5)
    swaps = any(not same for *_, same in answer["pairs"])
    return bool(answer["nulls"]) + 2 * swaps + 4 * against
