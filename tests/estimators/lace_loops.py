"""LACE written from its formulas with explicit loops: the oracle that the vectorised code is held against."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri, stdtrit

Kernel = Callable[[float, float], float]


def gaussian(bandwidth: float) -> Kernel:
    return lambda value, point: -0.5 * ((value - point) / bandwidth) ** 2


def ordinal(span: float) -> Kernel:
    def log_kernel(value: float, point: float) -> float:
        share = 1.0 - abs(value - point) / span
        return math.log(share) if share > 0.0 else -math.inf

    return log_kernel


def categorical() -> Kernel:
    return lambda value, point: 0.0 if value == point else -math.inf


def weights(kernel: Kernel, values: np.ndarray, point: float) -> np.ndarray:
    logs = [kernel(float(value), float(point)) for value in values]
    top = max(logs)
    if top == -math.inf:
        return np.zeros(len(values))
    raw = np.array([math.exp(entry - top) for entry in logs])
    return raw / raw.sum()


@dataclass
class Answer:
    value: list[float]
    variance: list[float]
    df: list[float]
    low: list[float]
    high: list[float]
    n_effective: list[float]
    r2: list[float]


def wilson(share: float, count: float, quantile: float) -> tuple[float, float]:
    bottom = 1.0 + quantile**2 / count
    centre = (share + quantile**2 / (2 * count)) / bottom
    half = quantile * math.sqrt(share * (1 - share) / count + quantile**2 / (4 * count**2)) / bottom
    return max(0.0, centre - half), min(1.0, centre + half)


def local_variance(w: np.ndarray, y: np.ndarray) -> float:
    mean = sum(w[i] * y[i] for i in range(len(y)))
    square = sum(entry**2 for entry in w)
    n_effective = 1.0 / square
    inner = sum(w[i] ** 2 * (y[i] - mean) ** 2 for i in range(len(y))) / square
    return inner / max(1.0 - 1.0 / n_effective, 0.05)


def interval_of(
    value: float, variance: float, df: float, w: np.ndarray, y: np.ndarray, binary: bool, kind: str, level: float
) -> tuple[float, float]:
    quantile = stdtrit(df, 0.5 + level / 2)
    low, high = value - quantile * math.sqrt(variance), value + quantile * math.sqrt(variance)
    if not binary:
        return low, high
    low, high = min(max(low, 0.0), 1.0), min(max(high, 0.0), 1.0)
    naive = sum(w[i] * y[i] for i in range(len(y)))
    n_effective = 1.0 / sum(entry**2 for entry in w)
    reach = [y[i] for i in range(len(y)) if w[i] >= 0.01 * max(w)]
    slack = 1e-9  # 9 labels of which 2 are wrong are 2 wrong labels, whatever the rounding
    scarce = len(set(reach)) == 1 or n_effective < 8 - slack or n_effective * min(naive, 1 - naive) < 2 - slack
    if kind == "wilson" or (kind == "auto" and scarce):
        low, high = wilson(min(max(naive, 0.0), 1.0), n_effective, float(ndtri(0.5 + level / 2)))
        point = min(max(value, 0.0), 1.0)
        low, high = min(low, point), max(high, point)
    return low, high


def fixed_rule(
    z: np.ndarray,
    y: np.ndarray,
    signals: np.ndarray,
    labeled: np.ndarray,
    at: np.ndarray,
    kernel: Kernel,
    *,
    coefficient_kernel: Kernel | None = None,
    ridge: float = 0.3,
    target: str = "pool",
    interval: str = "auto",
    level: float = 0.95,
    inclusion: np.ndarray | None = None,
) -> Answer:
    """The paper's rule: moments over T and L by loops, one point at a time."""
    rows, count = signals.shape
    chosen = [i for i in range(rows) if labeled[i]]
    n = len(chosen)
    outcomes = np.array([y[i] for i in chosen])
    own = np.array([signals[i] for i in chosen])
    binary = all(entry in (0.0, 1.0) for entry in outcomes)
    answer = Answer([], [], [], [], [], [], [])
    for point in at:
        w_pool = weights(kernel, z, point)
        w = weights(kernel, z[chosen], point)
        wide = coefficient_kernel or kernel
        v_pool, v = weights(wide, z, point), weights(wide, z[chosen], point)
        if inclusion is not None:
            w = w / inclusion[chosen] / np.sum(w / inclusion[chosen])
            v = v / inclusion[chosen] / np.sum(v / inclusion[chosen])
        pool_mean = sum(w_pool[i] * signals[i] for i in range(rows))
        coefficient_mean = sum(v_pool[i] * signals[i] for i in range(rows))
        gram = np.zeros((count, count))
        for i in range(rows):
            gram += v_pool[i] * np.outer(signals[i] - coefficient_mean, signals[i] - coefficient_mean)
        naive = sum(w[i] * outcomes[i] for i in range(n))
        mean = sum(w[i] * own[i] for i in range(n))
        v_naive = sum(v[i] * outcomes[i] for i in range(n))
        v_mean = sum(v[i] * own[i] for i in range(n))
        cross = np.zeros(count)
        for i in range(n):
            cross += v[i] * (own[i] - v_mean) * (outcomes[i] - v_naive)
        system = gram + ridge * np.eye(count)
        beta = np.linalg.solve(system, cross)
        value = naive - beta @ (mean - pool_mean)
        direction = np.linalg.solve(system, mean - pool_mean)
        variance, a, left, total = 0.0, [], 0.0, 0.0
        for i in range(n):
            factor = 1.0 - n / rows if inclusion is None else 1.0 - inclusion[chosen[i]]
            r = (outcomes[i] - naive) - beta @ (own[i] - mean)
            around = own[i] - v_mean
            q = around @ np.linalg.solve(system, around)
            h = min(w[i] + v[i] * q, 0.95)
            c = w[i] - v[i] * (direction @ around)
            a.append(factor * c**2 / (1 - h))
            variance += factor * c**2 * r**2 / (1 - h)
            left += w[i] * r**2
            total += w[i] * (outcomes[i] - naive) ** 2
        df = max(sum(a) ** 2 / sum(entry**2 for entry in a) - 1, 2.0)
        if target == "population":
            variance += sum(entry**2 for entry in w_pool) * local_variance(w, outcomes)
        n_effective = 1.0 / sum(entry**2 for entry in w)
        raw = 1 - left / total if total > 0 else 0.0
        inflation = max((n_effective - 1) / max(n_effective - count - 1, 1.0), 1.0)
        low, high = interval_of(value, variance, df, w, outcomes, binary, interval, level)
        for name, entry in (
            ("value", value), ("variance", variance), ("df", df), ("low", low), ("high", high),
            ("n_effective", n_effective), ("r2", max(1 - (1 - raw) * inflation, 0.0)),
        ):  # fmt: skip
            getattr(answer, name).append(float(entry))
    return answer


