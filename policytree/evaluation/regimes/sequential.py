"""Values of any sequence of rules on held-out people, by scores whose models were fitted without them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone

from policytree.estimators.policy import PolicyTree
from policytree.regimes.course import Course
from policytree.regimes.induction import (
    Known,
    charges,
    net,
    positions,
    silent_on_denied,
    stage_arguments,
    within_allowed,
)
from policytree.regimes.treatment_regime import TreatmentRegime
from policytree.weighting.propensities import propensity_matrix
from policytree.weighting.reward_estimator import RewardEstimator
from policytree.weighting.study_data import WEIGHT, by_columns

DOUBLY_ROBUST, INVERSE_PROBABILITY, PLUG_IN_ESTIMATE = "dr", "ipw", "plug_in"
ESTIMATORS = (DOUBLY_ROBUST, INVERSE_PROBABILITY, PLUG_IN_ESTIMATE)

TREE, ARM, OBSERVED, Q_LEARNING, WEIGHTED, ONCE = "tree", "arm", "observed", "q-learning", "weighted", "once"


@dataclass(frozen=True, slots=True)
class Rule:
    """Rule of one stage.

    Attributes
    ----------
    kind : {"tree", "arm", "observed", "q-learning", "weighted", "once"}
        The regime's tree; one treatment for all; what people got; the treatment of the best expected outcome; the tree
        on inverse probability weights; the tree of somebody who decides at this stage only.
    arm : int
        Position of the treatment, for "arm".
    """

    kind: str
    arm: int = -1


Rules = tuple[Rule, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Side:
    """The people who learn, or those who judge, at one stage.

    Attributes
    ----------
    course : Course
    rows : ndarray of int
        Those who are eligible.
    known : Known
    """

    course: Course
    rows: np.ndarray
    known: Known


@dataclass(frozen=True, slots=True, eq=False)
class StageScores:
    """The scores of an outcome at a stage, net of costs, of people who learn and of people who judge.

    Attributes
    ----------
    model : RewardEstimator
    learnt, judged : ndarray of shape (n_eligible, K)
    """

    model: RewardEstimator
    learnt: np.ndarray
    judged: np.ndarray


class SequentialScores:
    """Scores of any sequence of rules for people whom neither rules nor models have seen.

    Models of treatment are those of the regime; models of outcomes are fitted for every sequence of later rules, since
    what a treatment is expected to bring depends on what comes after it.

    Parameters
    ----------
    regime : TreatmentRegime
        Fitted to ``train``.
    train, test : Course
    estimator : {"dr", "ipw", "plug_in"}
        How the people of ``test`` are scored; models learn from doubly robust scores.
    """

    def __init__(self, regime: TreatmentRegime, train: Course, test: Course, estimator: str = DOUBLY_ROBUST):
        self.regime, self.train, self.test, self.estimator = regime, train, test, estimator
        self._to_go: dict[Rules, tuple[np.ndarray, np.ndarray]] = {}
        self._scores: dict[Rules, StageScores] = {}
        self._q: list[RewardEstimator] | None = None
        self._sides = [(self._side(train, s), self._side(test, s)) for s in range(len(train))]
        self._chances = [self._stage_chances(s) for s in range(len(train))]
        self._weighted: list[PolicyTree] | None = None
        self._once: dict[int, PolicyTree] = {}

    @property
    def n_stages(self) -> int:
        """Number of decisions."""
        return len(self.train)

    def _side(self, course: Course, s: int) -> Side:
        rows = np.flatnonzero(course.decisions[s].eligible)
        return Side(course, rows, self.regime.known(course, s, rows))

    def _stage_chances(self, s: int) -> tuple[Any, Any]:
        """Probabilities of treatment of both sides: known ones, or those of the regime's models."""
        learn, judge = self._sides[s]
        known = self.train.decisions[s].propensity
        if known is not None:
            return self.train.decisions[s].chances(learn.rows), self.test.decisions[s].chances(judge.rows)
        model = self.regime.stages_[s].reward_estimator_
        assert model.propensity_ is not None, "doubly robust rewards have models of treatment"
        judged = model.predict_propensity(**judge.known.arguments) if len(judge.rows) else model.propensity_.iloc[:0]
        return _normalised(model.propensity_), _normalised(judged)

    def chances(self) -> tuple[np.ndarray, ...]:
        """Probabilities of treatment (n, K) of the people who judge at every stage; ones where nobody decides."""
        out = []
        for s, (_, judge) in enumerate(self._sides):
            decision = self.test.decisions[s]
            values = np.ones((self.test.n, decision.n_arms))
            given = self._chances[s][1]
            if self.train.decisions[s].propensity is not None:
                given = propensity_matrix(given, len(judge.rows), decision.treatments)
            values[judge.rows] = np.asarray(given)
            out.append(values)
        return tuple(out)

    def value(self, rules: Rules) -> np.ndarray:
        """The score of every person who judges, (n,), under one rule per stage."""
        return self._both(rules)[1]

    def choices(self, s: int, rule: Rule, later: Rules) -> tuple[np.ndarray, np.ndarray]:
        """Positions of what a rule gives the eligible people of both sides at stage ``s``."""
        learn, judge = self._sides[s]
        if rule.kind == TREE:
            return self.regime.decide(self.train, s, learn.rows), self.regime.decide(self.test, s, judge.rows)
        if rule.kind == Q_LEARNING:
            model = self._q_models()[s]
            return self._best(s, learn, _table(model.regression_)), self._best(s, judge, self._predicted(model, judge))
        return self._chosen(s, rule, later, learn), self._chosen(s, rule, later, judge)

    def _chosen(self, s: int, rule: Rule, later: Rules, side: Side) -> np.ndarray:
        """Assign the people of one side by a fixed treatment, or by a tree that is not the regime's."""
        if rule.kind == ARM:
            codes = np.full(len(side.rows), rule.arm)
        else:
            tree = self._weighted_trees()[s] if rule.kind == WEIGHTED else self._tree_once(s)
            codes = positions(_recommended(tree, side.known.X), self.train.decisions[s].treatments)
        return within_allowed(side.course, s, side.rows, codes, self._expected(s, later, side))

    def _both(self, rules: Rules) -> tuple[np.ndarray, np.ndarray]:
        """Scores of people who learn and of people who judge, from the stage on that the first of the rules is for."""
        if not rules:
            return np.zeros(self.train.n), np.zeros(self.test.n)
        if rules in self._to_go:
            return self._to_go[rules]
        s, later = self.n_stages - len(rules), rules[1:]
        outcomes = self._outcomes(s, later)
        if rules[0].kind == OBSERVED:
            out = self._as_observed(s, later, outcomes)
        else:
            scores, chosen = self._stage_scores(later), self.choices(s, rules[0], later)
            out = tuple(outcome.copy() for outcome in outcomes)  # type: ignore[assignment]
            for side, values, codes, to_go in zip(
                self._sides[s], (scores.learnt, scores.judged), chosen, out, strict=True
            ):
                to_go[side.rows] = values[np.arange(len(side.rows)), codes]
        self._to_go[rules] = out
        return out

    def _outcomes(self, s: int, later: Rules) -> tuple[np.ndarray, np.ndarray]:
        """Sum the outcome of stage ``s`` and the values of the later rules, for both sides."""
        after = self._both(later)
        return self.train.decisions[s].outcome + after[0], self.test.decisions[s].outcome + after[1]

    def _as_observed(
        self, s: int, later: Rules, outcomes: tuple[np.ndarray, np.ndarray]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return outcomes under the treatments that people got, net of costs; completed where people were lost."""
        sides, own = self._sides[s], [outcome.copy() for outcome in outcomes]
        if any(np.isnan(outcome[side.rows]).any() for outcome, side in zip(outcomes, sides, strict=True)):
            model = self._stage_scores(later).model
            own[0][sides[0].rows] = model.completed_outcomes()
            known = {"Y": outcomes[1][sides[1].rows], "T": self.test.decisions[s].given(sides[1].rows)}
            own[1][sides[1].rows] = model.predict_own_outcomes(**known, **sides[1].known.arguments)
        sign = 1.0 if self.regime.direction == "maximize" else -1.0
        return own[0] - sign * self.train.spent_at(s), own[1] - sign * self.test.spent_at(s)

    # --- models ---

    def _stage_scores(self, later: Rules) -> StageScores:
        """Scores at the stage before the first of the later rules."""
        if later not in self._scores:
            self._scores[later] = self._fit_scores(later)
        return self._scores[later]

    def _fit_scores(self, later: Rules) -> StageScores:
        s = self.n_stages - len(later) - 1
        learn, judge = self._sides[s]
        outcomes = self._outcomes(s, later)
        own = outcomes[0][learn.rows], outcomes[1][judge.rows]
        chances = self._chances[s]
        stage = self.regime.stages_[s]
        if all(rule.kind == TREE for rule in later):
            model, given = stage.reward_estimator_, self.test.decisions[s].chances(judge.rows)
        else:
            arguments = stage_arguments(self.train, s, learn.rows, own[0], learn.known) | {"propensity": chances[0]}
            with silent_on_denied(self.train, s):
                model, given = by_columns(clone(stage.reward_estimator_).fit, **arguments), chances[1]
        learnt = net(
            _table(model.rewards_),
            charges(self.train, s, learn.rows, own[0], self.regime.direction),
            self.regime.direction,
        )
        costs = None if (each := self.test.decisions[s].costs) is None else each[judge.rows]
        judged = net(self._judged(model, s, judge, own[1], given), costs, self.regime.direction)
        return StageScores(model, learnt, judged)

    def _judged(self, model: RewardEstimator, s: int, side: Side, outcome: np.ndarray, chances: Any) -> np.ndarray:
        """Scores (n_eligible, K) of the people who judge, before costs."""
        if not len(side.rows):
            return np.empty((0, side.course.decisions[s].n_arms))
        if self.estimator == PLUG_IN_ESTIMATE:
            return self._predicted(model, side)
        missing = np.isnan(outcome).any() and model._memory.missing_outcome != WEIGHT
        assert not missing, "people were lost among those who judge only where some were among those who learn"
        arguments = {"Y": outcome, "T": side.course.decisions[s].given(side.rows), **side.known.arguments}
        if self.estimator == INVERSE_PROBABILITY:
            arguments["regression"] = np.zeros((len(side.rows), side.course.decisions[s].n_arms))
        with silent_on_denied(side.course, s):
            return _table(model.predict_rewards(**arguments, propensity=chances))

    def _predicted(self, model: RewardEstimator, side: Side) -> np.ndarray:
        """Expected outcomes (n_eligible, K) of the people who judge."""
        if not len(side.rows):
            return np.empty((0, len(model.treatments_)))
        return _table(model.predict_outcomes(**side.known.arguments))

    def _expected(self, s: int, later: Rules, side: Side):
        """Expected outcomes, larger better, for people who may not get what a rule gives them."""

        def expected() -> np.ndarray:
            model = self._stage_scores(later).model
            values = _table(model.regression_) if side is self._sides[s][0] else self._predicted(model, side)
            return values if self.regime.direction == "maximize" else -values

        return expected

    # --- rival rules ---

    def _q_models(self) -> list[RewardEstimator]:
        """Q-learning: models of outcomes if the treatment of the best expected outcome is given ever after."""
        if self._q is None:
            models: list[RewardEstimator] = []
            to_go = np.zeros(self.train.n)
            for s in reversed(range(self.n_stages)):
                learn, outcome = self._sides[s][0], self.train.decisions[s].outcome + to_go
                arguments = stage_arguments(self.train, s, learn.rows, outcome[learn.rows], learn.known)
                arguments["propensity"] = self._chances[s][0]
                with silent_on_denied(self.train, s):
                    model = by_columns(clone(self.regime.stages_[s].reward_estimator_).fit, **arguments)
                values, to_go = _table(model.regression_), outcome.copy()
                best = self._best(s, learn, values)
                to_go[learn.rows] = self._net(s, learn, values)[np.arange(len(learn.rows)), best]
                models.insert(0, model)
            self._q = models
        return self._q

    def _net(self, s: int, side: Side, values: np.ndarray) -> np.ndarray:
        """Outcomes (n_eligible, K) after what treatments cost."""
        costs = side.course.decisions[s].costs
        return net(values, None if costs is None else costs[side.rows], self.regime.direction)

    def _best(self, s: int, side: Side, values: np.ndarray) -> np.ndarray:
        """Positions of the treatments of the best expected outcomes, net of costs, among those that are allowed."""
        allowed = side.course.decisions[s].allowed
        gains = self._net(s, side, values) * (1.0 if self.regime.direction == "maximize" else -1.0)
        return (gains if allowed is None else np.where(allowed[side.rows], gains, -np.inf)).argmax(axis=1)

    def _weighted_trees(self) -> list[PolicyTree]:
        """The tree of every stage on inverse probability weights alone, learnt backwards."""
        if self._weighted is None:
            trees: list[PolicyTree] = []
            to_go = np.zeros(self.train.n)
            sign = 1.0 if self.regime.direction == "maximize" else -1.0
            for s in reversed(range(self.n_stages)):
                decision, side = self.train.decisions[s], self._sides[s][0]
                outcome = decision.outcome - sign * self.train.spent_at(s) + to_go
                own = np.arange(len(side.rows)), decision.arm[side.rows]
                rewards = np.zeros((len(side.rows), decision.n_arms))
                rewards[own] = outcome[side.rows] / _table(self.regime.stages_[s].reward_estimator_.propensity_)[own]
                tree = self._tree(s, rewards, outcome[side.rows])
                codes = positions(tree.predict(side.known.X), decision.treatments)
                to_go = outcome.copy()
                to_go[side.rows] = rewards[np.arange(len(side.rows)), codes]
                trees.insert(0, tree)
            self._weighted = trees
        return self._weighted

    def _tree_once(self, s: int) -> PolicyTree:
        """The tree of somebody who decides at stage ``s`` only, where people are treated as they were afterwards."""
        if s not in self._once:
            later = (Rule(OBSERVED),) * (self.n_stages - s - 1)
            self._once[s] = self._tree(s, self._stage_scores(later).learnt, None)
        return self._once[s]

    def _tree(self, s: int, rewards: np.ndarray, outcome: np.ndarray | None) -> PolicyTree:
        """A tree with the arguments of the regime's; of rewards without the price of what is not allowed if given."""
        stage, side, decision = self.regime.stages_[s], self._sides[s][0], self.train.decisions[s]
        if outcome is not None and decision.allowed is not None:
            denied = charges(_without_costs(self.train, s), s, side.rows, outcome, self.regime.direction)
            rewards = net(rewards, denied, self.regime.direction)
        tree = clone(stage.policy_tree_)
        weight = None if self.train.sample_weight is None else self.train.sample_weight[side.rows]
        frame = pd.DataFrame(rewards, index=side.known.X.index, columns=decision.treatments)
        return tree.fit(side.known.X, frame, decision.given(side.rows), sample_weight=weight)


def _without_costs(course: Course, s: int) -> Course:
    """The same course without the costs of a stage, which are in its outcomes already."""
    decisions = list(course.decisions)
    decisions[s] = replace(decisions[s], costs=None)
    return replace(course, decisions=tuple(decisions))


def _recommended(tree: PolicyTree, X: pd.DataFrame) -> np.ndarray:
    return tree.predict(X) if len(X) else np.empty(0, dtype=object)


def _table(frame: pd.DataFrame | None) -> np.ndarray:
    """Numbers of a frame that there is."""
    assert frame is not None, "doubly robust rewards have all nuisances"
    return frame.to_numpy(dtype=np.float64)


def _normalised(chances: pd.DataFrame) -> pd.DataFrame:
    """Probabilities that sum to one: those that were raised to a floor do not."""
    return chances.div(chances.sum(axis=1), axis=0)
