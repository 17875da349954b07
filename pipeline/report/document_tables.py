"""The document of an evaluation as tables: one value each, printed in the terminal, on the page and for a paper."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from pipeline.estimators.gaps.ranking import RankSet
from pipeline.estimators.results import Estimate, Profile
from pipeline.evaluation.document import Decisions, EstimateSet, PairDecision
from pipeline.evaluation.methods import decides, leading, method_about, method_label
from pipeline.evaluation.reading import GradingError
from pipeline.evaluation.rehearsal import rehearsed_of
from pipeline.evaluation.validity import JudgeValidity
from pipeline.report.values import Axis, Cell, Column, Drawn, Number, Table, number, quantity, range_of, table

LOST = 0.05
"""Share of a stage's replies that could not be used, from which what became of them stands before the numbers."""
_QUOTE_CHARS = 40


def with_axis(estimates: EstimateSet, name: str) -> EstimateSet:
    """The document with the axis called by its name: the tables of a run call every axis ``profile``."""

    def named(made: Estimate | Profile) -> Estimate | Profile:
        return replace(made, column=name) if isinstance(made, Profile) and made.column == "profile" else made

    def sliced(judge: JudgeValidity) -> JudgeValidity:
        parts = tuple(replace(part, by=name) if part.by == "profile" else part for part in judge.slices)
        return replace(judge, slices=parts)

    return replace(
        estimates,
        targets={t: {m: named(made) for m, made in methods.items()} for t, methods in estimates.items()},
        gaps=tuple(replace(gap, estimate=named(gap.estimate)) for gap in estimates.gaps),
        judges=tuple(map(sliced, estimates.judges)),
    )


def singles(estimates: EstimateSet) -> list[Estimate]:
    """Every estimated mean."""
    return [e for methods in estimates.values() for e in methods.values() if isinstance(e, Estimate)]


def is_share(estimates: EstimateSet) -> bool:
    """Whether every mean is a share, so that percent reads best."""
    return all(
        0.0 <= e.value <= 1.0 and e.low >= -0.5 and e.high <= 1.5 for e in singles(estimates) if math.isfinite(e.value)
    )


def about(estimates: EstimateSet) -> str:
    """What the numbers are about, where it is not items like these: it stands in titles."""
    pool = any(e.target == "pool" for e in singles(estimates) if e.se > 0.0 or e.interval != "none")
    return "of these very items" if pool else ""


def worth(estimate: Estimate) -> str:
    """Labels of the plain mean with the same standard error; with their range, where it can be told."""
    if estimate.worth is None:
        return ""
    if estimate.worth_low is None or estimate.worth_high is None or estimate.worth == estimate.n:
        return f"{estimate.worth:.0f}"
    return f"{estimate.worth:.0f} ({estimate.worth_low:.0f}–{estimate.worth_high:.0f})"


def at_text(at: object) -> str:
    """A level or a point of an axis."""
    return at if isinstance(at, str) else f"{float(at):.4g}"  # type: ignore[arg-type]


def _titled(*parts: str) -> str:
    return " ".join(part for part in parts if part)


def error_of(value: float, percent: bool) -> Number:
    return quantity(value, percent=percent, digits=2 if percent else 1)


def _level(estimates: EstimateSet) -> str:
    looks = " (one look)" if "looks" in estimates.extra else ""  # several intervals are right together less often
    return f"{100 * next((e.level for e in singles(estimates)), 0.95):g} % interval{looks}"


def means(estimates: EstimateSet, title: str = "Methods compared") -> Table:
    """Every mean by target and method."""
    percent, rows = is_share(estimates), list[list[Cell] | None]()
    for target, methods in estimates.items():
        rows += [None] if rows else []
        for method, estimate in methods.items():
            if isinstance(estimate, Estimate):
                rows.append([target, *_mean(method, estimate, percent)])
    columns = ["target", "method", "%" if percent else "value", "SE", _level(estimates), "labels", "worth"]
    return table(
        _titled(title, about(estimates)), columns, rows, numeric=range(2, 7),
        source="estimates.json, targets → target → method",
        note="One number per target is recommended and was chosen before looking: LACE's. Of several looked at, the one"
        " that pleases most is biased.",
    )  # fmt: skip


