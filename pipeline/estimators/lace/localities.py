"""Where on the profile an item counts: kernels, bandwidths, default points and normalised weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pipeline.estimators.floats import FloatArray, as_floats, is_missing

_LONG = 200_000


@dataclass(frozen=True, slots=True)
class Gaussian:
    """Weight exp(−½((Z − z)/h)²).

    Attributes:
        bandwidth: h > 0 in the units of z; one number, or one per profile column.
    """

    bandwidth: float | Sequence[float]

    def __post_init__(self) -> None:
        widths = np.atleast_1d(np.asarray(self.bandwidth, dtype=np.float64))
        if widths.ndim != 1 or not np.all(np.isfinite(widths)) or np.any(widths <= 0.0):
            raise ValueError(f"bandwidth must be positive and finite, got {self.bandwidth!r}")


@dataclass(frozen=True, slots=True)
class Ordinal:
    """Weight (1 − |Z − g|/b)₊ for ordered numeric levels.

    Attributes:
        span: b > 0 in level units; 2 gives the neighbouring integer level half the weight.
    """

    span: float = 2

    def __post_init__(self) -> None:
        if not np.isfinite(self.span) or self.span <= 0.0:
            raise ValueError(f"span must be positive and finite, got {self.span!r}")


@dataclass(frozen=True, slots=True)
class Categorical:
    """Weight 1(Z = g)."""


Locality: TypeAlias = Gaussian | Ordinal | Categorical


def rule_of_thumb_bandwidth(z: ArrayLike, multiplier: float = 1.5) -> Any:
    """h₀ = multiplier · 1.06 · sd(z) · M^(−1/5), with the population sd (ddof 0).

    Args:
        z: (M,) or (M, q) finite numbers.
        multiplier: positive factor; 1.5 is the default of every profile.

    Returns:
        A float for (M,), an array (q,) for (M, q): the same exponent for any q.

    Raises:
        ValueError: z empty, not finite or constant.

    References:
        Silverman, "Density Estimation for Statistics and Data Analysis" (1986), equation 3.28.

    Example:
        >>> round(rule_of_thumb_bandwidth(np.arange(32.0)), 3)
        7.34
    """
    values = as_floats(z, "z")
    if values.ndim not in (1, 2) or len(values) == 0:
        raise ValueError(f"z must have shape (M,) or (M, q) with M >= 1, got {values.shape}")
    if not np.isfinite(values).all():
        raise ValueError("z has non-finite values; every pool item needs a profile value")
    if not np.isfinite(multiplier) or multiplier <= 0.0:
        raise ValueError(f"multiplier must be positive, got {multiplier!r}")
    spread = values.std(axis=0)
    if np.any(spread <= 0.0):
        raise ValueError("z is constant, so there is no continuous profile; use lace_mean or Categorical()")
    width = multiplier * 1.06 * spread * len(values) ** -0.2
    return float(width) if values.ndim == 1 else width


@dataclass(frozen=True, slots=True, eq=False)
class ProfileAxis:
    """A profile made numeric: one locality per column, categorical levels as codes.

    Attributes:
        z: (M, q) pool values; categorical columns hold level codes 0, 1, ...
        points: (G, q) profile points in the same numbers; −1 for a level the pool does not have.
        at: the points as the caller reads them, (G,) or (G, q).
        localities: one per column; Gaussian bandwidths are single numbers here.
        levels: per column the sorted levels of a categorical column, else None.
    """

    z: FloatArray
    points: FloatArray
    at: NDArray[Any]
    localities: tuple[Locality, ...]
    levels: tuple[NDArray[Any] | None, ...]

    @property
    def discrete(self) -> bool:
        """Whether no column is continuous."""
        return not any(isinstance(locality, Gaussian) for locality in self.localities)

    @property
    def categorical(self) -> bool:
        """Whether every column is categorical."""
        return all(isinstance(locality, Categorical) for locality in self.localities)

    @property
    def names(self) -> list[str]:
        """The localities' names, one per column."""
        return [type(locality).__name__.lower() for locality in self.localities]

    def log_kernel(
        self,
        values: FloatArray,
        points: FloatArray | None = None,
        multiple: float = 1.0,
        out: FloatArray | None = None,
    ) -> FloatArray:
        """Logarithm of the product kernel, (G, m); −inf out of reach.

        Args:
            values: (m, q) rows of ``z``.
            points: (G, q) other points; None means the axis's own.
            multiple: widens Gaussian bandwidths and ordinal spans.
            out: (G, m) buffer to write into.
        """
        anchors = self.points if points is None else points
        total = np.empty((len(anchors), len(values))) if out is None else out
        for column, locality in enumerate(self.localities):
            target = total if column == 0 else np.empty_like(total)
            _log_kernel_column(values[:, column], anchors[:, column], locality, multiple, target)
            if column:
                total += target
        return total

    def weights(self, values: FloatArray, points: FloatArray | None = None, multiple: float = 1.0) -> FloatArray:
        """Weights (G, m) that sum to 1 over ``values``; a row of zeros where nothing is in reach."""
        return normalise_log_kernel(self.log_kernel(values, points, multiple))


