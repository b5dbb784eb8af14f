"""Qini curves: for every budget, the gain of treating the right people with the right treatment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from policytree.common.docstrings import shares_documentation
from policytree.common.row_labels import aligns_rows
from policytree.common.shared_arguments import HALF_SAMPLES
from policytree.common.typing import Column, PerTreatment, Seed, Table
from policytree.common.validation import as_numbers, check_level, columns_by_label, is_real
from policytree.data.views import Shown
from policytree.evaluation.estimates import Estimate, estimate_with_error
from policytree.evaluation.formatting import decimals, interval_text, rows_text
from policytree.evaluation.inference.half_samples import N_DRAWS, HalfSamples
from policytree.evaluation.inputs import reward_frame
from policytree.evaluation.policy_value.sample_split import HeldOutRewards
from policytree.evaluation.targeting.cost_paths import Ledger, cost_path, positions, values_at
from policytree.evaluation.targeting.least_budget import BudgetEstimate, budgets_that_may_give, first_reach
from policytree.evaluation.targeting.reward_provenance import Judged
from policytree.exceptions import InputError, quoted
from policytree.trees.text import format_number
from policytree.weighting.costs import treatment_costs

if TYPE_CHECKING:
    from policytree.plotting.curves import QiniCurveDisplay

N_BUDGETS = 201  # of a curve as a table: from the least spend to the largest


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class QiniCurve(Shown):
    """The gain over giving everybody the baseline, for every budget per person.

    Attributes
    ----------
    spend, gain : ndarray of shape (n_corners,)
        The curve's corners, straight between them: what is spent, and gained, per person and by the scores. The gain of
        a larger budget than the last is that of the last. With ``cost_scores`` the spend is estimated as well, and may
        fall here and there by noise.
    baseline : label
    targeted : bool
        Whether people are told apart. If not, the plan knows only average rewards and costs, and draws lots.
    level : float
        Coverage of the intervals.

    Examples
    --------
    >>> import numpy as np
    >>> from policytree.evaluation import qini_curve
    >>> rng = np.random.default_rng(0)
    >>> effects = np.column_stack([np.zeros(100), rng.normal(size=100)])
    >>> curve = qini_curve(effects, effects, {1: 1.0}, held_out=True)
    >>> curve.value_at(0.5)
    Estimate(value=0.436903, standard_error=0.0574, 95% interval [0.322951, 0.550856], n=100, n_clusters=100)
    """

    spend: np.ndarray = field(repr=False)
    gain: np.ndarray = field(repr=False)
    baseline: Any
    targeted: bool
    level: float
    _judged: Judged = field(repr=False)
    _plan: tuple[np.ndarray, np.ndarray] = field(repr=False)  # predicted gains and costs, (n, K) each
    _ledger: Ledger = field(repr=False)
    _halves: HalfSamples = field(repr=False)

    @property
    def direction(self) -> str:
        """Which way outcomes are better; gains are larger for better in any case."""
        return self._judged.direction

    @property
    def held_out(self) -> bool:
        """Whether these rows' outcomes had no part in the plan; if they had, gains are flattered, without intervals."""
        return self._judged.held_out

    @property
    def rows(self) -> str:
        """On whose rows all this was computed: "held out" or "training rows"."""
        return self._judged.rows

    @property
    def untargeted(self) -> QiniCurve:
        """The best that can be had without telling people apart: lots, by average predicted rewards and costs."""
        weight = self._halves.weight
        plan = [np.broadcast_to(weight @ part / weight.sum(), part.shape) for part in self._plan]
        return _along(replace(self, targeted=False, _ledger=replace(self._ledger, path=cost_path(*plan))))

    def plot(
        self, name: str = "targeted", *, beside: Mapping[str, QiniCurve] | None = None, **options: Any
    ) -> QiniCurveDisplay:
        """Draw the curve, and others beside it.

        Parameters
        ----------
        name : str, default "targeted"
            Of this curve, in the legend.
        beside : mapping of str to QiniCurve, optional
            Other curves by their names; by default the one of lots, ``untargeted``. An empty mapping draws none.
        **options
            ``ax``, ``title``, ``xlabel``, ``unit`` and ``intervals``, as in
            :meth:`policytree.plotting.curves.QiniCurveDisplay.plot`.
        """
        from policytree.plotting.curves import QiniCurveDisplay

        if beside is None:
            beside = {"without telling people apart": self.untargeted} if self.targeted else {}
        if not isinstance(beside, Mapping) or not all(isinstance(curve, QiniCurve) for curve in beside.values()):
            raise InputError("beside must be a mapping from names to curves of qini_curve.")
        if name in beside:
            raise InputError(f"name is {name!r}, which beside has too; name the curves differently.")
        return QiniCurveDisplay({name: self, **beside}).plot(**options)

    def __str__(self) -> str:
        if not self.held_out:
            most = f"{self.gain[-1]:.6g} (flattered, no interval)"
        else:
            last = self.value_at(float(self.spend.max()))
            digits = decimals([last.standard_error])
            most = f"{last.value:,.{digits}f}, {100 * self.level:g}% interval {interval_text(last, digits)}"
        how = "" if self.targeted else ", by lots"
        spent = format_number(self.spend.max(), 3)
        judged = rows_text(len(self._judged.rewards), self.held_out)
        return f"At most {spent} a person are spent{how}; this gains over {self.baseline} for all, by {judged}: {most}."

    def value_at(self, budget: float) -> Estimate:
        """Gain per person at a budget per person; spends that are estimated end where they first exceed it.

        Its influences hold the budget's constraint too: a row that costs more than the budget takes from others what
        that money would buy, at the curve's slope around the budget (over a window of ``n ** (-1 / 5) / 2`` of the
        range to both sides). The standard error is that of the half-samples. NaN on training rows.

        Raises
        ------
        InputError
            If the budget is no number, or less than the cheapest treatments cost.
        """
        at = self._checked(budget)
        value = values_at(self.spend, self.gain, at)[0]
        return self._estimate(value, self._influence(at), self._replicates(at))

    def difference(self, other: QiniCurve, budget: float) -> Estimate:
        """Gain of this curve minus that of another on the same rows, at one budget; paired.

        Raises
        ------
        InputError
            If the curves are not of the same rows, clusters, weights and scores, or the budget is no number, or less
            than the cheapest treatments cost.
        """
        at = other._checked(self._checked(budget)[0])
        if not self._paired(other):
            raise InputError("The two curves differ in rows, clusters, weights, scores or seed; make both of the same.")
        value = values_at(self.spend, self.gain, at)[0] - values_at(other.spend, other.gain, at)[0]
        influence = self._influence(at) - other._influence(at)
        return self._estimate(value, influence, self._replicates(at) - other._replicates(at))

    def budget_for(self, gain: float) -> BudgetEstimate:
        """The least budget per person that reaches a gain per person.

        Its interval is the set of budgets at which the curve's own (pointwise) interval holds the gain: it covers as
        often as these do, and is infinite where even the largest budget is not shown to suffice.

        Raises
        ------
        InputError
            If the gain is no finite number.
        """
        gain = _number(gain, "gain")
        ends = budgets_that_may_give(gain, self.to_frame()) if self.held_out else (np.nan, np.nan)
        return BudgetEstimate.of(first_reach(self.spend, self.gain, gain), ends, self.level)

    def policy_at(self, budget: float) -> pd.DataFrame:
        """Who gets what at a budget: the probability of every treatment for every row, (n, K).

        Zeros and ones but for those on the margin, who draw lots. :func:`policytree.policy_value` takes it.
        """
        path, table = self._ledger.path, self._judged.rewards
        block, part = positions(self.spend, self._checked(budget))
        steps, far = path.bought(int(block[0]), float(part[0]))
        out = np.zeros(table.shape)
        out[np.arange(len(out)), path.first] = 1.0
        np.add.at(out, (path.person[steps], path.before[steps]), -far)
        np.add.at(out, (path.person[steps], path.after[steps]), far)
        return pd.DataFrame(out.clip(0.0, 1.0), index=table.index, columns=table.columns)

    def price_at(self, budget: float) -> float:
        """Predicted gain per unit of cost of what is bought next; zero after the last step.

        It turns the plan into a rule for new people: everybody gets the treatment with the largest predicted reward
        less price times cost.
        """
        path, block = self._ledger.path, positions(self.spend, self._checked(budget))[0][0]
        return float(path.price[path.starts[block]]) if block < len(path.starts) else 0.0

    def to_frame(self, budgets: Column | None = None) -> pd.DataFrame:
        """The curve at some budgets: budget, value, standard_error, lower, upper, rows.

        Parameters
        ----------
        budgets : array of shape (b,), optional
            201 of equal distance by default.

        Raises
        ------
        InputError
            If a budget is no number, or less than the cheapest treatments cost.
        """
        at = (
            np.linspace(self.spend[0], self.spend.max(), N_BUDGETS)
            if budgets is None
            else self._checked(budgets, several=True)
        )
        value, error = values_at(self.spend, self.gain, at), self._errors(self._replicates(at))
        width = error * float(stdtrit(self._halves.n_units - 1, 0.5 + self.level / 2))
        columns = {"value": value, "standard_error": error, "lower": value - width, "upper": value + width}
        return pd.DataFrame({"budget": at, **columns, "rows": self.rows})

    def _checked(self, budgets, several: bool = False) -> np.ndarray:
        """Budgets as an array; refuses those that not even the cheapest treatments meet."""
        at = as_numbers(budgets, "budget")
        if at.ndim > several or at.size == 0 or not np.isfinite(at).all():
            what = "or a row of them" if several else "one at a time (to_frame takes several)"
            raise InputError(f"budget must be a finite number, {what}; got {quoted(budgets)}.")
        at = np.atleast_1d(at)
        if (at < self.spend[0]).any():
            raise InputError(f"budget is {at.min():g} a person, but the cheapest treatments cost {self.spend[0]:g}.")
        return at

    def _replicates(self, at: np.ndarray) -> np.ndarray:
        """Values at budgets in every half-sample, (n_draws, b); none on training rows."""
        draws = self._halves if self.held_out else ()
        values = [values_at(*corners, at) for corners in self._ledger.corners(draws)]
        return np.array(values).reshape(len(values), len(at))

    def _errors(self, replicates: np.ndarray) -> np.ndarray:
        if not len(replicates):
            return np.full(replicates.shape[1], np.nan)
        return self._halves.standard_error(replicates)

    def _estimate(self, value: float, influence: np.ndarray, replicates: np.ndarray) -> Estimate:
        rows: dict = {"groups": self._judged.groups, "sample_weight": self._judged.sample_weight}
        return estimate_with_error(value, self._errors(replicates)[0], influence, **rows, level=self.level)

    def _influence(self, at: np.ndarray) -> np.ndarray:
        block, part = positions(self.spend, at)
        spend, gain = self._ledger.own(int(block[0]), float(part[0]))
        weight, slope, n = self._halves.weight, 0.0, len(spend)
        if block[0] < len(self.spend) - 1:
            half = (self.spend.max() - self.spend[0]) * n ** (-1 / 5) / 2
            ends = np.clip([at[0] - half, at[0] + half], self.spend[0], self.spend.max())
            low, high = values_at(self.spend, self.gain, ends)
            slope = (high - low) / (ends[1] - ends[0])
        own = gain - slope * spend
        return n * weight * (own - weight @ own / weight.sum()) / weight.sum()

    def _paired(self, other: QiniCurve) -> bool:
        """Whether both curves' half-samples are the same, and judge by the same scores."""
        mine, theirs = self._halves, other._halves
        numbers = [(h.n_draws, h.seed, h.n_units) for h in (mine, theirs)]
        arrays = [(c._halves.weight, c._halves.unit_of, c._ledger.scores, c._ledger.spends) for c in (self, other)]
        same = all(a is b or np.array_equal(a, b) for a, b in zip(*arrays, strict=True))
        return same and numbers[0] == numbers[1] and self.held_out == other.held_out