def _mean(method: str, estimate: Estimate, percent: bool) -> list[Cell]:
    value = quantity(estimate.value, percent=percent)
    if estimate.interval == "none":
        return [method_label(method), value, "", "", estimate.n, ""]
    interval = range_of(estimate.low, estimate.high, percent=percent)
    return [method_label(method), value, error_of(estimate.se, percent), interval, estimate.n, worth(estimate)]


def ordered(estimates: EstimateSet) -> list[tuple[str, Estimate]]:
    """(target, its recommended number) by rank: the best first."""
    named = {name: mean for name, methods in estimates.items() if (mean := leading(methods)) is not None}
    ranks = {entry.name: entry.rank for entry in (estimates.decisions.rank_sets if estimates.decisions else ())}
    value = {name: mean.value if math.isfinite(mean.value) else -math.inf for name, mean in named.items()}
    return sorted(named.items(), key=lambda entry: (ranks.get(entry[0], len(named)), -value[entry[0]]))


def tones(estimates: EstimateSet) -> dict[str, int]:
    """Target → the number of its colour: the same in every picture of a document."""
    return {name: k for k, name in enumerate(estimates)}


def _against(decisions: Decisions | None, name: str, best: str) -> tuple[float, float, float, PairDecision] | None:
    """name − best with its joint interval."""
    for pair in decisions.pairs if decisions else ():
        if (pair.a, pair.b) == (name, best):
            return pair.value, pair.low, pair.high, pair
        if (pair.a, pair.b) == (best, name):
            return -pair.value, -pair.high, -pair.low, pair
    return None


def leaderboard(estimates: EstimateSet, title: str = "Leaderboard") -> Table | None:
    """One row per target, by rank: where it could stand, its number, its gap to the best, what its labels are worth.

    None where no target has a number.
    """
    rows = ordered(estimates)
    if not rows:
        return None
    percent, tone = is_share(estimates), tones(estimates)
    ranks = {entry.name: entry for entry in (estimates.decisions.rank_sets if estimates.decisions else ())}
    joint = 0.95 if estimates.decisions is None else estimates.decisions.level
    best, several = rows[0][0], len(rows) > 1
    scale, places = 100.0 if percent else 1.0, Axis("rank", low=0.5, high=len(rows) + 0.5)
    ends = [scale * v for _, mean in rows for v in (mean.low, mean.high, mean.value) if math.isfinite(v)] or [0.0, 1.0]
    pad = 0.05 * (max(ends) - min(ends)) or 0.5
    axis = Axis("estimate", low=min(ends) - pad, high=max(ends) + pad)
    made: list[list[Cell]] = []
    for name, mean in rows:
        reach, gap = ranks.get(name), _against(estimates.decisions, name, best)
        drawn = Drawn(scale * mean.value, scale * mean.low, scale * mean.high, tone[name])
        row: list[Cell] = [name]
        if ranks:
            row += [_reach(reach), Drawn(reach.rank, reach.best, reach.worst, tone[name])] if reach else ["–", None]
        row += [quantity(mean.value, percent=percent), drawn, range_of(mean.low, mean.high, percent=percent)]
        if several:
            row += [None, None, _stands(name, best, None, ranks)] if gap is None else [
                quantity(gap[0], percent=percent), range_of(gap[1], gap[2], percent=percent),
                _stands(name, best, gap[3], ranks),
            ]  # fmt: skip
        made.append([*row, mean.n, worth(mean)])
    columns = [Column("target")]
    columns += (
        [Column("rank", True, term="rank range"), Column("could be", axis=places, room=16 * min(len(rows), 8) + 20)]
        if ranks
        else []
    )
    columns += [Column("%" if percent else "value", True, term="estimate"), Column("", axis=axis)]
    columns.append(Column(_level(estimates), True, term="interval"))
    if several:
        columns += [Column("gap", True), Column(f"{100 * joint:g} % jointly", True, term="jointly")]
        columns.append(Column("verdict", aside=True))
    columns += [Column("labels", True), Column("worth", True)]
    return Table(
        _titled(title, about(estimates)), tuple(columns), tuple(map(tuple, made)),
        note=f"rank: where each could stand; all ranges hold together ({100 * joint:g} %)." if ranks else "",
        source="estimates.json, targets and decisions",
    )  # fmt: skip


def _reach(entry: RankSet) -> Number:
    return Number(entry.rank, str(entry.best) if entry.best == entry.worst else f"{entry.best} to {entry.worst}")