def _log_kernel_column(
    values: FloatArray, points: FloatArray, locality: Locality, multiple: float, out: FloatArray
) -> None:
    if isinstance(locality, Categorical):
        np.copyto(out, np.where(np.equal.outer(points, values), 0.0, -np.inf))
        return
    if isinstance(locality, Gaussian):
        # Scaled before the difference: (G + m) divisions instead of G·m, and exact where value and point are equal.
        scale = np.sqrt(0.5) / (float(np.asarray(locality.bandwidth).reshape(-1)[0]) * multiple)
        np.subtract.outer(points * scale, values * scale, out=out)
        np.multiply(out, out, out=out)
        np.negative(out, out=out)
        return
    np.abs(np.subtract.outer(points, values, out=out), out=out)
    out /= -float(locality.span) * multiple
    out += 1.0
    np.maximum(out, 0.0, out=out)
    with np.errstate(divide="ignore"):
        np.log(out, out=out)


def normalise_log_kernel(log_kernel: FloatArray) -> FloatArray:
    """exp(log k − max) over the last axis, divided by its sum; zeros where everything is −inf. Works in place."""
    if log_kernel.shape[-1] == 0:
        return log_kernel
    top = log_kernel.max(axis=-1, keepdims=True)
    log_kernel -= np.where(np.isfinite(top), top, 0.0)
    weights = np.exp(log_kernel, out=log_kernel)
    total = weights.sum(axis=-1, keepdims=True)
    weights /= np.where(total > 0.0, total, 1.0)
    return weights


def resolve_axis(
    z: ArrayLike,
    at: ArrayLike | None = None,
    locality: Locality | Sequence[Locality] | None = None,
    *,
    count: int = 20,
) -> ProfileAxis:
    """Profile values, points and localities as numbers.

    Args:
        z: (M,) or (M, q) numbers, booleans or strings.
        at: profile points; None means ``count`` points from the 5th to the 95th percentile (continuous) or the
            sorted levels (discrete).
        locality: one locality for all columns, a sequence with one per column, or None: strings and booleans
            become Categorical, numbers Gaussian with the rule-of-thumb bandwidth.
        count: number of default points of a continuous profile.

    Raises:
        ValueError: wrong shapes, missing or non-finite values, several columns without ``at``.
    """
    columns = _columns(z, "z")
    kinds = _resolve_localities(columns, locality)
    if at is None and len(columns) > 1:
        raise ValueError(f"a profile over {len(columns)} columns needs explicit points: pass at with shape (G, q)")
    coded, levels = [], []
    for column, kind in zip(columns, kinds, strict=True):
        codes, column_levels = _encode(column, kind)
        coded.append(codes)
        levels.append(column_levels)
    points_as_given: NDArray[Any]
    if at is None:
        points_as_given = default_points(columns[0], kinds[0], count)
        points = [_points_as_numbers(points_as_given, kinds[0], levels[0])]
    else:
        points_as_given = np.atleast_1d(np.asarray(at))
        rows = _columns(
            points_as_given if len(columns) == 1 or points_as_given.ndim == 2 else points_as_given[None, :], "at"
        )
        if len(rows) != len(columns):
            raise ValueError(f"at must have shape (G, {len(columns)}) like z, got {np.asarray(at).shape}")
        points = [_points_as_numbers(*triple) for triple in zip(rows, kinds, levels, strict=True)]
        points_as_given = points_as_given.reshape(len(rows[0]), -1) if len(columns) > 1 else rows[0]
    return ProfileAxis(
        np.ascontiguousarray(np.stack(coded, axis=1)) if len(coded) > 1 else coded[0][:, None],
        np.stack(points, axis=1),
        points_as_given,
        kinds,
        tuple(levels),
    )


def encode_like(axis: ProfileAxis, z: ArrayLike) -> FloatArray:
    """Other items' profile values (m, q) in the axis's numbers; −1 for a level the axis does not know.

    Raises:
        ValueError: wrong shape, missing values, text where the axis holds numbers.
    """
    columns = _columns(z, "z")
    if len(columns) != len(axis.localities):
        raise ValueError(f"z must have {len(axis.localities)} columns, got shape {np.shape(z)}")
    return np.stack(
        [_points_as_numbers(*triple) for triple in zip(columns, axis.localities, axis.levels, strict=True)], axis=1
    )


def default_points(z: NDArray[Any], locality: Locality, count: int = 20) -> NDArray[Any]:
    """``count`` evenly spaced points between the 5th and 95th percentile, or the sorted levels."""
    if isinstance(locality, Gaussian):
        return np.linspace(linear_quantile(z, 0.05), linear_quantile(z, 0.95), count)
    return np.unique(z)


