"""Whom first: how much more those gain whom a priority puts first (TOC curve, AUTOC, QINI)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from policytree.common.docstrings import shares_documentation
from policytree.common.row_labels import aligns_rows
from policytree.common.shared_arguments import HALF_SAMPLES
from policytree.common.typing import Column, Seed, Table
from policytree.common.validation import check_choice, check_level, numbers
from policytree.data.feature_encoder import as_pandas
from policytree.data.views import Shown
from policytree.evaluation.estimates import Estimate, estimate_with_error, mean_estimate
from policytree.evaluation.formatting import decimals, interval_text, rows_text
from policytree.evaluation.inference.half_samples import N_DRAWS, HalfSamples
from policytree.evaluation.leaves.summary import HELD_OUT, TRAINING_ROWS
from policytree.evaluation.policy_value.sample_split import HeldOutRewards
from policytree.evaluation.targeting.reward_provenance import Judged
from policytree.evaluation.targeting.toc import Order, by_weight, toc_and_areas
from policytree.exceptions import InputError

if TYPE_CHECKING:
    from policytree.plotting.curves import TOCDisplay

TARGETS = ("AUTOC", "QINI")
SHARES = np.arange(1, 101) / 100
ONLY = "priority"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Ranking(Shown):
    """How well priorities find those who gain most from a treatment.

    Attributes
    ----------
    target : {"AUTOC", "QINI"}
    estimates : mapping of str to Estimate
        The target of every priority, in the outcome's unit: zero for a priority that says nothing about who gains. Its
        influences are derivatives by the rows' weights (the infinitesimal jackknife), its standard error is that of the
        half-samples. NaN on training rows.
    toc : DataFrame
        Columns priority, share, value, standard_error, lower, upper, rows: the mean gain of the first ``share`` of
        people (by weight) less that of all. Intervals hold point by point.
    average_gain : Estimate
        Average gain of everybody: treatment less baseline, in the direction that is better. No interval for a
        rule on training rows.
    treatment, baseline : str
    direction : {"maximize", "minimize"}
    held_out : bool
        Whether these rows' outcomes had no part in the priorities; if they had, every number is flattered and there are
        no intervals.

    Examples
    --------
    >>> import numpy as np
    >>> from policytree.evaluation import rank_average_treatment_effect
    >>> rng = np.random.default_rng(0)
    >>> age = rng.uniform(20, 80, size=500)
    >>> scores = np.column_stack([np.zeros(500), (age > 50) + rng.normal(size=500)])
    >>> ranking = rank_average_treatment_effect({"age": age}, scores, held_out=True)
    >>> ranking.target, list(ranking.estimates), bool(ranking.estimate.lower > 0)
    ('AUTOC', ['age'], True)
    """

    target: str
    estimates: Mapping[str, Estimate]
    toc: pd.DataFrame = field(repr=False)
    average_gain: Estimate
    treatment: str
    baseline: str
    direction: str
    held_out: bool
    _replicates: Mapping[str, np.ndarray] = field(repr=False)  # (n_draws, 1 + shares): target, then TOC
    _halves: HalfSamples = field(repr=False)
    _rows: dict = field(repr=False)  # groups, sample_weight, level

    @property
    def rows(self) -> str:
        """On whose rows all this was computed: "held out" or "training rows"."""
        return HELD_OUT if self.held_out else TRAINING_ROWS

    @property
    def estimate(self) -> Estimate:
        """The target of the priority, where there is only one.

        Raises
        ------
        InputError
            If there are several.
        """
        if len(self.estimates) > 1:
            raise InputError(f"There are several priorities ({', '.join(self.estimates)}); take estimates[name].")
        return next(iter(self.estimates.values()))

    def difference(self, a: str, b: str) -> Estimate:
        """The target of priority ``a`` minus that of ``b``, paired: on the same rows and the same half-samples.

        Raises
        ------
        InputError
            If ``a`` or ``b`` is no priority of this ranking.
        """
        for name in (a, b):
            if name not in self.estimates:
                raise InputError(f"There is no priority {name!r}; there are {', '.join(self.estimates)}.")
        one, other = self.estimates[a], self.estimates[b]
        error = np.nan
        if self.held_out:
            error = float(self._halves.standard_error(self._replicates[a][:, 0] - self._replicates[b][:, 0]))
        return estimate_with_error(one.value - other.value, error, one.influence - other.influence, **self._rows)

    def to_frame(self) -> pd.DataFrame:
        """One row per priority: value, standard_error, lower, upper, and the rows it was computed on."""
        frame = pd.DataFrame({name: e.numbers for name, e in self.estimates.items()}).T
        return frame.assign(rows=self.rows).rename_axis("priority")

    def plot(self, **options: Any) -> TOCDisplay:
        """Draw the TOC curve of every priority: how much more the first so many per cent gain than everybody.

        Options are ``ax``, ``title``, ``unit`` and ``intervals``, as in
        :meth:`policytree.plotting.curves.TOCDisplay.plot`.
        """
        from policytree.plotting.curves import TOCDisplay

        return TOCDisplay(self).plot(**options)

    def __str__(self) -> str:
        digits = decimals(e.standard_error for e in [self.average_gain, *self.estimates.values()])
        mean = self.average_gain
        known = f"{100 * mean.level:g}% interval {interval_text(mean, digits)}"
        known = f", {known}" if np.isfinite(mean.standard_error) else ""
        everybody = f"everybody gains {mean.value:.{digits}f} on average{known}."
        judged = rows_text(mean.n, self.held_out)
        lines = [f"{self.treatment} instead of {self.baseline}, by {judged}: {everybody}"]
        for name, e in self.estimates.items():
            shown = f"{self.target} by {name} {e.value:.{digits}f}"
            if not self.held_out:
                lines.append(f"{shown} ({TRAINING_ROWS}: flattered, no interval).")
                continue
            said = "those put first gain more" if e.lower > 0 else "those put first are not shown to gain more"
            said = "those put first gain less" if e.upper < 0 else said
            lines.append(f"{shown}, {100 * e.level:g}% interval {interval_text(e, digits)}: {said}.")
        return "\n".join(lines)


@aligns_rows
@shares_documentation(HALF_SAMPLES)
def rank_average_treatment_effect(
    priority: Column | Mapping[str, Column] | Table,
    rewards: Table | HeldOutRewards,
    *,
    treatment: Any = None,
    baseline: Any = None,
    target: str = "AUTOC",
    direction: str | None = None,
    groups: Column | None = None,
    sample_weight: Column | None = None,
    held_out: bool | None = None,
    level: float = 0.95,
    n_bootstrap: int = N_DRAWS,
    random_state: Seed = 0,
) -> Ranking:
    """Whether a priority puts first those who gain most from a treatment, and how much more they gain.

    With each row's score (reward of the treatment less reward of the baseline) sorted by priority, highest first,
    TOC(i) is the mean score of the first ``i`` rows minus the mean of all. AUTOC is the mean of the TOC curve, QINI its
    mean weighted by the share treated: AUTOC looks at the first few, QINI at many. A priority that knows nothing has
    zero of both. Rows of equal priority share their mean score, so that their order in the file means nothing: a tree's
    leaves are as good a priority as any.

    Parameters
    ----------
    priority : array of shape (n,), or mapping (DataFrame) of names to such arrays
        Higher is treated first: predicted gains
        (:meth:`~policytree.evaluation.policy_value.sample_split.HeldOutRewards.predicted_gain`), what a tree
        promises in each person's leaf (``tree.predict_value(X)``, a column per treatment), or a risk or an age.
        Several ones are compared on the same rows (:meth:`~policytree.evaluation.targeting.rate.Ranking.difference`).
    rewards : HeldOutRewards, or DataFrame or array of shape (n, K)
        Doubly robust scores. :func:`policytree.held_out_rewards` brings rows, clusters, weights and direction along.
    treatment : label, or any policy, optional
        Treatment of those put first; with two treatments, the one that is not the baseline. With more, name one, or
        pass each person's own treatment.
    baseline : label, or any policy, optional
        Treatment of the others; by default the first column of ``rewards``, whatever it is called.
    target : {"AUTOC", "QINI"}
    direction : {"maximize", "minimize"}, optional
        "minimize": a gain is what the treatment saves. Default: that of ``HeldOutRewards``, else "maximize".
    held_out : bool, optional
        True says that the outcomes of these rows had no part in the priorities: they are baseline covariates, or were
        learnt from other rows. Without it (and without ``HeldOutRewards``) the result is marked "training rows" and has
        no intervals, since none would cover.

    Returns
    -------
    Ranking

    Raises
    ------
    InputError
        If an argument cannot be used, a priority is missing somewhere, or there are fewer than two clusters.

    References
    ----------
    Yadlowsky, Fleming, Shah, Brunskill & Wager (2025), Evaluating treatment prioritization rules via rank-weighted
    average treatment effects, Journal of the American Statistical Association 120(549), 38-51.

    Examples
    --------
    >>> import numpy as np
    >>> from policytree.evaluation import rank_average_treatment_effect
    >>> rng = np.random.default_rng(0)
    >>> age = rng.uniform(20, 80, size=2_000)
    >>> scores = np.column_stack([np.zeros(2_000), (age > 50) + rng.normal(size=2_000)])
    >>> print(rank_average_treatment_effect({"age": age}, scores, held_out=True))
    1 instead of 0, by 2,000 held-out rows: everybody gains 0.494 on average, 95% interval [0.446, 0.542].
    AUTOC by age 0.344, 95% interval [0.296, 0.392]: those put first gain more.
    """
    check_level(level)
    check_choice(target, "target", TARGETS)
    judged = Judged.of(rewards, groups=groups, sample_weight=sample_weight, held_out=held_out, direction=direction)
    n, held_out = len(judged.rewards), judged.held_out
    treatment, baseline = _arms(treatment, baseline, judged.rewards)
    scores = judged.gains(treatment, "treatment") - judged.gains(baseline, "baseline")
    orders = {name: Order.of(values) for name, values in _priorities(priority, n).items()}
    halves = judged.half_samples(n_bootstrap, random_state)
    replicates = _replicates(orders, scores, halves, TARGETS.index(target)) if held_out else {}
    rows: dict = {"groups": judged.groups, "sample_weight": judged.sample_weight, "level": level}
    estimates, curves = {}, []
    for name, order in orders.items():
        areas, curve = toc_and_areas(order, scores, halves.weight, SHARES)
        error = halves.standard_error(replicates[name]) if held_out else np.full(1 + len(SHARES), np.nan)
        influence = by_weight(order, scores, halves.weight, target) * halves.weight * n
        estimates[name] = estimate_with_error(areas[TARGETS.index(target)], error[0], influence, **rows)
        curves.append(_curve(name, curve, error[1:], estimates[name]))
    toc, average = pd.concat(curves, ignore_index=True).assign(rows=judged.rows), mean_estimate(scores, **rows)
    if not held_out and (np.ndim(treatment) or np.ndim(baseline)):  # a rule that may have been learnt here
        average = estimate_with_error(average.value, np.nan, average.influence, **rows)
    return Ranking(
        target, estimates, toc, average, _name(treatment), _name(baseline), judged.direction,
        held_out, replicates, halves, rows,
    )  # fmt: skip


def _replicates(orders: dict[str, Order], scores, halves: HalfSamples, column: int) -> dict[str, np.ndarray]:
    """The target and the TOC curve of every priority in every half-sample, (n_draws, 1 + shares) each."""
    out = {name: np.empty((halves.n_draws, 1 + len(SHARES))) for name in orders}
    for draw, weight in enumerate(halves):
        for name, order in orders.items():
            areas, curve = toc_and_areas(order, scores, weight, SHARES)
            out[name][draw, 0], out[name][draw, 1:] = areas[column], curve
    return out


def _curve(name: str, value: np.ndarray, error: np.ndarray, like: Estimate) -> pd.DataFrame:
    """The TOC curve of one priority with pointwise intervals; the last point is zero by definition."""
    width = error * float(stdtrit(max(like.degrees_of_freedom, 1), 0.5 + like.level / 2))
    columns = {"value": value, "standard_error": error, "lower": value - width, "upper": value + width}
    return pd.DataFrame({"priority": name, "share": SHARES, **columns})


def _arms(treatment, baseline, rewards: pd.DataFrame) -> tuple[Any, Any]:
    """Resolve the treatment of those put first, and the baseline of the others."""
    labels = list(rewards.columns)
    if baseline is None:
        others = [label for label in labels if np.ndim(treatment) == 0 and label != treatment]
        baseline = others[0] if len(labels) == 2 and len(others) == 1 else labels[0]
    if treatment is None:
        others = [label for label in labels if np.ndim(baseline) == 0 and label != baseline]
        if len(others) != 1:
            raise InputError(
                f"There are several treatments to put people first for ({', '.join(map(str, others or labels))}); name "
                "one as treatment, or pass every person's own."
            )
        treatment = others[0]
    if np.ndim(treatment) == np.ndim(baseline) == 0 and treatment == baseline:
        raise InputError(f"treatment and baseline are both {treatment!r}; name what it is compared with as baseline.")
    return treatment, baseline


def _priorities(priority, n: int) -> dict[str, np.ndarray]:
    """Priorities by name, each of ``n`` finite numbers."""
    frame = as_pandas(priority)
    if frame is not None and frame.shape[1] > 1:
        priority = {name: frame[name] for name in frame.columns}
    if not isinstance(priority, Mapping):
        priority = {ONLY: priority}
    if not priority:
        raise InputError("priority names no priority; pass numbers, one per row.")
    out = {}
    for key, values in priority.items():
        name = str(key)
        if name in out:
            raise InputError(f"priority names {name} twice; rename one.")
        argument = name if name == ONLY else f"priority {name}"
        out[name] = numbers(values, argument, n, "give every row a priority, such as the lowest.", "rewards").to_numpy()
    return out


def _name(policy: Any) -> str:
    """How a treatment is called: by its label, or as a rule's."""
    return str(policy) if np.ndim(policy) == 0 else "the rule's own treatment"
