"""PolicyTree: the best tree for a matrix of rewards."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import check_is_fitted

from policytree.common.calls import StudyLike, takes_study_as_table
from policytree.common.row_labels import aligns_rows
from policytree.common.typing import Column, PerTreatment, Table
from policytree.common.validation import check_choice, group_codes, treatment_codes, weights
from policytree.constraints.checks import asked, check_constraints, unlimited
from policytree.constraints.people import group_table
from policytree.data.sources import READ_ROWS
from policytree.encoded.store import EncodedData
from policytree.estimators.arguments import inherits_documentation, own_arguments_first
from policytree.estimators.base import TreeEstimator
from policytree.estimators.depth_choice import DepthChoice, RewardRows, check_number_or_auto, choose_depth
from policytree.estimators.encoded_fit import fit_encoded
from policytree.estimators.inputs import check_number, column_numbers, reward_matrix, weigh
from policytree.estimators.leaf_sizes import AUTO, of_any_size, price_of_leaf
from policytree.estimators.search import Job
from policytree.estimators.within_limits import search_worst_group, spend_and_shares, worth_of_limits
from policytree.exceptions import InputError
from policytree.problem.types import SearchLimits, Solution
from policytree.solvers.constrained.solve import Budgeted
from policytree.weighting.costs import treatment_costs

if TYPE_CHECKING:
    import pandas as pd

    from policytree.study.study import Study


class _FittedPolicy(TreeEstimator):
    """The attributes of a fitted PolicyTree, whose own annotations are its arguments."""

    treatments_: np.ndarray
    max_depth_: int | None
    regularization_: float
    max_leaf_nodes_: int | None
    depth_choice_: DepthChoice | None
    spend_: float | None
    shares_: dict[Any, float]
    price_of_limits_: float
    outcome_means_: dict[str, float]
    subgroup_values_: pd.DataFrame | None


@inherits_documentation
@own_arguments_first
@dataclass(eq=False, repr=False)
class PolicyTree(_FittedPolicy):
    """The best tree of given depth for a matrix of rewards, with a proof.

    Parameters
    ----------
    max_depth : int, "auto" or None, default 2
        Largest number of splits on a path; None means no limit (then set ``regularization``, or
        ``max_leaf_nodes``). "auto": from 0 to 3, chosen by the cross-validated value of trees on the rows of ``fit``
        (``policytree.estimators.depth_choice``).
    regularization : float or "auto", default 0
        The price of a leaf, in mean reward per person: the tree minimises ``mean loss + regularization * leaves``.
        "auto": a quarter of the standard error of a mean difference between two arms' rewards, so that splits which
        gain no more than by chance are left out.
    max_leaf_nodes : int, "auto" or None, default None
        Largest number of leaves. "auto", with ``max_depth="auto"``: trees of the chosen depth ask only about stable
        columns, those that nine of ten trees of cross-validation's folds ask about (or the one that most do), and have
        the fewest leaves whose cross-validated value is within a quarter of a standard error of the best. Half as many
        splits are then on noise (``benchmarks/simplest_rule.py``).
    min_samples_leaf : int, default 1
        Smallest number of rows in a leaf.
    min_samples_per_treatment : int, default 0
        Smallest number of rows of every arm in a leaf; needs ``T`` at fit.
    direction : {"maximize", "minimize"}, default "maximize"
        Whether larger rewards are better, or smaller ones (rewards are then costs or bad outcomes).
    constraints : sequence of policytree.constraints.constraint.Constraint, default ()
        Constraints kept exactly on the rows of ``fit``: a list such as ``[Budget(50.0), Share("drug", most=0.3),
        Limit("harm", 0.1), EqualShares("race", within=0.05)]``. The tree is the best of those that keep to all; on
        other people it may not keep to them, which held-out values say. ``WorstGroup`` changes what is best.

    Attributes
    ----------
    treatments_ : ndarray of shape (K,)
        The arms' labels: the columns of ``rewards``, or 0 .. K - 1.
    objective_value_ : float
        Mean reward of the training rows under the tree, less (plus, if minimised) the price of its leaves and
        ``expected_cost_`` (this not where ``ExpectedCost`` limits it).
    node_values_ : ndarray of shape (node_count, K)
        Mean training reward of every arm in every node.
    max_depth_ : int or None
        The depth up to which trees were searched.
    regularization_ : float
        The price of a leaf with which they were.
    max_leaf_nodes_ : int or None
        The most leaves with which they were.
    depth_choice_ : DepthChoice or None
        How the depth was chosen, with the value of every depth; None if it was given.
    spend_ : float or None
        Mean spending per person on the rows of ``fit``; None without a budget. With limits only, as:
    shares_ : dict
        The share of these rows' weight that gets each arm.
    multipliers_ : dict
        Worth of limits: mean reward per unit of budget ("budget"), of expected cost ("expected_cost"), or per
        share ("max_share" and "min_share", each by arm), or of any other limit by its name ("limit", "share_gap",
        "value_gap"), at the price with the best bound. Zero if a limit does not bind.
    price_of_limits_ : float
        Cost of all limits together: mean reward of the best tree without them less that of this one, on the rows of
        ``fit`` and with the prices of leaves. With constraints only, and not with ``WorstGroup``.
    outcome_means_ : dict
        Means of the further ``outcomes`` under the tree, on the rows of ``fit``.
    subgroup_values_ : DataFrame or None
        By column and group of ``subgroups``: people, mean reward under the tree and share of every treatment, on the
        rows of ``fit``.

    Notes
    -----
    Within budgets and shares, ``objective_bound_`` comes from Lagrange multipliers, and the gap that these leave is
    closed by a search of the trees in it, up to depth three (:mod:`policytree.solvers.constrained.solve`). Deeper trees
    keep their gap, and ``status_`` is HEURISTIC.

    Exact policy trees: Zhou, Athey and Wager, "Offline multi-action policy learning", Operations Research 2023;
    Sverdrup, Kanodia, Zhou, Athey and Wager, "policytree", JOSS 2020.

    Examples
    --------
    >>> import numpy as np
    >>> from policytree import PolicyTree
    >>> X = np.array([[1.0], [2.0], [3.0], [4.0]])
    >>> rewards = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 2.0], [0.0, 2.0]])
    >>> PolicyTree(max_depth=1).fit(X, rewards).predict([[1.5], [3.5]])
    array([0, 1])
    """

    max_depth: int | Literal["auto"] | None = 2
    regularization: float | Literal["auto"] = 0.0
    _: KW_ONLY
    min_samples_leaf: int = 1
    min_samples_per_treatment: int = 0
    direction: str = "maximize"
    _gives_treatments = True

    # To scikit-learn's metadata routing the rewards are the target, whatever their name. Groups are those of a splitter
    # unless somebody asks for them: few fits choose a depth.
    __metadata_request__fit: ClassVar = {"rewards": UNUSED, "groups": False}
    __metadata_request__score: ClassVar = {"rewards": UNUSED}

    @takes_study_as_table
    @aligns_rows
    def fit(
        self,
        X: Table | EncodedData | StudyLike,
        rewards: Table | None = None,
        T: Column | None = None,
        *,
        sample_weight: Column | None = None,
        sample_treatment_costs: PerTreatment | None = None,
        budget_costs: PerTreatment | None = None,
        outcomes: Mapping[str, Any] | None = None,
        subgroups: Table | None = None,
        groups: Column | None = None,
    ) -> Self:
        """Find the tree.

        Parameters
        ----------
        X : DataFrame or array-like of shape (n, p), Study, or EncodedData
            Columns for the tree's splits. A study whose outcome are :class:`policytree.study.Rewards`, and rows that
            :func:`policytree.encoded.encode` wrote, come with rewards and weights, and nothing else is passed then.
            ``categories`` says how text and categorical columns are split; missing values go to the side that is
            better.
        rewards : DataFrame or array-like of shape (n, K)
            Reward of every arm for every row; column names are the arms' labels. Rows belong to those of ``X`` by their
            position: pandas indexes are not aligned.
        T : array-like of shape (n,), optional
            The arm each row received; used by ``min_samples_per_treatment`` only.
        sample_weight : array-like of shape (n,), optional
            Weights >= 0; a row of weight 0 counts as absent.
        sample_treatment_costs : mapping, array-like of shape (K,) or (n, K), optional
            Costs in the reward's unit, subtracted from rewards (added if ``direction="minimize"``).
        budget_costs : mapping, array-like of shape (K,) or (n, K), optional
            Costs that count against a ``Budget``, in any unit; nothing else. Treatments that a mapping leaves out cost
            nothing; a negative cost is a saving. Numbers of up to nine decimals count as they are written.
        outcomes : mapping of name to table of shape (n, K), optional
            Rewards of further outcomes, columns as in ``rewards``, of which a ``Limit`` speaks. A pair of a table and
            "maximize" is an outcome of which more is better, and whose limit is the least mean.
        subgroups : table of shape (n, q), optional
            Columns that divide people into groups, such as sex or region, for ``EqualShares``, ``EqualValues`` and
            ``WorstGroup``, and for ``subgroup_values_``. The tree does not see them unless they are in ``X`` too.
        groups : array-like of shape (n,), optional
            Clusters; used by ``max_depth="auto"``, whose folds never split one.

        Returns
        -------
        PolicyTree
            This estimator, fitted.

        Raises
        ------
        InputError
            If an argument has the wrong shape, type or range, or no tree keeps to all constraints; the message names
            it, and the strictest limit that can be kept.
        """
        if isinstance(X, EncodedData):
            given: dict[str, Any] = {"rewards": rewards, "T": T, "sample_weight": sample_weight, "groups": groups}
            given |= {"sample_treatment_costs": sample_treatment_costs, "budget_costs": budget_costs}
            return fit_encoded(self, X, given | {"outcomes": outcomes, "subgroups": subgroups})
        job = self._prepare(
            X, rewards, T, sample_weight, sample_treatment_costs, budget_costs, groups, outcomes, subgroups
        )
        return self._fit_job(job)

    def _prepare(
        self, X, rewards, T=None, sample_weight=None, sample_treatment_costs=None, budget_costs=None, groups=None,
        outcomes=None, subgroups=None, *, judging=None,
    ) -> Job:  # fmt: skip
        """Check the data, learn names and treatments, and choose what is to be chosen, by the rewards ``judging``."""
        self._check_arguments()
        X = self._table(X, reset=True)
        rewards, self.treatments_ = reward_matrix(rewards, len(X))
        losses = self._losses(rewards, sample_treatment_costs)
        judged = None if judging is None else self._losses(reward_matrix(judging, len(X))[0], sample_treatment_costs)
        arms = self._arms(T, len(X))
        limited = check_constraints(self, self.treatments_, len(X), budget_costs, outcomes, subgroups)
        given = weights(sample_weight, len(X), "X")
        clusters = group_codes(groups, len(X))
        kept = slice(None) if given is None else given > 0
        X, losses, arms, weight = weigh(X, losses, arms, sample_weight)
        clusters, judged = (None if each is None else each[kept] for each in (clusters, judged))
        rows = RewardRows(X, losses, weight, arms, limited.part(kept), clusters, judged)
        if self.regularization == AUTO:
            self.regularization_ = rows.price()
        self.depth_choice_ = None
        if self.max_depth == AUTO:
            self.depth_choice_ = choose_depth(self, rows)
            self.max_depth_, self.max_leaf_nodes_ = self.depth_choice_.max_depth, self.depth_choice_.max_leaf_nodes
        return self._job_of(rows)

    def _losses(self, rewards: np.ndarray, costs: PerTreatment | None) -> np.ndarray:
        """Rewards net of what treatments cost, shape (n, K), turned so that less is better."""
        losses = rewards if self.direction == "minimize" else -rewards
        return losses if costs is None else losses + treatment_costs(costs, len(rewards), self.treatments_)

    def _job_of(self, rows: RewardRows) -> Job:
        """The search for the best tree on these rows."""
        values = rows.losses if self.direction == "minimize" else -rows.losses
        return self._job(rows.X, rows.losses, values, rows.weight, self.treatments_, rows.arms, rows.limited)

    def _search(self, job: Job, solve, report: dict, limits: SearchLimits) -> Solution:
        if not job.worst:
            return super()._search(job, solve, report, limits)
        self._forget()
        own, found = search_worst_group(self, job, limits, solve)
        self._keep_limits(own, found)
        return found.solution

    def _column_arguments(self, features) -> tuple:
        costs, groups, splits, roots = super()._column_arguments(features)
        choice = getattr(self, "depth_choice_", None)
        if choice is not None and choice.stable_columns is not None:
            splits = column_numbers("split_features", choice.stable_columns, features)
        return costs, groups, splits, roots

    def _tree_size(self) -> tuple[int | None, float, int | None]:
        depth, price, leaves = self.max_depth, self.regularization, self.max_leaf_nodes
        return (
            self.max_depth_ if isinstance(depth, str) else depth,
            self.regularization_ if isinstance(price, str) else price,
            self.max_leaf_nodes_ if isinstance(leaves, str) else leaves,
        )

    def _keep(self, job: Job, solution: Solution, *, warn: bool = True):
        self.max_depth_, self.regularization_, self.max_leaf_nodes_ = self._tree_size()
        super()._keep(job, solution, warn=warn)
        self._keep_groups(job)
        return self

    def _keep_groups(self, job: Job) -> None:
        """Store what the tree comes to by further outcomes and by group."""
        self.outcome_means_, self.subgroup_values_ = {}, None
        if job.limited is None or not (job.limited.outcomes or job.limited.subgroups):
            return
        actions = self.tree_.action[self.tree_.apply(job.X)]
        every = np.arange(len(actions))
        self.outcome_means_ = {
            name: float(np.average(values[every, actions], weights=job.weight))
            for name, values in job.limited.outcomes.items()
        }
        if job.limited.subgroups:
            self.subgroup_values_ = group_table(
                job.limited.subgroups, actions, job.values, job.weight, self.treatments_.tolist()
            )

    def _keep_limits(self, job: Job, found: Budgeted) -> None:
        """Store what limits are worth, what the chosen tree spends, and whom it gives what."""
        labels = self.treatments_.tolist()
        self.multipliers_ = worth_of_limits(job, found, labels)
        self.spend_, self.shares_ = spend_and_shares(job, found, labels)
        if not job.worst and "without_limits" in found.solution.guarantees:
            lost = found.solution.objective - float(found.solution.guarantees["without_limits"])
            self.price_of_limits_ = float(lost / job.total_weight)

    def _judged(self, job: Job) -> np.ndarray:
        """Rewards, before anything that the search subtracts from them."""
        return job.values

    def _objective_words(self) -> str:
        return next((words for each in asked(self) if (words := each.objective())), "mean reward")

    def _check_arguments(self) -> None:
        super()._check_arguments()
        check_number("min_samples_per_treatment", self.min_samples_per_treatment, 0, integer=True)
        check_choice(self.direction, "direction", ("maximize", "minimize"))

    def _check_tree_size(self) -> None:
        check_number_or_auto("max_depth", self.max_depth, integer=True, none=True)
        check_number_or_auto("regularization", self.regularization)
        check_number_or_auto("max_leaf_nodes", self.max_leaf_nodes, integer=True, none=True, least=1)
        if self.max_leaf_nodes == AUTO and self.max_depth != AUTO:
            raise InputError("max_leaf_nodes='auto' goes with max_depth='auto'; set that too, or a number of leaves.")

    def _arms(self, T, n: int) -> np.ndarray | None:
        if self.min_samples_per_treatment == 0:
            return None
        if T is None:
            raise InputError("min_samples_per_treatment needs the arm of every row; pass T to fit.")
        return treatment_codes(T, n, self.treatments_)[0]

    def predict(self, X: Table) -> np.ndarray:
        """Return the arm the tree gives to every row, in the user's labels; shape (n,)."""
        leaves = self.apply(X)
        return self.treatments_[self.tree_.action[leaves]]

    def predict_value(self, X: Table) -> np.ndarray:
        """Return the mean training reward of every arm in the leaf of every row; shape (n, K).

        In-sample means of a tree chosen on the same rewards are optimistic: use
        :func:`policytree.cross_val_policy_value` for an honest value.
        """
        leaves = self.apply(X)
        return self.node_values_[leaves]

    @aligns_rows
    def score(
        self,
        X: Table,
        rewards: Table,
        sample_weight: Column | None = None,
        sample_treatment_costs: PerTreatment | None = None,
    ) -> float:
        """Mean reward of the tree's choices on new rows (its negative when ``direction="minimize"``).

        Parameters
        ----------
        X : DataFrame or array-like of shape (n, p)
        rewards : DataFrame or array-like of shape (n, K)
            Reward of every arm for every row; columns in any order.
        sample_weight : array-like of shape (n,), optional
        sample_treatment_costs : mapping, array-like of shape (K,) or (n, K), optional
            Costs in the reward's unit: the mean is then net of what the treatments cost.

        Raises
        ------
        InputError
            If a treatment's column is lacking, or rewards cannot be read.
        """
        leaves = self.apply(X)
        rewards, labels = reward_matrix(rewards, len(leaves))
        position = {label: k for k, label in enumerate(labels.tolist())}
        lacking = [label for label in self.treatments_.tolist() if label not in position]
        if lacking:
            raise InputError(f"rewards lack the column(s) of the treatment(s) {lacking}; add them.")
        columns, every = np.array([position[label] for label in self.treatments_.tolist()]), np.arange(len(leaves))
        chosen = rewards[every, columns[self.tree_.action[leaves]]]
        if sample_treatment_costs is not None:
            costs = treatment_costs(sample_treatment_costs, len(leaves), self.treatments_)
            paid = costs[every, self.tree_.action[leaves]]
            chosen = chosen - paid if self.direction == "maximize" else chosen + paid
        value = float(np.average(chosen, weights=weights(sample_weight, len(chosen), "X")))
        return value if self.direction == "maximize" else -value

    def streamed_values(
        self,
        study: Study,
        *,
        rivals: Mapping[str, Any] | None = None,
        level: float = 0.95,
        batch_rows: int = READ_ROWS,
    ) -> pd.DataFrame:
        """Values of the fitted tree and of every treatment for all, and its advantages, from rows of any number.

        The estimates are those of :func:`policytree.policy_value`: influences are summed within clusters, and only sums
        over rows, or clusters, are kept. Without clusters sums are exact, so that no number depends on batches or on
        the order of rows. Honest only on rows that neither the tree nor the models behind the rewards have seen, such
        as ``stream_rewards(...).held_out``.

        Parameters
        ----------
        study : Study
            Its outcome are :class:`policytree.study.Rewards`, which hold those of the tree's treatments. Rows, in
            memory or larger than it, are read once, a batch at a time; of clusters one number each is kept in memory.
        rivals : mapping of names to fitted trees, optional
            Others, judged by the same reading; this one is called "policy".
        level : float
            Coverage of the intervals.
        batch_rows : int, default 262,144

        Returns
        -------
        DataFrame
            One row a value (``less`` is empty) and one a difference of a tree and what stands in ``less``, with
            ``rule``, ``less``, ``value``, ``standard_error``, ``lower``, ``upper``, ``level``, ``n`` and
            ``n_clusters``.

        Raises
        ------
        InputError
            If a column is missing or cannot be used, a tree gives a treatment without rewards, or there are fewer than
            two rows or clusters.

        Examples
        --------
        >>> import pandas as pd
        >>> from policytree import PolicyTree, Study
        >>> from policytree.study import Rewards
        >>> rows = pd.DataFrame({"age": [30, 40, 50, 60], "none": [1.0, 1, 0, 0], "drug": [0.0, 0, 2, 2]})
        >>> study = Study(rows, outcome=Rewards(["none", "drug"]), covariates=["age"])
        >>> PolicyTree(max_depth=1).fit(study).streamed_values(study)[["rule", "less", "value"]]
                  rule         less  value
        0       policy                 1.5
        1  always none                 0.5
        2  always drug                 1.0
        3       policy  always none    1.0
        4       policy  always drug    0.5
        """
        from policytree.evaluation.streaming.values import streamed_values

        check_is_fitted(self)
        if "policy" in (rivals or {}):
            raise InputError("rivals names 'policy', as this tree is called; give the other tree another name.")
        return streamed_values({"policy": self, **(rivals or {})}, study, level, batch_rows)

    def streamed_leaves(
        self, study: Study, *, held_out: bool = False, level: float = 0.95, batch_rows: int = READ_ROWS
    ) -> pd.DataFrame:
        """Summarise every leaf as :func:`policytree.leaf_summary` does, from any number of rows.

        Only sums over rows, or clusters, are kept. Without clusters sums are exact, so that no number depends on
        batches or on the order of rows.

        Parameters
        ----------
        study : Study
            Its outcome are :class:`policytree.study.Rewards`, of which larger ones are better unless the study, or else
            the tree, says otherwise. If it names the treatment, of the same names, each arm's rows in every leaf are
            counted. Rows, in memory or larger than it, are read once, a batch at a time; of clusters one number a leaf
            and treatment is kept in memory.
        held_out : bool, default False
            Whether neither these rows' outcomes chose the tree nor their nuisance models saw them: only then are there
            intervals.
        level : float
            Coverage of the intervals: of all values together, and of all gains together, over leaves and arms.
        batch_rows : int, default 262,144

        Returns
        -------
        DataFrame
            One row per leaf that has rows, sorted by leaf id: its rows and arm, the value of every arm, and the gain
            over the second-best arm (:func:`policytree.leaf_summary` lists the columns).

        Raises
        ------
        InputError
            If a column is missing or cannot be used, the tree gives a treatment without rewards, or a leaf has no
            weight.

        Examples
        --------
        >>> import pandas as pd
        >>> from policytree import PolicyTree, Study
        >>> from policytree.study import Rewards
        >>> rows = pd.DataFrame({"age": [30, 40, 50, 60], "none": [1.0, 1, 0, 0], "drug": [0.0, 0, 2, 2]})
        >>> study = Study(rows, outcome=Rewards(["none", "drug"]), covariates=["age"])
        >>> PolicyTree(max_depth=1).fit(study).streamed_leaves(study)["arm"].tolist()
        ['none', 'drug']
        """
        from policytree.evaluation.streaming.leaves import streamed_leaves

        check_is_fitted(self)
        return streamed_leaves(self, study, held_out, level, batch_rows)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = False
        return tags


def plain_tree(estimator: Any, **changes: Any) -> PolicyTree:
    """An unfitted PolicyTree with the arguments of an estimator; leaves that a study is to decide are of any size."""
    arguments = {name: getattr(estimator, name) for name in PolicyTree().get_params(deep=False)}
    price = price_of_leaf(estimator.max_depth, estimator.regularization)
    return PolicyTree(**arguments | {"regularization": price} | of_any_size(estimator) | changes)


def without_limits(tree: Any) -> PolicyTree:
    """An unfitted PolicyTree with the same arguments, but for the limits on outcomes and groups."""
    searched = getattr(tree, "policy_tree_", tree)  # whose direction and smallest leaves a study has decided
    return plain_tree(searched, direction=searched.direction or "maximize", constraints=unlimited(asked(tree)))
