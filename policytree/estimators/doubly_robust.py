"""DRPolicyTree: from outcomes and treatments to the best policy tree in one fit."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar, Literal, Self, Unpack, overload

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from policytree.common.calls import StudyLike, study_or_either_order
from policytree.common.docstrings import shares_documentation
from policytree.common.model_count import more_models_follow
from policytree.common.typing import BesideArguments, Column, PerTreatment, Table
from policytree.constraints.checks import check_constraints
from policytree.constraints.people import further_outcomes
from policytree.data.feature_encoder import FeatureEncoder
from policytree.estimators.arguments import SearchArguments, own_arguments_first
from policytree.estimators.certificate import SearchGrid
from policytree.estimators.delegation import OfTree, of_tree, scored_with_treatments
from policytree.estimators.depth_choice import DepthChoice
from policytree.estimators.leaf_sizes import AUTO, leaf_sizes, of_any_size
from policytree.estimators.policy import PolicyTree, plain_tree
from policytree.estimators.views import NotebookView
from policytree.exceptions import InputError, quoted
from policytree.problem.types import Guesses, Solution, Status
from policytree.study_check.directions import agreed_direction, direction_of, name_of
from policytree.trees.tree import Tree
from policytree.weighting.doubly_robust import DoublyRobust
from policytree.weighting.instrument import COMPLIERS
from policytree.weighting.new_rows import known_at_fit
from policytree.weighting.reward_arguments import INSTRUMENT, is_instrumental, is_matched, resolve_scheme
from policytree.weighting.reward_estimator import RewardEstimator
from policytree.weighting.study_data import StudyData
from policytree.weighting.time_to_event.outcome import warn_of_direction


@shares_documentation(PolicyTree)
@own_arguments_first
@dataclass(eq=False, repr=False)
class DRPolicyTree(NotebookView, SearchArguments):
    """Estimate cross-fitted doubly robust rewards, then find the best policy tree for them.

    A replacement for EconML's class of the same name that adds ``score``, any number of treatments and a proof of
    optimality.

    Parameters
    ----------
    model_regression : "auto", scikit-learn regressor or classifier, or mapping of treatment to one
        Outcome model, fitted for every treatment; "auto" mixes ridge (or logistic) regression and boosted small trees.
    model_propensity : "auto" or scikit-learn classifier
        Probabilities of treatment; not used where ``propensity`` is given to ``fit``. "auto" mixes the treatments'
        shares, a multinomial logit and multinomial boosting.
    min_propensity : float in [0, 1/K), default 0.01
        Estimated propensities below this are raised to it.
    cv : int, splitter, list of (train, test) rows, or array of shape (n,), default 5
        Folds of cross-fitting, balanced over treatments.
    rewards : RewardEstimator, optional
        Doubly robust rewards with everything that :class:`RewardEstimator` lets one set, such as repeated cross-fitting
        (``n_repeats``) or an ``executor``, instead of the four arguments above, which are shorthand for
        ``RewardEstimator(model_regression, model_propensity, min_propensity=..., cv=...)``. It is cloned; parameter
        searches reach into it (``rewards__min_propensity``). If it has no ``random_state``, this estimator's is used.
    method : str or Scheme, default "dr"
        The rewards that the tree is found for: doubly robust ones, or "ipw", "regression", "matching" and whatever else
        :class:`RewardEstimator` knows as ``method``, made in the same way on the same rows. Values, also those that
        choose the depth, are doubly robust in any case: how a tree was found is one question, what it is worth another.
        With "regression" give ``max_depth`` a number: predictions for rows that learn come from outcomes of rows that
        judge, so that "auto" still finds splits where there are none.
    max_depth : int, "auto" or None, default "auto"
        Largest number of splits on a path; "auto": from 0 to 3, chosen by the cross-validated value of trees on the
        rows of ``fit``; None: no limit.
    regularization : float, "auto" or None
        The price of a leaf, in the outcome's unit per row. "auto": a quarter of the standard error of a mean
        difference between two arms' rewards. None: "auto" where ``max_depth`` is, else 0.
    min_samples_leaf, min_samples_per_treatment : int or "auto", default "auto"
        Smallest number of rows in a leaf, and of every arm in it. "auto": at least 8 of every arm, more where most
        outcomes are the same, and a hundredth of all rows
        (``policytree.estimators.leaf_sizes.default_leaf_sizes``); any leaf where ``min_samples_per_treatment`` is
        0 and ``min_samples_leaf`` is "auto".
    direction : {"maximize", "minimize"}, optional
        Whether larger or smaller outcomes are better. If nobody says it, larger ones are taken to be; an outcome whose
        name sounds like harm ("died", "pain_score") is then refused, and any other whose name does not tell makes
        verdicts fragile.
    split_features : list of column names or positions, optional
        The columns that the tree may split on. The nuisance models see every column of ``X``.
    random_state : int, RandomState or None
        Seed of the folds, of learners that take one, and of the search where it needs one.

    Attributes
    ----------
    reward_estimator_ : RewardEstimator
    outcome_estimators_ : dict of str to RewardEstimator
        Those of further outcomes.
    rewards_ : DataFrame of shape (n, K)
        Doubly robust: what rules are judged by.
    tree_rewards_ : DataFrame of shape (n, K)
        Rewards that the tree was found for: the same, unless ``method`` says otherwise.
    policy_tree_ : PolicyTree
        The fitted policy tree; its fitted attributes, listed below, are also available here.

    Notes
    -----
    ``fit`` and ``score`` accept their arguments in two orders: EconML's, ``fit(Y, T, X=X)``, and scikit-learn's,
    ``fit(X, Y, T=T)``, which applies if two arguments are given by position and ``T`` by name. Pipelines, searches and
    cross-validation use the latter: after ``sklearn.set_config(enable_metadata_routing=True)`` they pass on ``T`` and
    whatever else ``set_fit_request`` and ``set_score_request`` ask for.

    Athey and Wager, "Policy learning with observational data", Econometrica 2021; Zhou, Athey and Wager, "Offline
    multi-action policy learning", Operations Research 2023 (cross-fitted augmented inverse propensity scores, then an
    exact tree search).

    Examples
    --------
    >>> import numpy as np
    >>> from policytree import DRPolicyTree
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(20, 80, size=(200, 1))
    >>> T = rng.permutation(np.repeat(["drug", "none"], 100))
    >>> Y = (T == "drug") * np.where(X[:, 0] > 50, 1.0, -1.0) + rng.normal(size=200)
    >>> model = DRPolicyTree(max_depth=1, cv=2, random_state=0).fit(Y, T, X=X, propensity=0.5)
    >>> model.predict([[30.0], [70.0]]).tolist()
    ['none', 'drug']
    """

    model_regression: Any = "auto"
    model_propensity: Any = "auto"
    _: KW_ONLY
    min_propensity: float = 0.01
    cv: Any = 5
    rewards: RewardEstimator | None = None
    method: Any = "dr"
    max_depth: int | Literal["auto"] | None = "auto"
    regularization: float | Literal["auto"] | None = None
    min_samples_leaf: int | Literal["auto"] = "auto"
    min_samples_per_treatment: int | Literal["auto"] = "auto"
    direction: str | None = None

    # Fitted attributes and methods of ``policy_tree_``.
    tree_ = OfTree[Tree]()
    treatments_ = OfTree[np.ndarray]()
    feature_names_in_ = OfTree[np.ndarray]()
    n_features_in_ = OfTree[int]()
    encoder_ = OfTree[FeatureEncoder]()
    status_ = OfTree[Status]()
    objective_value_ = OfTree[float]()
    objective_bound_ = OfTree[float]()
    optimality_gap_ = OfTree[float]()
    solution_ = OfTree[Solution]()
    guesses_ = OfTree[Guesses | None]()
    search_grid_ = OfTree[SearchGrid]()
    node_values_ = OfTree[np.ndarray]()
    node_costs_ = OfTree[np.ndarray]()
    expected_cost_ = OfTree[float]()
    max_depth_ = OfTree[int | None]()
    regularization_ = OfTree[float]()
    max_leaf_nodes_ = OfTree[int | None]()
    depth_choice_ = OfTree[DepthChoice | None]()
    spend_ = OfTree[float | None]()
    shares_ = OfTree[dict[Any, float]]()
    multipliers_ = OfTree[dict[str, Any]]()
    price_of_limits_ = OfTree[float]()
    outcome_means_ = OfTree[dict[str, float]]()
    subgroup_values_ = OfTree[pd.DataFrame | None]()

    predict = of_tree(PolicyTree.predict)
    predict_value = of_tree(PolicyTree.predict_value)
    apply = of_tree(PolicyTree.apply)
    predict_to_file = of_tree(PolicyTree.predict_to_file)
    streamed_values = of_tree(PolicyTree.streamed_values)
    streamed_leaves = of_tree(PolicyTree.streamed_leaves)
    decision_path = of_tree(PolicyTree.decision_path)
    measurement_cost = of_tree(PolicyTree.measurement_cost)
    get_depth = of_tree(PolicyTree.get_depth)
    get_n_leaves = of_tree(PolicyTree.get_n_leaves)
    get_used_features = of_tree(PolicyTree.get_used_features)
    certificate = of_tree(PolicyTree.certificate)
    export_text = of_tree(PolicyTree.export_text)
    export_graphviz = of_tree(PolicyTree.export_graphviz)
    export_sql = of_tree(PolicyTree.export_sql)
    export_python = of_tree(PolicyTree.export_python)
    to_dict = of_tree(PolicyTree.to_dict)
    to_json = of_tree(PolicyTree.to_json)
    to_rules = of_tree(PolicyTree.to_rules)
    to_sklearn = of_tree(PolicyTree.to_sklearn)
    sklearn_table = of_tree(PolicyTree.sklearn_table)
    plot = of_tree(PolicyTree.plot)
    plot_partition = of_tree(PolicyTree.plot_partition)

    # Metadata that scikit-learn's tools pass on without being asked to: there is no fit, and no value, without T.
    __metadata_request__fit: ClassVar = {"T": True}
    __metadata_request__score: ClassVar = {"T": True}

    @overload
    def fit(self, study: StudyLike, /) -> Self: ...
    @overload
    def fit(self, Y: Column, T: Column, *, X: Table, **rest: Unpack[BesideArguments]) -> Self: ...
    @overload
    def fit(self, X: Table, Y: Column, *, T: Column, **rest: Unpack[BesideArguments]) -> Self: ...

    @shares_documentation(PolicyTree.fit, RewardEstimator.fit)
    @study_or_either_order
    def fit(
        self,
        Y: Column,
        T: Column,
        *,
        X: Table,
        W: Table | None = None,
        propensity: PerTreatment | None = None,
        sample_weight: Column | None = None,
        groups: Column | None = None,
    ) -> Self:
        """Estimate rewards and find the tree: ``fit(study)``, ``fit(Y, T, X=X)``, or scikit-learn's ``fit(X, Y, T=T)``.

        A :class:`policytree.Study` by position says all that follows.

        Parameters
        ----------
        Y : array-like of shape (n,)
            Outcome.
        T : array-like of shape (n,), or DataFrame of several columns
            Arm each row received, labels of any type. Several treatments at once, a column each, are combined.
        X : DataFrame or array-like of shape (n, p)
            Covariates that the tree may split on; also used by the nuisance models.
        W : DataFrame or array-like of shape (n, q), optional
            Further confounders, for the nuisance models only.
        propensity : optional
            Known randomisation probabilities; see :meth:`RewardEstimator.fit`.
        sample_weight : array-like of shape (n,), optional
        groups : array-like of shape (n,), optional
            Clusters; never split between folds.

        Returns
        -------
        DRPolicyTree
            This estimator, fitted.

        Raises
        ------
        InputError
            If an argument cannot be used, or the order of arguments is neither of the two; the message names it and
            the remedy.
        """
        data = StudyData.read(
            "fit", Y, T=T, X=X, W=W, propensity=propensity, sample_weight=sample_weight, groups=groups
        )
        stated = agreed_direction(self.direction, data.direction)
        way = direction_of(stated, name_of(data), times=data.times is not None).way
        tree = plain_tree(self, direction=way)
        tree._check_arguments()  # before minutes of nuisance fits
        rewards = self._reward_estimator(data.instrument is not None)
        if data.sample_treatment_costs is not None and rewards.estimand == COMPLIERS:
            raise InputError(
                "sample_treatment_costs would be paid for everybody, but with estimand='compliers' only those who "
                "follow the instrument count; subtract what was paid from Y instead: Y - cost * (T == treatment)."
            )
        encoded = tree._table(data.X, reset=True)
        tree._column_arguments(tree.encoder_.features)
        if data.study is not None and self.min_samples_per_treatment not in (AUTO, 0):
            raise InputError(
                "min_samples_per_treatment counts treated rows, and people of the target have no treatment; use "
                "min_samples_leaf, which counts rows of study and target together."
            )
        warn_of_direction(data.times, way)
        self._check_method(rewards, data)
        further = further_outcomes(data.outcomes)
        if further and (data.instrument is not None or data.study is not None):
            raise InputError("outcomes know no instrument and no other population yet; leave one of them out.")
        own, labels = data.of_study(), data.treatments
        blank = {name: (np.zeros((own.n, len(labels))), way) for name, (_, way) in further.items()}
        check_constraints(tree, labels, data.n, data.budget_costs, blank, data.subgroups)
        self._received = labels[own.arm]
        if of_any_size(self):
            tree.set_params(**leaf_sizes(self, data))
        tree._load_in_background(encoded, len(labels))  # while nuisance models are fitted
        with _progress(self.verbose):
            with more_models_follow() if further or is_matched(self) else nullcontext():
                self.rewards_ = self.tree_rewards_ = rewards.fit(data).rewards_
            if not self._learns_from_its_judge:
                with more_models_follow() if further else nullcontext():
                    self.tree_rewards_ = rewards.rewards_by(self.method, data)
            self.reward_estimator_ = rewards
            self.outcome_estimators_, of_outcomes = {}, {}
            for name, (column, way) in further.items():
                own = self._reward_estimator(False)
                try:
                    own.fit(data.with_outcome(column))
                except InputError as error:
                    raise InputError(f"outcomes[{name!r}]: {error}") from error
                self.outcome_estimators_[name] = own
                of_outcomes[name] = own.rewards_, way
        per_person, weight = rewards.per_person(self.tree_rewards_, data.learning_weight, data.study)
        job = tree._prepare(
            data.X,
            per_person,
            data.T if data.study is None else None,  # min_samples_per_treatment counts them, and the target has none
            weight,
            data.sample_treatment_costs,
            data.budget_costs,
            data.labels,
            of_outcomes or None,
            data.subgroups,
            judging=None if self._learns_from_its_judge else self.rewards_,
        )
        self.policy_tree_ = tree._fit_job(job)
        return self

    def _reward_estimator(self, has_instrument: bool) -> RewardEstimator:
        """The estimator of rewards that the arguments ask for, unfitted."""
        short = {name: getattr(self, name) for name in ("model_regression", "model_propensity", "min_propensity", "cv")}
        if self.rewards is None:
            method, estimand = (INSTRUMENT, COMPLIERS) if has_instrument else ("dr", "all")
            rewards = RewardEstimator(**short, method=method, estimand=estimand, random_state=self.random_state)
            rewards._called = type(self).__name__
            return rewards
        if not isinstance(self.rewards, RewardEstimator):
            raise InputError(f"rewards must be a RewardEstimator or None; got {quoted(self.rewards)}.")
        defaults = RewardEstimator()
        for name, value in short.items():
            if value is not (default := getattr(defaults, name)) and quoted(value) != quoted(default):
                raise InputError(f"{name} is given beside rewards; set it there: rewards=RewardEstimator({name}=...).")
        method, estimand = self.rewards.method, self.rewards.estimand
        if is_instrumental(self.rewards):
            rewards = clone(self.rewards)
        elif estimand != "all" or not (isinstance(method, DoublyRobust) or quoted(method) == quoted("dr")):
            raise InputError(
                "rewards must be doubly robust and of everybody (method='dr', estimand='all'), since rules are judged "
                "by them; for a tree of other rewards set DRPolicyTree(method=...), or fit a RewardEstimator, and a "
                "PolicyTree on what it returns."
            )
        else:
            rewards = clone(self.rewards)
        return rewards if rewards.random_state is not None else rewards.set_params(random_state=self.random_state)

    @property
    def _learns_from_its_judge(self) -> bool:
        """Whether the tree is found for the doubly robust rewards that judge it."""
        return isinstance(self.method, str) and self.method == "dr"

    def _check_method(self, judging: RewardEstimator, data: StudyData) -> None:
        """Refuse a ``method`` that is unknown, or has no meaning for such a study, before minutes of nuisance fits."""
        if self._learns_from_its_judge:
            return
        if data.instrument is not None or data.study is not None:
            raise InputError(
                f"method={quoted(self.method)} knows no instrument and no other population; leave it at 'dr'."
            )
        if is_instrumental(self):
            raise InputError(
                "method='instrument' goes without saying where a study has treatment=Offered(...); leave it at 'dr'."
            )
        resolve_scheme(clone(judging).set_params(method=self.method), data.treatments)

    @overload
    def score(self, study: StudyLike, /) -> float: ...
    @overload
    def score(self, Y: Column, T: Column, *, X: Table, **rest: Unpack[BesideArguments]) -> float: ...
    @overload
    def score(self, X: Table, Y: Column, *, T: Column, **rest: Unpack[BesideArguments]) -> float: ...

    @scored_with_treatments
    @shares_documentation(fit)
    @study_or_either_order
    def score(
        self,
        Y: Column,
        T: Column,
        *,
        X: Table,
        W: Table | None = None,
        propensity: PerTreatment | None = None,
        sample_weight: Column | None = None,
        groups: Column | None = None,
    ) -> float:
        """Doubly robust value of the policy on rows that the fit did not see; greater is better.

        The mean, over the rows, of the doubly robust reward of what the tree gives each of them, by the nuisance models
        of ``fit``; its negative when ``direction="minimize"``, so that searches may maximise it whatever the outcome.
        Neither the price of leaves nor ``feature_costs`` are subtracted. ``score(Y, T, X=X)``, or ``score(X, Y, T=T)``
        as in scikit-learn.

        Parameters
        ----------
        groups : array-like of shape (n,), optional
            Clusters: rows of those that were in the fit are judged only by nuisance models that did not see them; the
            tree did.
        sample_weight : array-like of shape (n,), optional

        Raises
        ------
        InputError
            If a treatment is unknown, or an argument given at fit is missing.
        """
        check_is_fitted(self, "policy_tree_")
        data = StudyData.read(
            "score", Y, T=T, X=X, W=W, propensity=propensity, sample_weight=sample_weight, groups=groups,
            **known_at_fit(self.reward_estimator_, Y),
        )  # fmt: skip
        self.policy_tree_._table(data.X, reset=False)  # refuses other columns than those of the fit, as predict does
        unweighted = data if data.study is not None else replace(data, sample_weight=None)
        rewards = self.reward_estimator_.predict_rewards(unweighted)
        per_person, weight = self.reward_estimator_.per_person(rewards, data.learning_weight, data.study)
        return self.policy_tree_.score(data.X, per_person, weight, data.sample_treatment_costs)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.target_tags.required = True
        return tags


def _progress(verbose: int) -> AbstractContextManager[None]:
    """Show the progress of the models fitted inside, if asked for; imports of displays wait until then."""
    if not verbose:
        return nullcontext()
    from policytree.common.progress import model_progress

    return model_progress()
