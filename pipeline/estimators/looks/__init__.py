"""Repeated looks at growing labels: error spending, critical values, estimates after stopping, anytime values.

A statistic that is standardised at looks 1 … K behaves like a Brownian walk seen at its information I_k:
corr(Z_j, Z_k) = √(I_j/I_k) for j < k. Everything here follows from that walk.

References:
    P. Armitage, C. K. McPherson and B. C. Rowe, "Repeated significance tests on accumulating data", Journal of the
    Royal Statistical Society A 132 (1969), equation 1 (the recursion over surviving paths).
    K. K. G. Lan and D. L. DeMets, "Discrete sequential boundaries for clinical trials", Biometrika 70 (1983),
    section 2 (spending).
    A. A. Tsiatis, G. L. Rosner and C. R. Mehta, "Exact confidence intervals following a group sequential test",
    Biometrics 40 (1984), section 2 (the stagewise order).
    I. Waudby-Smith, D. Arbour, R. Sinha, E. H. Kennedy and A. Ramdas, "Time-uniform central limit theory and
    asymptotic confidence sequences", Annals of Statistics 52 (2024), theorem 2.2 (the anytime value).
"""

from __future__ import annotations

from pipeline.estimators.looks.critical import critical_values, level_of_looks, next_critical
from pipeline.estimators.looks.joint import joint_critical_values, next_joint_critical
from pipeline.estimators.looks.spending import SPENDINGS, asymptotic_critical, look_information, spent, tail_quantile
from pipeline.estimators.looks.stopping import after_stopping, chance_of_decision

__all__ = [
    "SPENDINGS",
    "after_stopping",
    "asymptotic_critical",
    "chance_of_decision",
    "critical_values",
    "joint_critical_values",
    "level_of_looks",
    "look_information",
    "next_critical",
    "next_joint_critical",
    "spent",
    "tail_quantile",
]
