"""How much weight impurity reduction should have against cheap trees: the choice by validation rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from sklearn.base import clone

from policytree.common.row_labels import aligns_rows
from policytree.common.typing import Column, Table
from policytree.common.validation import is_real
from policytree.data.views import Shown
from policytree.estimators.low_cost import LowCostTreeClassifier
from policytree.exceptions import InputError, quoted

if TYPE_CHECKING:
    import pandas as pd

WEIGHTS = (1000.0, 300.0, 100.0, 30.0, 10.0, 3.0, 1.0, 0.3, 0.1, 0.0)


@dataclass(frozen=True, slots=True, repr=False)
class ComplexityChoice(Shown):
    """The weight that was chosen, its tree, and what was tried.

    Attributes
    ----------
    complexity_weight : float
    estimator : LowCostTreeClassifier
        Fitted on the training rows with that weight.
    tried : DataFrame
        One row per weight that was tried: ``complexity_weight``, ``accuracy`` and ``expected_cost`` on the validation
        rows, ``n_leaves``.

    Examples
    --------
    >>> from policytree import LowCostTreeClassifier, choose_complexity_weight
    >>> X, y = [[0, 0], [0, 1], [1, 0], [1, 1]] * 5, [0, 0, 1, 1] * 5
    >>> choice = choose_complexity_weight(LowCostTreeClassifier({0: 2.0, 1: 1.0}, min_probability=0.0), X, y, X, y)
    >>> choice.complexity_weight, choice.estimator.get_used_features()
    (0.0, ['x0', 'x1'])
    """

    complexity_weight: float
    estimator: LowCostTreeClassifier
    tried: pd.DataFrame


@aligns_rows
def choose_complexity_weight(
    estimator: LowCostTreeClassifier,
    X: Table,
    y: Column,
    X_validation: Table,
    y_validation: Column,
    *,
    weights: Sequence[float] = WEIGHTS,
    tolerance: float = 0.01,
    sample_weight: Column | None = None,
) -> ComplexityChoice:
    """The smallest weight of impurity reduction that keeps the accuracy on validation rows.

    The rule of Zhang and Gionis (2022), section 6: start with a large weight, lower it, and stop before the accuracy on
    validation rows is more than 1 % (``tolerance``, in points of accuracy) below that of the largest weight.

    Parameters
    ----------
    estimator : LowCostTreeClassifier
        Not fitted; its ``complexity_weight`` does not matter.
    X, X_validation : DataFrame or array of shape (n, p)
        Rows that the trees are learnt from, and rows that choose among them.
    y, y_validation : array of shape (n,)
        Their labels.
    weights : sequence of float
        Tried from the largest down.
    tolerance : float, default 0.01
    sample_weight : array-like of shape (n,), optional
        Of the training rows.

    Returns
    -------
    ComplexityChoice

    Raises
    ------
    InputError
        If ``weights`` are no numbers >= 0, or the split rule knows no such weight.

    Examples
    --------
    >>> from policytree import LowCostTreeClassifier, choose_complexity_weight
    >>> X, y = [[0, 0], [0, 1], [1, 0], [1, 1]] * 5, [0, 0, 1, 1] * 5
    >>> tree = LowCostTreeClassifier({0: 2.0, 1: 1.0}, min_probability=0.0)
    >>> choose_complexity_weight(tree, X, y, X, y, weights=[10.0, 1.0]).tried
       complexity_weight  accuracy  expected_cost  n_leaves
    0               10.0       1.0            2.0         2
    1                1.0       1.0            3.0         4
    """
    import pandas as pd

    if not isinstance(estimator, LowCostTreeClassifier) or estimator.split_rule != "regularized":
        raise InputError("choose_complexity_weight takes a LowCostTreeClassifier with split_rule='regularized'.")
    if not len(weights) or not all(is_real(w) and 0 <= w < np.inf for w in weights):
        raise InputError(f"weights must be finite numbers >= 0, at least one; got {quoted(weights)}.")
    if not is_real(tolerance) or not 0 <= tolerance <= 1:
        raise InputError(f"tolerance must lie between 0 and 1; got {quoted(tolerance)}.")
    tried, chosen = [], None
    for weight in sorted(map(float, weights), reverse=True):
        tree = clone(estimator).set_params(complexity_weight=weight).fit(X, y, sample_weight)
        accuracy = tree.score(X_validation, y_validation)
        cost = float(tree.measurement_cost(X_validation).mean())
        tried.append((weight, accuracy, cost, tree.get_n_leaves()))
        if accuracy < tried[0][1] - tolerance:
            break
        chosen = tree
    assert chosen is not None, "the first weight is as accurate as itself"
    columns = ["complexity_weight", "accuracy", "expected_cost", "n_leaves"]
    return ComplexityChoice(chosen.complexity_weight, chosen, pd.DataFrame(tried, columns=columns))