def _stands(name: str, best: str, pair: PairDecision | None, ranks: Mapping[str, RankSet]) -> str:
    """The verdict of a row, against the best."""
    if pair is None:
        entry = ranks.get(name)
        return "" if entry is None or name != best else ("best" if entry.worst == 1 else "best as it looks")
    if pair.verdict is None:
        return ""
    return "worse" if pair.better == best else "better" if pair.better == name else pair.said


def gaps(estimates: EstimateSet) -> Table | None:
    """Every paired difference with its own and its joint interval, and the verdict; None where there is none."""
    percent, decided = is_share(estimates), estimates.decisions
    joint = {} if decided is None else {(pair.a, pair.b): pair for pair in decided.pairs}
    rows: list[list[Cell]] = []
    for gap in estimates.gaps:
        estimate = gap.estimate
        if isinstance(estimate, Estimate):
            pair = joint.get((gap.a, gap.b)) if decides(gap.method) else None
            both = range_of(pair.low, pair.high, percent=percent) if pair else None
            p = "" if pair is None else Number(pair.p_adjusted, _p(pair.p_adjusted))
            alone = range_of(estimate.low, estimate.high, percent=percent)
            rows.append([
                f"{gap.a} − {gap.b}", method_label(gap.method), quantity(estimate.value, percent=percent),
                error_of(estimate.se, percent), both if pair else alone, p, pair.said if pair else "",
            ])  # fmt: skip
    if not rows:
        return None
    level = f"{100 * decided.level:g} % jointly" if decided is not None else "interval"
    note = f"{level}: all pairs together; of other methods than LACE, this pair alone. p: Holm's, of no difference."
    if decided is not None and decided.target == "pool":
        note += " A difference of these very items is a fact, not an inference: there is no verdict."
    columns: list[str | Column] = ["a − b", "method", "gap", "SE", level, Column("p", True, aside=True), "verdict"]
    return table(
        _titled("Paired gaps", about(estimates)), columns, rows,
        numeric=range(2, 6), note=note, source="estimates.json, gaps and decisions → pairs",
    )  # fmt: skip


def _p(p: float) -> str:
    return "–" if not math.isfinite(p) else "< 0.001" if p < 0.001 else f"{p:.3f}"


def best_of_n(estimates: EstimateSet) -> Table | None:
    """The value of every best-of-N policy; None where none was evaluated."""
    rows: list[list[Cell]] = [
        [
            entry.target, entry.measure.replace("_", " "), entry.n, entry.j,
            quantity(entry.estimate.value, percent=False), quantity(entry.estimate.se, percent=False),
            range_of(entry.estimate.low, entry.estimate.high, percent=False), entry.estimate.n,
        ]
        for entry in estimates.best_of_n
    ]  # fmt: skip
    columns = ["target", "measure", "N", "J", "value", "SE", "interval", "prompts"]
    note = (
        "score: expected judge score of the winner; no score both selects a candidate and values it. gain: against one"
        " random candidate. gold: φ of the selected candidate, gold gain likewise against a random one. Intervals are"
        " over prompts."
    )
    title, source = "Best of N by the mean of J scores", "estimates.json, best_of_n"
    return table(title, columns, rows, numeric=range(2, 8), note=note, source=source) if rows else None


def judges(estimates: EstimateSet) -> Table | None:
    """Each judge against the labels: how close, and whether it is kinder to one model; None without judges."""
    rows: list[list[Cell]] = []
    for judge in estimates.judges:
        told = judge.overall.correlation
        first: list[Cell] = [judge.signal, judge.overall.n, "–" if told is None else Number(told, f"{told:.2f}")]
        biased = [pair for pair in judge.kindness if pair.biased]
        for pair in biased:
            kinder, other = (pair.a, pair.b) if pair.difference.value > 0 else (pair.b, pair.a)
            low, high = sorted((abs(pair.difference.low), abs(pair.difference.high)))
            amount = abs(pair.difference.value)
            rows.append([*first, f"{kinder} than {other}", Number(amount, f"{amount:.2f}"), f"[{low:.2f}, {high:.2f}]"])
        if not biased:
            rows.append([*first, "nobody shown", "", ""])
    columns = ["judge", "rated", "correlation", "kinder to", "by", "95 % interval"]
    source = "estimates.json, judges"
    return table("Judges against the labels", columns, rows, numeric=(1, 2, 4, 5), source=source) if rows else None


