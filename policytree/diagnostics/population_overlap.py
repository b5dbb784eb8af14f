"""Whether a study can speak of another population: overlap of study and target, and who is outside."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from policytree.common.row_labels import aligns_rows
from policytree.common.typing import Column, Table
from policytree.common.validation import weights
from policytree.data.views import Shown
from policytree.diagnostics.overlap_balance import LARGE_DIFFERENCE
from policytree.exceptions import InputError
from policytree.weighting.covariates import Covariates
from policytree.weighting.reward_estimator import RewardEstimator
from policytree.weighting.stacked import study_mask
from policytree.weighting.target_support import TargetSupport, covariate_table, is_number, target_support

if TYPE_CHECKING:
    from policytree.plotting.diagnostics import TargetOverlapDisplay


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TargetOverlap(Shown):
    """How far the people of a target are like those of a study; ``str()`` says it in sentences.

    Attributes
    ----------
    n_study, n_target : int
        Rows.
    effective_rows : float
        Weighted to the target, the study's rows are as good as so many equally weighted ones (Kish).
    n_lowered : int
        Rows of the study whose weight was lowered to ``max_target_weight``.
    max_target_weight : float
    rare : float
        Share of the target's people whose like occur in the study so rarely that their weight is lowered.
    outside : float
        Share of the target's people with a number outside the study's range, a category that it lacks, or a missing
        value where it has none, in some column.
    outside_by_chance : float
        The most that ``outside`` would be expected to be of a target that is like the study.
    columns : DataFrame, one row per column
        lowest, highest (of the study; of numbers), outside (share of the target's people), missing_in_study and
        missing_in_target (shares).
    balance : DataFrame, one row per covariate
        difference_before and difference_after: mean of the target minus mean of the study, in the target's standard
        deviations, before and after weighting the study to the target. Missing where the target does not vary.
    participation : ndarray of shape (n,)
        Probability of being of the study.
    study : ndarray of shape (n,), bool

    Examples
    --------
    >>> import numpy as np
    >>> from policytree import RewardEstimator
    >>> from policytree.diagnostics import target_overlap
    >>> import numpy as np, pandas as pd
    >>> from policytree import RewardEstimator, Study
    >>> from policytree.diagnostics import target_overlap
    >>> from policytree.study import Population
    >>> rng = np.random.default_rng(0)
    >>> everybody = pd.DataFrame({"age": rng.integers(20, 30, size=400), "arm": rng.integers(2, size=400)})
    >>> everybody["score"], inside = everybody["age"] * everybody["arm"], np.arange(400) < 200
    >>> study = Study(everybody[inside], treatment="arm", outcome="score", population=Population(everybody[~inside]))
    >>> model = RewardEstimator(random_state=0).fit(study)
    >>> target_overlap(model, everybody[["age"]], study=inside).columns["outside"].tolist()
    [0.0]
    """

    n_study: int
    n_target: int
    effective_rows: float
    n_lowered: int
    max_target_weight: float
    rare: float
    outside: float
    outside_by_chance: float
    columns: pd.DataFrame = field(repr=False)
    balance: pd.DataFrame = field(repr=False)
    participation: np.ndarray = field(repr=False)
    study: np.ndarray = field(repr=False)

    def plot(self, **options: Any) -> TargetOverlapDisplay:
        """Draw the probability of being of the study, among people of the study and of the target.

        Options are ``ax`` and ``bins``, as in
        :meth:`policytree.plotting.diagnostics.TargetOverlapDisplay.plot`.
        """
        from policytree.plotting.diagnostics import TargetOverlapDisplay

        return TargetOverlapDisplay(self).plot(**options)

    def _outside_text(self) -> str:
        worst = self.columns["outside"].sort_values(ascending=False)
        if self.outside == 0.0:
            return "Nobody of the target is outside the study's range in any column"
        most = f", most in {worst.index[0]} ({worst.iloc[0]:.1%})"
        return f"{self.outside:.1%} of the target are outside the study's range in some column{most}"

    def _rare_text(self) -> str:
        if self.rare == 0.0 and self.n_lowered == 0:
            return ", and no weight is so large that it is lowered"
        return (
            f"; people like {self.rare:.1%} of them are so rare in the study that weights are lowered to "
            f"{self.max_target_weight:g} (rows of the study whose weight is lowered: {self.n_lowered:,})"
        )

    def __str__(self) -> str:
        lines = [
            f"Weighted to the {self.n_target:,} people of the target, the {self.n_study:,} rows of the study are as "
            f"good as {self.effective_rows:,.0f}.",
            f"{self._outside_text()}{self._rare_text()}.",
        ]
        after = self.balance["difference_after"].abs().dropna()
        if len(after):
            lines.append(
                f"After weighting, the largest difference between the means of target and study is {after.max():.2f} "
                f"standard deviations, in {after.idxmax()}; {(after > LARGE_DIFFERENCE).sum()} of {len(after)} "
                f"covariates exceed {LARGE_DIFFERENCE:g}."
            )
        return "\n".join(lines)


@aligns_rows
def target_overlap(
    estimator: Any,
    X: Table,
    *,
    W: Table | None = None,
    study: Column,
    sample_weight: Column | None = None,
) -> TargetOverlap:
    """Compare the covariates of a study with those of a target, before and after weighting.

    Parameters
    ----------
    estimator : fitted RewardEstimator or DRPolicyTree
        Fitted to a study with a population of these people.
    X, W : table of shape (n, p)
        Covariates (and confounders) of the study's rows, and below them of the people of its population.
    study : column of n booleans (or 0 and 1)
        True for rows of the study, False for people of the target.
    sample_weight : column of n numbers >= 0, optional

    Returns
    -------
    TargetOverlap

    Raises
    ------
    InputError
        If the estimator was fitted without a target, or on other rows.

    Warns
    -----
    OverlapWarning
        If a twentieth of the target more than chance alone explains is outside the study's range, if more than a
        twentieth has hardly any like there, or if the weighted rows of the study are as good as less than a tenth of
        their number. ``fit`` warns of the same.

    References
    ----------
    Stuart, Cole, Bradshaw and Leaf (2011), Journal of the Royal Statistical Society A 174(2), 369-386 (comparing a
    trial with its target by the probability of participation).

    Examples
    --------
    >>> import numpy as np
    >>> from policytree import RewardEstimator
    >>> from policytree.diagnostics import target_overlap
    >>> import numpy as np, pandas as pd
    >>> from policytree import RewardEstimator, Study
    >>> from policytree.diagnostics import target_overlap
    >>> from policytree.study import Population
    >>> rng = np.random.default_rng(0)
    >>> everybody = pd.DataFrame({"age": rng.uniform(20, 80, size=400), "arm": rng.integers(2, size=400)})
    >>> inside = np.arange(400) < 200
    >>> everybody.loc[~inside, "age"] = everybody["age"] * 0.9 + 7
    >>> everybody["score"] = everybody["age"] * everybody["arm"] + rng.normal(size=400)
    >>> study = Study(everybody[inside], treatment="arm", outcome="score", population=Population(everybody[~inside]))
    >>> model = RewardEstimator(random_state=0).fit(study)
    >>> overlap = target_overlap(model, everybody[["age"]], study=inside)
    >>> bool(50 < overlap.effective_rows < 200), overlap.n_target
    (True, 200)
    """
    rewards = getattr(estimator, "reward_estimator_", estimator)
    if not isinstance(rewards, RewardEstimator) or getattr(rewards, "participation_", None) is None:
        raise InputError(
            "estimator must be a RewardEstimator or DRPolicyTree that was fitted to a study with "
            "population=Population(...)."
        )
    chance = rewards.participation_
    assert chance is not None and rewards.target_ratio_ is not None, "there is a target"
    n = len(chance)
    own = study_mask(study, n)
    w = weights(sample_weight, n)
    w = np.ones(n) if w is None else w
    ratio = rewards.target_ratio_.to_numpy()
    weight = w * np.where(own, np.minimum(ratio, rewards.max_target_weight), 1.0)
    for given, name in ((X, "X"), (W, "W")):
        if given is not None and (rows := len(covariate_table((given,)))) != n:
            raise InputError(f"{name} has {rows} rows, but the estimator was fitted on {n}; pass study and target.")
    table = covariate_table((X, W))
    support = target_support(table, own, ratio, rewards.max_target_weight, w)
    support.warn()
    return TargetOverlap(
        support.n_study, int((~own).sum()), support.effective_rows, rewards.n_lowered_,
        float(rewards.max_target_weight), support.rare, support.outside_somewhere, support.by_chance,
        _columns(table, support, own, w), _balance(X, W, own, w, weight), chance.to_numpy(), own,
    )  # fmt: skip


def _columns(table: pd.DataFrame, support: TargetSupport, own: np.ndarray, w: np.ndarray) -> pd.DataFrame:
    """Ranges of the study and shares of the target outside them, a row per column."""
    records = {}
    for name, column in table.items():
        number, missing = is_number(column), column.isna().to_numpy()
        records[str(name)] = {
            "lowest": column[own].min() if number else np.nan,
            "highest": column[own].max() if number else np.nan,
            "outside": support.outside[str(name)],
            "missing_in_study": np.average(missing, weights=w * own),
            "missing_in_target": np.average(missing, weights=w * ~own),
        }
    return pd.DataFrame.from_dict(records, orient="index").rename_axis("column")


def _balance(X, W, own: np.ndarray, before: np.ndarray, after: np.ndarray) -> pd.DataFrame:
    """Standardised differences of the means of target and study, a row per covariate."""
    covariates = Covariates.fit(X, W)
    Z = covariates.matrix(X, W, len(own))
    out = {}
    for name, weight in (("difference_before", before), ("difference_after", after)):
        present = ~np.isnan(Z)
        filled = np.where(present, Z, 0.0)

        def mean(rows, values, present=present, weight=weight):
            total = np.maximum((weight[rows, None] * present[rows]).sum(axis=0), np.finfo(float).tiny)
            return (weight[rows, None] * present[rows] * values[rows]).sum(axis=0) / total

        centre = mean(~own, filled)
        scale = np.sqrt(mean(~own, (filled - centre) ** 2))
        out[name] = np.divide(centre - mean(own, filled), scale, out=np.full(len(scale), np.nan), where=scale > 0.0)
    return pd.DataFrame(out, index=pd.Index(covariates.names(), name="covariate"))
