"""Which rule is surest to gain? The largest lower bound among near-ties, on rows that chose none of them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from policytree.common.calls import StudyLike, refuses_said_by_study
from policytree.common.docstrings import shares_documentation
from policytree.common.shared_arguments import STUDY
from policytree.common.typing import Column, PerTreatment, Seed, Table
from policytree.common.validation import check_count, check_level
from policytree.data.views import Shown, as_text
from policytree.estimators.doubly_robust import DRPolicyTree
from policytree.estimators.leaf_sizes import sized_for
from policytree.evaluation.estimates import Estimate, mean_estimate
from policytree.evaluation.formatting import decimals, size_text
from policytree.evaluation.inference.simultaneous import upper_critical_values
from policytree.evaluation.inputs import known_label
from policytree.evaluation.policy_value.refits import Data, checked_direction, fit_finished
from policytree.evaluation.policy_value.sample_split import judging_rows, rows_of
from policytree.evaluation.stability.rashomon import near_ties
from policytree.evaluation.stability.rashomon_tables import NearTies
from policytree.exceptions import InputError
from policytree.serialization import to_dict, to_json
from policytree.study_check.directions import with_direction
from policytree.trees.text import counted, export_text
from policytree.trees.tree import Tree
from policytree.trees.unseen_values import warn_of_unseen
from policytree.weighting.cluster_robust import (
    covariance_of_means,
    degrees_of_variance,
    mean_and_influence,
    n_units,
    variance_of_mean,
)
from policytree.weighting.study_data import StudyData

BEST = "the best single treatment"
TREE = "tree"
OF_FIT = ("T", "sample_weight", "sample_treatment_costs")  # arguments of the search for near-ties beside X


@dataclass(frozen=True, slots=True, eq=False)
class RuleGain:
    """Gain of a rule over the baseline, by the rows that judge.

    Attributes
    ----------
    name : str
        "tree 0" is the best tree of the rows that learn, "tree 1" another near-tie, "always drug" one treatment for
        everybody.
    tree : Tree
        The rule; of one leaf where it is one treatment for everybody.
    gain : float
        Estimate, in the outcome's unit; larger is better, whatever the direction. Over the best single treatment: over
        the one that is best by the rows that judge.
    standard_error : float
        Of ``gain``, as if rule and baseline had been given; NaN for the baseline itself.
    lower : float
        Lower bound of the gain. The bounds of all candidates hold together.
    """

    name: str
    tree: Tree = field(repr=False)
    gain: float
    standard_error: float
    lower: float


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SurestRule(Shown):
    """The candidate whose gain has the largest lower bound, beside the tree of largest value; ``str()`` reports both.

    Attributes
    ----------
    surest : RuleGain
        The candidate with the largest lower bound.
    largest : RuleGain
        The best tree of the rows that learn: the one of largest value there, which ``estimator`` gives. Where that has
        one leaf, it is called after the treatment.
    candidates : DataFrame
        Index ``rule``; the largest lower bound first. ``n_leaves``, ``columns`` (names that it asks about), ``gain``,
        ``standard_error``, ``lower``, and ``differs``: the share of the judging people (of weight) whom it treats
        otherwise than the tree of largest value.
    over : str
        Baseline of the gains: "the best single treatment" or "always <control>".
    level : float
        ``lower`` is the lower end of intervals of this level that hold together: all bounds are right with a
        probability of ``1 - (1 - level) / 2``.
    critical_value : float
        How many standard errors the bounds lie below the gains (the largest over baselines).
    n_near_ties : int
        Near-ties among which the candidates were chosen, by the rows that learn.
    n, n_clusters : int
        Rows and clusters that judge.
    rows : ndarray of shape (n,)
        Their positions.
    rewards : DataFrame of shape (n, K)
        Their rewards, net of treatment costs, by nuisance models that did not see them.
    estimator : DRPolicyTree
        Fitted to the other rows.

    Examples
    --------
    >>> import numpy as np
    >>> from policytree import DRPolicyTree
    >>> from policytree.evaluation import surest_rule
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(20, 80, size=(400, 1))
    >>> T = rng.permutation(np.repeat(["drug", "none"], 200))
    >>> Y = (T == "drug") * np.where(X[:, 0] > 50, 1.0, -1.0) + rng.normal(size=400)
    >>> found = surest_rule(DRPolicyTree(max_depth=1, random_state=0), Y, T, X=X, propensity=0.5, random_state=0)
    >>> found.predict([[30.0], [70.0]]).tolist()
    ['none', 'drug']
    """

    surest: RuleGain
    largest: RuleGain
    candidates: pd.DataFrame = field(repr=False)
    over: str
    level: float
    critical_value: float
    n_near_ties: int
    n: int
    n_clusters: int
    rows: np.ndarray = field(repr=False)
    rewards: pd.DataFrame = field(repr=False)
    estimator: DRPolicyTree = field(repr=False)

    @property
    def shown(self) -> bool:
        """Whether the surest rule is shown to gain anything: its lower bound is above zero."""
        return self.surest.lower > 0

    @property
    def tree(self) -> Tree:
        """The surest rule as a tree."""
        return self.surest.tree

    def predict(self, X: Table) -> np.ndarray:
        """The treatment that the surest rule gives to every row, in the user's labels; shape (n,)."""
        return np.array(self.tree.actions)[_actions(self.estimator, self.tree, X)]

    def export_text(self, **options: Any) -> str:
        """Return the surest rule as indented text; options as in :func:`policytree.trees.text.export_text`."""
        return export_text(self.tree, **options)

    def to_json(self) -> str:
        """Return the surest rule as JSON; :func:`policytree.serialization.from_json` reads it."""
        return to_json(self.tree)

    def statements(self) -> tuple[str, ...]:
        """State the gains that are shown, and the rows that show them, in sentences."""
        digits = decimals([self.surest.standard_error, self.largest.standard_error])
        wrong, rules = 100 * (1 - self.level) / 2, counted(len(self.candidates), "candidates")
        if self.shown:
            first = f"Shown to gain over {self.over}: {self._gain(self.surest, digits)}."
        else:
            first = f"No rule is shown to gain over {self.over}; the surest is {self._gain(self.surest, digits)}."
        lines = [first]
        if self.largest.name != self.surest.name:
            lines.append(f"The tree of largest value on the rows that learn: {self._gain(self.largest, digits)}.")
        lines.append(
            f"The bounds of all {rules} ({self.n_near_ties:,} near-ties on the rows that learn, and one treatment for "
            f"everybody) hold together; one of them is too high in at most {wrong:.3g}% of studies. They are from "
            f"{size_text(self)} that chose none of the rules."
        )
        return tuple(lines)

    def _gain(self, rule: RuleGain, digits: int) -> str:
        return f"{rule.name}, {rule.gain:+,.{digits}f}, at least {rule.lower:+,.{digits}f}"

    def to_text(self, n_rules: int = 5) -> str:
        """Sentences, the surest candidates, and the rule."""
        return as_text(self._shown(n_rules))

    def _shown(self, n_rules: int = 5) -> list[Any]:
        shown = self.candidates.head(n_rules)
        if self.largest.name not in shown.index:
            shown = pd.concat([shown, self.candidates.loc[[self.largest.name]]])
        digits = decimals([self.surest.standard_error, self.largest.standard_error])
        frame = pd.DataFrame({
            "rule": shown.index,
            "leaves": shown["n_leaves"].to_numpy(),
            "asks about": [", ".join(names) or "-" for names in shown["columns"]],
            "gain": [f"{value:+,.{digits}f}" for value in shown["gain"]],
            "at least": [f"{value:+,.{digits}f}" for value in shown["lower"]],
            "differs": [f"{share:.0%}" for share in shown["differs"]],
        })  # fmt: skip
        return [*self.statements(), frame, f"{self.surest.name}:", self.export_text()]

    def to_dict(self) -> dict[str, Any]:
        """Plain Python values that JSON can hold; trees as by :func:`policytree.serialization.to_dict`."""

        def plain(rule: RuleGain) -> dict[str, Any]:
            error = None if np.isnan(rule.standard_error) else rule.standard_error
            numbers = {"gain": rule.gain, "standard_error": error, "lower": rule.lower}
            return {"rule": rule.name, **numbers, "tree": to_dict(rule.tree)}

        return {
            "surest": plain(self.surest), "largest": plain(self.largest), "shown": self.shown, "over": self.over,
            "level": self.level, "critical_value": self.critical_value, "n_candidates": len(self.candidates),
            "n_near_ties": self.n_near_ties, "n": self.n, "n_clusters": self.n_clusters,
        }  # fmt: skip


