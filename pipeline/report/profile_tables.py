"""Profiles of a document as tables: every target along its axis, all of them beside each other, gaps along it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from pipeline.estimators.results import Profile
from pipeline.evaluation.document import EstimateSet
from pipeline.evaluation.methods import SHRUNK, SHRUNK_NOTE, leads, method_label
from pipeline.report.document_tables import at_text, error_of, is_share
from pipeline.report.values import Cell, Number, Table, number, quantity, range_of, table


def profile_title(profile: Profile) -> str:
    """``LACE profile along level``, with what a reader must know of it: whether it is smoothed, what it is about."""
    along = f" along {profile.column}" if profile.column else ""
    smoothed = ", smoothed" if profile.smoothed else ""
    very = ", of these very items" if profile.target == "pool" else ""
    return f"{method_label(profile.method)}{along}{smoothed}{very}"


_BAND, _ALONE = "lace_profile_band", "naive_profile"


def profiles(estimates: EstimateSet) -> Iterator[Table]:
    """Every profile that leads, with what stands beside it: the band of the whole curve, labels alone, the shrunk."""
    for target, methods in estimates.items():
        for method, profile in methods.items():
            name, _, axis = method.partition(":")
            if isinstance(profile, Profile) and leads(method) and not (name == SHRUNK and len(methods) > 1):
                beside = {
                    other: made
                    for other in (_BAND, _ALONE, SHRUNK)
                    if isinstance(made := methods.get(f"{other}:{axis}" if axis else other), Profile)
                    and other != name
                    and len(made.at) == len(profile.at)
                }
                yield _profile(target, method, profile, beside)


def overview(estimates: EstimateSet) -> Iterator[Table]:
    """Every axis as one table, levels by targets; axes on which targets have different points are left out."""
    percent, axes = is_share(estimates), dict[str, dict[str, Profile]]()
    for target, methods in estimates.items():
        for method, profile in methods.items():
            if isinstance(profile, Profile) and leads(method) and method.partition(":")[0] != SHRUNK:
                axes.setdefault(method, {})[target] = profile
    for members in axes.values():
        first = next(iter(members.values()))
        if len(members) > 1 and all(list(p.at) == list(first.at) for p in members.values()):
            rows = [
                [at_text(at), *(_within(p, k, percent) for p in members.values())]
                for k, at in enumerate(first.at.tolist())
            ]
            title = f"{profile_title(first)}: value and {100 * first.level:g} % interval"
            yield table(title, [first.column or "at", *members], rows, numeric=range(1, len(members) + 1))


def _within(profile: Profile, k: int, percent: bool) -> str:
    low, high = profile.low[k], profile.high[k]
    digits = 0 if percent else 1
    ends = "–".join(number(end, percent=percent, digits=digits) for end in (low, high))
    return f"{number(profile.value[k], percent=percent, digits=digits)} ({ends})"


def _profile(target: str, method: str, profile: Profile, beside: Mapping[str, Profile]) -> Table:
    percent = bool(all(-0.5 <= v <= 1.5 for v in profile.value if math.isfinite(v)))
    rows: list[list[Cell]] = []
    for k, at in enumerate(profile.at.tolist()):
        row: list[Cell] = [at_text(at), *_point(profile, k, percent)]
        for name, other in beside.items():
            row += [] if name == _BAND else [quantity(other.value[k], percent=percent)]
            row += [] if name == _ALONE else [range_of(other.low[k], other.high[k], percent=percent)]
        effective = float(profile.n_effective[k])
        rows.append([*row, Number(effective, number(effective, percent=False, digits=-1)), profile.verdict[k]])
    columns = ["at", "%" if percent else "value", "SE", f"{100 * profile.level:.0f} % interval"]
    named = {_BAND: ["joint band"], _ALONE: ["labels alone"], SHRUNK: ["shrunk", "shrunk, interval"]}
    columns += [column for name in beside for column in named[name]]
    note = "interval: this point alone; joint band: the whole curve at once. labels: in reach of the point."
    shrunk = f" {SHRUNK_NOTE}" if SHRUNK in beside or method.partition(":")[0] == SHRUNK else ""
    return table(
        f"{target}: {profile_title(profile)}", [*columns, "labels", "signals"], rows,
        numeric=range(1, len(columns) + 1), note=note + shrunk,
        source=f"estimates.json, targets → {target} → {', '.join((method, *beside))}",
    )  # fmt: skip


def _point(profile: Profile, k: int, percent: bool) -> tuple[Cell, Cell, Cell]:
    """Value, standard error and interval at one point."""
    interval = range_of(profile.low[k], profile.high[k], percent=percent)
    return quantity(profile.value[k], percent=percent), error_of(profile.se[k], percent), interval


def comparators(estimates: EstimateSet) -> Table | None:
    """Every other profile, point by point; None where none was asked for."""
    percent, rows = is_share(estimates), list[list[Cell]]()
    for target, methods in estimates.items():
        for method, profile in methods.items():
            if isinstance(profile, Profile) and not leads(method) and method.partition(":")[0] not in (_BAND, _ALONE):
                rows += [
                    [target, method_label(method), at_text(at), *_point(profile, k, percent)]
                    for k, at in enumerate(profile.at.tolist())
                ]
    columns = ["target", "method", "at", "%" if percent else "value", "SE", "interval"]
    return table("Other profiles", columns, rows, numeric=range(3, 6), source="estimates.json") if rows else None


def gap_profiles(estimates: EstimateSet) -> Iterator[Table]:
    """Every difference along an axis."""
    percent = is_share(estimates)
    for gap in estimates.gaps:
        profile = gap.estimate
        if isinstance(profile, Profile):
            rows: list[list[Cell]] = [
                [at_text(at), *_point(profile, k, percent)] for k, at in enumerate(profile.at.tolist())
            ]
            yield table(
                f"{gap.a} − {gap.b} along {profile.column or 'the axis'}", ["at", "gap", "SE", "interval"], rows,
                numeric=(1, 2, 3), note=f"Intervals hold point by point, {100 * profile.level:g} %.",
                source=f"estimates.json, gaps, method {gap.method}",
            )  # fmt: skip
