"""The arguments that all estimators share, once: their defaults, their types and what the docstrings say of them.

The estimators are dataclasses, so that a constructor is a list of its arguments and nothing else. ``get_params``,
``clone`` and ``inspect.signature`` see an ordinary ``__init__``; comparison and ``repr`` stay scikit-learn's.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from policytree.common.docstrings import shares_documentation
from policytree.common.nested_parameters import NestedParameters
from policytree.constraints.constraint import Constraint
from policytree.guesses.reference import ReferenceGuesses
from policytree.problem.types import Guesses

Class = TypeVar("Class", bound=type)


def inherits_documentation(cls: Class) -> Class:
    """Class decorator: adds what :class:`SearchArguments` says of parameters and attributes where a class is silent."""
    return shares_documentation(SearchArguments)(cls)


def own_arguments_first(cls: Class) -> Class:
    """Class decorator of dataclasses: the signature shows a class's own arguments, then those of the search.

    Dataclasses put inherited fields first. All arguments concerned are keyword-only, so that calls do not change.
    """
    shared = SearchArguments.__dataclass_fields__
    constructor: Any = vars(cls)["__init__"]
    signature = inspect.signature(constructor)
    ordered = sorted(signature.parameters.values(), key=lambda each: (each.kind, each.name in shared))
    constructor.__signature__ = signature.replace(parameters=ordered)
    return cls


@dataclass(eq=False, repr=False, kw_only=True)
class SearchArguments(NestedParameters):
    """Arguments of the search that all estimators share, and attributes that all fitted ones have.

    Parameters
    ----------
    solver : {"direct", "duplication", "sampling", "auto"}, default "direct"
        Which search to use: exact; exact for weights rounded to integers; on samples drawn by weight; or chosen by an
        estimate of the time (:mod:`policytree.solvers`). For "duplication" and "sampling", rewards become weighted
        labels.
    solver_options : mapping, optional
        Options of the solver, such as ``{"factor": 50}`` or ``{"amplification": 0.5, "n_draws": 8}``.
    guesses : optional
        Kinds to guess from a reference model: "thresholds", "depth", "lower_bounds", a list of these, "all", a
        :class:`policytree.guesses.ReferenceGuesses`; or the guesses themselves, :class:`policytree.guesses.Guesses`
        (its ``reference_losses`` weighted, rows of weight 0 left out). ``status_`` is then OPTIMAL_GIVEN_GUESSES.
    time_limit : float or None
        Seconds of wall time; the best tree found and its gap are returned, with a
        :class:`policytree.exceptions.SearchWarning`. Compiling the search, once on a machine and for some tens of
        seconds, does not count.
    memory_limit : float or None
        Bytes the search may use, its own rows and columns among them. Preparations of ``fit`` are not counted: three to
        four times the bytes of the table and the rewards as numbers of 64 bits.
    max_bins : int or None
        Most distinct values a covariate keeps, 2 to 65,536: longer ones keep the thresholds nearest to their quantiles,
        and ``status_`` is then OPTIMAL_GIVEN_GUESSES. None keeps every threshold, up to 65,535 a column, or 262,140 in
        a plain search: ``solver="direct"``, an objective that is a sum over rows, no guesses, ``feature_costs``,
        ``root_feature`` or ``constraints``. If one numeric column is all there is to split on, such a search keeps all.
    n_jobs : int or None
        Threads. None means 1, -1 all cores. The tree does not depend on it.
    random_state : int, RandomState or None
        Seed of sampling and of reference models; the direct solver is deterministic.
    verbose : int, default 0
        1 shows the progress of the search (and of nuisance models, where there are some).
    max_leaf_nodes : int or None
        Largest number of leaves.
    feature_costs : mapping of column name or position to cost, or array-like of shape (p,), optional
        Cost of knowing a column, such as a test, in the unit of the objective: every split on it is charged for every
        person (unit of ``sample_weight``) who reaches it. Columns that a mapping leaves out are free.
    repeated_features : {"charged", "free"}, default "charged"
        Whether a column is charged again where a path splits on it again. "free" takes ``solver="direct"`` without
        guesses. The tree is still proved optimal. Trees of four levels and more may take longer than with "charged",
        since what was paid for is part of every subproblem.
    feature_groups : mapping of names to lists of columns, or list of such lists, optional
        Columns that are measured together, such as the values of one blood sample: only the first on a path is charged,
        at its own cost. Needs ``repeated_features="free"``.
    constraints : sequence of policytree.constraints.constraint.Constraint, default ()
        Constraints kept exactly on the rows of ``fit``, such as ``[ExpectedCost(5.0)]``: tests cost at most so much a
        person on average. The tree is the best of those that keep to them.
    categories : {"levels", "groups"}, default "levels"
        How text and categorical columns are split: one level against the rest, or a group of levels against the others.
        "groups" searches all groupings of up to 8 levels (missing values are one), which are 2**(L - 1) - 1 splits of a
        column, and of up to 53 at depth one. For two actions down to depth two they take little longer than numbers in
        order; otherwise 7 to 230 times as long. Where a column has more, the splits are its single levels and the
        groupings that are best for all rows, ``status_`` is OPTIMAL_GIVEN_GUESSES, and the certificate names the
        column. A level of few rows goes where these few are better off: set ``min_samples_leaf``, which bounds each
        side but not each level, and pool rare levels before the fit. "groups" takes ``solver="direct"`` without
        guesses.
    split_features : list of column names or positions, optional
        The columns that the tree may split on. ``predict`` takes the same table as ``fit`` all the same.
    root_feature : column name or position, or list of these, optional
        Columns that the first split must be on, if there is one: a single leaf stays allowed.

    Attributes
    ----------
    tree_ : Tree
    expected_cost_ : float
        Mean cost per person of the tree's tests, by ``feature_costs``; 0 without. ``measurement_cost`` gives it for new
        rows.
    multipliers_ : dict
        With constraints: what one unit more of each is worth in the objective ("expected_cost"), at the price with the
        best bound. Zero if the limit does not bind.
    node_costs_ : ndarray of shape (node_count,)
        Cost of every node's question for those who reach it.
    objective_bound_ : float
        No allowed tree is better than this.
    optimality_gap_ : float
        Distance of ``objective_value_`` and ``objective_bound_``, >= 0; zero when ``status_`` is OPTIMAL.
    status_ : Status
    solution_ : Solution
        Result of the search, in mean losses (rewards that are to be large are negative losses). Its ``guarantees``
        hold the numbers that theorems give for this solver and these guesses, in the same unit as its ``gap``.
    guesses_ : Guesses or None
    search_grid_ : SearchGrid
        The splits that the search chose from, which is what ``status_`` speaks of.
    """

    solver: str = "direct"
    solver_options: Mapping[str, Any] | None = None
    guesses: str | Sequence[str] | ReferenceGuesses | Guesses | None = None
    time_limit: float | None = None
    memory_limit: float | None = None
    max_bins: int | None = None
    n_jobs: int | None = None
    random_state: int | np.random.RandomState | None = None
    verbose: int = 0
    max_leaf_nodes: int | None = None
    feature_costs: Mapping[Any, float] | Sequence[float] | np.ndarray | None = None
    repeated_features: str = "charged"
    feature_groups: Mapping[str, Sequence[str | int]] | Sequence[Sequence[str | int]] | None = None
    constraints: Sequence[Constraint] = ()
    categories: str = "levels"
    split_features: Sequence[str | int] | str | int | None = None
    root_feature: Sequence[str | int] | str | int | None = None
