"""A picture of how a tree ranks: its ROC curve, with a corner for every leaf."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score, roc_curve

from policytree.common.typing import Column, Table
from policytree.common.validation import weights
from policytree.estimators.classifier import OptimalTreeClassifier, label_codes, label_column
from policytree.exceptions import InputError
from policytree.objectives.auc import two_kinds
from policytree.plotting.common import LINE_COLORS, OneAxes

SHADE = 0.12  # opacity of a partial area


@dataclass(frozen=True)
class Curve:
    """A ROC curve and what a tree predicts.

    Attributes
    ----------
    false_positive_rate, true_positive_rate : ndarray of shape (m,)
        Corners, from (0, 0) to (1, 1): one for every leaf that rows reach, the best first.
    area : float
    predicted : tuple of float
        False and true positive rate of ``predict``.
    """

    false_positive_rate: np.ndarray
    true_positive_rate: np.ndarray
    area: float
    predicted: tuple[float, float]


class ROCHullDisplay(OneAxes):
    """The ROC curve of a tree whose leaves are ranked by their share of positives.

    On the rows that chose the tree it is its own convex hull; on other rows leaves may change places.

    Parameters
    ----------
    curve : Curve
    name : str
    max_fpr : float or None
        Up to where the area is shaded.

    Attributes
    ----------
    figure_ : matplotlib Figure
    ax_ : matplotlib Axes
    line_ : matplotlib Line2D

    Examples
    --------
    >>> from policytree import OptimalTreeClassifier
    >>> X, y = [[1.0], [2.0], [3.0], [4.0]], [0, 1, 0, 1]
    >>> tree = OptimalTreeClassifier(max_depth=1, regularization=0.0, objective="auc").fit(X, y)
    >>> tree.plot_roc(X, y).ax_.get_xlabel()
    'false positive rate'
    """

    def __init__(self, curve: Curve, name: str = "tree", max_fpr: float | None = None):
        self.curve, self.name, self.max_fpr = curve, name, max_fpr

    def plot(self, *, ax: Any = None, title: str | None = None) -> ROCHullDisplay:
        """Draw the curve, a dot for every leaf's corner and a ring where ``predict`` stands.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Curves that are drawn into the same axes take different colours.
        title : str, optional
        """
        ax = self._use(ax, 4.6, 4.4)
        curve = self.curve
        drawn = [line for line in ax.lines if line.get_gid() == "roc"]
        color = LINE_COLORS[len(drawn) % len(LINE_COLORS)]
        if not drawn:
            ax.plot([0, 1], [0, 1], color="0.75", linewidth=1, linestyle="--", zorder=1)
        (self.line_,) = ax.plot(
            curve.false_positive_rate, curve.true_positive_rate, color=color, marker="o", markersize=3.5,
            linewidth=1.6, label=f"{self.name} (AUC {curve.area:.3f})", gid="roc",
        )  # fmt: skip
        ax.plot(*curve.predicted, marker="o", markersize=9, markerfacecolor="none", color=color, linestyle="none")
        if self.max_fpr is not None:
            x = np.append(curve.false_positive_rate[curve.false_positive_rate <= self.max_fpr], self.max_fpr)
            y = np.interp(self.max_fpr, curve.false_positive_rate, curve.true_positive_rate)
            heights = np.append(curve.true_positive_rate[: len(x) - 1], y)
            ax.fill_between(x, heights, color=color, alpha=SHADE, linewidth=0)
        ax.set(xlabel="false positive rate", ylabel="true positive rate", title=title or "", xlim=(-0.02, 1.02),
               ylim=(-0.02, 1.02), aspect="equal")  # fmt: skip
        ax.legend(loc="lower right", frameon=False, fontsize="small")
        return self


def roc_display(
    estimator: OptimalTreeClassifier, X: Table, y: Column, sample_weight: Column | None, name: str | None
) -> ROCHullDisplay:
    """Of a fitted tree on some rows, as :meth:`policytree.OptimalTreeClassifier.plot_roc` says; not drawn yet."""
    margin = estimator.decision_function(X)
    if margin.ndim != 1:
        raise InputError(f"A ROC curve needs two classes; the estimator has {len(estimator.classes_)}.")
    given = weights(sample_weight, len(margin), "X")
    weight = np.ones(len(margin)) if given is None else given
    positive = two_kinds(label_codes(label_column(y, margin), estimator.classes_), weight)
    x, height, _ = roc_curve(positive, margin, sample_weight=weight, drop_intermediate=False)
    area = float(roc_auc_score(positive, margin, sample_weight=weight))
    said = margin > 0
    rates = (float(np.average(said[rows], weights=weight[rows])) for rows in (~positive, positive))
    objective = estimator.objective_
    name = name or f"{objective.score_name}, {estimator.get_n_leaves()} leaves"
    limit = objective.max_fpr
    return ROCHullDisplay(Curve(x, height, area, (next(rates), next(rates))), name, limit)
