"""Fitting a tree to encoded rows: what estimators pass on, what they refuse, and what they keep."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import numpy as np

from policytree.data.feature_encoder import FeatureEncoder
from policytree.encoded.solve import Answer, Question, solve_encoded
from policytree.encoded.store import EncodedData
from policytree.estimators.certificate import SearchGrid
from policytree.estimators.inputs import leaf_penalty, n_threads
from policytree.estimators.leaf_sizes import too_few_rows, warn_of_no_split
from policytree.exceptions import InputError
from policytree.problem.types import SearchLimits, Status

# Arguments that encoded rows cannot serve, the value that leaves them alone, and what to do instead.
REFUSED: dict[str, tuple[Any, str]] = {
    "solver": ("direct", "leave it at 'direct'"),
    "solver_options": (None, "leave them at None"),
    "guesses": (None, "leave them at None; max_bins of encode makes the search smaller"),
    "feature_costs": (None, "fit a table in memory, or charge by regularization"),
    "repeated_features": ("charged", "fit a table in memory"),
    "feature_groups": (None, "fit a table in memory"),
    "categories": ("levels", "leave it at 'levels', or fit a table in memory"),
    "max_bins": (None, "set max_bins of encode"),
    "min_samples_per_treatment": (0, "use min_samples_leaf, or fit a table in memory"),
    "constraints": ((), "subtract costs from the rewards before encoding, or fit a table in memory"),
    "objective": ("accuracy", "pass class weights as weights of the study, or fit a table in memory"),
}
AT_ENCODE = {
    "rewards": "they are those of the study that was encoded",
    "y": "they are those of the study that was encoded",
    "sample_weight": "name the column in the study that is encoded: Study(..., weights=...)",
    "T": "min_samples_per_treatment, which it is for, is not available for encoded rows",
    "budget_costs": "constraints are not available for encoded rows",
    "outcomes": "constraints on them are not available for encoded rows",
    "subgroups": "what compares them is not available for encoded rows",
    "sample_treatment_costs": "subtract costs from the rewards before encoding",
    "groups": "max_depth='auto', which they are for, is not available for encoded rows",
}


def fit_encoded(tree: Any, data: EncodedData, given: dict[str, Any]):
    """Fit an estimator to encoded rows.

    Parameters
    ----------
    tree : PolicyTree or OptimalTreeClassifier
    data : EncodedData
    given : dict
        Arguments of fit beside the rows: all None.

    Raises
    ------
    InputError
        If the rows are those of the other estimator, or something is asked for that they cannot serve.
    """
    question, limits = question_of(tree, data, given)
    with ExitStack() as stack:
        report = None
        if tree.verbose:
            from policytree.common.progress import reading_progress

            report = stack.enter_context(reading_progress())
        answer = solve_encoded(data, question, limits, report)
    return keep_answer(tree, data, answer)


def question_of(tree: Any, data: EncodedData, given: dict[str, Any]) -> tuple[Question, SearchLimits]:
    """Check an estimator's arguments, and return its question and limits."""
    for name, value in given.items():
        if value is not None:
            raise InputError(f"Encoded rows take no {name} at fit; {AT_ENCODE[name]}.")
    tree._check_arguments()
    for name, (default, remedy) in REFUSED.items():
        value = getattr(tree, name, default)
        value = tuple(value) if isinstance(value, list) else value
        value = getattr(value, "name", value)  # of objectives
        if value is not default and not (isinstance(value, str | int | tuple) and value == default):
            raise InputError(f"{name} is not available for encoded rows, nor on dask; {remedy}.")
    for name in ("max_depth", "regularization"):
        if getattr(tree, name) == "auto":
            raise InputError(f"{name}='auto' is not available for encoded rows; give a number.")
    of_labels = hasattr(tree, "objective")
    if of_labels != data.of_labels:
        other = "labels, for OptimalTreeClassifier" if data.of_labels else "rewards, for PolicyTree"
        raise InputError(f"These rows were encoded with {other}; fit that estimator, or encode the other column.")
    if not of_labels and data.direction not in (None, tree.direction):
        raise InputError(
            f"The study has direction={data.direction!r}, but the estimator direction={tree.direction!r}; give one of "
            "them."
        )
    _, _, splits, roots = tree._column_arguments(data.features)
    question = Question(
        leaf_penalty(tree.regularization, data.total_weight),
        tree.max_depth,
        tree.min_samples_leaf,
        tree.max_leaf_nodes,
        getattr(tree, "direction", "minimize") == "minimize",
        splits,
        roots,
    )
    return question, SearchLimits(tree.time_limit, tree.memory_limit, n_threads(tree.n_jobs))


def keep_answer(tree: Any, data: EncodedData, answer: Answer):
    """Store what was found in the estimator, as after a fit in memory."""
    solution = answer.solution
    if solution.status is Status.INFEASIBLE:
        raise too_few_rows(tree.min_samples_leaf, data.n_rows)
    tree._store(solution, data.total_weight, tuple(data.labels))
    tree.encoder_ = FeatureEncoder(data.features, named=True)
    tree.feature_names_in_ = np.array([f.name for f in data.features], dtype=object)
    tree.n_features_in_ = len(data.features)
    tree.guesses_ = None
    asked = tree._column_arguments(data.features)[2]
    columns = [column for column in data.columns if asked is None or column.feature in asked]
    tree.search_grid_ = SearchGrid.of(
        columns, data.features, bool({column.feature for column in columns} & {*data.thinned})
    )
    tree.node_values_ = answer.node_values
    if data.of_labels:
        from policytree.objectives.registry import resolve_objective

        tree.classes_ = data.labels
        tree.objective_ = resolve_objective(tree.objective)
    else:
        tree.treatments_, tree.depth_choice_ = data.labels, None
        tree.max_depth_, tree.regularization_, tree.max_leaf_nodes_ = tree._tree_size()
    tree.node_costs_, tree.expected_cost_ = np.zeros(tree.tree_.node_count), 0.0
    for name in {"spend_", "shares_", "multipliers_"} & {*vars(tree)}:
        delattr(tree, name)  # of an earlier fit
    tree._warn_unproved(solution)
    if tree.tree_.n_leaves == 1 and answer.no_split_fits:
        warn_of_no_split(data.n_rows, tree.min_samples_leaf)
    return tree
