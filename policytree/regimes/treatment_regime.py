"""TreatmentRegime: one rule per decision, learnt backwards with a proof a stage, or both stumps of two at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from policytree.common.nested_parameters import NestedParameters
from policytree.common.row_labels import aligns_rows
from policytree.common.typing import Column, Seed, Table
from policytree.common.validation import check_choice, is_whole
from policytree.estimators.doubly_robust import DRPolicyTree
from policytree.estimators.leaf_sizes import of_any_size
from policytree.estimators.policy import PolicyTree, plain_tree
from policytree.exceptions import InputError, quoted
from policytree.regimes.checking import check_stages, course_like
from policytree.regimes.course import Course, Decision
from policytree.regimes.eligibility import eligibility
from policytree.regimes.export import (
    regime_from_json,
    regime_json,
    regime_python,
    regime_rules,
    regime_sql,
    regime_text,
)
from policytree.regimes.induction import (
    Known,
    charges,
    known_at,
    net,
    positions,
    refuse_denied,
    silent_on_denied,
    stage_arguments,
    within_allowed,
)
from policytree.regimes.joint import best_stump_pair
from policytree.regimes.sequences import sequence_overlap
from policytree.regimes.stages import Stage
from policytree.trees.short_thresholds import readable
from policytree.trees.tree import Tree
from policytree.weighting.propensities import warn_of_small
from policytree.weighting.study_data import REFUSE, WEIGHT, by_columns

if TYPE_CHECKING:
    from policytree.plotting.regimes import RegimeDisplay

BACKWARD, JOINT = "backward", "joint"
DOUBLY_ROBUST, INVERSE_PROBABILITY = "dr", "ipw"
_JOINT_REFUSES = (
    "regularization", "min_samples_per_treatment", "feature_costs", "guesses", "root_feature", "max_leaf_nodes",
)  # fmt: skip


@dataclass(eq=False, repr=False)
class TreatmentRegime(NestedParameters):
    """A treatment regime: a policy tree for every one of several decisions, such as a first line and what follows.

    Stages are learnt backwards from doubly robust scores: the last tree from the last outcome, every earlier one from
    its own utility and the scores of what the later trees bring. Every stage may have other treatments, other
    covariates, other people and other costs.

    Parameters
    ----------
    stages : DRPolicyTree, list of DRPolicyTree, or None
        Unfitted estimators: one that is cloned for every stage, or one per stage. ``DRPolicyTree()`` by default. Models
        of outcomes and treatments, depth, budget and so on are theirs.
    search : {"backward", "joint"}
        "backward": stage after stage, the last first; each tree is the best one *given* the scores of its stage.
        "joint": two stages with trees of depth one, the best of all pairs of stumps by the score of the whole regime.
        Backward induction need not find it, since a stump cannot be the best rule for all histories, and which
        histories occur depends on the first stage.
    joint_scores : {"dr", "ipw"}
        For "joint", the score of the whole regime. Both are unbiased where the probabilities of treatment are right;
        "dr" subtracts what outcome models expect of the regime by backward induction, which makes it more
        precise.
    history : {"all", "current"} or list
        Columns that trees may use: the whole history (covariates, treatments and outcomes of earlier stages too), the
        stage's own columns, or one of these or a list of columns for every stage. Models of nuisances always see the
        whole history.
    random_state : int, RandomState or None
        For stages whose estimator has none.

    Attributes
    ----------
    stages_ : tuple of DRPolicyTree
        The fitted estimator of every stage: its tree, its certificate, its rewards of the people who were eligible.
    stage_names_ : tuple of str
    eligibility_ : tuple of str
        Facts that tell the people eligible at every stage from the others, such as "outcome (stage 1) = 0"; "" where
        all are, or no one column of the history does.
    scores_ : DataFrame of shape (n, S)
        Value of each person's stage and all later ones under the rules, by the scores that the rules were chosen by;
        NaN for people who were lost before.
    value_ : float
        Mean of the first column of ``scores_``. It flatters the regime, which was chosen by it:
        :func:`policytree.cross_val_policy_value` gives an honest value.
    sequences_ : DataFrame
        How many people followed every sequence of treatments, with their effective sample size.

    Notes
    -----
    Each stage's tree is proved given its scores, which depend on the trees of later stages; with "joint", it is proved
    that no pair of stumps has a larger mean score. Neither proves the regime to be the best in the population.

    References
    ----------
    Nordland and Holst (2026), Policy learning with the polle package, Journal of Statistical Software 116(4) (doubly
    robust value learning). Zhang, Tsiatis, Laber and Davidian (2013), Biometrika 100(3), 681-694. Murphy (2003),
    Journal of the Royal Statistical Society B 65(2), 331-355.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from policytree import DRPolicyTree
    >>> from policytree.regimes import Stage, TreatmentRegime
    >>> rng = np.random.default_rng(0)
    >>> n = 400
    >>> severity, first, second = rng.normal(size=n), rng.integers(2, size=n), rng.integers(2, size=n)
    >>> response = first * severity + rng.normal(size=n)
    >>> outcome = second * (response > 0) - 0.5 * second + rng.normal(size=n)
    >>> stages = [
    ...     Stage(first, X=pd.DataFrame({"severity": severity}), Y=response, propensity=0.5),
    ...     Stage(second, X=pd.DataFrame({"age": rng.normal(size=n)}), Y=outcome, propensity=0.5),
    ... ]
    >>> regime = TreatmentRegime(DRPolicyTree(max_depth=1, cv=2), random_state=0).fit(stages)
    >>> regime.predict([Stage(X=pd.DataFrame({"severity": [-1.0, 1.0]}))]).tolist()
    [0, 1]
    """

    stages: DRPolicyTree | Sequence[DRPolicyTree] | None = None
    _: KW_ONLY
    search: str = BACKWARD
    joint_scores: str = DOUBLY_ROBUST
    history: str | Sequence[Any] = "all"
    random_state: Seed = None

    @aligns_rows
    def fit(
        self,
        stages: Sequence[Stage],
        *,
        sample_weight: Column | None = None,
        groups: Column | None = None,
        strata: Column | Table | None = None,
        missing_outcome: str = REFUSE,
    ) -> Self:
        """Learn the rule of every stage.

        Parameters
        ----------
        stages : list of Stage
            In the order of time, with the same people in the same order.
        sample_weight : array-like of shape (n,), optional
            Weights >= 0 of the people.
        groups : array-like of shape (n,), optional
            Clusters of people, such as centres; never split between folds.
        strata : array-like of shape (n,) or table, optional
            Blocks within which treatments were assigned; folds are balanced over them.
        missing_outcome : {"refuse", "weight"}
            Whether missing outcomes are refused, or the people without one stay: what is known of the others is then
            weighted for who was lost, at every stage by what was known there.

        Returns
        -------
        TreatmentRegime
            This estimator, fitted.

        Raises
        ------
        InputError
            If stages do not fit each other or an argument cannot be used; the message names stage and argument.
        """
        check_choice(self.search, "search", (BACKWARD, JOINT))
        check_choice(self.joint_scores, "joint_scores", (DOUBLY_ROBUST, INVERSE_PROBABILITY))
        check_choice(missing_outcome, "missing_outcome", (REFUSE, WEIGHT))
        course = check_stages(
            stages, sample_weight=sample_weight, groups=groups, strata=strata, missing_outcome=missing_outcome
        )
        return self.fit_course(course)

    def fit_course(self, course: Course) -> Self:
        """As :meth:`fit`, of stages that are checked."""
        estimators = self.estimators(len(course))
        if self.search == JOINT:
            self._check_joint(course, estimators)
        self.stage_names_ = tuple(each.name for each in course.decisions)
        self.treatments_ = tuple(each.treatments for each in course.decisions)
        self.eligibility_ = tuple(eligibility(course, s) for s in range(len(course)))
        self._fitted_to = course.take(np.arange(0))
        fitted: list[DRPolicyTree] = []
        scores, to_go = np.empty((course.n, len(course))), np.zeros(course.n)
        for s in reversed(range(len(course))):
            to_go = course.decisions[s].outcome + to_go
            model, to_go = self._fit_stage(estimators[s], course, s, to_go)
            fitted.insert(0, model)
            scores[:, s] = to_go
        self.stages_ = tuple(fitted)
        self.joint_value_: float | None = None
        if self.search == JOINT:
            scores = self._join(course)
        self.scores_ = pd.DataFrame(scores, index=course.index, columns=list(self.stage_names_))
        known = ~np.isnan(scores[:, 0])
        self.value_ = float(np.average(scores[known, 0], weights=course.weight[known]))
        self.sequences_ = sequence_overlap(course, self.chances(course))
        return self

    def estimators(self, n_stages: int) -> list[DRPolicyTree]:
        """Unfitted clones, one per stage."""
        given = self._given()
        each = given * n_stages if self.stages is None or isinstance(self.stages, DRPolicyTree) else given
        if len(each) != n_stages:
            raise InputError(
                f"The regime has {len(each)} estimators, but there are {n_stages} stages; give one for each."
            )
        out = []
        for one in each:
            copy = clone(one).set_params(direction=self.direction)
            out.append(copy if copy.random_state is not None else copy.set_params(random_state=self.random_state))
        return out

    @property
    def direction(self) -> str:
        """Whether larger outcomes are better ("maximize") or smaller ones ("minimize")."""
        directions = {one.direction or "maximize" for one in self._given()}
        if len(directions) > 1:
            raise InputError("All stages must have one direction: their outcomes are summed.")
        return directions.pop() if directions else "maximize"

    @property
    def stated_direction(self) -> str | None:
        """The direction that somebody gave an estimator of a stage; None if nobody did."""
        return next((one.direction for one in self._given() if one.direction is not None), None)

    def _given(self) -> list[DRPolicyTree]:
        """The estimators as they were given: one for all stages, or one for each."""
        given = DRPolicyTree() if self.stages is None else self.stages
        each = [given] if isinstance(given, DRPolicyTree) else list(given)
        if not all(isinstance(one, DRPolicyTree) for one in each):
            raise InputError(f"stages must be a DRPolicyTree or a list of them, one per stage; got {quoted(given)}.")
        return each

    def visible(self, s: int) -> Any:
        """Return the columns for the rule of stage ``s`` (0, 1, ...): "all", "current" or a list of columns."""
        if isinstance(self.history, str):
            check_choice(self.history, "history", ("all", "current"))
            return self.history
        if not isinstance(self.history, Sequence):
            raise InputError(
                f"history must be all, current or a list with an entry per stage; got {quoted(self.history)}."
            )
        if s >= len(self.history):
            raise InputError(
                f"history has {len(self.history)} entries, fewer than there are stages; give one for each."
            )
        each = self.history[s]
        if isinstance(each, str):
            check_choice(each, "history", ("all", "current"))
        return each

    def known(self, course: Course, s: int, rows: np.ndarray) -> Known:
        """Collect what rule and models know of some people at stage ``s``."""
        return known_at(course, s, rows, self.visible(s))

    def _fit_stage(
        self, estimator: DRPolicyTree, course: Course, s: int, outcome: np.ndarray
    ) -> tuple[DRPolicyTree, np.ndarray]:
        """The fitted rule of a stage, and what it and later ones bring everybody."""
        decision = course.decisions[s]
        rows = np.flatnonzero(decision.eligible)
        known, own = self.known(course, s, rows), outcome[rows]
        arguments = stage_arguments(course, s, rows, own, known)
        costs = charges(course, s, rows, own, self.direction)
        _warn_of_small_chances(decision, rows, estimator)
        try:
            with silent_on_denied(course, s):
                by_columns(estimator.fit, **arguments, sample_treatment_costs=costs)
        except InputError as error:
            raise InputError(f"{decision.name}: {error}") from error
        codes = positions(estimator.predict(known.X), decision.treatments)
        refuse_denied(course, s, rows, codes)
        values = net(estimator.rewards_.to_numpy(), costs, self.direction)
        to_go = outcome.copy()
        to_go[rows] = values[np.arange(len(rows)), codes]
        return estimator, to_go

    # --- both stages at once ---

    def _check_joint(self, course: Course, estimators: list[DRPolicyTree]) -> None:
        if len(course) != 2:
            raise InputError(f"search='joint' takes two stages; there are {len(course)}. Use search='backward'.")
        for each, name in zip(estimators, ("first", "second"), strict=True):
            if each.max_depth != 1:
                raise InputError(
                    f"search='joint' takes trees of depth one; the {name} stage has max_depth={each.max_depth!r}."
                )
            tree, usual = plain_tree(each), PolicyTree()
            if tree.constraints:
                raise InputError("search='joint' takes no constraints; leave them out, or use search='backward'.")
            for argument in _JOINT_REFUSES:
                if getattr(tree, argument) != getattr(usual, argument):
                    raise InputError(f"search='joint' takes no {argument}; leave it out, or use search='backward'.")

    def joint_rewards(self, course: Course) -> np.ndarray:
        """Scores (n, K1, K2) of everybody under every pair of treatments, larger better; net of costs."""
        first, second = self.stages_
        sign = 1.0 if first.direction == "maximize" else -1.0
        one, two = course.decisions
        direct = self.joint_scores == DOUBLY_ROBUST
        later = np.repeat(two.outcome[:, None], two.n_arms, axis=1)
        later[two.eligible] = _scores(course, 1, second, two.outcome[two.eligible], direct)
        out = np.empty((course.n, one.n_arms, two.n_arms))
        for b in range(two.n_arms):
            outcome = one.outcome + later[:, b]
            out[:, :, b] = outcome[:, None]
            out[one.eligible, :, b] = _scores(course, 0, first, outcome[one.eligible], direct)
        return sign * out

    def _join(self, course: Course) -> np.ndarray:
        """Replace both trees by the best pair; the scores (n, 2) of the two stages under it.

        The best first tree given the second, and the best second tree given the first, are searched by the solver of
        single trees, so that each has its certificate; both have the value of the best pair, or better is impossible.
        """
        rewards = self.joint_rewards(course)
        lost = np.isnan(rewards).any(axis=(1, 2))
        if lost.any():
            raise InputError(
                f"{int(lost.sum())} people were lost at a stage at which they were not eligible; search='joint' cannot "
                "weight for them. Use search='backward'."
            )
        weight, every = course.weight, np.arange(course.n)
        jobs = [self._job(course, s, rewards) for s in (0, 1)]
        (codes1, bins1), (codes2, bins2) = (self._codes(course, s, job) for s, job in enumerate(jobs))
        best = best_stump_pair(
            codes1, codes2, (bins1, bins2), rewards * weight[:, None, None],
            (self._tree_of(0).min_samples_leaf, self._tree_of(1).min_samples_leaf),
            (course.decisions[0].eligible, course.decisions[1].eligible),
        )  # fmt: skip
        second = best.choices(1, codes2)
        first = self._refit(course, 0, rewards[every, :, second])
        second = self._refit(course, 1, rewards[every, first, :])
        self.joint_value_ = float(best.value / weight.sum()) * (1.0 if self.direction == "maximize" else -1.0)
        chosen = rewards[every, first, second] * (1.0 if self.direction == "maximize" else -1.0)
        two = course.decisions[1]
        after = two.outcome - course.spent_at(1)
        after[two.eligible] = self.stages_[1].rewards_.to_numpy()[np.arange(two.eligible.sum()), second[two.eligible]]
        return np.column_stack([chosen, after])

    def _job(self, course: Course, s: int, rewards: np.ndarray) -> Any:
        """The search of a stage's tree, whose thresholds those of the pair are."""
        rows = np.flatnonzero(course.decisions[s].eligible)
        values = rewards[rows].mean(axis=2 - s)
        tree = self._plain_tree(s)
        tree._losses_are_final = False  # a pair's are those of both decisions
        return tree._prepare(self.known(course, s, rows).X, values, sample_weight=None)

    def _plain_tree(self, s: int) -> PolicyTree:
        """The tree of a stage, unfitted, for rewards of which more is better."""
        return self._tree_of(s).set_params(direction="maximize")

    def _tree_of(self, s: int) -> PolicyTree:
        """The tree of a stage, unfitted; "auto" are leaves of any size, since a pair of trees is searched at once."""
        model = self.stages_[s]
        return clone(model.policy_tree_).set_params(**of_any_size(model))

    def _codes(self, course: Course, s: int, job: Any) -> tuple[np.ndarray, np.ndarray]:
        """Codes (n, p) of everybody, zero for who is not eligible, and the number of codes of every feature."""
        data, eligible = job.problem.data, course.decisions[s].eligible
        out = np.zeros((course.n, len(data.codes)), dtype=np.int64)
        out[eligible] = data.codes.T
        return out, np.asarray(data.n_bins)

    def _refit(self, course: Course, s: int, rewards: np.ndarray) -> np.ndarray:
        """The best tree of a stage for rewards (n, K) of everybody; what it gives them, by position."""
        decision, model = course.decisions[s], self.stages_[s]
        rows = np.flatnonzero(decision.eligible)
        X = self.known(course, s, rows).X
        sign = 1.0 if model.direction == "maximize" else -1.0
        frame = pd.DataFrame(sign * rewards[rows], index=X.index, columns=decision.treatments)
        tree = self._tree_of(s)
        weight = None if course.sample_weight is None else course.sample_weight[rows]
        model.policy_tree_ = tree.fit(X, frame, sample_weight=weight)
        codes = np.zeros(course.n, dtype=np.int64)
        codes[rows] = positions(model.predict(X), decision.treatments)
        refuse_denied(course, s, rows, codes[rows])
        return codes

    # --- what was learnt ---

    def chances(self, course: Course) -> list[np.ndarray]:
        """Probabilities of treatment (n, K) at every stage, of the people of the fit; ones where nobody decides."""
        out = []
        for each, model in zip(course.decisions, self.stages_, strict=True):
            values = np.ones((course.n, each.n_arms))
            values[each.eligible] = _estimated(model.reward_estimator_.propensity_)
            out.append(values)
        return out

    def decide(self, course: Course, s: int, rows: np.ndarray) -> np.ndarray:
        """Positions of what the rule of stage ``s`` gives some people of a course."""
        if not len(rows):
            return np.empty(0, dtype=np.int64)
        known, model = self.known(course, s, rows), self.stages_[s]
        codes = positions(model.predict(known.X), self.treatments_[s])

        def expected() -> np.ndarray:
            values = model.reward_estimator_.predict_outcomes(**known.arguments).to_numpy()
            return values if model.direction == "maximize" else -values

        return within_allowed(course, s, rows, codes, expected)

    def predict(self, stages: Sequence[Stage]) -> np.ndarray:
        """Recommend treatments at the last of some stages.

        Parameters
        ----------
        stages : list of Stage
            The history: one entry up to and including the decision in question. Of earlier stages X, T and Y as at fit;
            of the last one X.

        Returns
        -------
        ndarray of shape (n,)
            Labels of treatments; of people who are not eligible, None. Who may not get what the tree says, by the
            stage's ``allowed``, gets the treatment of the best expected outcome among those that are allowed.
        """
        check_is_fitted(self, "stages_")
        course = course_like(stages, self._fitted_to)
        s = len(course) - 1
        rows = np.flatnonzero(course.decisions[s].eligible)
        chosen = self.treatments_[s][self.decide(course, s, rows)]
        if len(rows) == course.n:
            return chosen
        out = np.full(course.n, None, dtype=object)
        out[rows] = chosen
        return out

    def tree(self, stage: int | str) -> DRPolicyTree:
        """The fitted estimator of a stage, by its number (from 1) or its name."""
        check_is_fitted(self, "stages_")
        if isinstance(stage, str) and stage in self.stage_names_:
            return self.stages_[self.stage_names_.index(stage)]
        if is_whole(stage) and 1 <= stage <= len(self.stages_):
            return self.stages_[int(stage) - 1]
        raise InputError(f"There is no stage {stage!r}; stages are {', '.join(self.stage_names_)}, or 1, 2, ....")

    def certificate(self) -> str:
        """State what was proved, and of which tree or pair of trees, in lines of text."""
        check_is_fitted(self, "stages_")
        lines = []
        if self.joint_value_ is not None:
            lines.append(
                "Both trees together: no pair of trees of depth one has a better mean score of the whole regime than "
                f"{self.joint_value_:.6g} on the rows that chose it."
            )
        else:
            lines.append(
                "Proved is the tree of every stage given its scores, which depend on the trees of later stages. The "
                "regime as a whole has no proof."
            )
        for name, model in zip(self.stage_names_, self.stages_, strict=True):
            lines += ["", name, model.policy_tree_.certificate()]
        return "\n".join(lines)

    @property
    def trees_(self) -> list[tuple[str, Tree]]:
        """Name and tree of every stage."""
        check_is_fitted(self, "stages_")
        return [(name, model.tree_) for name, model in zip(self.stage_names_, self.stages_, strict=True)]

    def short_trees(self, course: Course) -> list[tuple[str, Tree]]:
        """Name and tree of every stage, with the shortest thresholds that send all people of the fit the same way."""
        out = []
        for s, (name, tree) in enumerate(self.trees_):
            rows = np.flatnonzero(course.decisions[s].eligible)
            encoded = self.stages_[s].encoder_.encode(self.known(course, s, rows).X)
            out.append((name, readable(tree, encoded)))
        return out

    def plot(self, ax: Any = None, **options: Any) -> RegimeDisplay:
        """Draw the trees of all stages, one under another.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; by default a new figure of the right size.
        **options
            ``title``, ``treatment_colors``, ``fontsize`` and ``unit``, which
            :meth:`policytree.plotting.regimes.RegimeDisplay.plot` describes; ``given``, what the people of a stage have
            in common; and ``stages``, those of ``fit``, for thresholds that are as short as these people allow.

        Returns
        -------
        RegimeDisplay
            With ``figure_`` and ``ax_``.
        """
        from policytree.plotting.regimes import RegimeDisplay

        check_is_fitted(self, "stages_")
        return RegimeDisplay.from_estimator(self, ax=ax, **options)

    def export_text(self, **options: Any) -> str:
        """All rules as indented text, one stage under another; options as in ``policytree.trees.text.export_text``."""
        return regime_text(self.trees_, **options)

    def to_rules(self) -> pd.DataFrame:
        """One row per leaf of every stage: the stage, the rule, its treatment, number and share of people."""
        return regime_rules(self.trees_)

    def export_sql(self, *, stage: str = "stage", values: Sequence[Any] | None = None, **options: Any) -> str:
        """One SQL expression for a table with one row per person and decision.

        Parameters
        ----------
        stage : str
            Column that says which decision a row is about.
        values : sequence, optional
            Its value at every stage; 1, 2, ... by default.
        **options
            ``column``, the name of the result, and ``dialect``, which :func:`policytree.trees.source_code.export_sql`
            describes.
        """
        return regime_sql(self.trees_, stage, values, **options)

    def export_python(self, *, name: str = "policy") -> str:
        """Python source: a function per stage, and one that takes the number of the stage first."""
        return regime_python(self.trees_, name)

    def to_json(self, *, indent: int | None = None) -> str:
        """All trees as JSON with a checksum; :meth:`trees_from_json` reads it."""
        return regime_json(self.trees_, indent=indent)

    @staticmethod
    def trees_from_json(text: str | bytes) -> list[tuple[str, Tree]]:
        """Names and trees of the stages of a regime that :meth:`to_json` wrote.

        Raises
        ------
        InputError
            If the text is no such regime, or was changed.
        """
        return regime_from_json(text)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "stages_")


