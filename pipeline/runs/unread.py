"""What became of replies: counted by target and stage; unread answers bounded, and shown by their commonest forms."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

import polars as pl

from pipeline.collection.form_watch import COUNTED, ending
from pipeline.config import RunConfig
from pipeline.evaluation.document import Warned
from pipeline.evaluation.reading import StageReplies, Unread
from pipeline.runs.frames import RunTables

UNREAD_SHARE = 0.02
"""Share of answers in which none could be read from which a warning stands at the top."""
_FORMS = 3
_SHOWN_CHARS = 60


def stage_replies(tables: RunTables, quotes: Mapping[str, Mapping[str, Sequence[str]]]) -> tuple[StageReplies, ...]:
    """What became of every reply that the tables hold, by target and stage, as it was told during the run.

    Args:
        tables: of the run.
        quotes: target → stage → how replies end that could not be used.
    """
    counts: dict[tuple[str, str], Counter[str]] = {}
    for name, columns in COUNTED.items():
        kinds = getattr(tables, name).group_by(columns, maintain_order=True).len("replies")
        for row in kinds.iter_rows(named=True):
            if (told := ending(name, row)) is not None:
                counts.setdefault((told.target, told.stage), Counter())[told.end] += row["replies"]
    return tuple(
        StageReplies.from_counts(target, stage, ends, quotes.get(target, {}).get(stage, ()))
        for (target, stage), ends in counts.items()
    )


def unread_answers(config: RunConfig, tables: RunTables) -> dict[str, Unread]:
    """Target → its answers in which none could be read, out of all that it gave."""
    labeled = tables.items.filter(pl.col("labeled")).select("item_id")
    unread = {}
    for target in config.roles.targets:
        answers = tables.responses.filter(
            (pl.col("model") == target) & (pl.col("stage") == "answer") & (pl.col("draw") == 0)
        )
        if not answers.height:
            continue
        mine = answers.filter(pl.col("outcome") == "no_answer")
        forms = Counter(unread_form(text) for text in mine["text"].to_list())
        low, high = _bounds(config, answers.join(labeled, on="item_id", how="semi"))
        share = mine.height / answers.height
        common = sorted(forms.items(), key=lambda entry: (-entry[1], entry[0]))[:_FORMS]
        unread[target] = Unread(mine.height, share, low, high, tuple(common))
    return unread


def _bounds(config: RunConfig, labeled: pl.DataFrame) -> tuple[float | None, float | None]:
    """The plain mean over labeled items with the unread as wrong and as right; None where φ is no 0 or 1."""
    outcomes = labeled["phi"].drop_nulls()
    if not labeled.height or not outcomes.is_in([0.0, 1.0]).all() or not outcomes.len():
        return None, None
    if config.missing_reply == "exclude":
        labeled = labeled.filter(pl.col("phi").is_not_null())
    right = float(labeled["phi"].fill_null(0.0).sum())
    possible = labeled.filter((pl.col("outcome") == "no_answer") & (pl.col("phi").fill_null(0.0) == 0.0)).height
    return right / labeled.height, (right + possible) / labeled.height


def unread_form(text: str | None) -> str:
    """The last line of a reply with its figures as 9 and single letters as X, so that like forms count together."""
    lines = [line.strip() for line in (text or "").split("\n") if line.strip()]
    if not lines:
        return "(thought without a reply)"
    form = re.sub(r"\d+(?:[.,]\d+)*", "9", lines[-1][-400:])
    form = re.sub(r"(?<![\w'])[A-J](?![\w'])", "X", form)
    return form if len(form) <= _SHOWN_CHARS else "…" + form[-_SHOWN_CHARS:]


def unread_warnings(unread: Mapping[str, Unread]) -> list[Warned]:
    """A warning per target with 2 % or more."""
    warnings = []
    for target, entry in unread.items():
        if entry.share < UNREAD_SHARE or not entry.count:
            continue
        forms = "; ".join(f"{form!r} ({count}×)" for form, count in entry.forms)
        bounds = (
            ""
            if entry.value_low is None or entry.value_high is None
            else f"; had they all been right, the plain mean over the labeled items would be {entry.value_high:.3f}"
            f" instead of {entry.value_low:.3f}"
        )
        message = (
            f"{target}: in {entry.count} answers ({entry.share:.1%}) none could be read, and they count as"
            f" wrong{bounds}. Commonest ends: {forms}. auxeval audit RUN puts them before a person"
        )
        warnings.append(Warned("unread_answers", message))
    return warnings