def standardised(signals: np.ndarray) -> np.ndarray:
    out = np.zeros_like(signals)
    for k in range(signals.shape[1]):
        spread = np.std(signals[:, k])
        if spread > 1e-13 * np.max(np.abs(signals[:, k])):
            out[:, k] = (signals[:, k] - np.mean(signals[:, k])) / spread
    return out


def ranks(signals: np.ndarray) -> np.ndarray:
    out = np.zeros_like(signals)
    for k in range(signals.shape[1]):
        column = signals[:, k]
        for i in range(len(column)):
            out[i, k] = np.sum(column < column[i]) + 0.5 * np.sum(column == column[i]) + 0.5
    return out


RIDGES = (0.1, 0.3, 1.0, 3.0, 10.0)


def adaptive_rule(
    z: np.ndarray,
    y: np.ndarray,
    signals: np.ndarray,
    labeled: np.ndarray,
    at: np.ndarray,
    kernels: list[Kernel],
    references: np.ndarray,
    own_level: bool,
    *,
    target: str = "pool",
    interval: str = "auto",
    level: float = 0.95,
    binary: bool | None = None,
) -> Answer:
    """adapt="average" by loops; ``kernels`` are the widths h, 2h, 4h (one for categorical profiles)."""
    rows = len(z)
    chosen = [i for i in range(rows) if labeled[i]]
    n = len(chosen)
    f = 1 - n / rows
    zl, outcomes = z[chosen], y[chosen]
    scales = [standardised(signals), standardised(ranks(signals))]
    binary = all(entry in (0.0, 1.0) for entry in outcomes) if binary is None else binary

    w0 = np.zeros((n, n))
    for i in range(n):
        if own_level:
            same = [j for j in range(n) if zl[j] == zl[i]]
            w0[i, same] = 1.0 / len(same)
        else:
            w0[i] = weights(kernels[0], zl, zl[i])
    y2 = np.array([outcomes[i] - sum(w0[i, j] * outcomes[j] for j in range(n)) for i in range(n)])
    if len(set(outcomes)) == 1:
        y2 = np.zeros(n)  # equal labels: no rounding residue

    def local_fit(v: np.ndarray, own: np.ndarray, ridge: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        m = sum(v[i] * own[i] for i in range(n))
        y_mean = sum(v[i] * outcomes[i] for i in range(n))
        count = own.shape[1]
        matrix, cross = ridge * np.eye(count), np.zeros(count)
        for i in range(n):
            x = own[i] - m
            matrix = matrix + v[i] * np.outer(x, x)
            cross = cross + v[i] * x * (outcomes[i] - y_mean)
        inverse = np.linalg.inv(matrix)
        return m, inverse, inverse @ cross

    candidates = [("none", None, 0.0, None)]
    for scale in range(2):
        for ridge in RIDGES:
            candidates += [("total", scale, ridge, None)]
        for kernel in kernels:
            candidates += [("local", scale, ridge, kernel) for ridge in RIDGES]

    nearest = [int(np.argmin(np.abs(references - zl[i]))) for i in range(n)]
    errors, leverages = [], []
    for kind, scale, ridge, kernel in candidates:
        e, h_values = np.zeros(n), np.zeros(n)
        cache: dict[int, tuple[np.ndarray, ...]] = {}
        for i in range(n):
            if kind == "none":
                h = min(w0[i, i], 0.95)
                e[i], h_values[i] = y2[i] / (1 - h), h
                continue
            own = scales[scale][chosen]
            s2 = own[i] - sum(w0[i, j] * own[j] for j in range(n))
            key = -1 if kind == "total" else nearest[i]
            if key not in cache:
                v = np.full(n, 1 / n) if kind == "total" else weights(kernel, zl, references[key])
                cache[key] = (v, *local_fit(v, own, ridge))
            v, m, inverse, beta = cache[key]
            u = s2 if kind == "total" else own[i] - m
            h = min(w0[i, i] + v[i] * (u @ inverse @ u), 0.95)
            e[i], h_values[i] = (y2[i] - beta @ s2) / (1 - h), h
        errors.append(e)
        leverages.append(h_values)
    e0 = errors[0]
    second = np.mean(e0**2)
    kurtosis = np.mean(e0**4) / second**2 if second > 0 else math.inf
    n_e = min(n, 2 * n / (kurtosis - 1)) if kurtosis > 1 else n
    scores = [max(float(np.sum(e**2)), 1e-14) for e in errors]

    answer = Answer([], [], [], [], [], [], [])
    rows_for_pool = []
    for point in at:
        w, w_pool = weights(kernels[0], zl, point), weights(kernels[0], z, point)
        naive = sum(w[i] * outcomes[i] for i in range(n))
        values, linears = [], []
        for kind, scale, ridge, kernel in candidates:
            if kind == "none":
                values.append(naive)
                linears.append(w)
                continue
            own = scales[scale][chosen]
            d = w @ own - w_pool @ scales[scale]
            v = np.full(n, 1 / n) if kind == "total" else weights(kernel, zl, point)
            m, inverse, beta = local_fit(v, own, ridge)
            values.append(naive - beta @ d)
            linears.append(np.array([w[i] - v[i] * (d @ inverse @ (own[i] - m)) for i in range(n)]))
        logs = np.array(
            [-(n_e / 2) * (math.log(p) + math.log(np.sum(c**2))) for p, c in zip(scores, linears, strict=True)]
        )
        omega = np.exp(logs - logs.max())
        omega /= omega.sum()
        value = sum(o * entry for o, entry in zip(omega, values, strict=True))
        c = sum(o * entry for o, entry in zip(omega, linears, strict=True))
        e = sum(o * entry for o, entry in zip(omega, errors, strict=True))
        h = sum(o * entry for o, entry in zip(omega, leverages, strict=True))
        n_effective = 1.0 / np.sum(w**2)
        variance = f * (np.sum((c * e) ** 2) + np.sum((w * e0) ** 2) / n_effective)
        a = c**2 / (1 - h)
        df = max(np.sum(a) ** 2 / np.sum(a**2) - 1, 2.0)
        rows_for_pool.append((point, value, variance, df, c, w, w_pool, n_effective))
        total = np.sum(w * e0**2)
        answer.r2.append(max(0.0, 1 - np.sum(w * e**2) / total) if total > 0 else 0.0)
    nu = np.array([max(entry[7] - 1, 0.0) for entry in rows_for_pool])
    s2 = np.array([entry[2] / (f * np.sum(entry[4] ** 2)) for entry in rows_for_pool])
    common = float(np.sum(nu * s2) / np.sum(nu))
    for position, (_, value, variance, df, c, w, w_pool, n_effective) in enumerate(rows_for_pool):
        if not binary:
            steady = f * np.sum(c**2) * (nu[position] * s2[position] + 4 * common) / (nu[position] + 4)
            variance, df = max(variance, steady), nu[position] + 4
        if target == "population":
            variance += np.sum(w_pool**2) * local_variance(w, outcomes)
        low, high = interval_of(value, variance, df, w, outcomes, binary, interval, level)
        for name, entry in (
            ("value", value), ("variance", variance), ("df", df), ("low", low), ("high", high),
            ("n_effective", n_effective),
        ):  # fmt: skip
            getattr(answer, name).append(float(entry))
    return answer


def adaptive_mean_rule(
    y: np.ndarray, signals: np.ndarray, labeled: np.ndarray, *, interval: str = "auto", level: float = 0.95
) -> tuple[float, float, float, float, float]:
    """The sister rule for means without learner: (θ, V, df, low, high)."""
    rows = len(y)
    chosen = np.flatnonzero(labeled)
    n = len(chosen)
    f = 1 - n / rows
    outcomes = y[chosen]
    naive = np.mean(outcomes)
    yc = outcomes - naive
    found = [(naive, np.full(n, 1 / n), yc / (1 - 1 / n), np.full(n, 1 / n))]

    def ridge_candidate(own: np.ndarray, ridge: float) -> None:
        d = own.mean(axis=0)
        sc = own - d
        matrix = sum(np.outer(row, row) for row in sc) / n + ridge * np.eye(own.shape[1])
        inverse = np.linalg.inv(matrix)
        b = inverse @ (sum(sc[i] * yc[i] for i in range(n)) / n)
        h = np.array([min((1 + sc[i] @ inverse @ sc[i]) / n, 0.95) for i in range(n)])
        c = np.array([(1 - d @ inverse @ sc[i]) / n for i in range(n)])
        e = np.array([(yc[i] - b @ sc[i]) / (1 - h[i]) for i in range(n)])
        found.append((naive - b @ d, c, e, h))

    for pool in (standardised(signals), standardised(ranks(signals))):
        for ridge in RIDGES:
            ridge_candidate(pool[chosen], ridge)
        for k in range(signals.shape[1]):
            ridge_candidate(pool[chosen][:, [k]], 0.1)
    e0 = found[0][2]
    second = np.mean(e0**2)
    kurtosis = np.mean(e0**4) / second**2 if second > 0 else math.inf
    n_e = min(n, 2 * n / (kurtosis - 1)) if kurtosis > 1 else n
    logs = np.array([-0.7 * n_e / 2 * math.log(max(np.sum(e**2), 1e-14)) for _, _, e, _ in found])
    omega = np.exp(logs - logs.max())
    omega /= omega.sum()
    value, c, e, h = (sum(o * entry[k] for o, entry in zip(omega, found, strict=True)) for k in range(4))
    variance = f * (np.sum(c**2 * e**2) + 2 / n * np.sum((e0 / n) ** 2))
    a, v = c**2 / (1 - h), c**2 * e**2
    spread = np.sum(v**2) - np.sum(v) ** 2 / n
    by_errors = max(3.0, 2 * np.sum(v) ** 2 / spread) if spread > 0 else math.inf
    df = min(max(np.sum(a) ** 2 / np.sum(a**2) - 1, 2.0), by_errors)
    quantile = stdtrit(df, 0.5 + level / 2)
    if all(entry in (0.0, 1.0) for entry in outcomes) and interval != "t":
        count = naive * (1 - naive) / variance if variance > 0 else n / f
        low, high = wilson(min(max(value, 0.0), 1.0), min(max(count, 1.0), 50 * n / f), quantile)
    else:
        low, high = value - quantile * math.sqrt(variance), value + quantile * math.sqrt(variance)
    return float(value), float(variance), float(df), float(low), float(high)
