"""The options that name a table's columns, shared by the commands that read users' own tables."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from pipeline.errors import InputError

if TYPE_CHECKING:
    from pipeline.evaluation.best_of_n import ScoreColumns
    from pipeline.tables.column_roles import ColumnRoles, ProfileRole

Command = TypeVar("Command", bound=Callable[..., Any])

_KINDS = ("continuous", "ordinal", "categorical", "tags", "semantic")


def column_options(command: Command) -> Command:
    """``--gold``, ``--signals`` and the other options that name columns."""
    options = [
        click.option("--gold", metavar="COL", help="How good each answer is; empty where unknown."),
        click.option("--signals", metavar="COL,…", help="Label-free numbers known on every row."),
        click.option("--id", "id_", metavar="COL", help="Item id; joins the rows of several models."),
        click.option("--model", metavar="COL", help="Splits a long table into one target per model."),
        click.option("--cluster", metavar="COL", help="Rows with one value are not independent (repeats, passages)."),
        click.option(
            "--weights", metavar="COL|VALUE=SHARE,…", help="Deployment weights, or shares of the profile's values."
        ),
        click.option(
            "--profile", "profiles", multiple=True, metavar="COL[:KIND]",
            help="Profile axis: continuous, ordinal, categorical (else detected), tags or semantic. Repeatable.",
        ),
        click.option("--labeled", metavar="COL", help="Yes/no column: gold is read on these rows only."),
        click.option("--inclusion", metavar="COL", help="Probability with which each row was drawn for labelling."),
        click.option("--tau", metavar="COL,…", help="One-step: predicted outcomes of draw 0, then of the others."),
        click.option("--rated", metavar="COL,…", help="An expensive rater's scores: some rows, all labeled ones."),
        click.option("--gold-range", metavar="LOW,HIGH", help="Gold values outside are errors; inside, none is stray."),
    ]  # fmt: skip
    for option in reversed(options):
        command = option(command)
    return command


def score_options(command: Command) -> Command:
    """``--j`` and the options that name the columns of a long table of scores."""
    options = [
        click.option("--j", type=int, help="Selection scores per candidate (default: all but one)."),
        click.option("--prompt", metavar="COL", default="prompt", show_default=True, help="Score table: its prompts."),
        click.option("--candidate", metavar="COL", default="candidate", show_default=True, help="Candidate column."),
        click.option("--draw", metavar="COL", help="Number of the score (default: draw, or the order of the rows)."),
        click.option("--score", metavar="COL", default="score", show_default=True, help="Score column."),
    ]
    for option in reversed(options):
        command = option(command)
    return command


def score_columns(given: dict[str, Any]) -> ScoreColumns:
    """Which column of a long score table holds what, as ``score_options`` and ``column_options`` name them."""
    from pipeline.evaluation.best_of_n import ScoreColumns

    names = ("prompt", "candidate", "score", "draw", "gold", "model", "cluster")
    return ScoreColumns(*(given[name] for name in names))


def shape_options(command: Command) -> Command:
    """``--wide``, ``--records`` and the other options that say how a table is laid out."""
    options = [
        click.option("--records", metavar="PATH", help="Where the rows of a JSON document stand (results.results)."),
        click.option("--explode", metavar="FIELD", help="A nested list whose entries become rows."),
        click.option("--header-line", type=int, metavar="N", help="Line that holds the column names, from 1."),
        click.option("--sheet", metavar="NAME", help="Sheet of an .xlsx workbook (needs the extra xlsx)."),
        click.option("--model-from-file", is_flag=True, help="Each file is one model, named by the file."),
        click.option(
            "--wide", metavar="ROLE=PATTERN,…",
            help="One column per model and role, * being the model: gold=*_correct,judge=*_judge.",
        ),
        click.option(
            "--where", "where", multiple=True, metavar="COL=VALUE", help="Only rows with this value. Repeatable."
        ),
        click.option("--rater", metavar="COL", help="Judge of each row; rows become one signal per judge."),
        click.option(
            "--map", "map", multiple=True, metavar="COL: VALUE=NUMBER,…",
            help="Words as numbers: 'winner: model_a=1, tie=0.5, model_b=0'. Repeatable.",
        ),
    ]  # fmt: skip
    for option in reversed(options):
        command = option(command)
    return command


def answer_options(command: Command) -> Command:
    """``--answer`` and what is said of the answers."""
    options = [
        click.option("--answer", metavar="COL", help="The models' answers: their agreement becomes signals."),
        click.option("--grading", metavar="METRIC", help="How answers compare: exact, numeric, choice, math."),
        click.option("--gold-answer", metavar="COL", help="Right answers: they grade the outcomes, in --gold's place."),
    ]
    for option in reversed(options):
        command = option(command)
    return command


def split_names(text: str | None) -> tuple[str, ...]:
    """Comma-separated column names; a backslash keeps a comma inside a name."""
    if not text:
        return ()
    parts = text.replace("\\,", "\0").split(",")
    return tuple(dict.fromkeys(part.replace("\0", ",").strip() for part in parts if part.strip()))


def _joined(names: Iterable[str]) -> str:
    """What ``split_names`` takes apart again."""
    return ",".join(name.replace(",", "\\,") for name in names)


def estimate_command(table: Path, roles: ColumnRoles, more: Sequence[str] = ()) -> str:
    """The command that estimates from ``table``, ready for a shell; ``more`` are further words of it."""
    named = {
        "gold": roles.gold, "signals": _joined(roles.signals), "id": roles.id, "model": roles.model,
        "cluster": roles.cluster, "labeled": roles.labeled, "inclusion": roles.inclusion,
    }  # fmt: skip
    words = ["auxeval", "estimate", str(table)]
    for option, value in named.items():
        words += [f"--{option}", value] if value else []
    return shlex.join([*words, *more])


def column_roles(given: dict[str, Any]) -> tuple[ColumnRoles, dict[str, float]]:
    """The roles that the options name, and the target distribution if ``--weights`` gives one.

    Raises:
        InputError: no gold, a column in two roles, a kind or number that cannot be read.
    """
    from pipeline.tables.column_roles import GRADED, ColumnRoles

    answer, gold_answer, grading = (given.get(name) for name in ("answer", "gold_answer", "grading"))
    if (gold_answer or grading) and not answer:
        raise InputError("--gold-answer and --grading are about the answers that --answer COL names; give it too")
    if gold_answer and given["gold"]:
        raise InputError("--gold and --gold-answer are two sources of one outcome; leave one out")
    gold = GRADED if gold_answer else given["gold"]
    if not gold:
        raise InputError("--gold COL is needed: the column that says how good each answer is")
    signals, taus = split_names(given["signals"]), split_names(given["tau"])
    if gold in signals or gold in taus:
        raise InputError(f"--gold column {gold!r} is among the signals; a signal must not be made from the gold")
    rated = split_names(given.get("rated"))
    if both := set(rated) & {gold, *signals}:
        raise InputError(f"--rated column {min(both)!r} is also gold or a signal; a signal is known on every row")
    profiles = tuple(_profile(text) for text in given["profiles"])
    weights, distribution = _weights(given["weights"])
    roles = ColumnRoles(
        gold=gold, signals=signals, id=given["id_"], model=given["model"], cluster=given["cluster"], weights=weights,
        profiles=profiles, labeled=given["labeled"], inclusion=given["inclusion"], taus=taus,
        gold_range=_range(given["gold_range"]), answer=answer, gold_answer=gold_answer, grading=grading or "exact",
        rated=rated,
    )  # fmt: skip
    return roles, distribution


def _profile(text: str) -> ProfileRole:
    from pipeline.tables.column_roles import ProfileRole

    name, _, kind = text.rpartition(":")
    if name and kind in _KINDS:
        return ProfileRole(name, kind)  # type: ignore[arg-type]
    if name and kind.isalpha() and any(kind[:3] == word[:3] for word in _KINDS):
        raise InputError(f"--profile {text}: kind {kind!r} is none of {', '.join(_KINDS)}")
    return ProfileRole(text)


def _weights(text: str | None) -> tuple[str | None, dict[str, float]]:
    if not text or "=" not in text:
        return text or None, {}
    shares: dict[str, float] = {}
    for part in text.split(","):
        name, _, share = part.rpartition("=")
        try:
            shares[name.strip()] = float(share)
        except ValueError:
            raise InputError(f"--weights: {part.strip()!r} is not VALUE=SHARE") from None
    if any(not 0.0 <= share < float("inf") for share in shares.values()) or sum(shares.values()) <= 0.0:
        raise InputError("--weights: shares must be at least 0 and not all 0")
    return None, shares


def _range(text: str | None) -> tuple[float, float] | None:
    if not text:
        return None
    try:
        low, high = (float(part) for part in text.split(","))
    except ValueError:
        raise InputError(f"--gold-range: {text!r} is not LOW,HIGH") from None
    if not low < high:
        raise InputError(f"--gold-range: {text!r} is empty; LOW must be below HIGH")
    return low, high