@aligns_rows
@shares_documentation(HALF_SAMPLES)
def qini_curve(
    predicted: Table,
    rewards: Table | HeldOutRewards,
    costs: PerTreatment,
    *,
    cost_scores: Table | HeldOutRewards | None = None,
    baseline: Any = None,
    direction: str | None = None,
    groups: Column | None = None,
    sample_weight: Column | None = None,
    held_out: bool | None = None,
    level: float = 0.95,
    n_bootstrap: int = N_DRAWS,
    random_state: Seed = 0,
) -> QiniCurve:
    """Estimate the gain of each budget, spent first where predictions promise most per cost.

    Of everybody's treatments only those on the upper hull of (cost, predicted reward) are worth buying; the steps along
    all hulls, sorted by predicted gain per cost, are bought in this order, the last one partly: the best plan for every
    budget at once, if predictions were true. Its gain is read off the *scores*, so no optimism is in it as long as
    these did not make the predictions. Steps that promise the same per cost are bought by lot, so that the order of the
    file means nothing: a tree's leaves may predict.

    Parameters
    ----------
    predicted : DataFrame or array of shape (n, K)
        Predicted outcome of every row under every treatment: ``HeldOutRewards.outcomes``, or ``tree.predict_value(X)``
        of a tree learnt elsewhere. A frame's columns are matched by name.
    rewards : HeldOutRewards, or DataFrame or array of shape (n, K)
        Doubly robust scores. :func:`policytree.held_out_rewards` brings rows, clusters, weights and direction along.
    costs : mapping of label to number or (n,) numbers, or array or frame of shape (K,) or (n, K)
        Costs of treatments of each row, in any unit: known, or predicted (with ``cost_scores``). Labels left out of a
        mapping cost nothing. Counted beyond the baseline's.
    cost_scores : HeldOutRewards, DataFrame or array of shape (n, K), optional
        Where costs are not known but estimated: doubly robust scores of the cost as an outcome, from the same rows. The
        plan then goes by ``costs``, what is spent by these scores, whose uncertainty is in the intervals.
    baseline : label, optional
        Everybody's treatment without a budget; by default the first column of ``rewards``, whatever its name. Where a
        treatment is cheaper than the baseline the curve begins with what giving everybody the cheapest saves, at a
        negative budget.
    direction : {"maximize", "minimize"}, optional
        "minimize": a gain is what is saved. Default: that of ``HeldOutRewards``, else "maximize".
    held_out : bool, optional
        True says that the outcomes of these rows had no part in ``predicted`` (nor in predicted costs). Without it (and
        without ``HeldOutRewards``) the curve is marked "training rows" and has no intervals, since none would cover.

    Returns
    -------
    QiniCurve

    Raises
    ------
    InputError
        If an argument cannot be used, or there are fewer than two clusters.

    References
    ----------
    Sverdrup, Wu, Athey & Wager (2024), Qini curves for multi-armed treatment rules, Journal of Computational and
    Graphical Statistics; Imai & Li (2023), Experimental evaluation of individualized treatment rules, Journal of the
    American Statistical Association 118(541), 242-256 (two arms).

    Examples
    --------
    >>> import numpy as np
    >>> from policytree.evaluation import qini_curve
    >>> rng = np.random.default_rng(0)
    >>> effects = np.column_stack([np.zeros(2_000), rng.normal(size=(2_000, 2))])
    >>> scores = effects + rng.normal(size=effects.shape)
    >>> curve = qini_curve(effects, scores, {1: 1.0, 2: 3.0}, held_out=True)
    >>> curve.value_at(0.5)
    Estimate(value=0.523298, standard_error=0.0224, 95% interval [0.479434, 0.567162], n=2000, n_clusters=2000)
    """
    check_level(level)
    judged = Judged.of(rewards, groups=groups, sample_weight=sample_weight, held_out=held_out, direction=direction)
    labels = list(judged.rewards.columns)
    baseline = labels[0] if baseline is None else baseline
    if np.ndim(baseline) or baseline not in labels:
        raise InputError(f"baseline is {baseline!r}, which has no rewards; the treatments are {known_labels(labels)}.")
    b = labels.index(baseline)

    def beyond(values: np.ndarray) -> np.ndarray:
        return values - values[:, [b]]

    cost = beyond(treatment_costs(costs, len(judged.rewards), labels))
    plan = (judged.sign * beyond(_matched(predicted, judged.rewards, "predicted")), cost)
    spends = cost if cost_scores is None else beyond(_cost_scores(cost_scores, rewards, judged.rewards))
    ledger = Ledger(cost_path(*plan), judged.sign * beyond(judged.rewards.to_numpy()), spends)
    halves = judged.half_samples(n_bootstrap, random_state)
    nothing = np.empty(0)
    return _along(QiniCurve(nothing, nothing, baseline, True, level, judged, plan, ledger, halves))


