"""From a pool to everything that can be said of it: every method that was asked for, gaps, decisions, one sentence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from pipeline.errors import InputError
from pipeline.estimators import Estimate, Profile
from pipeline.evaluation.decisions import decide
from pipeline.evaluation.document import EstimateSet, Gap, LeftOut, Warned
from pipeline.evaluation.enforcement import enforced
from pipeline.evaluation.features import features_of
from pipeline.evaluation.gaps import Pair
from pipeline.evaluation.gaps import pairs as all_pairs
from pipeline.evaluation.headline import headline
from pipeline.evaluation.label_checks import look_over
from pipeline.evaluation.methods import Method, check_names, chosen, leading
from pipeline.evaluation.options import Options
from pipeline.evaluation.plans.looks_counted import counted_looks
from pipeline.evaluation.pool import Pool, TargetPool
from pipeline.evaluation.validity import judge_validity
from pipeline.tables.signal_checks import ALL, Notice, merged_notices

Estimates = dict[str, Estimate | Profile]


def evaluate(pool: Pool, options: Options | None = None, *, pairs: Sequence[Pair] | None = None) -> EstimateSet:
    """Everything that the options ask for and the pool allows; what is left out stands in ``left_out`` with its reason.

    Args:
        pool: what is known.
        options: how it is evaluated.
        pairs: whose gaps are estimated; None means all pairs of targets (with the baseline alone, if there is one).

    Raises:
        InputError: unknown method, fewer than two labels, a method asked for by name that these data do not allow.
    """
    options = options or Options()
    check_names(options.methods)
    for target in pool.targets:
        check_labels(target)
    notices = [*pool.notices, *look_over(pool, options)]
    missing: list[LeftOut] = []
    estimates = {target.name: target_estimates(pool, target, options, notices, missing) for target in pool.targets}
    gaps: list[Gap] = []
    decided: list[Pair] = []
    if any(chosen(options, kind) for kind in ("gap", "gap profile")):
        decided = list(all_pairs(pool, options, notices) if pairs is None else pairs)
        gaps = [gap for pair in decided for gap in _gaps(pool, pair, options, notices, missing)]
    recommended = {name: leading(by_method) for name, by_method in estimates.items()}
    values = {
        target.name: float(np.mean(target.y[target.labeled])) if by_method is None else by_method.value
        for target, by_method in zip(pool.targets, recommended.values(), strict=True)
    }
    compared = {(gap.a, gap.b) for gap in gaps if gap.method == "lace_gap"}
    decisions = decide([p for p in decided if (p.first.name, p.second.name) in compared], values, options)
    if not any(estimates.values()) and not gaps and missing:
        first = missing[0]
        raise InputError(f"nothing can be estimated; {first.method} of {first.target}: {first.reason}")
    counted, sentence = counted_looks(pool, options)
    if sentence:
        notices.append(Notice("looks", sentence))
    warned = tuple(Warned(notice.code, notice.message) for notice in merged_notices(notices))
    return EstimateSet(
        estimates, tuple(gaps), (), warned, _merged(missing), decisions, headline(recommended, decisions),
        judge_validity(pool, _judge_scores(pool)), extra=counted,
    )  # fmt: skip


def _judge_scores(pool: Pool) -> list[str]:
    """The signals that are a judge's score of a response."""
    names = dict.fromkeys(name for target in pool.targets for name in target.signal_names)
    return [name for name in names if name == "judge" or name.startswith("judge_")]


def check_labels(target: TargetPool) -> None:
    """InputError where a target has fewer than two labels."""
    n = target.n
    if n < 2:
        who = "the table has" if target.name == ALL else f"target {target.name} has"
        raise InputError(
            f"{who} {n} gold label{'' if n == 1 else 's'}; at least 2 are needed, and 20 or more advisable"
        )


def target_estimates(
    pool: Pool, target: TargetPool, options: Options, notices: list[Notice], missing: list[LeftOut]
) -> Estimates:
    """Method → its result for one target; ``notices`` and ``missing`` grow."""
    estimates: Estimates = {}
    for method, name, narrowed in _steps(target, options):
        lacking = method.lacking(narrowed, options)
        if lacking is not None:
            if options.by_name and method.name in options.methods:
                raise InputError(f"--methods {method.name} needs {lacking.name}: {lacking.mend}")
            continue
        features = features_of(pool, narrowed, options)
        step = partial(method.run, pool, narrowed, options)
        result = enforced(method, target.name, features, options, step, notices)
        if isinstance(result, LeftOut):
            missing.append(result)
        else:
            estimates[name] = result
    return estimates


def _steps(target: TargetPool, options: Options) -> Iterator[tuple[Method, str, TargetPool]]:
    """(method, its key, the target with the axis it is run on)."""
    for method in chosen(options, "mean"):
        yield method, method.name, target
    several = len(target.profiles) > 1
    for axis in target.profiles or (None,):
        for method in chosen(options, "profile"):
            narrowed = target if axis is None else replace(target, profiles=(axis,))
            yield method, f"{method.name}:{axis.column}" if several and axis is not None else method.name, narrowed


def _gaps(pool: Pool, pair: Pair, options: Options, notices: list[Notice], missing: list[LeftOut]) -> Iterator[Gap]:
    for method in (*chosen(options, "gap"), *chosen(options, "gap profile")):
        if any(method.lacking(target, options) for target in (pair.first, pair.second)):
            continue
        features = features_of(pool, pair.first, options) | features_of(pool, pair.second, options)
        result = enforced(method, pair.name, features, options, partial(method.run, pool, pair, options), notices)
        if isinstance(result, LeftOut):
            missing.append(result)
        else:
            yield Gap(pair.first.name, pair.second.name, method.name, result)


def _merged(missing: list[LeftOut]) -> tuple[LeftOut, ...]:
    """Each once: of several axes, say."""
    return tuple(dict.fromkeys(missing))
