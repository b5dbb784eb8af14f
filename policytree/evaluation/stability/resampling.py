"""Would another sample give another tree? The whole pipeline on resamples of the study."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from policytree.common.callers import stacklevel_outside
from policytree.common.calls import StudyLike, refuses_said_by_study
from policytree.common.docstrings import shares_documentation
from policytree.common.shared_arguments import STUDY
from policytree.common.typing import Column, PerTreatment, Seed, Table
from policytree.data.feature_encoder import FeatureEncoder
from policytree.data.features import CATEGORICAL
from policytree.estimators.leaf_sizes import sized_for
from policytree.evaluation.policy_value.refits import Data, Refitter, Teller, checked_direction, shown_policy
from policytree.evaluation.stability.resamples import (
    BOOTSTRAP,
    Failure,
    Refitted,
    codes_of,
    draw_rows,
    splits_of,
    try_rows,
)
from policytree.evaluation.stability.tables import PolicyStability
from policytree.exceptions import SearchWarning
from policytree.study_check.directions import with_direction
from policytree.trees.tree import Tree
from policytree.weighting.study_data import StudyData

FEWEST = 2  # resamples, for anything to recur


@refuses_said_by_study
@shares_documentation(STUDY)
def policy_stability(
    estimator: Any,
    Y: Column | StudyLike,
    T: Column | None = None,
    *,
    X: Table | None = None,
    W: Table | None = None,
    propensity: PerTreatment | None = None,
    groups: Column | None = None,
    sample_weight: Column | None = None,
    method: str = BOOTSTRAP,
    n_resamples: int = 50,
    share: float = 0.5,
    random_state: Seed = None,
    n_jobs: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> PolicyStability:
    """Refit the policy on resamples, and count how often splits, thresholds and each person's treatment recur.

    Each resample repeats the whole pipeline: nuisance models, rewards, the exact tree. Every rule then decides for all
    people of the study. Stability is not value: rules that look different may have the same value.

    After Ctrl-C, the result holds the finished resamples and states their number. Resamples that cannot be fitted (too
    few rows of a treatment, a learner that fails) are left out, counted and reported.

    Parameters
    ----------
    estimator : DRPolicyTree or the like
        Cloned for every resample. One that was fitted on these rows beforehand is taken as the rule to show, whose own
        splits and treatments are looked for in the resamples.
    method : {"bootstrap", "subsample"}
        "bootstrap" draws as many rows (clusters) as there are, with replacement; copies never fall into different
        folds. "subsample" draws a share of them without replacement: no copies, but less data than the rule to show
        had, so that it looks less stable than it is.
    n_resamples : int
    share : float in [0.1, 0.9]
        Of the rows (clusters), for "subsample".
    random_state : int, RandomState or None
        Draws the resamples; the estimator's own randomness is set on the estimator.
    n_jobs : int or None
        Processes, as in joblib (-1: all cores). The result does not depend on it.
    progress : callable, optional
        Called as ``progress(done, n_resamples)`` after every resample.

    Returns
    -------
    PolicyStability

    Raises
    ------
    InputError
        If an argument has the wrong shape, type or range. If fewer than two resamples can be fitted, the learner's own
        error is raised.
    KeyboardInterrupt
        On Ctrl-C before two resamples are done.

    Warns
    -----
    SearchWarning
        After Ctrl-C, and where resamples are left out.
    OverlapWarning
        Once for all resamples, if some propensities are small.

    References
    ----------
    Efron and Tibshirani (1993), An Introduction to the Bootstrap. Meinshausen and Buhlmann (2010), Stability selection,
    Journal of the Royal Statistical Society B 72(4), 417-473 (subsamples of a half).

    Examples
    --------
    >>> import numpy as np
    >>> from policytree import DRPolicyTree
    >>> from policytree.evaluation import policy_stability
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(20, 80, size=(200, 1))
    >>> T = rng.permutation(np.repeat(["drug", "none"], 100))
    >>> Y = (T == "drug") * np.where(X[:, 0] > 50, 1.0, -1.0) + rng.normal(size=200)
    >>> model = DRPolicyTree(max_depth=1, cv=2, random_state=0)
    >>> stability = policy_stability(model, Y, T, X=X, propensity=0.5, n_resamples=5, random_state=0)
    >>> stability.n_requested, stability.method
    (5, 'bootstrap')
    """
    seen = StudyData.read(
        "policy_stability", Y, T=T, X=X, W=W, propensity=propensity, groups=groups, sample_weight=sample_weight
    ).with_covariates()
    estimator = sized_for(with_direction(estimator, seen.direction), seen)
    data = Data(seen, checked_direction(estimator))
    units = seen.clusters
    rows = draw_rows(method, share, units, n_resamples, random_state)
    teller = _Teller(len(rows), progress)
    refitter = Refitter(estimator, partial(try_rows, data=data, units=units), n_jobs, teller)
    try:
        done = [result for result in refitter.run(rows) if isinstance(result, Refitted)]
        if len(done) < FEWEST:
            raise teller.failures[0].error
    except KeyboardInterrupt:
        done = teller.done
        if len(done) < FEWEST:
            raise
        warnings.warn(
            f"Interrupted after {len(done)} of {len(rows)} resamples; the result rests on these.",
            SearchWarning,
            stacklevel=stacklevel_outside(),
        )
    teller.warn_of_failures()
    teller.warn_overlap("In a resample", "others")
    shown = codes_of(shown_policy(estimator, data, np.arange(seen.n)), seen.treatments)
    tree = getattr(getattr(estimator, "policy_tree_", estimator), "tree_", None)
    return PolicyStability(
        treatments=seen.treatments, index=seen.index, policies=np.array([r.policy for r in done]),
        splits=tuple(r.splits for r in done), n_leaves=tuple(r.n_leaves for r in done), shown=shown,
        shown_splits=splits_of(tree) if shown is not None and isinstance(tree, Tree) else (),
        covariates=_numeric(seen.X), sample_weight=seen.sample_weight, method=method, share=share,
        n_requested=len(rows),
        failures=tuple(f"{type(f.error).__name__}: {f.error}" for f in teller.failures),
    )  # fmt: skip


class _Teller(Teller):
    """Keeps results and failures of resamples as they come, so that an interrupted run still has them."""

    def __init__(self, total: int, progress):
        super().__init__(total, progress)
        self.done: list[Refitted] = []
        self.failures: list[Failure] = []

    def __call__(self, result: Refitted | Failure) -> None:
        if isinstance(result, Failure):
            self.failures.append(result)
            self.count()
        else:
            self.done.append(result)
            super().__call__(result)

    def warn_of_failures(self) -> None:
        """Say how many resamples are left out."""
        if self.failures:
            warnings.warn(
                f"{len(self.failures)} of {self._total} resamples are left out, since nothing could be learnt from "
                f"them ({self.failures[0].error}).",
                SearchWarning,
                stacklevel=stacklevel_outside(),
            )


def _numeric(X) -> dict[str, np.ndarray]:
    """Values of the numeric columns by name, without missing ones; of categorical columns an empty array."""
    encoder = FeatureEncoder.fit(X)
    values = encoder.encode(X)
    empty = np.empty(0)
    return {
        feature.name: empty if feature.kind == CATEGORICAL else values[~np.isnan(values[:, j]), j]
        for j, feature in enumerate(encoder.features)
    }
