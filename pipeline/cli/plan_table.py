"""The table half of `auxeval plan`: labels for a wanted half-width, and what each family of signals is worth."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.cli.table_options import column_roles, score_columns, split_names
from pipeline.errors import InputError

if TYPE_CHECKING:
    from pipeline.cli.documents.plans import LabelPlanEntry, LabelsEntry, PlanDocument


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
        "plans": [row for entry in advice for row in entry.plan_rows()],
        "worth": [row for entry in advice for row in entry.worth_rows()],
    }
    if as_json:
        from pipeline.cli.output import print_json

        document: PlanDocument = {"schema": 1, "command": "plan", "forecast": None, "labels": labels}
        print_json(document)
        return
    print_label_plan(labels)


def plan_designs(path: Path, given: dict[str, Any], as_json: bool) -> None:
    """What to collect next for a best-of-N policy: cost × variance of every design, from the scores of a pilot.

    Raises:
        InputError: no budget, bad costs, and as ``auxeval estimate --best-of-n``.
    """
    from pipeline.cli.output import print_json, print_table, print_text
    from pipeline.evaluation.best_of_n import best_of_n_designs

    budget = given["budget"]
    if budget is None:
        raise InputError("--best-of-n needs --budget B: what may be spent, in the unit of --score-cost")
    targets = best_of_n_designs(
        path, score_columns(given), given["best_of_n"], given["j"], budget, score_cost=given["score_cost"],
        generation_cost=given["generation_cost"],
    )  # fmt: skip
    if as_json:
        rows = [{"target": target, **design.to_dict()} for target, designs in targets.items() for design in designs]
        document: PlanDocument = {
            "schema": 1, "command": "plan", "forecast": None, "labels": None,
            "designs": rows,
        }  # fmt: skip
        print_json(document)
        return
    for target, designs in targets.items():
        cells = [
            [
                design.name.replace("_", " "),
                str(design.s),
                f"{design.cost:g}",
                f"{(design.cost_variance / budget) ** 0.5:.3g}",
            ]
            for design in designs
        ]
        title = f"Best of {given['best_of_n']}: designs" if target == "all" else f"{target}: designs"
        print_table(
            title, ["design", "scores of a winner", "cost of a unit", f"SE at {budget:g}"], cells, numeric=(1, 2, 3)
        )
    print_text("The first has the least error for the budget.")


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
