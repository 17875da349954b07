"""What a yes-or-no rater's errors do to a rate, and the rate without them: an option beside the estimates."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from pipeline.errors import InputError
from pipeline.estimators.raters import rogan_gladen
from pipeline.estimators.results import Estimate
from pipeline.tables.label_store import ADJUDICATOR, Labels


@dataclass(frozen=True, slots=True)
class RaterErrors:
    """How often one rater errs.

    Attributes:
        sensitivity: chance that a right response is called right.
        specificity: chance that a wrong response is called wrong.
        n_right, n_wrong: settled ratings that they were measured on; None where they are known.
    """

    sensitivity: float
    specificity: float
    n_right: int | None = None
    n_wrong: int | None = None


def parse_errors(text: str) -> RaterErrors:
    """``SENSITIVITY,SPECIFICITY`` as a person writes it.

    Raises:
        InputError: they are no two chances, or together no better than a coin.
    """
    try:
        sensitivity, specificity = (float(part) for part in text.split(","))
    except ValueError:
        raise InputError(f"--rater-errors {text[:40]}: measured, or SENSITIVITY,SPECIFICITY such as 0.95,0.9") from None
    chances = all(0.0 < chance <= 1.0 for chance in (sensitivity, specificity))
    if not chances or sensitivity + specificity <= 1.0:
        raise InputError(f"--rater-errors {text[:40]}: two chances in (0, 1], with a sum above 1")
    return RaterErrors(sensitivity, specificity)


def measured_errors(labels: Labels, criterion: str) -> RaterErrors:
    """Errors of single ratings where two people rated: against what they agree on, or what was adjudicated.

    Where both err alike nobody sees it, so the errors are at least these.

    Raises:
        InputError: open disagreements, or too little that two people rated.
    """
    open_ = [about for about in labels.contradictions() if about[1] == criterion]
    if open_:
        raise InputError(
            f"--rater-errors measured: {len(open_)} disagreements are open; import the adjudicated sheet first"
        )
    settled = labels.settled()
    right: list[bool] = []
    wrong: list[bool] = []
    for about, ratings in labels.by_rater.items():
        raters = [value for name, value in ratings.items() if name != ADJUDICATOR]
        if about[1] == criterion and len(raters) > 1:
            (right if settled[about] == 1.0 else wrong).extend(value == settled[about] for value in raters)
    if not right or not wrong:
        raise InputError(
            "--rater-errors measured: needs responses that two people rated, right ones and wrong ones; export with"
            " --raters 2 --overlap, or give SENSITIVITY,SPECIFICITY"
        )
    return RaterErrors(sum(right) / len(right), sum(wrong) / len(wrong), len(right), len(wrong))


def without_errors(rate: Estimate, errors: RaterErrors, twice: float) -> Estimate:
    """The rate as it would be without the errors of ratings given by one person.

    Args:
        rate: in [0, 1], from labels that one person gave, or that two agreed on or had settled.
        errors: of one person.
        twice: share of the labels that two people settled, in [0, 1]; these are taken as right.
    """
    once = 1.0 - twice
    kept = [1.0 - once * (1.0 - chance) for chance in (errors.sensitivity, errors.specificity)]
    # The chances after mixing have once² times the variance, as if measured on more ratings.
    sizes = [
        None if n is None or not 0.0 < chance < 1.0 else max(_size(mixed, chance, n, once), 1)
        for n, chance, mixed in zip(
            (errors.n_right, errors.n_wrong), (errors.sensitivity, errors.specificity), kept, strict=True
        )
    ]
    return rogan_gladen(rate, kept[0], kept[1], n_right=sizes[0], n_wrong=sizes[1])


def _size(mixed: float, chance: float, n: int, once: float) -> int:
    spread = once**2 * chance * (1.0 - chance) / n
    return math.floor(mixed * (1.0 - mixed) / spread) if spread > 0.0 else 2**31


def correction_told(rates: Mapping[str, tuple[Estimate, Estimate]], errors: RaterErrors) -> str:
    """One sentence for the report: each rate as rated, and without the rater's errors."""
    how = (
        "known" if errors.n_right is None else f"measured on {errors.n_right} right and {errors.n_wrong} wrong ratings"
    )
    parts = [
        f"{name} {100 * after.value:.1f} [{100 * after.low:.1f}, {100 * after.high:.1f}] instead of"
        f" {100 * rate.value:.1f}"
        for name, (rate, after) in rates.items()
    ]
    return (
        f"without the errors of a rater (calls {errors.sensitivity:.0%} of right responses right and"
        f" {errors.specificity:.0%} of wrong ones wrong, {how}): {'; '.join(parts)}; estimates, gaps and verdicts above"
        " are about the ratings as given"
    )