def linear_quantile(values: NDArray[Any], probability: float) -> float:
    """``np.quantile(values, probability)``, of long arrays from only what lies near the answer."""
    size = len(values)
    rank = int((size - 1) * probability)
    near, skipped = values.copy(), rank
    if size >= _LONG:
        spread = np.sort(values[:: size // 10_000])
        margin = 5.0 * np.sqrt(probability * (1.0 - probability) / len(spread)) + 2.0 / len(spread)
        first, last = (np.clip((probability + sign * margin) * len(spread), 0, len(spread) - 1) for sign in (-1, 1))
        low, high = spread[int(first)], spread[int(last)]
        below = int(np.count_nonzero(values < low))
        inside = values[(values >= low) & (values <= high)]
        if 0 <= rank - below < len(inside) - 1:  # else the spread of rows was no guide
            near, skipped = inside, rank - below
    following = min(skipped + 1, len(near) - 1)
    near.partition((skipped, following))
    share = (size - 1) * probability - rank
    step = float(near[following]) - float(near[skipped])
    return float(near[skipped]) + step * share if share < 0.5 else float(near[following]) - step * (1.0 - share)


def _columns(z: ArrayLike, name: str) -> list[NDArray[Any]]:
    if np.ma.isMaskedArray(z) and np.ma.getmaskarray(z).any():
        raise ValueError(f"{name} has missing values; every pool item needs a profile value")
    values = np.asarray(z)
    if values.ndim not in (1, 2) or len(values) == 0 or 0 in values.shape:
        raise ValueError(f"{name} must have shape (M,) or (M, q) with at least one row, got {values.shape}")
    if values.ndim == 1:
        return [_clean_column(values, name)]
    return [_clean_column(values[:, column], name) for column in range(values.shape[1])]


def _clean_column(column: NDArray[Any], name: str) -> NDArray[Any]:
    if column.dtype.kind == "O":
        entries = column.tolist()
        if any(is_missing(entry) for entry in entries):
            raise ValueError(f"{name} has missing values; every pool item needs a profile value")
        column = np.asarray([str(entry) for entry in entries] if _any_text(entries) else entries)
    if column.dtype.kind in "USb":
        return column
    if column.dtype.kind not in "iuf":
        raise ValueError(f"{name} must hold numbers, booleans or strings, got dtype {column.dtype}")
    column = np.asarray(column, dtype=np.float64) if column.dtype.kind == "f" else column
    if column.dtype.kind == "f" and not np.isfinite(column).all():
        raise ValueError(f"{name} has non-finite values; every pool item needs a profile value")
    return column


def _any_text(entries: list[Any]) -> bool:
    return any(isinstance(entry, str) for entry in entries)


def _resolve_localities(
    columns: list[NDArray[Any]], locality: Locality | Sequence[Locality] | None
) -> tuple[Locality, ...]:
    q = len(columns)
    if locality is None:
        return tuple(
            Categorical() if column.dtype.kind in "USb" else Gaussian(rule_of_thumb_bandwidth(column))
            for column in columns
        )
    if isinstance(locality, Gaussian):
        widths = (
            np.broadcast_to(np.atleast_1d(np.asarray(locality.bandwidth, dtype=np.float64)), (q,))
            if (np.size(locality.bandwidth) in (1, q))
            else None
        )
        if widths is None:
            raise ValueError(f"Gaussian needs one bandwidth or {q} of them, got {np.size(locality.bandwidth)}")
        return tuple(Gaussian(float(width)) for width in widths)
    if isinstance(locality, Ordinal | Categorical):
        return (locality,) * q
    kinds = tuple(locality)
    if len(kinds) != q or not all(isinstance(kind, Gaussian | Ordinal | Categorical) for kind in kinds):
        raise ValueError(f"locality must be one locality or {q} of them (one per column of z), got {locality!r}")
    return kinds


def _encode(column: NDArray[Any], locality: Locality) -> tuple[FloatArray, NDArray[Any] | None]:
    if isinstance(locality, Categorical):
        levels, codes = np.unique(column, return_inverse=True)
        return codes.reshape(-1).astype(np.float64), levels
    if column.dtype.kind in "US":
        raise ValueError(f"z holds strings, which need Categorical(), not {type(locality).__name__}")
    return np.asarray(column, dtype=np.float64), None


def _points_as_numbers(points: NDArray[Any], locality: Locality, levels: NDArray[Any] | None) -> FloatArray:
    if levels is None:
        if points.dtype.kind in "US":
            raise ValueError(f"at holds strings, but the profile is {type(locality).__name__}")
        return points.astype(np.float64)
    if (points.dtype.kind in "US") != (levels.dtype.kind in "US"):
        raise ValueError(f"at must hold levels of z (such as {levels[0]!r}), got {points.dtype} values")
    position = np.clip(np.searchsorted(levels, points), 0, len(levels) - 1)
    return np.where(levels[position] == points, position, -1).astype(np.float64)
