"""Profiles: performance along an axis, with the pointwise and the simultaneous band and the labels alone beside it."""

from __future__ import annotations

import math

from pipeline.estimators import Profile
from pipeline.evaluation.methods import SHRUNK, SHRUNK_NOTE, method_label
from pipeline.report.charts import Curve, curve_chart
from pipeline.report.markup import Cell, Number, figure, section, table, text
from pipeline.report.run_folder import RunFolder
from pipeline.report.sections.values import between, is_share, value

_OWN = ("lace_profile", "lace_profile_band", "naive_profile", SHRUNK)


def profiles(run: RunFolder) -> str:
    """The section; empty where no profile was estimated."""
    parts = [_one(run, target) for target in run.estimates]
    return section("profiles", f"Profiles by {run.axis}", *parts) if any(parts) else ""


def places(profile: Profile) -> tuple[tuple[float, ...], list[tuple[float, str]]]:
    """Where the points stand, and the names of levels where they are no numbers."""
    if profile.at.dtype.kind in "USO":
        return tuple(float(k) for k in range(len(profile.at))), [(float(k), str(v)) for k, v in enumerate(profile.at)]
    return tuple(float(v) for v in profile.at), []


def _of(run: RunFolder, target: str, method: str) -> Profile | None:
    profile = run.estimates[target].get(method)
    return profile if isinstance(profile, Profile) else None


def profile_chart(run: RunFolder, target: str) -> str:
    """One target's profile as SVG; empty where it has none."""
    profile = _of(run, target, "lace_profile")
    if profile is None:
        return ""
    band, naive = _of(run, target, "lace_profile_band"), _of(run, target, "naive_profile")
    x, ticks = places(profile)
    outer = (tuple(band.low), tuple(band.high)) if band is not None else ((), ())
    curves = [Curve("LACE", x, tuple(profile.value), tuple(profile.low), tuple(profile.high), *outer)]
    if naive is not None:
        curves.append(Curve("labels alone", x, tuple(naive.value), tuple(naive.low), tuple(naive.high), dashed=True))
    title = f"{target}: profile by {run.axis}"
    return curve_chart(curves, title=title, x_label=run.axis, percent=is_share(run), ticks=ticks)


def _one(run: RunFolder, target: str) -> str:
    profile = _of(run, target, "lace_profile")
    if profile is None:
        return ""
    percent = is_share(run)
    band, naive = _of(run, target, "lace_profile_band"), _of(run, target, "naive_profile")
    shrunk = _of(run, target, SHRUNK)
    rows: list[list[Cell]] = []
    for k, at in enumerate(profile.at):
        row: list[Cell] = [
            str(at) if isinstance(at, str) else f"{float(at):.4g}",
            value(profile.value[k], percent=percent),
            value(profile.se[k], percent=percent, digits=2 if percent else 1),
            between(profile.low[k], profile.high[k], percent=percent),
        ]
        if band is not None:
            row.append(between(band.low[k], band.high[k], percent=percent))
        if naive is not None:
            row += [value(naive.value[k], percent=percent), between(naive.low[k], naive.high[k], percent=percent)]
        if shrunk is not None:
            row += [value(shrunk.value[k], percent=percent), between(shrunk.low[k], shrunk.high[k], percent=percent)]
        effective = profile.n_effective[k]
        row += [Number(effective, f"{effective:.1f}" if math.isfinite(effective) else "–"), profile.verdict[k]]
        rows.append(row)
    columns = [run.axis, "LACE, %" if percent else "LACE", "SE", "interval"]
    columns += ["joint band"] if band is not None else []
    columns += ["labels alone", "labels alone, interval"] if naive is not None else []
    columns += ["shrunk", "shrunk, interval"] if shrunk is not None else []
    columns += ["labels in reach", "signals"]
    smoothed = " as the kernel smooths it" if profile.smoothed else "; each level's number is its own"
    note = (
        f"interval: this point alone; joint band: the whole curve at once; both {100 * profile.level:g} %, about the"
        f" {profile.target} profile{smoothed}. labels in reach: effective labels at the point. signals: whether they"
        f" help there.{f' {SHRUNK_NOTE}' if shrunk is not None else ''}"
    )
    made = table(
        columns,
        rows,
        caption=f"{target}: profile by {run.axis}",
        numeric=range(1, len(columns) - 1),
        note=note,
        source=f"estimates.json, targets → {target} → {', '.join(m for m in _OWN if _of(run, target, m) is not None)}",
    )
    return f"<h3>{text(target)}</h3>{figure(profile_chart(run, target))}{made}{_comparators(run, target)}"


def _comparators(run: RunFolder, target: str) -> str:
    """Every other profile of the target, point by point; empty where none was asked for."""
    percent = is_share(run)
    rows: list[list[Cell]] = [
        [
            method_label(method),
            str(at) if isinstance(at, str) else f"{float(at):.4g}",
            value(profile.value[k], percent=percent),
            value(profile.se[k], percent=percent, digits=2 if percent else 1),
            between(profile.low[k], profile.high[k], percent=percent),
        ]
        for method, profile in run.estimates[target].items()
        if isinstance(profile, Profile) and method not in _OWN
        for k, at in enumerate(profile.at)
    ]
    if not rows:
        return ""
    made = table(
        ["method", run.axis, "value, %" if percent else "value", "SE", "interval"],
        rows,
        caption=f"{target}: comparators by {run.axis}",
        numeric=(1, 2, 3, 4),
        source=f"estimates.json, targets → {target}",
    )
    return f"<details><summary>Comparators on the same labels</summary>{made}</details>"