@refuses_said_by_study
@shares_documentation(STUDY)
def surest_rule(
    estimator: DRPolicyTree,
    Y: Column | StudyLike,
    T: Column | None = None,
    *,
    X: Table | None = None,
    W: Table | None = None,
    propensity: PerTreatment | None = None,
    groups: Column | None = None,
    sample_weight: Column | None = None,
    epsilon: float | None = None,
    slack: float | None = None,
    n_candidates: int = 50,
    honest: float | Column = 0.5,
    level: float = 0.95,
    time_limit: float | None = None,
    random_state: Seed = None,
) -> SurestRule:
    """Find the rule whose gain has the largest lower bound: among near-ties, and one treatment for everybody.

    The tree of largest value is the luckiest of many that are nearly as good. Another near-tie may gain as much with
    less variance, because it treats fewer people otherwise than the baseline does, or people whose outcomes vary less.
    Some rows learn: nuisance models, the near-ties (:func:`policytree.evaluation.near_ties`), and the candidates among
    them, those with the largest lower bounds there. The other rows judge the candidates, all at once, so that the bound
    of the chosen one holds although it was chosen for its bound. The tree of largest value is one of the candidates.

    Parameters
    ----------
    estimator : DRPolicyTree
        Cloned, and fitted on the rows that learn; of depth three at most.
    epsilon, slack : float, optional
        How near a tie is, on the rows that learn, as in :func:`policytree.evaluation.near_ties`.
    n_candidates : int, default 50
        At most so many trees are judged. More of them make the bounds lower, by little: near-ties are alike.
    honest : float in [0.1, 0.9], or array of shape (n,) of bool, or of row positions
        The share of rows that judge (to the nearest fraction with a denominator of at most ten), drawn in balance over
        treatments, no cluster divided; or which rows.
    level : float
        Bounds are the lower ends of intervals of this level: with 0.95, some bound is too high in at most 2.5 % of
        studies, and so is a gain shown where there is none.
    time_limit : float, optional
        Seconds for the count of near-ties; candidates are then those that were found.
    random_state : int, RandomState or None
        Draws the rows that judge.

    Returns
    -------
    SurestRule

    Raises
    ------
    InputError
        If an argument cannot be used, one of the two parts lacks a treatment, the estimator has limits or another depth
        than near-ties can be found for, or rewards are about other people than those of the study.

    Warns
    -----
    SearchWarning
        If ``time_limit`` ended the count.

    Notes
    -----
    With the gain ``d_ck`` of candidate ``c`` over treatment ``k`` and its standard error ``s_ck``, the bound is ``min_k
    (d_ck - q_k s_ck)``, where ``q_k`` is the quantile of the largest standardised error over the candidates (Gaussian
    multiplier bootstrap of their influences, clusters whole). Over the best of several treatments the minimum needs no
    further correction, since the true gain is that over one of them (intersection-union); where several are equally
    good the bound is cautious. The rule holds for these very trees: a tree that is learnt from all rows is another one.

    In 400 simulated studies a cell (``benchmarks/surest_rule.py``; nominal 97.5 %) bounds over a control held in 97.5
    to 99.0 %, and a gain was shown where there is none in 2.2 %; bounds over the best single treatment are more
    cautious (98.8 to 100 %). Judging many rules at once has its price: the tree of largest value, judged alone, is
    shown to gain about as often as the surest of all candidates.

    References
    ----------
    Chernozhukov, Chetverikov and Kato (2013), Annals of Statistics 41(6), 2786-2819 (multiplier bootstrap of a largest
    estimate). Berger (1982), Technometrics 24(4), 295-300 (intersection-union).

    Examples
    --------
    >>> import numpy as np
    >>> from policytree import DRPolicyTree
    >>> from policytree.evaluation import surest_rule
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(20, 80, size=(400, 1))
    >>> T = rng.permutation(np.repeat(["drug", "none"], 200))
    >>> Y = (T == "drug") * np.where(X[:, 0] > 50, 1.0, -1.0) + rng.normal(size=400)
    >>> found = surest_rule(DRPolicyTree(max_depth=1, random_state=0), Y, T, X=X, propensity=0.5, random_state=0)
    >>> found.shown, found.surest.lower > 0
    (True, True)
    """
    check_level(level)
    check_count(n_candidates, "n_candidates", 1)
    if not isinstance(estimator, DRPolicyTree):
        raise InputError(f"surest_rule takes a DRPolicyTree; got {type(estimator).__name__}.")
    seen = StudyData.read(
        "surest_rule", Y, T=T, X=X, W=W, propensity=propensity, groups=groups, sample_weight=sample_weight
    ).with_covariates()
    estimator = with_direction(estimator, seen.direction)
    direction = checked_direction(estimator)
    if seen.study is not None:
        raise InputError("surest_rule judges rules for the people of the study; leave the target out.")
    baseline = None if seen.control is None else known_label(seen.control, seen.treatments.tolist(), "control")
    estimator = sized_for(estimator, seen)
    data = Data(replace(seen, budget_costs=None, outcomes=None, subgroups=None), direction)
    judging = judging_rows(honest, seen, random_state)
    rows, learning = np.flatnonzero(judging), np.flatnonzero(~judging)
    fitted = fit_finished(estimator, data, learning)
    given = data.fit_arguments(learning)
    taken = {name: given[name] for name in OF_FIT if given.get(name) is not None}
    ties = near_ties(fitted, given["X"], epsilon=epsilon, slack=slack, time_limit=time_limit, **taken)

    sign = 1.0 if direction == "maximize" else -1.0
    over = range(seen.n_arms) if baseline is None else [seen.treatments.tolist().index(baseline)]
    chosen = _screened(ties, sign * data.net(fitted.rewards_.to_numpy(), learning), over, seen.rows(learning),
                       n_candidates)  # fmt: skip
    trees = {_name(i, ties.trees[i]): ties.trees[i] for i in chosen}
    trees |= {_name(0, tree): tree for tree in map(ties.trees.one_leaf, range(seen.n_arms))}
    rewards, x = data.held_out_rewards(fitted, rows), data.covariates(rows)["X"]
    policies = np.array([_actions(fitted, tree, x) for tree in trees.values()])
    found = _judge(policies, sign * rewards.to_numpy(), over, *rows_of(seen, rows), level)
    every = [
        RuleGain(name, tree, *numbers)
        for (name, tree), numbers in zip(trees.items(), zip(*found.numbers, strict=True), strict=True)
    ]
    surest = every[int(np.argmax(found.numbers[2]))]
    table = _table(every, policies, rows_of(seen, rows)[1])
    name = BEST if baseline is None else f"always {baseline}"
    return SurestRule(
        surest, every[0], table, name, level, found.critical, ties.n_trees, found.size.n, found.size.n_clusters, rows,
        rewards, fitted,
    )  # fmt: skip


