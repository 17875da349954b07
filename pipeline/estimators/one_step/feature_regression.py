"""Penalised scikit-learn regression of outcomes on many features, safe at small N."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from pipeline.estimators.floats import FloatArray

PENALTIES = (0.01, 0.03, 0.1, 0.3, 1.0)
MINORITY = 15
"""Outcomes of the rarer kind from which the penalty is chosen by inner cross-validation."""


class PenalizedRegression:
    """Logistic regression for 0/1 outcomes, ridge for others; the L2 penalty is cross-validated where data allow.

    Meant for centred features of comparable scale (``draw_features``). With fewer than 15 outcomes of the rarer kind
    the logistic penalty is fixed at C = 0.1. Deterministic: inner folds are not shuffled.
    """

    def fit(self, X: FloatArray, y: FloatArray) -> Self:
        """Fit on X (n, d) and y (n,)."""
        from sklearn.linear_model import LogisticRegression, RidgeCV

        self.binary_ = bool(np.isin(y, (0.0, 1.0)).all())
        model: Any = RidgeCV(alphas=[len(y) ** 0.5 / penalty for penalty in PENALTIES])
        if self.binary_:
            model = LogisticRegression(C=_penalty(X, y), max_iter=500)
        self.model_ = model.fit(X, y)
        return self

    def predict(self, X: FloatArray) -> FloatArray:
        """Predicted mean outcomes (n,)."""
        if not self.binary_:
            return np.asarray(self.model_.predict(X), dtype=np.float64)
        return np.asarray(self.model_.predict_proba(X)[:, 1], dtype=np.float64)


def _penalty(X: FloatArray, y: FloatArray) -> float:
    """The C of least out-of-fold log loss, or 0.1 where one kind of outcome is too rare to tell."""
    if min(float(y.sum()), float(len(y) - y.sum())) < MINORITY:
        return 0.1
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import StratifiedKFold, cross_val_predict

    def loss(penalty: float) -> float:
        model = LogisticRegression(C=penalty, max_iter=500)
        chance = cross_val_predict(model, X, y, cv=StratifiedKFold(5), method="predict_proba")[:, 1]
        return float(-np.mean(np.log(np.where(y == 1.0, chance, 1.0 - chance))))

    return min(PENALTIES, key=loss)
