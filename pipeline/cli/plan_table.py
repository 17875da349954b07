"""The table half of `auxeval plan`: labels for a wanted half-width, and what each family of signals is worth."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from pipeline.cli.table_options import column_roles, split_names
from pipeline.errors import InputError

if TYPE_CHECKING:
    from pipeline.cli.documents.plans import FamilyWorthEntry, LabelPlanEntry, LabelsEntry, PlanDocument


def plan_table(path: Path, columns: dict[str, Any], width: float | None, as_json: bool) -> None:
    """Plan from the labels a table has.

    Args:
        path: the table.
        columns: the values of ``column_options``; ``families`` (NAME=COL,…[@COST]) where the command has it.
        width: wanted half-width; None plans for three quarters and half of the present one.
        as_json: one document on stdout instead of tables.

    Raises:
        InputError: as ``auxeval estimate``; too few labels to plan from.
    """
    from pipeline.evaluation.planning import advise
    from pipeline.evaluation.table_pool import read_pool

    roles, _ = column_roles(columns)
    if not roles.signals:
        raise InputError("--signals COL,… is needed: what the labels are worth depends on them")
    families = parse_families(columns.get("families") or (), roles.signals)
    inputs = read_pool(path, roles)
    widths = () if width is None else (width,)
    advice = [advise(inputs, target, widths, families) for target in inputs.targets]
    labels: LabelsEntry = {
        "plans": [cast("LabelPlanEntry", row) for entry in advice for row in entry.plan_rows()],
        "worth": [cast("FamilyWorthEntry", row) for entry in advice for row in entry.worth_rows()],
    }
    if as_json:
        from pipeline.cli.output import print_json

        document: PlanDocument = {"schema": 1, "command": "plan", "forecast": None, "labels": labels}
        print_json(document)
        return
    print_label_plan(labels)


def print_label_plan(labels: LabelsEntry) -> None:
    """The plans as a table, the worth of the families as sentences."""
    from pipeline.cli.output import print_table, print_text
    from pipeline.report.values import number

    rows = [
        [
            row["target"],
            row["what"],
            number(row["half_width"] or 0.0, percent=False, digits=2),
            "not reachable" if row["labels"] is None else str(row["labels"]),
            _range(row),
        ]
        for row in labels["plans"]
    ]
    if rows:
        print_table("Gold labels needed", ["target", "for", "half-width", "labels", "range"], rows, numeric=(2, 3, 4))
    for row in labels["plans"]:
        if row["note"]:
            print_text(f"{row['target']}, {row['what']}: {row['note']}")
    for family in labels["worth"]:
        print_text(family["sentence"])


def _range(row: LabelPlanEntry) -> str:
    """Between how many labels: the pilot's variance is itself an estimate."""
    low, high = row["labels_low"], row["labels_high"]
    if low is None and high is None:
        return ""
    return f"{'–' if low is None else low} to {'more than there are' if high is None else high}"


def parse_families(texts: tuple[str, ...], signals: tuple[str, ...]) -> tuple[Any, ...]:
    """``NAME=COL,COL[@COST]`` as families.

    Raises:
        InputError: not of that form, a column that is no signal, a signal in two families.
    """
    from pipeline.evaluation.planning import Family
    from pipeline.tables.user_table import nearest_names

    families = []
    used: set[str] = set()
    for text in texts:
        name, _, rest = text.partition("=")
        listed, _, cost = rest.rpartition("@") if "@" in rest else (rest, "", "")
        columns = split_names(listed)
        if not name or not columns:
            raise InputError(f"--family takes NAME=COL,…[@COST], got {text!r}")
        for column in columns:
            if column not in signals:
                close = nearest_names(column, signals)
                hint = f"; did you mean {close[0]!r}?" if close else ""
                raise InputError(f"--family {name}: {column!r} is not among the signals{hint}")
            if column in used:
                raise InputError(f"--family {name}: {column!r} is in two families")
            used.add(column)
        try:
            families.append(Family(name, columns, float(cost) if cost else None))
        except ValueError:
            raise InputError(f"--family {name}: {cost!r} is no cost") from None
    return tuple(families)
