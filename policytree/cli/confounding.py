"""Sensitivity of the verdict on a designed tree to a hidden confounder."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from policytree.cli.study import Study
from policytree.estimators import DRPolicyTree
from policytree.evaluation import (
    MarginalSensitivity,
    OmittedVariableBounds,
    PolicyValueTable,
    marginal_sensitivity,
    omitted_variable_bounds,
)
from policytree.evaluation.policy_value.verdict import Reason
from policytree.evaluation.sensitivity.benchmark_covariates import nuisances_without

MOST_BENCHMARKS = 3  # each is one more cross-fitting of all nuisance models


def sensitivity(
    values: PolicyValueTable, estimator: DRPolicyTree, study: Study, *, level: float, seed: int
) -> tuple[MarginalSensitivity | OmittedVariableBounds, ...]:
    """Bounds of the comparison behind the verdict; none if treatment was randomised, or bounds cannot be computed.

    If the tree is to be used: the learnt rules against the best single treatment. If one treatment is to be used for
    all: that treatment against the next best one for all; these rows picked both, so that the bounds have no intervals.
    The strength of an omitted variable is compared with that of the covariates that the tree asks about.

    Raises
    ------
    InputError
        If the two rules differ for too few people who received what one of the rules gives.
    """
    fitted, seen = estimator.reward_estimator_, study.observed
    if study.propensity is not None or fitted.propensity_ is None or len(fitted.rewards_) != seen.n:
        return ()
    verdict, received = values.verdict, seen.treatments[seen.arm]
    arms = {f"always {label}": label for label in seen.treatments.tolist()}
    sign, best = (1.0 if values.direction == "maximize" else -1.0), values.against_best.best
    rest = max((name for name in arms if name != best), key=lambda name: sign * values.estimates[name].value)
    if verdict.reason in (Reason.STATUS_QUO_BETTER, Reason.NONE_BETTER, Reason.UNCLEAR):
        return ()
    picked = np.full(seen.n, arms[best], dtype=seen.treatments.dtype)  # row by row: a rule that these rows chose
    policy, baseline = (values, arms[best]) if verdict.use_tree else (picked, arms[rest])
    rows: dict[str, Any] = {"groups": seen.groups, "sample_weight": seen.sample_weight}
    asked: dict[str, Any] = {
        "propensity": fitted.propensity_, "regression": fitted.regression_, "baseline": baseline, "level": level,
        "random_state": seed, **({} if verdict.use_tree else rows),
    }  # fmt: skip
    brought = fitted.outcome_.to_numpy()  # of rows that are censored or missing, what takes their outcome's place
    marginal = marginal_sensitivity(policy, brought, received, **asked)
    omitted = omitted_variable_bounds(policy, brought, received, benchmarks=_benchmarks(estimator, study), **asked)
    what = f"{verdict.rule} - {best if verdict.use_tree else rest}"
    return replace(marginal, what=what), replace(omitted, what=what)


def _benchmarks(estimator: DRPolicyTree, study: Study) -> dict:
    """The nuisances without each of the first covariates that the tree asks about."""
    names = [study.covariates[j] for j in estimator.tree_.used_features[:MOST_BENCHMARKS]]
    if not names or len(study.covariates) + len(study.confounders) < 2:
        return {}
    data = {name: values for name, values in study.fit_arguments().items() if name != "propensity"}
    return nuisances_without(estimator, **data, covariates=names)
