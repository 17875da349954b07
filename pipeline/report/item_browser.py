"""Every item of a run as compact blocks for the page's browser: question, answers, verdicts, scores, why null."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import polars as pl

from pipeline.report.asked_prompts import AskedPrompts
from pipeline.report.item_details import ItemDetails
from pipeline.report.markup import clean, data_block, section, text
from pipeline.report.run_folder import RunFolder

BLOCK = 200
"""Items of one block; a block is unpacked when one of its items is opened."""
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
    "labeled": "labeled",
    "unlabeled": "not labeled",
}


def item_browser(run: RunFolder, asked: AskedPrompts | None = None) -> Iterator[str]:
    """The section, then its data piece by piece: blocks of details, and an index to search in.

    Args:
        run: the run.
        asked: its prompts; without them the page does not say what calls were asked.
    """
    items = run.items.sort("item_id")
    details = ItemDetails(run, asked=asked)
    run.forget()
    details.cut = cut = _fitting_cut(details, items)
    prompts = (
        " Prompts are shown as rendered from the run's own files with the texts of this page; the hash in the markers"
        " around a text is left out, and so are repairs, labeled examples and the draws after the first."
        if asked is not None
        else ""
    )
    note = (
        f'<p class="note">Search looks into ids and the beginnings of questions; “in full texts” looks into questions,'
        f" answers and replies as shown here. Texts beyond {cut:,} characters are cut on this page, and say so; the"
        f" tables beside it hold them whole, and the chains of auxiliary models too.{prompts}</p>"
    )
    body = (
        '<ul id="item-list" aria-label="Items"></ul><p><button type="button" id="more" hidden>Show more</button></p>'
        '<noscript><p class="note">Browsing items needs JavaScript; nothing else on this page does.</p></noscript>'
    )
    on_paper = (
        '<p class="print-only">The items can be browsed on the screen; the tables beside this page hold them.</p>'
    )
    yield section("items", "Items", note, _controls(run.targets, _levels(run), run.axis), body, on_paper)
    index: list[list[Any]] = []
    rows = items.iter_rows(named=True)
    for number in range(-(-items.height // BLOCK)):
        made = details.of(list(islice(rows, BLOCK)))
        index += [_entry(item) for item in made]
        yield data_block(f"block-{number}", made)
    roles = (run.config.get("roles") or {}) if asked is not None else {}
    anchors = roles.get("anchors") or {}
    yield data_block(
        "item-index",
        {
            "block": BLOCK,
            "targets": [clean(name) for name in run.targets],
            "anchors": [clean(name) for name in run.anchors],
            "axis": clean(run.axis),
            "prompts": asked.shown() if asked is not None else {},
            "judge": clean(_named(roles.get("judge")) or "the judge"),
            "regressor": clean(str(roles.get("regressor") or "the regressor")),
            "levels": {level: clean(str(model)) for level, model in anchors.items() if model},
            "items": index,
        },
    )


def _named(role: Any) -> str:
    return ", ".join(map(str, role)) if isinstance(role, list) else str(role or "")


def _fitting_cut(details: ItemDetails, items: pl.DataFrame) -> int:
    """The longest texts that fit, judged by items spread over the run."""
    rows = list(items.gather_every(max(1, items.height // _SAMPLED)).iter_rows(named=True))
    room = _ROOM + _ROOM_PER_ITEM * max(0, items.height - _ROOM_ITEMS)
    for cut in _CUTS[:-1]:
        details.cut = cut
        if len(data_block("sample", details.of(rows))) / max(len(rows), 1) * items.height <= room:
            return cut
    return _CUTS[-1]


def _levels(run: RunFolder) -> list[str]:
    """The values of the profile, where they are few; as the index writes them."""
    levels = run.items["profile"].drop_nulls().unique().sort().to_list()
    return [_level(value) for value in levels] if len(levels) <= _MOST_LEVELS else []


def _level(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else clean(str(value))


def _options(values: Mapping[str, str]) -> str:
    return "".join(f'<option value="{text(key)}">{text(label)}</option>' for key, label in values.items())


def _controls(targets: Sequence[str], levels: Sequence[str], axis: str) -> str:
    chosen = _options({"": "any", **{str(k): name for k, name in enumerate(targets)}})
    level = ""
    if levels:
        options = _options({"": "any", **{name: name for name in levels}})
        level = f'<label>{text(axis)} <select id="level">{options}</select></label>'
    return (
        '<div class="controls" role="search"><label>Search <input type="search" id="search" autocomplete="off"></label>'
        '<label class="check"><input type="checkbox" id="full"> in full texts</label>'
        f'<label>Show <select id="state">{_options(_STATES)}</select></label>'
        f'<label>Target <select id="target">{chosen}</select></label>{level}'
        '<output id="count" aria-live="polite"></output></div>'
    )


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
