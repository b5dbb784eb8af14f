"""Shared arguments of the estimators, and their docstrings."""

import importlib
import inspect
import pickle
import re

import pytest
from sklearn.base import clone
from sklearn.utils import get_tags

from policytree import (
    CostSensitiveTreeClassifier,
    DRPolicyTree,
    LowCostTreeClassifier,
    OptimalTreeClassifier,
    PolicyTree,
    RewardEstimator,
)
from policytree.common.docstrings import shares_documentation
from policytree.estimators.arguments import SearchArguments, inherits_documentation
from policytree.exceptions import InputError
from tests.support.api_pages import listed

ESTIMATORS = [PolicyTree, OptimalTreeClassifier, CostSensitiveTreeClassifier, DRPolicyTree]
each_estimator = pytest.mark.parametrize("estimator", ESTIMATORS)
SHARED = list(inspect.signature(SearchArguments).parameters)


def described(cls, section):
    """Names that a docstring describes in a section, in order."""
    body = re.search(rf"^{section}\n-+\n(.*?)\n(?=\n\w+\n---|\Z)", inspect.getdoc(cls) + "\n", re.M | re.S).group(1)
    titles = [line.split(" : ")[0] for line in body.splitlines() if line and not line.startswith(" ")]
    return [name for title in titles for name in title.split(", ")]


@each_estimator
def test_every_argument_is_described_once(estimator):
    assert sorted(described(estimator, "Parameters")) == sorted(inspect.signature(estimator).parameters)
    attributes = described(estimator, "Attributes")
    assert len(set(attributes)) == len(attributes)
    assert {"tree_", "objective_value_", "objective_bound_", "status_", "node_values_", "guesses_"} <= set(attributes)


@each_estimator
def test_shared_arguments_have_shared_defaults_and_are_given_by_name(estimator):
    own, shared = inspect.signature(estimator).parameters, inspect.signature(SearchArguments).parameters
    for name in SHARED:
        if (estimator, name) != (OptimalTreeClassifier, "time_limit"):  # no depth limit, so a time limit: 60 s
            assert own[name].default == shared[name].default
        assert own[name].kind is inspect.Parameter.KEYWORD_ONLY
    assert set(own) == set(estimator().get_params()) == set(vars(estimator()))


@each_estimator
def test_scikit_learn_sees_an_ordinary_constructor(estimator):
    changed = estimator(max_depth=4, guesses="depth", feature_costs={"a": 1.0}, n_jobs=2)
    assert repr(changed).startswith(f"{estimator.__name__}(") and "max_depth=4" in repr(changed)
    copy = clone(changed)
    assert copy.get_params() == changed.get_params() and copy.feature_costs is not changed.feature_costs
    assert pickle.loads(pickle.dumps(changed)).get_params() == changed.get_params()
    assert copy != changed and len({copy, changed}) == 2  # compared by identity, as scikit-learn does
    assert get_tags(changed) is not None
    with pytest.raises(TypeError, match="unexpected keyword argument 'depth'"):
        estimator(depth=3)


def test_models_come_first_then_outcomes_and_treatments():
    """Then a study can stand for these; covariates and the rest have names."""
    found = {}
    for home, name in sorted(listed()):
        item = getattr(importlib.import_module(home), name)
        if inspect.isfunction(item):
            arguments = inspect.signature(item).parameters.values()
            positional = [each.name for each in arguments if each.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD]
            if {"Y", "T"} & set(positional):
                found[name] = positional
    assert {"cross_val_policy_value", "check_rewards", "balance_table", "overlap_table"} <= set(found)
    for name, positional in found.items():
        data = ["Y", "T"] if "Y" in positional else ["T"]
        assert positional[-len(data) :] == data and not {"X", "W"} & set(positional), name


