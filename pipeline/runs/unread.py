"""What became of replies: counted by target and stage; unread answers bounded, and shown by their commonest forms."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping

import polars as pl

from pipeline.config import RunConfig
from pipeline.evaluation.document import Warned
from pipeline.evaluation.reading import StageReplies, Unread
from pipeline.runs.frames import RunTables

UNREAD_SHARE = 0.02
"""Share of answers in which none could be read from which a warning stands at the top."""
_FORMS = 3
_SHOWN_CHARS = 60


_ENDS = {"truncated": "cut", "no_answer": "unread", "empty": "invalid", "invalid": "invalid", "refused": "refused"}
"""Reason of a null → what became of the reply; one that was never asked for is none."""
_NEVER_ASKED = ("not_asked", "missing_input")


def stage_replies(tables: RunTables) -> tuple[StageReplies, ...]:
    """What became of every reply that the tables hold, by target and stage."""
    told = [
        _ends(tables.responses, "model", pl.col("stage"), "phi_reason", pl.col("outcome") == "ok"),
        _ends(tables.scores, "target", pl.lit("score"), "score_reason", pl.col("score").is_not_null()),
        _ends(
            tables.preferences, "target",
            pl.when(pl.col("pair") == "chains").then(pl.lit("preference")).otherwise(pl.lit("pairwise")),
            "verdict_reason", pl.col("verdict").is_not_null(),
        ),
        _ends(tables.taus, "target", pl.lit("tau"), "tau_reason", pl.col("tau").is_not_null()),
    ]  # fmt: skip
    rows = pl.concat(told).group_by("target", "stage", "end", maintain_order=True).agg(pl.len())
    counts: dict[tuple[str, str], dict[str, int]] = {}
    for target, stage, end, count in rows.iter_rows():
        counts.setdefault((target, stage), {})[end] = count
    return tuple(StageReplies.from_counts(target, stage, ends) for (target, stage), ends in counts.items())


def _ends(frame: pl.DataFrame, target: str, stage: pl.Expr, reason: str, ok: pl.Expr) -> pl.DataFrame:
    """(target, stage, end) of each reply; what a judge was not asked, for want of an answer, is none."""
    why = pl.col(reason)
    if reason == "phi_reason":  # an answer without gold is graded by nobody, and read all the same
        why = pl.when(pl.col("outcome").is_in(["truncated", "no_answer", "refused"])).then("outcome").otherwise(why)
    end = pl.when(ok).then(pl.lit("ok")).otherwise(why.replace_strict(_ENDS, default="failed"))
    asked = frame if reason == "phi_reason" else frame.filter(~why.fill_null("").is_in(_NEVER_ASKED))
    return asked.select(pl.col(target).alias("target"), stage.alias("stage"), end.alias("end"))


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
