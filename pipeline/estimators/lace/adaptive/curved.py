"""Curved candidates of the averaging rule: polynomials and quantile bins of single signals."""

from __future__ import annotations

import numpy as np

from pipeline.estimators.floats import FloatArray
from pipeline.estimators.lace.adaptive.rules import MeanCandidates, candidate_labels, ridge_blocks
from pipeline.estimators.signals import Curves

_RIDGE = 0.1
_PRIOR_COUNT = (
    10.0  # labels that pull a bin's mean to the mean of all; with 2, bins whose labels all agree look like certainty
)


def curved_candidates(
    curves: Curves, ranks: FloatArray, squares: FloatArray, centred: FloatArray, naive: float, shares: FloatArray
) -> list[MeanCandidates]:
    """For each signal a ridge on (ranks, ranks², ranks³) and one on indicators of four quantile bins.

    A signal that the rule takes for linear loses all of a U: a judge that is wrong where it is sure either way.

    Args:
        curves: pool moments of the bases.
        ranks, squares: (n, K) standardised ranks at the labels and their standardised squares.
        centred: (n,) labels less their mean; naive: that mean; shares: (n,) label weights.
    """
    count = ranks.shape[1]
    cubic = np.stack([ranks, squares, curves.cubes(ranks)], axis=2).swapaxes(0, 1)
    names = [
        tuple(f"{basis} of signal {column}" for column in range(count)) for basis in ("ranks to the third", "quarters")
    ]
    prior = _PRIOR_COUNT * float(shares @ shares)
    labels = candidate_labels("cubic", names[0], (_RIDGE,)), candidate_labels("bins", names[1], (_PRIOR_COUNT,))
    return [
        ridge_blocks(cubic, np.full(count, _RIDGE), centred, naive, shares, labels[0]),
        ridge_blocks(curves.indicators(ranks), np.full(count, prior), centred, naive, shares, labels[1]),
    ]
