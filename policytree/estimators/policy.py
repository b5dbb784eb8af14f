"""PolicyTree: the best tree for a matrix of rewards."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
from sklearn.utils.metadata_routing import UNUSED

from policytree.common.typing import Column, PerTreatment, Table
from policytree.common.validation import check_choice, group_codes, treatment_codes, weights
from policytree.encoded.store import EncodedData
from policytree.estimators.arguments import inherits_documentation, own_arguments_first
from policytree.estimators.base import TreeEstimator
from policytree.estimators.constraints import (
    check_constraints,
    make_constraints,
    spend_and_shares,
    worth_of_limits,
)
from policytree.estimators.depth_choice import AUTO, RewardRows, check_number_or_auto, choose_depth
from policytree.estimators.encoded_fit import fit_encoded
from policytree.estimators.inputs import check_number, reward_matrix, weigh
from policytree.estimators.search import Job
from policytree.exceptions import InputError
from policytree.problem.types import Solution
from policytree.solvers.constrained.solve import Budgeted
from policytree.weighting.costs import treatment_costs


@inherits_documentation
@own_arguments_first
@dataclass(eq=False, repr=False)
class PolicyTree(TreeEstimator):
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
    min_samples_leaf : int, default 1
        Smallest number of rows in a leaf.
    min_samples_per_treatment : int, default 0
        Smallest number of rows of every arm in a leaf; needs ``T`` at fit.
    direction : {"maximize", "minimize"}, default "maximize"
        Whether larger rewards are better, or smaller ones (rewards are then costs or bad outcomes).
    budget : float, optional
        The most that may be spent a person (unit of ``sample_weight``), on average over the rows of ``fit``, by its
        ``budget_costs``. The tree is the best of those that keep to it. It never spends more on these rows; on other
        people it may, see :func:`policytree.policy_spend`.
    max_share, min_share : mapping of treatment to share, optional
        The most, or least, of the people (of the weight) that may get a treatment, again on the rows of ``fit``.

    Attributes
    ----------
    treatments_ : ndarray of shape (K,)
        The arms' labels: the columns of ``rewards``, or 0 .. K - 1.
    objective_value_ : float
        Mean reward of the training rows under the tree, less (plus, if minimised) the price of its leaves and
        ``expected_cost_`` (this not where ``max_expected_cost`` limits it).
    node_values_ : ndarray of shape (node_count, K)
        Mean training reward of every arm in every node.
    max_depth_ : int or None
        The depth up to which trees were searched.
    regularization_ : float
        The price of a leaf with which they were.
    depth_choice_ : DepthChoice or None
        How the depth was chosen, with the value of every depth; None if it was given.
    spend_ : float or None
        What the tree spends a person on the rows of ``fit``; None without a budget. With limits only, as:
    shares_ : dict
        The share of these rows' weight that gets each arm.
    multipliers_ : dict
        What limits are worth: mean reward per unit of budget ("budget"), of expected cost ("expected_cost"), or per
        share ("max_share" and "min_share", each by arm), at the price with the best bound. Zero if a limit does not
        bind.

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
    budget: float | None = None
    max_share: Mapping[Any, float] | None = None
    min_share: Mapping[Any, float] | None = None

    # To scikit-learn's metadata routing the rewards are the target, whatever their name. Groups are those of a splitter
    # unless somebody asks for them: few fits choose a depth.
    __metadata_request__fit: ClassVar = {"rewards": UNUSED, "groups": False}
    __metadata_request__score: ClassVar = {"rewards": UNUSED}

    def fit(
        self,
        X: Table | EncodedData,
        rewards: Table | None = None,
        T: Column | None = None,
        *,
        sample_weight: Column | None = None,
        sample_treatment_costs: PerTreatment | None = None,
        budget_costs: PerTreatment | None = None,
        groups: Column | None = None,
    ) -> Self:
        """Find the tree.

        Parameters
        ----------
        X : DataFrame or array-like of shape (n, p), or EncodedData
            What the tree may split on. Text and categorical columns are split one against the rest; missing values
            go to the side that is better. Rows that :func:`policytree.encode` wrote come with rewards and weights, and
            nothing else is passed then.
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
            Costs that count against ``budget``, in any unit; nothing else. Treatments that a mapping leaves out cost
            nothing; a negative cost is a saving. Numbers of up to nine decimals count as they are written.
        groups : array-like of shape (n,), optional
            Clusters; used by ``max_depth="auto"``, whose folds never split one.

        Returns
        -------
        PolicyTree
            This estimator, fitted.

        Raises
        ------
        InputError
            If an argument has the wrong shape, type or range, or no tree keeps to budget and shares; the message names
            it, and the least that can be spent.
        """
        if isinstance(X, EncodedData):
            given = {"rewards": rewards, "T": T, "sample_weight": sample_weight, "budget_costs": budget_costs}
            return fit_encoded(self, X, given | {"sample_treatment_costs": sample_treatment_costs, "groups": groups})
        job = self._prepare(X, rewards, T, sample_weight, sample_treatment_costs, budget_costs, groups)
        return self._fit_job(job)

    def _prepare(
        self, X, rewards, T=None, sample_weight=None, sample_treatment_costs=None, budget_costs=None, groups=None
    ) -> Job:
        """Check the data, learn names and treatments, and choose what is to be chosen."""
        self._check_arguments()
        X = self._table(X, reset=True)
        rewards, self.treatments_ = reward_matrix(rewards, len(X))
        losses = rewards if self.direction == "minimize" else -rewards
        if sample_treatment_costs is not None:
            losses = losses + treatment_costs(sample_treatment_costs, len(rewards), self.treatments_)
        arms = self._arms(T, len(X))
        spending = check_constraints(self, self.treatments_, len(X), budget_costs)
        given = weights(sample_weight, len(X), "X")
        clusters = group_codes(groups, len(X))
        kept = slice(None) if given is None else given > 0
        X, losses, arms, weight = weigh(X, losses, arms, sample_weight)
        rows = RewardRows(
            X, losses, weight, arms, *(None if each is None else each[kept] for each in (spending, clusters))
        )
        if self.regularization == AUTO:
            self.regularization_ = rows.price()
        self.depth_choice_ = None
        if self.max_depth == AUTO:
            self.depth_choice_ = choose_depth(self, rows)
            self.max_depth_ = self.depth_choice_.max_depth
        return self._job_of(rows)

    def _job_of(self, rows: RewardRows) -> Job:
        """The search for the best tree on these rows."""
        values = rows.losses if self.direction == "minimize" else -rows.losses
        job = self._job(rows.X, rows.losses, values, rows.weight, self.treatments_, rows.arms)
        asked = make_constraints(self, self.treatments_, rows.spending, rows.weight)
        return replace(job, constraints=(*asked, *job.constraints))

    def _tree_size(self) -> tuple[int | None, float]:
        depth, price = self.max_depth, self.regularization
        return self.max_depth_ if isinstance(depth, str) else depth, (
            self.regularization_ if isinstance(price, str) else price
        )

    def _keep(self, job: Job, solution: Solution, *, warn: bool = True):
        self.max_depth_, self.regularization_ = self._tree_size()
        return super()._keep(job, solution, warn=warn)

    def _is_plain(self) -> bool:
        return super()._is_plain() and self.budget is self.max_share is self.min_share is None

    def _keep_limits(self, job: Job, found: Budgeted) -> None:
        """Store what limits are worth, what the chosen tree spends, and whom it gives what."""
        labels = self.treatments_.tolist()
        self.multipliers_ = worth_of_limits(job, found, labels)
        self.spend_, self.shares_ = spend_and_shares(job, found, labels)

    def _objective_words(self) -> str:
        return "mean reward"

    def _check_arguments(self) -> None:
        super()._check_arguments()
        check_number("min_samples_per_treatment", self.min_samples_per_treatment, 0, integer=True)
        check_choice(self.direction, "direction", ("maximize", "minimize"))

    def _check_tree_size(self) -> None:
        check_number_or_auto("max_depth", self.max_depth, integer=True, none=True)
        check_number_or_auto("regularization", self.regularization)

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

        In-sample means of a tree chosen on the same rewards are optimistic: use :func:`cross_val_policy_value` for
        an honest value.
        """
        leaves = self.apply(X)
        return self.node_values_[leaves]

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

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = False
        return tags