def _along(curve: QiniCurve) -> QiniCurve:
    """The curve with its corners."""
    spend, gain = next(curve._ledger.corners([curve._halves.weight]))
    return replace(curve, spend=spend, gain=gain)


def _matched(table, rewards: pd.DataFrame, argument: str) -> np.ndarray:
    """Numbers in the shape and column order of the rewards."""
    frame = reward_frame(table, argument)
    if frame.shape != rewards.shape:
        raise InputError(f"{argument} has shape {frame.shape}, but rewards has {rewards.shape}; they must agree.")
    if set(frame.columns) == set(rewards.columns):
        return columns_by_label(frame, rewards.columns).to_numpy()
    if isinstance(frame.columns, pd.RangeIndex):
        return frame.to_numpy()
    raise InputError(f"{argument} must have the columns of rewards: {known_labels(rewards.columns)}.")


def _cost_scores(cost_scores, rewards, table: pd.DataFrame) -> np.ndarray:
    """Scores of the cost, of the same rows as the rewards."""
    if isinstance(cost_scores, HeldOutRewards):
        if isinstance(rewards, HeldOutRewards) and not np.array_equal(cost_scores.rows, rewards.rows):
            raise InputError("cost_scores are of other rows than rewards; make both with the same honest= rows.")
        cost_scores = cost_scores.rewards
    return _matched(cost_scores, table, "cost_scores")


def known_labels(labels) -> str:
    """Labels in a sentence."""
    return ", ".join(map(str, labels))


def _number(value: float, argument: str) -> float:
    if not is_real(value) or not np.isfinite(value):
        raise InputError(f"{argument} must be a finite number; got {quoted(value)}.")
    return float(value)