def unread(estimates: EstimateSet) -> Table | None:
    """Answers in which none could be read, per target, with what they could be worth; None where all were."""
    rows: list[list[Cell]] = []
    for target, entry in estimates.unread.items():
        bounds = ["–" if v is None else quantity(v, percent=True) for v in (entry.value_low, entry.value_high)]
        forms = "; ".join(f"{form} ({count}×)" for form, count in entry.forms)
        rows.append([target, entry.count, f"{entry.share:.1%}", *bounds, forms])
    if not any(entry.count for entry in estimates.unread.values()):
        return None
    columns = ["target", "unread", "share", "mean if wrong", "if right", "commonest ends"]
    note = "if right: the plain mean over the labeled items, had all unread answers been right."
    if estimates.audit is not None:
        note = f"{audit_sentence(estimates.audit)} {note}"
    title = "Answers in which none could be read"
    return table(title, columns, rows, numeric=range(1, 5), note=note, source="estimates.json, unread and audit")


def replies(estimates: EstimateSet, least: float = 0.0) -> Table | None:
    """What became of replies by target and stage; None where less than ``least`` of each stage was lost."""
    if not any(entry.lost > least for entry in estimates.replies):
        return None
    names = ("ok", "cut", "unread", "invalid", "refused", "failed")
    rows: list[list[Cell]] = [
        [
            entry.target, entry.stage, *(getattr(entry, name) for name in names), f"{entry.lost:.1%}",
            repr(entry.quotes[0][-_QUOTE_CHARS:]) if entry.quotes else "",
        ]
        for entry in estimates.replies
        if entry.lost > least
    ]  # fmt: skip
    note = (
        "cut: ended by the token limit; unread: nothing could be read; invalid: not in the asked form, even repaired."
    )
    columns = ["target", "stage", "ok", "cut off", *names[2:], "lost", "for example"]
    return table(
        "What became of replies", columns, rows, numeric=range(2, 9), note=note, source="estimates.json, replies"
    )


def audit_sentence(audit: GradingError) -> str:
    """What a person found in the checked sample."""
    return (
        f"A person checked {audit.checked} answers at random: {audit.wrong} were graded wrong"
        f" ({audit.rate:.1%}, {audit.level:.0%} interval {audit.low:.1%} to {audit.high:.1%})."
    )


def rehearsal(estimates: EstimateSet) -> Table | None:
    """What the methods did with labels hidden at random; None where nothing was rehearsed."""
    rehearsed = rehearsed_of(estimates)
    rows: list[list[Cell]] = []
    for row in rehearsed:
        efficiency = f"{row.efficiency:.2f} [{row.efficiency_low:.1f}, {row.efficiency_high:.1f}]"
        rows.append([
            row.target, row.labels, row.method, Number(row.rmse, f"{row.rmse:.4f}"),
            f"{number(row.coverage, percent=True)} %", Number(row.half_width, f"{row.half_width:.4f}"),
            "" if row.method == "naive" else efficiency,
        ])  # fmt: skip
    if not rehearsed:
        return None
    title = f"Rehearsal: labels hidden at random {rehearsed[0].reps} times; the truth is the mean of all labeled rows"
    columns = ["target", "labels", "method", "RMSE", "coverage", "±", "efficiency"]
    return table(title, columns, rows, numeric=(1, 3, 4, 5, 6), source="estimates.json, rehearsal")


def trace(estimates: EstimateSet) -> Table:
    """Every estimate: what it is about, from how many labels, by which rule."""
    rows: list[list[Cell]] = []
    for target, methods in estimates.items():
        rows += [[f"targets → {target} → {name}", method_about(name), *_about(e)] for name, e in methods.items()]
    for k, gap in enumerate(estimates.gaps):
        rows.append([f"gaps[{k}]: {gap.a} − {gap.b}", method_about(gap.method), *_about(gap.estimate)])
    for k, entry in enumerate(estimates.best_of_n):
        rows.append([f"best_of_n[{k}]: {entry.target}, {entry.measure}, N {entry.n}", "", *_about(entry.estimate)])
    columns = ["entry of estimates.json", "how", "about", "labels", "level", "interval"]
    return table("Every estimate", columns, rows, numeric=(3, 4), source="estimates.json")


def _about(made: Estimate | Profile) -> Sequence[Cell]:
    if isinstance(made, Estimate):
        return [made.target, made.n, f"{made.level:g}", made.interval]
    return [made.target, "–", f"{made.level:g}", "–"]
