"""Whether treatment looks randomised: whether the arms' shares depend on the covariates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import chdtrc

from policytree.common.option_words import typed_list
from policytree.study_check.findings import LOOKS_RANDOMISED, Finding
from policytree.weighting.covariates import Covariates
from policytree.weighting.study_data import StudyData

LOOKS = 0.05  # p-value from which on the arms count as randomised
FEWEST_UNITS = 60  # with fewer units, the test has hardly any power


@dataclass(frozen=True, slots=True)
class Randomisation:
    """A score test of "every arm's share is the same whatever the covariates".

    Attributes
    ----------
    p_value : float
        Probability, under chance, that the arms differ at least as much in their covariates: within strata, and
        between whole clusters where every cluster has one treatment.
    shares : dict of label to float
        Of each arm, by weight.
    n_units : int
        Rows, or clusters, that were treated one by one.
    """

    p_value: float
    shares: dict[Any, float]
    n_units: int

    @property
    def looks_randomised(self) -> bool:
        """Whether the test does not reject randomisation, with enough units for some power."""
        return self.p_value >= LOOKS and self.n_units >= FEWEST_UNITS

    def findings(self, what: str = "treatment") -> list[Finding]:
        """The findings of the test; ``what`` the arms are: "treatment" or "offer"."""
        if not self.looks_randomised:
            return []
        given = typed_list(f"{label}={share:.4g}" for label, share in self.shares.items())
        of, given_how = ("arms", "treatment was given") if what == "treatment" else ("offers", "offers were made")
        found = (
            f"looks randomised: the {of}' shares do not depend on the covariates that were given (score test, "
            f"p = {self.p_value:.2g})"
        )
        how = (
            f"If {given_how} by chance, say with which: --propensity {given} (in Python: propensity=) if these "
            "shares were meant. Nobody but you can know, so they are still estimated here."
        )
        return [Finding("note", LOOKS_RANDOMISED, what.capitalize(), found, how)]


def randomisation_test(table: pd.DataFrame, seen: StudyData) -> Randomisation | None:
    """Test whether treatment depends on the covariates; None where there is nothing to test.

    The statistic is the sum over covariates (as numbers, categories and gaps as indicators, each of variance one) and
    arms of the squared difference between the arm's sum and what its share would give: the score statistic of a
    multinomial logit with its covariates taken one by one, so that there may be more of them than rows. Under chance
    it tends to a sum of chi-squares, weighted by the eigenvalues of the covariates' correlations, which is taken as one
    scaled chi-square of the same mean and variance (Satterthwaite 1946).

    Parameters
    ----------
    table : DataFrame of shape (n, p)
    seen : StudyData
    """
    if table.shape[1] == 0:
        return None
    Z = Covariates.fit(table, None).matrix(table, None, seen.n)
    missing = np.isnan(Z)
    some = missing.any(axis=0)
    means = np.nanmean(np.where(missing.all(axis=0), 0.0, Z), axis=0)
    Z = np.hstack([np.where(missing, means, Z), missing[:, some].astype(np.float64)])
    weight = seen.weight / seen.weight.mean()
    arm = seen.arm
    strata = np.zeros(seen.n, dtype=np.int64) if seen.strata is None else seen.strata
    if seen.groups is not None and _constant_within(arm, seen.groups):
        units, first, code = np.unique(seen.groups, return_index=True, return_inverse=True)
        Z = np.column_stack([np.bincount(code, weights=weight * z, minlength=len(units)) for z in Z.T])
        size = np.bincount(code, weights=weight, minlength=len(units))
        Z, weight, arm, strata = Z / np.maximum(size, 1e-300)[:, None], size, arm[first], strata[first]
    strata = np.unique(strata, return_inverse=True)[1]
    Z = _standardised(Z, weight, strata) * weight[:, None]
    Z = Z[:, np.abs(Z).sum(axis=0) > 0]
    if Z.shape[1] == 0:
        return None
    counts = np.maximum(np.bincount(arm, minlength=seen.n_arms), 1)

    sums = np.stack([np.bincount(arm, weights=z, minlength=seen.n_arms) for z in Z.T])
    p_value = _tail(float((sums**2 / counts).sum()), Z, seen.n_arms)
    shares = np.bincount(seen.arm, weights=seen.weight, minlength=seen.n_arms) / seen.weight.sum()
    named = dict(zip(seen.treatments.tolist(), shares.tolist(), strict=True))
    return Randomisation(p_value, named, len(arm))


def _tail(observed: float, Z: np.ndarray, n_arms: int) -> float:
    """Upper tail of a scaled chi-square with the mean and variance of the statistic under chance."""
    C = Z.T @ Z / len(Z)
    mean, variance = (n_arms - 1) * np.trace(C), 2 * (n_arms - 1) * float((C**2).sum())
    scale = variance / (2 * mean)
    return float(chdtrc(mean / scale, observed / scale))


def _constant_within(arm: np.ndarray, groups: np.ndarray) -> bool:
    """Whether all rows of a cluster have one treatment, and some cluster has several rows."""
    clusters = len(np.unique(groups))
    return clusters < len(arm) and len(np.unique(np.column_stack([groups, arm]), axis=0)) == clusters


def _standardised(Z: np.ndarray, weight: np.ndarray, strata: np.ndarray) -> np.ndarray:
    """Columns less their means within strata, of variance one; constant ones are zero."""
    total = np.maximum(np.bincount(strata, weights=weight), 1e-300)
    out = np.empty_like(Z)
    for j, z in enumerate(Z.T):
        centred = z - (np.bincount(strata, weights=weight * z) / total)[strata]
        scale = np.sqrt(np.average(centred**2, weights=weight))
        out[:, j] = centred / scale if scale > 1e-9 * max(1.0, np.abs(z).max()) else 0.0
    return out
