"""The material of a report: the fitted model, its data, and the results about it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from policytree.diagnostics.population_overlap import TargetOverlap
from policytree.evaluation.heterogeneity.global_tests import HeterogeneityTest
from policytree.evaluation.instruments.offer_rule import OfferRule
from policytree.evaluation.leaves.honest import HonestLeaves
from policytree.evaluation.policy_value.tables import PolicyValueTable
from policytree.evaluation.sensitivity.marginal import MarginalSensitivity
from policytree.evaluation.sensitivity.omitted_variables import OmittedVariableBounds
from policytree.evaluation.sensitivity.transport import TransportSensitivity
from policytree.evaluation.stability.rashomon_tables import NearTies
from policytree.evaluation.stability.tables import PolicyStability
from policytree.evaluation.targeting.budget_path import BudgetPath
from policytree.evaluation.targeting.pareto_path import ParetoPath
from policytree.evaluation.targeting.qini import QiniCurve
from policytree.evaluation.targeting.rate import Ranking
from policytree.exceptions import InputError
from policytree.report.described import About, Described
from policytree.trees.tree import Tree

RESULTS = (
    PolicyValueTable, HonestLeaves, HeterogeneityTest, Ranking, QiniCurve, BudgetPath, MarginalSensitivity,
    OmittedVariableBounds, PolicyStability, NearTies, OfferRule, TargetOverlap, TransportSensitivity,
    ParetoPath,
)  # fmt: skip
Kind = TypeVar("Kind")


@dataclass(frozen=True, slots=True, eq=False)
class Material:
    """A study, its fitted model, and results by kind.

    Attributes
    ----------
    study : Described
    model : fitted estimator
        DRPolicyTree; or PolicyTree, for rewards from elsewhere.
    tree : Tree
        The model's, with the shortest thresholds that send every row the same way, in the words of labels.
    encoded : ndarray of shape (n, p)
        All rows, as the tree reads them.
    results : tuple
    """

    study: Described
    model: Any
    tree: Tree
    encoded: np.ndarray = field(repr=False)
    results: tuple[Any, ...] = ()

    def of(self, kind: type[Kind]) -> list[Kind]:
        """The results of one kind."""
        return [result for result in self.results if isinstance(result, kind)]

    def only(self, kind: type[Kind]) -> Kind | None:
        """The one result of a kind, or None."""
        found = self.of(kind)
        return found[0] if found else None

    @property
    def rewards(self) -> Any:
        """The fitted RewardEstimator, or None where rewards came from elsewhere."""
        return getattr(self.model, "reward_estimator_", None)

    @property
    def learnt_from(self) -> str:
        """The method of the rewards that the tree was found for; "" where the same rewards judge it."""
        method = getattr(self.model, "method", "dr")
        return "" if isinstance(method, str) and method == "dr" else str(method)

    @property
    def learning(self) -> np.ndarray:
        """Positions of the rows that the model was fitted on: all but those that only judge."""
        honest = self.only(HonestLeaves)
        every = np.arange(self.study.seen.n)
        return every if honest is None else np.setdiff1d(every, honest.rows)

    @property
    def to_target(self) -> bool:
        """Whether rewards are about other people than those of the study."""
        return self.rewards is not None and self.rewards.participation_ is not None

    @property
    def of_whom(self) -> str:
        """Whose values and effects are told, where it is not everybody in the study: words that follow a value."""
        return " in the target" if self.to_target else ""

    @property
    def known_propensity(self) -> bool:
        """Whether propensities were given, as in a trial, and not estimated."""
        rewards = self.rewards
        return rewards is not None and rewards.propensity_ is not None and rewards.models_propensity_ is None

    @property
    def constant_propensity(self) -> bool:
        """Whether everybody had the same probabilities of treatment."""
        if self.rewards is None or self.rewards.propensity_ is None:
            return False
        return bool((np.ptp(self.rewards.propensity_.to_numpy(), axis=0) < 1e-9).all())


def headings(about: About, question: str, aim: str, what: str, *, judged: bool) -> tuple[str, str]:
    """Title and subtitle: the question with its aim; under a title of the user's own the aim stands below it."""
    source = f": {about.source}" if about.source else ""
    goal = f" for {aim}" if about.title else ""
    how = "learnt from data and judged on people who had no part in it" if judged else "learnt from data, not judged"
    return about.title or f"{question}, for {aim}?", f"{what}{goal}, {how}{source}"


def capitalised(text: str) -> str:
    """A text as the beginning of a sentence."""
    return text[:1].upper() + text[1:]


def checked_results(results: Any) -> tuple[Any, ...]:
    """Check that a report takes results of these kinds and numbers, and return them as a tuple.

    Raises
    ------
    InputError
    """
    found = tuple(results) if isinstance(results, list | tuple) else (results,)
    for result in found:
        if not isinstance(result, RESULTS):
            names = ", ".join(kind.__name__ for kind in RESULTS)
            raise InputError(f"results holds a {type(result).__name__}; a report knows {names}.")
    known = (
        PolicyValueTable, HonestLeaves, HeterogeneityTest, PolicyStability, NearTies, OfferRule, TargetOverlap,
        ParetoPath,
    )  # fmt: skip
    for kind in known:
        if sum(isinstance(result, kind) for result in found) > 1:
            raise InputError(f"results holds more than one {kind.__name__}; pass one.")
    return found