def test_the_order_of_leading_arguments():
    names = {estimator: list(inspect.signature(estimator).parameters) for estimator in ESTIMATORS}
    assert all(each.index("max_depth") + 1 == each.index("regularization") for each in names.values())
    assert {estimator: each[:2] for estimator, each in names.items()} == {
        PolicyTree: ["max_depth", "regularization"],
        OptimalTreeClassifier: ["max_depth", "regularization"],
        CostSensitiveTreeClassifier: ["costs", "max_depth"],
        DRPolicyTree: ["model_regression", "model_propensity"],
    }


@pytest.mark.parametrize(
    ("estimator", "given"),
    [
        (DRPolicyTree(), "rewards__cv"),
        (PolicyTree(guesses="depth"), "guesses__max_depth"),
        (RewardEstimator(), "model_regression__alpha"),
        (DRPolicyTree(rewards=RewardEstimator()), "rewards__model_regression__alpha"),
    ],
)
def test_arguments_of_what_is_no_estimator_are_refused(estimator, given):
    *_, argument, inner = given.split("__")
    with pytest.raises(
        InputError, match=rf"^{argument}__{inner} sets {inner} of {argument}, but {argument} is .*3\)\.$"
    ):
        estimator.set_params(**{given: 3})


def test_an_estimator_may_be_set_with_its_arguments():
    tree = DRPolicyTree().set_params(rewards=RewardEstimator(), rewards__cv=3)
    assert tree.rewards.cv == 3 and tree.set_params(rewards__cv=4).rewards.cv == 4
    with pytest.raises(ValueError, match="Invalid parameter 'prices'"):
        tree.set_params(prices__cv=3)


@each_estimator
def test_own_arguments_come_first_and_are_described_in_the_order_of_the_signature(estimator):
    own = list(inspect.signature(estimator).parameters)
    assert described(estimator, "Parameters") == own
    assert [name in SHARED for name in own] == sorted(name in SHARED for name in own)


def test_a_function_is_given_entries_of_what_it_takes():
    def source(rows, weights, groups=None):
        """First.

        Parameters
        ----------
        rows : array
        weights, groups : optional
            Of every row.

        Returns
        -------
        int
        """

    @shares_documentation(source)
    def target(weights, own, rows=None):
        """Second.

        Parameters
        ----------
        own : str
            Mine.

        Notes
        -----
        The end.
        """

    lines = target.__doc__.splitlines()
    described = ["weights : optional", "    Of every row.", "own : str", "    Mine.", "rows : array"]
    assert lines[2:] == ["Parameters", "----------", *described, "", "Notes", "-----", "The end."]


@pytest.mark.parametrize("estimator", [*ESTIMATORS, LowCostTreeClassifier])
def test_two_arguments_at_most_are_given_by_position(estimator):
    kinds = [each.kind for each in inspect.signature(estimator).parameters.values()]
    assert inspect.Parameter.POSITIONAL_OR_KEYWORD in kinds
    assert {*kinds[2:]} == {inspect.Parameter.KEYWORD_ONLY}


def test_what_a_class_says_itself_stays():
    @inherits_documentation
    class Own:
        """One line.

        Parameters
        ----------
        solver, verbose : str
            Mine.

            In two paragraphs.
        extra : int

        Attributes
        ----------
        tree_ : Tree
            Mine too.

        Notes
        -----
        The end.
        """

    lines = Own.__doc__.splitlines()
    assert lines[:9] == ["One line.", "", "Parameters", "----------", "solver, verbose : str", "    Mine.", "",
                         "    In two paragraphs.", "extra : int"]  # fmt: skip
    assert lines[-4:] == ["", "Notes", "-----", "The end."]
    assert sorted(described(Own, "Parameters")) == sorted([*SHARED, "extra"])
    assert described(Own, "Attributes")[0] == "tree_" and "    Mine too." in lines
    assert Own.__doc__.count("\ntree_ : Tree") == 1


def test_a_class_without_the_sections_is_refused():
    with pytest.raises(ValueError, match="lacks the section Parameters"):

        @inherits_documentation
        class Silent:
            """Nothing."""
