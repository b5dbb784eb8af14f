"""A policy, alone or against a baseline rule, beside what was observed: what sensitivity analyses start from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from policytree.common.validation import check_flag, observed_propensity
from policytree.data.feature_encoder import as_pandas
from policytree.evaluation.estimates import Estimate, mean_estimate
from policytree.evaluation.inputs import FEWEST_UNITS, policy_probabilities, units_with_weight
from policytree.evaluation.leaves.summary import HELD_OUT, TRAINING_ROWS
from policytree.exceptions import InputError
from policytree.weighting.doubly_robust import DoublyRobust
from policytree.weighting.propensities import propensity_matrix
from policytree.weighting.scheme import Nuisances
from policytree.weighting.study_data import StudyData, outcome_matrix


@dataclass(frozen=True, slots=True, eq=False)
class Contrast:
    """The value of a policy, or its advantage over a baseline rule, as a sum over people and treatments.

    The target is ``E[sum_k change_k(X) Y(k)]``: with ``change`` the policy's probabilities of the treatments it is the
    policy's value, with those of a baseline rule subtracted it is the advantage. Rows that both treat alike drop out.

    Attributes
    ----------
    observed : StudyData
    change : ndarray of shape (n, K)
    propensity : ndarray of shape (n, K)
        Estimated or known, > 0 for the treatment that was received.
    regression : ndarray of shape (n, K), or None
        Expected outcomes.
    against_baseline : bool
    rows : str
        "held out", or "training rows" where these rows may have chosen the policy.
    """

    observed: StudyData
    change: np.ndarray
    propensity: np.ndarray
    regression: np.ndarray | None
    against_baseline: bool
    rows: str

    @property
    def what(self) -> str:
        """The bounded quantity, in words."""
        return "policy - baseline" if self.against_baseline else "value of the policy"

    @property
    def held_out(self) -> bool:
        """Whether these rows did not choose the policy."""
        return self.rows == HELD_OUT

    @property
    def weight(self) -> np.ndarray:
        """Sampling weights, ones without, shape (n,)."""
        return self.observed.weight

    @property
    def clusters(self) -> np.ndarray:
        """Cluster of every row, its own without clusters, shape (n,)."""
        return self.observed.clusters

    @property
    def odds(self) -> np.ndarray:
        """Odds against the treatment that was received, ``(1 - e) / e``, shape (n,)."""
        received = self.propensity[np.arange(self.observed.n), self.observed.arm]
        return (1.0 - received) / received

    def scores(self) -> np.ndarray:
        """Doubly robust score of every row, shape (n,): their mean is the value if nothing is hidden."""
        assert self.regression is not None
        rewards = DoublyRobust().rewards(self.observed, Nuisances(self.regression, self.propensity))
        return (self.change * rewards).sum(axis=1)

    def estimate(self, scores: np.ndarray, level: float) -> Estimate:
        """Mean of every row's score, by these clusters and weights."""
        seen = self.observed
        return mean_estimate(scores, groups=seen.groups, sample_weight=seen.sample_weight, level=level)


def make_contrast(
    policy: Any, Y, T, propensity, *, regression=None, baseline=None, groups=None, sample_weight=None, held_out=False
) -> Contrast:
    """Check the arguments of a sensitivity analysis, and encode them as one contrast of rules.

    ``policytree.common.shared_arguments.SENSITIVITY`` describes the arguments; ``propensity`` and ``regression`` are
    predictions for every row and treatment, (n, K).

    Raises
    ------
    InputError
        If an argument cannot be used, or too few rows or clusters have weight.
    """
    observed, p = _observed(Y, T, propensity, groups, sample_weight)
    table = pd.DataFrame(p, columns=observed.treatments)
    change = policy_probabilities(policy, table, "policy", "propensity")
    if baseline is not None:
        change = change - policy_probabilities(baseline, table, "baseline", "propensity")
    check_flag(held_out, "held_out")
    m = None if regression is None else outcome_matrix(regression, observed.n, observed.treatments)
    fixed = np.ndim(policy) == 0 and (baseline is None or np.ndim(baseline) == 0)  # one treatment for all: not learnt
    rows = HELD_OUT if held_out or fixed else TRAINING_ROWS
    _refuse_unsupported(observed, change)
    return Contrast(observed, change, p, m, baseline is not None, rows)


def _observed(Y, T, propensity, groups, sample_weight) -> tuple[StudyData, np.ndarray]:
    """Read the observed data, and propensities in its order of treatments."""
    known = None
    frame = as_pandas(propensity)
    if frame is not None:  # as RewardEstimator.propensity_: raised to a floor, rows need not sum to one
        p, _, known = observed_propensity(frame, T)
    observed = StudyData.of(Y, T, sample_weight=sample_weight, groups=groups, treatments=known)
    if frame is None:
        p = propensity_matrix(propensity, observed.n, observed.treatments)
    _, units = units_with_weight(observed.clusters, observed.weight)
    if units < FEWEST_UNITS:
        unit = "rows" if observed.groups is None else "clusters (groups)"
        raise InputError(
            f"A bootstrap of {units} {unit} with positive weight says little; pass at least {FEWEST_UNITS}."
        )
    return observed, p


def _refuse_unsupported(observed: StudyData, change: np.ndarray) -> None:
    """Where a treatment is newly given or taken away, somebody must have got it."""
    for k, label in enumerate(observed.treatments):
        for sign, who in ((1.0, "policy"), (-1.0, "baseline")):
            wanted = (sign * change[:, k] > 0) & (observed.weight > 0)
            if wanted.any() and not (wanted & (observed.arm == k)).any():
                raise InputError(
                    f"Nobody to whom the {who} would give {label!s} got it, so its outcome there cannot be bounded; "
                    "use a policy whose recommendations somebody followed."
                )
