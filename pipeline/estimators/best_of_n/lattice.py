"""Score lattices: scores that are multiples of a step become integers, so that ties are exact."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pipeline.estimators.floats import BoolArray, FloatArray

Lattice = float | Literal["auto"] | None

STEPS = (1.0, 1 / 2, 1 / 3, 1 / 4, 1 / 5, 1 / 6, 1 / 10, 1 / 20, 1 / 100, 1 / 300)

_ON_LATTICE = 1e-6
_SHORT_FLOAT = 0.01  # the most that the rounding of float32 or float16 scores may put them off a step
_DOUBLE = 1e-15
_DECLARED = 0.25
_ROUNDING = 1e-9
_LARGEST = 2.0**61
_CHUNK = 1 << 17
_BLOCK = 1 << 15


def lattice_steps(scores: NDArray[Any], lattice: Lattice) -> tuple[FloatArray, BoolArray]:
    """The step on which each prompt's scores lie.

    "auto" takes the first of ``STEPS`` with max|R/step − round(R/step)| < 1e-6, or within the rounding of scores
    that come in a shorter float type. Adding a constant to a
    column changes no comparison between candidates, so where no step fits the scores themselves the steps
    are tried on their differences from the column's first candidate. A step that would put scores that
    differ on one single level is passed over.

    Args:
        scores: (P, M, K) finite scores.
        lattice: "auto", a declared step > 0, or None for continuous scores.

    Returns:
        (P,) steps, NaN where the scores are continuous, and (P,) whether the differences carry the lattice.

    Raises:
        ValueError: unknown lattice, or scores that are not multiples of a declared step.
    """
    prompts = len(scores)
    relative = np.zeros(prompts, dtype=np.bool_)
    if lattice is None:
        return np.full(prompts, np.nan), relative
    if lattice == "auto":
        if scores.dtype.kind in "biu":
            return np.ones(prompts), relative
        return _detected(scores.astype(np.float64, copy=False), float(np.finfo(scores.dtype).eps))
    scores = scores.astype(np.float64, copy=False)
    step = _declared_step(lattice)
    fits = _offsets(scores, step, relative=False) < _DECLARED
    relative = ~fits
    if not fits.all():
        fits[relative] = _offsets(scores[relative], step, relative=True) < _DECLARED
    if not fits.all():
        raise ValueError(
            f"scores are not multiples of the declared lattice step {step!r}: "
            "give the step they lie on, or lattice=None for continuous scores"
        )
    return np.full(prompts, step), relative


def _declared_step(lattice: Any) -> float:
    if isinstance(lattice, str | bool | np.bool_):
        raise ValueError(f'lattice must be "auto", a step > 0 or None, got {lattice!r}')
    step = float(lattice)
    if not (np.isfinite(step) and step > 0.0):
        raise ValueError(f"a lattice step must be finite and > 0, got {step!r}")
    return step


def _detected(scores: FloatArray, precision: float) -> tuple[FloatArray, BoolArray]:
    largest = np.abs(scores).max(axis=(1, 2)) if precision > _DOUBLE else np.zeros(len(scores))
    steps = np.full(len(scores), np.nan)
    relative = np.zeros(len(scores), dtype=np.bool_)
    for differences in (False, True):
        for step in STEPS:
            open_ = np.flatnonzero(np.isnan(steps))
            if not open_.size:
                return steps, relative
            # A few scores turn almost every continuous prompt away before the full pass.
            sample = scores[:, :5, :8] if open_.size == len(scores) else scores[open_, :5, :8]
            allowed = np.clip(precision * largest / step, _ON_LATTICE, _SHORT_FLOAT)
            likely = open_[_offsets(sample, step, relative=differences) < allowed[open_]]
            if not likely.size:
                continue
            chosen = scores if likely.size == len(scores) else scores[likely]
            fits = likely[_fits(chosen, step, allowed[likely], relative=differences)]
            steps[fits] = step
            relative[fits] = differences
    return steps, relative


def _fits(scores: FloatArray, step: float, allowed: FloatArray, *, relative: bool) -> BoolArray:
    """(P,) whether the scores lie on the lattice and use it: more than one level unless all are equal."""
    shifted = scores - scores[:, :1] if relative else scores
    high, low = shifted.max(axis=(1, 2)), shifted.min(axis=(1, 2))
    size = np.maximum(np.abs(high), np.abs(low))
    one_level = np.rint(high / step) == np.rint(low / step)
    spread = (high - low) > _ROUNDING * np.maximum(np.abs(scores).max(axis=(1, 2)) if relative else size, 1e-300)
    usable: BoolArray = (size / step * scores.shape[2] < _LARGEST) & ~(one_level & spread)
    return np.asarray(usable & (_offsets(shifted, step, relative=False) < allowed))


def _offsets(scores: NDArray[Any], step: float, *, relative: bool) -> FloatArray:
    """(P,) largest distance from the lattice in units of the step, a slice of candidates at a time."""
    prompts, candidates, draws = scores.shape
    rows = max(1, _CHUNK // max(1, prompts * draws))
    worst = np.zeros(prompts)
    for start in range(0, candidates, rows):
        part = scores[:, start : start + rows]
        scaled = (part - scores[:, :1] if relative else part) / step
        np.subtract(scaled, np.rint(scaled), out=scaled)
        worst = np.maximum(worst, np.abs(scaled, out=scaled).max(axis=(1, 2)))
    return worst


def as_columns(scores: NDArray[Any], dtype: Any) -> NDArray[Any]:
    """Scores (P, M, K) as (P, K, M) with contiguous columns, turned a block at a time that stays in cache."""
    prompts, candidates, draws = scores.shape
    out = np.empty((prompts, draws, candidates), dtype=dtype)
    rows = max(1, _BLOCK // draws)
    for start in range(0, candidates, rows):
        out[:, :, start : start + rows] = scores[:, start : start + rows].transpose(0, 2, 1)
    return out


def integer_scores(
    scores: NDArray[Any], steps: FloatArray, relative: BoolArray, *, summed: int | None = None
) -> NDArray[Any]:
    """Scores (P, M, K) on the lattice as integers (P, K, M), one contiguous row per score column.

    64 bits wide, or 32 where the caller says how many columns it ``summed`` at most and no such sum can pass them.
    """
    prompts, candidates, draws = scores.shape
    dtype = np.int64 if summed is None else _width(scores, steps, summed)
    if scores.dtype.kind in "biu" and not relative.any() and (steps == 1.0).all():
        return as_columns(scores, dtype)
    out = np.empty((prompts, draws, candidates), dtype=dtype)
    origin = np.where(relative[:, None, None], scores[:, :1], 0.0)
    rows = max(1, _BLOCK // max(1, prompts * draws))
    for start in range(0, candidates, rows):
        part = scores[:, start : start + rows] - origin
        np.divide(part, steps[:, None, None], out=part)
        out[:, :, start : start + rows] = np.rint(part, out=part).transpose(0, 2, 1)
    return out


def _width(scores: NDArray[Any], steps: FloatArray, summed: int) -> type[np.int32 | np.int64]:
    """int32 where sums of levels, counted from 0 or from any score, fit with room to spare."""
    largest = max(abs(float(scores.max())), abs(float(scores.min()))) / float(steps.min())
    return np.int32 if 4.0 * largest * summed < 2.0**31 else np.int64
