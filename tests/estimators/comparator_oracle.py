"""Every comparator written with explicit loops, and the data it is tried on."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pipeline.estimators import Gaussian, comparator_profile

POINTS = 4


def draw(seed: int, size: int = 60, n: int = 24, signals: int = 3) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    z = rng.normal(size=size)
    y = (rng.random(size) < 1.0 / (1.0 + np.exp(-z))).astype(float)
    s = rng.normal(size=(size, signals)) + np.outer(y, np.linspace(1.0, 0.0, signals))
    labeled = np.zeros(size, dtype=bool)
    labeled[rng.choice(size, n, replace=False)] = True
    fold = np.where(labeled, rng.integers(0, 2, size), -1)
    return {
        "z": z,
        "y": np.where(labeled, y, np.nan),
        "signals": s,
        "at": np.linspace(-1.0, 1.0, POINTS),
        "locality": Gaussian(0.6),
        "fold_of": fold,
        "pool_fold_of": rng.integers(0, 2, size),
        "raw_judge": s[:, 0] * 0.3 + 0.5,
    }


def value(method: str, data: dict[str, Any], **more: Any) -> np.ndarray:
    rest = {key: entry for key, entry in (data | more).items() if key not in ("z", "y", "signals")}
    return comparator_profile(method, data["z"], data["y"], data["signals"], **rest).value


# --- the loop oracle ------------------------------------------------------------------------------------------


def kernel_weights(values: list[float], point: float, bandwidth: float) -> list[float]:
    raw = [math.exp(-0.5 * ((entry - point) / bandwidth) ** 2) for entry in values]
    return [entry / sum(raw) for entry in raw]


def logistic(train_x: np.ndarray, train_y: np.ndarray, x: np.ndarray) -> list[float]:
    """Standardise by the training rows, then Newton steps small enough to be sure."""
    if len(set(train_y.tolist())) == 1:
        return [float(train_y[0])] * len(x)
    mean = [sum(column) / len(column) for column in train_x.T]
    sd = [math.sqrt(sum((v - m) ** 2 for v in column) / len(column)) for column, m in zip(train_x.T, mean, strict=True)]
    sd = [entry if entry > 1e-12 else 1.0 for entry in sd]
    design = np.array([[1.0, *((row - mean) / sd)] for row in train_x])
    coefficients = np.zeros(design.shape[1])
    for _ in range(200):
        fitted = 1.0 / (1.0 + np.exp(-design @ coefficients))
        penalty = np.diag([0.0] + [1.0] * (design.shape[1] - 1))
        gradient = design.T @ (fitted - train_y) + penalty @ coefficients
        hessian = (design.T * (fitted * (1 - fitted))) @ design + penalty
        coefficients = coefficients - 0.5 * np.linalg.solve(hessian, gradient)
    return [1.0 / (1.0 + math.exp(-float(np.array([1.0, *((row - mean) / sd)]) @ coefficients))) for row in x]


def predictions(data: dict[str, Any], covariates: np.ndarray, out_of_fold: bool) -> list[float]:
    labeled = np.flatnonzero(np.isfinite(data["y"]))
    found = logistic(covariates[labeled], data["y"][labeled], covariates)
    if out_of_fold:
        for fold in (0, 1):
            train = [i for i in labeled if data["fold_of"][i] != fold]
            held = [i for i in labeled if data["fold_of"][i] == fold]
            fitted = logistic(covariates[train], data["y"][train], covariates[held])
            for row, entry in zip(held, fitted, strict=True):
                found[row] = entry
    return found


def moments(data: dict[str, Any], point: float) -> tuple[list[float], list[float], list[int]]:
    labeled = [int(i) for i in np.flatnonzero(np.isfinite(data["y"]))]
    h = data["locality"].bandwidth
    pool = kernel_weights(data["z"].tolist(), point, h)
    local = kernel_weights(data["z"][labeled].tolist(), point, h)
    return pool, local, labeled


def oracle(method: str, data: dict[str, Any], ridge: float = 0.3) -> list[float]:
    s, y, z = data["signals"], data["y"], data["z"]
    size, k = s.shape
    both = np.column_stack([z, s])
    answers = []
    for point in data["at"]:
        wt, wl, rows = moments(data, float(point))
        naive = sum(w * y[i] for w, i in zip(wl, rows, strict=True))
        mean_t = [sum(wt[i] * s[i, c] for i in range(size)) for c in range(k)]
        mean_l = [sum(w * s[i, c] for w, i in zip(wl, rows, strict=True)) for c in range(k)]
        if method == "naive":
            answers.append(naive)
        elif method == "plugin_judge":
            p = predictions(data, s[:, :1], out_of_fold=False)
            answers.append(sum(wt[i] * p[i] for i in range(size)))
        elif method == "plugin_multi":
            p = predictions(data, both, out_of_fold=False)
            answers.append(sum(wt[i] * p[i] for i in range(size)))
        elif method == "aug_plugin":
            p = predictions(data, both, out_of_fold=True)
            answers.append(
                sum(wt[i] * p[i] for i in range(size)) + sum(w * (y[i] - p[i]) for w, i in zip(wl, rows, strict=True))
            )
        elif method == "scalar_cv":
            p = predictions(data, s, out_of_fold=True)
            pt = sum(wt[i] * p[i] for i in range(size))
            pl = sum(w * p[i] for w, i in zip(wl, rows, strict=True))
            variance = sum(wt[i] * (p[i] - pt) ** 2 for i in range(size))
            covariance = sum(w * (p[i] - pl) * (y[i] - naive) for w, i in zip(wl, rows, strict=True))
            answers.append(naive - covariance / variance * (pl - pt))
        elif method in ("lace", "residual_only", "per_signal_cv"):
            use = [0] if method == "per_signal_cv" else list(range(k))
            gram = [
                [sum(wt[i] * (s[i, a] - mean_t[a]) * (s[i, b] - mean_t[b]) for i in range(size)) for b in use]
                for a in use
            ]
            cross = [
                sum(w * (s[i, a] - mean_l[a]) * (y[i] - naive) for w, i in zip(wl, rows, strict=True)) for a in use
            ]
            beta = np.linalg.solve(np.array(gram) + ridge * np.eye(len(use)), np.array(cross))
            from_pool = 0.0 if method == "residual_only" else 1.0
            answers.append(naive - sum(b * (mean_l[c] - from_pool * mean_t[c]) for b, c in zip(beta, use, strict=True)))
        elif method == "global_cv":
            total = [sum(s[:, c]) / size for c in range(k)]
            own = [sum(s[i, c] for i in rows) / len(rows) for c in range(k)]
            ybar = sum(y[i] for i in rows) / len(rows)
            gram = [
                [sum((s[i, a] - total[a]) * (s[i, b] - total[b]) for i in range(size)) / size for b in range(k)]
                for a in range(k)
            ]
            cross = [sum((s[i, a] - own[a]) * (y[i] - ybar) for i in rows) / len(rows) for a in range(k)]
            beta = np.linalg.solve(np.array(gram) + ridge * np.eye(k), np.array(cross))
            answers.append(naive - sum(beta[c] * (mean_l[c] - mean_t[c]) for c in range(k)))
        else:
            raise AssertionError(method)
    return answers
