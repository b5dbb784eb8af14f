"""What a search proved, in a few lines of text."""

from __future__ import annotations

from typing import Any

from policytree.types import Status


def certificate_text(estimator: Any, objective: str) -> str:
    """Status, objective, bound, gap and seconds of a fitted estimator.

    Parameters
    ----------
    estimator : fitted estimator of one tree
    objective : str
        What the objective is without the price of the leaves, in words.
    """
    trees = _trees(estimator)
    words = {
        Status.OPTIMAL: f"optimal: {trees} is better",
        Status.OPTIMAL_GIVEN_GUESSES: f"optimal given the guesses: {trees} within them is better",
        Status.HEURISTIC: "heuristic: nothing is proved beyond the bound",
    }
    stopped = f"{estimator.status_.value}: a better tree may exist, but none beyond the bound"
    price = f", plus {estimator.regularization:g} per leaf" if estimator.regularization else ""
    limited = estimator.max_expected_cost is not None
    price += ", plus what its questions cost" if estimator.expected_cost_ and not limited else ""
    facts = {
        "status": words.get(estimator.status_, stopped),
        "objective": f"{estimator.objective_value_:.6g} ({objective}{price})",
        "bound": f"{estimator.objective_bound_:.6g}",
        "gap": f"{estimator.optimality_gap_:.3g}",
        "search": f"{estimator.solution_.seconds:.2g} s",
    }
    if limited:
        facts["questions"] = f"{estimator.expected_cost_:.6g} a person, within {estimator.max_expected_cost:g}"
    return "\n".join(f"{name:<10} {text}" for name, text in facts.items())


def _trees(estimator: Any) -> str:
    """The trees that were searched, in words."""
    limits = []
    if estimator.max_depth is not None:
        limits.append(f"of depth {estimator.max_depth} or less")
    if estimator.max_leaf_nodes is not None:
        limits.append(f"of at most {estimator.max_leaf_nodes} leaves")
    if estimator.min_samples_leaf > 1:
        limits.append(f"with {estimator.min_samples_leaf} rows or more in every leaf")
    if estimator.max_expected_cost is not None:
        limits.append(f"whose questions cost at most {estimator.max_expected_cost:g} a person")
    return " ".join(["no tree", " and ".join(limits)]).strip()
