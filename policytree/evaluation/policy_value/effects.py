"""Average effects of treatments in the population that rewards are about, with influence-function standard errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from policytree.common.docstrings import shares_documentation
from policytree.common.row_labels import aligns_rows
from policytree.common.shared_arguments import JUDGED
from policytree.common.typing import Column, Table
from policytree.common.validation import numbers
from policytree.data.feature_encoder import as_pandas
from policytree.evaluation.estimates import Estimate, by_unequal_rows
from policytree.evaluation.inputs import rows_arguments
from policytree.evaluation.policy_value.values import policy_difference
from policytree.exceptions import InputError

MEAN_TOLERANCE = 1e-6


@aligns_rows
@shares_documentation(JUDGED)
def average_effect(
    rewards: Table,
    treatment: Any,
    baseline: Any,
    *,
    population: Column | None = None,
    groups: Column | None = None,
    sample_weight: Column | None = None,
    level: float = 0.95,
) -> Estimate:
    """Mean outcome under one treatment minus that under another, in the population that the rewards are about.

    With ``d`` the difference of the two rewards, ``q`` the rows' share of the population (mean one) and ``theta`` the
    mean of ``d``, row ``i`` has the influence ``d_i - q_i theta``: the size of the target population is estimated from
    the same rows, and the standard error counts that. Where rows stand for unequally many people, few of them may have
    most of the variance; the interval then takes fewer degrees of freedom (Satterthwaite), so that it is wider.

    Parameters
    ----------
    rewards : DataFrame or array of shape (n, K)
        ``RewardEstimator.rewards_``.
    treatment, baseline : labels
        Columns of ``rewards``.
    population : array of shape (n,), optional
        ``RewardEstimator.population_``; needed for ``estimand="treated"`` and ``"overlap"``, where leaving it out gives
        the same value with a standard error that is slightly off.

    Returns
    -------
    Estimate

    Raises
    ------
    InputError
        If a label has no rewards, the mean of ``population`` is not one, values are missing or infinite, or there are
        fewer than two clusters.

    References
    ----------
    Hirano, Imbens & Ridder (2003), Econometrica 71(4), 1161-1189, for weighted average effects; van der Vaart (1998),
    Asymptotic Statistics, section 25.3, for the influence function of a ratio.

    Examples
    --------
    >>> import numpy as np
    >>> from policytree import RewardEstimator, average_effect
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 1))
    >>> T = rng.binomial(1, 1 / (1 + np.exp(-X[:, 0])))
    >>> Y = 2.0 * T + X[:, 0] + rng.normal(size=400)
    >>> model = RewardEstimator(estimand="treated", random_state=0).fit(Y, T, X=X)
    >>> effect = average_effect(model.rewards_, 1, 0, population=model.population_)
    >>> bool(effect.lower < 2.0 < effect.upper)
    True
    """
    options: dict[str, Any] = {"groups": groups, "sample_weight": sample_weight, "level": level}
    plain = policy_difference(treatment, baseline, rewards, **options)
    if population is None:
        return plain
    q = numbers(population, "population", len(plain.influence), "pass population_ as it is.", "rewards").to_numpy()
    mean = float(np.average(q, weights=None if sample_weight is None else np.asarray(sample_weight, dtype=float)))
    if abs(mean - 1.0) > MEAN_TOLERANCE:
        raise InputError(
            f"population has mean {mean:.6g}, not one; pass population_ of the RewardEstimator that made the rewards, "
            "with the same sample_weight."
        )
    frame = as_pandas(rewards)
    shifted = pd.DataFrame(rewards) if frame is None else frame.copy()
    shifted[treatment] = shifted[treatment] - (q - 1.0) * plain.value
    effect = policy_difference(treatment, baseline, shifted, **options)
    if np.ptp(q) == 0.0:
        return effect
    return by_unequal_rows(effect, rows_arguments(groups, sample_weight, len(q))[0])