def _name(number: int, tree: Tree) -> str:
    """Name a candidate."""
    return f"always {tree.actions[tree.action[0]]}" if tree.n_leaves == 1 else f"{TREE} {number}"


def _actions(fitted: DRPolicyTree, tree: Tree, X) -> np.ndarray:
    """Positions of the treatments that a tree gives, for rows of the table that the estimator was fitted to."""
    policy_tree = fitted.policy_tree_
    encoded = policy_tree._table(X, reset=False)
    warn_of_unseen(tree, policy_tree.encoder_, X, encoded)
    return tree.action[tree.apply(encoded)]


def _screened(ties: NearTies, rewards: np.ndarray, over, seen: StudyData, most: int) -> list[int]:
    """Positions of the near-ties to judge: the best tree, and those with the largest lower bounds on their own rows.

    Of trees that decide alike on these rows, the simplest. ``rewards`` (n, K): larger is better.
    """
    kept = np.flatnonzero(seen.weight > 0)  # near-ties know no others
    rewards, weight, groups = rewards[kept], seen.weight[kept], None if seen.groups is None else seen.groups[kept]
    if groups is not None:
        groups = np.unique(groups, return_inverse=True)[1]
    units, every = n_units(weight, groups), np.arange(len(kept))
    lower = np.empty(ties.n_decisions)
    for i in range(ties.n_decisions):
        scores = rewards[every, ties.decided.actions(i)[ties.decided.group]]
        ends = []
        for k in over:
            gain, influence = mean_and_influence(scores - rewards[:, k], weight)
            ends.append(gain - 2.0 * np.sqrt(variance_of_mean(influence, groups, units)))
        lower[i] = min(ends)
    of_decision = ties.decisions()["tree"].to_numpy()
    first = [0] if of_decision[0] == 0 else [0, int(of_decision[0])]
    rest = [int(of_decision[i]) for i in np.argsort(-lower, kind="stable") if of_decision[i] not in first]
    return [*first, *rest][:most]