def _scores(course: Course, s: int, model: DRPolicyTree, outcome: np.ndarray, direct: bool) -> np.ndarray:
    """Scores (n_eligible, K) of an outcome at a stage, by the nuisances of a fitted model, net of costs.

    ``direct`` says whether expected outcomes are subtracted; without them it is inverse probability weighting.
    """
    decision, rewards = course.decisions[s], model.reward_estimator_
    rows = np.flatnonzero(decision.eligible)
    chances = _estimated(rewards.propensity_)
    expected = _estimated(rewards.regression_) if direct else np.zeros_like(chances)
    own, arm = np.arange(len(rows)), decision.arm[rows]
    seen = ~np.isnan(outcome)
    chance = chances[own, arm]
    if not seen.all():
        chance = chance * np.maximum(rewards.observation_.to_numpy(), rewards.min_observed)
    out = expected.copy()
    out[own, arm] += np.where(seen, (np.where(seen, outcome, 0.0) - expected[own, arm]) / chance, 0.0)
    way = model.direction or "maximize"
    return net(out, charges(course, s, rows, outcome, way), way)


def _warn_of_small_chances(decision: Decision, rows: np.ndarray, estimator: DRPolicyTree) -> None:
    """Warn of small known probabilities of treatments that people may get, where they may not get all."""
    if decision.allowed is None or not decision.per_row:
        return
    floor = estimator.min_propensity if estimator.rewards is None else estimator.rewards.min_propensity
    chances = np.where(decision.allowed[rows], decision.chances(rows), 1.0)
    warn_of_small((chances < floor).sum(axis=0), chances.min(axis=0), len(rows), floor, decision.treatments)


def _estimated(frame: pd.DataFrame | None) -> np.ndarray:
    """Nuisances of doubly robust rewards, which always have them."""
    assert frame is not None, "doubly robust rewards have all nuisances"
    return frame.to_numpy()
