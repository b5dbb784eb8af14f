"""Learners that tune themselves are tuned once per data set, not once per refit."""

from __future__ import annotations

import numpy as np
from sklearn.base import clone

from policytree.weighting.learners import tuned_like


def with_tuned_learners(estimator, fitted):
    """The estimator, its default outcome learners fixed at what a first fit chose for every treatment.

    The default learners (``model_regression="auto"``) choose their boosting rounds and the share of boosting on rows
    held out of their own training part: for every treatment and fold anew, which is most of the time of a refit. What
    the models of the first refit chose (the median over its folds) serves the others: two numbers per treatment,
    chosen on a part of the rows, reach the judging of the others. Learners that a user names stay as they are.

    Parameters
    ----------
    estimator : object
        Unfitted.
    fitted : object
        A clone of it after the first refit.

    Returns
    -------
    object
        ``estimator`` itself if nothing is tuned.
    """
    if not hasattr(estimator, "get_params") or estimator.get_params(deep=False).get("model_regression") != "auto":
        return estimator
    rewards = fitted.reward_estimator_
    if not getattr(rewards, "models_regression_", None):
        return estimator
    by_arm = zip(*rewards.models_regression_, strict=True)
    learners = {
        label: tuned_like([model.model for model in models])
        for label, models in zip(np.asarray(rewards.treatments_).tolist(), by_arm, strict=True)
    }
    return clone(estimator).set_params(model_regression=learners)
