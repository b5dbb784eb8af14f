"""Heat maps of what recurs over resamples: where trees split, and whom they give what."""

from __future__ import annotations

import numpy as np
import pandas as pd

from policytree.common.validation import check_count
from policytree.evaluation.stability.tables import SETTLED, PolicyStability
from policytree.plotting.common import draw_people, room_for_names, short_name

MOST_COVARIATES = 12
CATEGORY = 0.12  # width of a category's cell
NARROWEST = 0.055  # of the width: text does not fit into narrower cells
LEAST_SHOWN = 0.095  # smaller shares have a colour only
LETTERS = 60  # that fit side by side into the width
DARK = 0.55  # share from which text on a cell is white


class PolicyStabilityDisplay:
    """Where trees learnt from resamples split, and which treatment each person gets.

    Parameters
    ----------
    stability : PolicyStability
        From :func:`policytree.evaluation.policy_stability`.

    Attributes
    ----------
    figure_ : matplotlib Figure
    axes_ : ndarray of matplotlib Axes

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
    >>> stability = policy_stability(model, Y, T, X=X, propensity=0.5, n_resamples=3, random_state=0)
    >>> display = stability.plot()
    >>> len(display.figure_.axes)
    3
    """

    def __init__(self, stability: PolicyStability):
        self.stability = stability

    def plot(
        self, *, title: str | None = None, n_covariates: int = MOST_COVARIATES, unit: str = "people"
    ) -> PolicyStabilityDisplay:
        """Draw two heat maps on a new figure.

        Left: share of resamples whose tree has a threshold in each range of a covariate (ranges hold equal numbers of
        people; a category is named in its cell). Right: share of resamples that give each person each treatment, people
        sorted. Learners that are no trees have the right one only.

        Parameters
        ----------
        title : str, optional
        n_covariates : int
            Most covariates to show, those asked about most.
        unit : str, default "people"
            Name of the rows, in the plural.

        Returns
        -------
        PolicyStabilityDisplay

        Raises
        ------
        InputError
            If ``n_covariates`` is no whole number of at least 1.
        """
        check_count(n_covariates, "n_covariates", 1)
        import matplotlib.pyplot as plt

        features = self.stability.feature_shares()
        features = features[features["anywhere"] > 0].head(n_covariates)
        arms = len(self.stability.treatments)
        wanted = [1] if len(features) else []
        names = room_for_names(features.index) + room_for_names(self.stability.treatments)
        height = 1.6 + max(0.34 * len(features), 0.45 * arms, 1.2)
        self.figure_, axes = plt.subplots(
            1, len(wanted) + 1, figsize=(5.2 + 5.2 * len(wanted) + names, height), layout="constrained", squeeze=False,
            gridspec_kw={"width_ratios": [*([1.15] * len(wanted)), 1.0]},
        )  # fmt: skip
        self.axes_ = axes[0]
        if wanted:
            self._splits(self.axes_[0], features)
        image = self._people(self.axes_[-1], unit)
        self.figure_.colorbar(image, ax=self.axes_.tolist(), label="share of resamples", shrink=0.9)
        if title:
            self.figure_.suptitle(title, fontsize=11)
        return self

    def _splits(self, ax, features: pd.DataFrame) -> None:
        """Covariates by ranges of their thresholds, each as wide as people fill it."""
        from matplotlib import colormaps

        colors, shares = colormaps["Blues"], self.stability.threshold_shares().reset_index()
        for at, feature in enumerate(features.index):
            if len(self.stability.covariates[feature]):
                ax.barh(at, 1.0, height=1.0, color=colors(0.0))  # ranges without a threshold
            for row in shares[shares["covariate"] == feature].itertuples():
                left, right = self._place(row)
                ax.barh(
                    at, right - left, left=left, height=1.0, color=colors(row.share), edgecolor="white", linewidth=0.6
                )
                if row.share < LEAST_SHOWN or right - left < NARROWEST:
                    continue
                name = "is known\n" if row.range == "is known" else ""
                if row.range.startswith("= "):
                    name = short_name(row.range.removeprefix("= "), round(LETTERS * (right - left))) + "\n"
                ax.text((left + right) / 2, at, f"{name}{row.share:.0%}", ha="center", va="center", fontsize=7,
                        color="white" if row.share > DARK else "black", parse_math=False)  # fmt: skip
        ax.set_yticks(np.arange(len(features)), [f"{short_name(n)} ({p:.0%})" for n, p in features["anywhere"].items()])
        ax.set_xlim(0.0, 1.0)
        ax.set_ylim(len(features) - 0.5, -0.5)
        ax.set_xticks([0.0, 0.5, 1.0], ["smallest", "median", "largest"])
        ax.set_xlabel("where the threshold lies among all values")
        ax.set_title("splits (in brackets: trees that ask at all)", fontsize=10)

    def _place(self, row) -> tuple[float, float]:
        """Ends of a range, as shares of people below them; categories stand side by side."""
        values = np.sort(self.stability.covariates[row.covariate])
        if not len(values):
            width = min(CATEGORY, 1.0 / row.parts)
            return row.part * width, (row.part + 1) * width
        if not np.isfinite(row.lower):  # "is known": at the end
            return 1.0 - CATEGORY, 1.0
        left, right = np.searchsorted(values, [row.lower, row.upper]) / len(values)
        return float(left), float(right)

    def _people(self, ax, unit: str):
        """People by their shares of treatments, those that are settled at the ends."""
        settled = self.stability.settled_share()
        title = f"treatments: settled for {settled:.0%} (same in {SETTLED:.0%} of resamples)"
        return draw_people(ax, self.stability.arm_shares(), unit, title)