@dataclass(frozen=True, slots=True)
class _Judgement:
    """Gains, standard errors and lower bounds (M,) each; the critical value; an estimate for the numbers of rows."""

    numbers: tuple[list[float], list[float], list[float]]
    critical: float
    size: Estimate


def _judge(policies: np.ndarray, rewards: np.ndarray, over, groups, weight, level: float) -> _Judgement:
    """Lower bounds of the gains of policies (M, n) over the treatments ``over``; ``rewards`` (n, K), larger is better.

    The bounds hold together with probability ``1 - (1 - level) / 2``.
    """
    scores, of_rows = rewards[np.arange(len(rewards)), policies], np.ones(len(rewards)) if weight is None else weight
    gains, errors, ends, critical = [], [], [], 0.0
    for k in over:
        estimates = [mean_estimate(s, groups=groups, sample_weight=weight, level=level) for s in scores - rewards[:, k]]
        value, error = (np.array([getattr(e, part) for e in estimates]) for part in ("value", "standard_error"))
        if np.isnan(error).any():
            raise InputError("A standard error needs at least two rows or clusters that judge; pass more data.")
        covariance = covariance_of_means(np.column_stack([e.influence for e in estimates]), of_rows, groups)
        # A rule that differs from the baseline for few people has its variance from those few.
        degrees = np.array([max(degrees_of_variance(e.influence, groups, e.n_clusters), 1) for e in estimates])
        width = upper_critical_values(covariance, degrees, 1 - (1 - level) / 2)
        gains.append(value)
        errors.append(error)
        ends.append(value - width * error)
        critical = max(critical, float(width.max()))
    at = np.argmin(gains, axis=0), np.arange(len(policies))
    error = np.array(errors)[at]
    error[error == 0.0] = np.nan  # the baseline against itself
    lower = np.min(ends, axis=0)
    numbers = (np.array(gains)[at].tolist(), error.tolist(), lower.tolist())
    return _Judgement(numbers, critical, estimates[0])


def _table(rules: list[RuleGain], policies: np.ndarray, weight: np.ndarray | None) -> pd.DataFrame:
    """All candidates, the largest lower bound first."""
    frame = pd.DataFrame({
        "n_leaves": [rule.tree.n_leaves for rule in rules],
        "columns": [tuple(rule.tree.features[j].name for j in rule.tree.used_features) for rule in rules],
        "gain": [rule.gain for rule in rules],
        "standard_error": [rule.standard_error for rule in rules],
        "lower": [rule.lower for rule in rules],
        "differs": np.average(policies != policies[0], axis=1, weights=weight),
    }, index=pd.Index([rule.name for rule in rules], name="rule"))  # fmt: skip
    return frame.sort_values("lower", ascending=False, kind="stable")
