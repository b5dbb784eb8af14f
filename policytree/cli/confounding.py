"""What a hidden confounder could do to the verdict on a designed tree."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from policytree.cli.study import Study
from policytree.estimators import DRPolicyTree
from policytree.evaluation import STATUS_QUO, MarginalSensitivity, PolicyValueTable, marginal_sensitivity
from policytree.evaluation.verdict import Reason
from policytree.exceptions import InputError


def sensitivity(
    values: PolicyValueTable, estimator: DRPolicyTree, study: Study, *, level: float, seed: int
) -> MarginalSensitivity | None:
    """Bounds of what the verdict rests on; None where nothing hidden can have driven treatment, or none can be had.

    If the tree is to be used: the learnt rules against the best single treatment. If one treatment is to be used for
    all: that treatment against what people got; it was picked by these rows, so that these bounds have no intervals.
    """
    fitted, seen = estimator.reward_estimator_, study.observed
    if study.propensity is not None or fitted.propensity_ is None or len(fitted.rewards_) != seen.n:
        return None
    verdict, received = values.verdict, seen.treatments[seen.arm]
    best = {f"always {label}": label for label in seen.treatments.tolist()}[values.against_best.best]
    if verdict.reason is Reason.STATUS_QUO_BETTER:
        return None
    policy, baseline = (values, best) if verdict.use_tree else (best, received)
    rows: dict[str, Any] = {"groups": seen.groups, "sample_weight": seen.sample_weight}
    try:
        found = marginal_sensitivity(
            policy, seen.y, received, propensity=fitted.propensity_, regression=fitted.regression_, baseline=baseline,
            level=level, random_state=seed, **({} if verdict.use_tree else rows),
        )  # fmt: skip
    except InputError:  # too few people whom the two rules treat differently got what they would give
        return None
    baseline_name = values.against_best.best if verdict.use_tree else STATUS_QUO
    return replace(found, what=f"{verdict.rule} - {baseline_name}")
