"""Every estimate of a user's own table: its targets one by one, and the paired gaps between them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from pipeline.errors import InputError
from pipeline.estimators import Estimate, Profile
from pipeline.evaluation.document import EstimateSet, Warned
from pipeline.evaluation.joint_decisions import joint_decisions
from pipeline.evaluation.pool import Pool
from pipeline.evaluation.table_gaps import paired_gaps
from pipeline.evaluation.table_targets import DEFAULT_METHODS, METHODS, TableOptions, target_estimates
from pipeline.tables.signal_checks import merged_notices
from pipeline.tables.user_table import nearest_names

__all__ = ["DEFAULT_METHODS", "METHODS", "TableOptions", "check_methods", "estimate_table"]


def estimate_table(inputs: Pool, options: TableOptions | None = None) -> EstimateSet:
    """Estimates of every target of a table, and the paired gaps between them.

    Raises:
        InputError: unknown method, too few labels, a distribution over unknown values, or an estimator refuses the
            data; one line that names target and method.
    """
    options = options or TableOptions()
    check_methods(options.methods)
    notices = list(inputs.notices)
    estimates: dict[str, dict[str, Estimate | Profile]] = {}
    for target in inputs.targets:
        estimates[target.name] = target_estimates(target, options, notices)
    gaps, fits = paired_gaps(inputs.targets, options, notices) if "gaps" in options.methods else ((), [])
    decided = joint_decisions(fits, {name: _leading(found) for name, found in estimates.items()}, level=options.level)
    warned = tuple(Warned(notice.code, notice.message) for notice in merged_notices(notices))
    return EstimateSet(estimates, gaps, (), warned, {"decisions": decided} if decided else {})


def _leading(found: Mapping[str, Estimate | Profile]) -> float:
    """The best estimate of a target's mean that there is; NaN without one."""
    means = (found.get(method) for method in ("lace", "one_step", "naive"))
    return next((mean.value for mean in means if isinstance(mean, Estimate)), math.nan)


def check_methods(methods: Sequence[str]) -> None:
    """InputError for a name that is none of ``METHODS``; the nearest are given."""
    for name in methods:
        if name not in METHODS:
            close = nearest_names(name, METHODS)
            hint = f"did you mean {' or '.join(close)}?" if close else f"there are {', '.join(METHODS)}"
            raise InputError(f"--methods: no method {name!r}; {hint}")
