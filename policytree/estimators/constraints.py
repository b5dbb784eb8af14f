"""Budgets, shares and limits of expected cost: what users ask for, checked, as constraints of the search."""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from policytree.common.validation import as_numbers, is_real
from policytree.estimators.inputs import check_number, expected_cost, question_costs
from policytree.estimators.search import Job
from policytree.exceptions import InputError, SearchWarning, quoted
from policytree.problem.types import SearchLimits, Status
from policytree.solvers.constrained.solve import Budgeted, Infeasible, solve_within
from policytree.solvers.core.constraints import (
    Applied,
    Constraint,
    budget_constraint,
    cost_constraint,
    share_constraint,
    with_limit,
)
from policytree.solvers.core.limits import now
from policytree.trees.tree import Tree
from policytree.weighting.by_label import by_label
from policytree.weighting.costs import treatment_costs

WORTH_SAYING = 1e-12  # of the objective: a smaller gap is rounding
FITTED = {"spend_", "shares_", "multipliers_", "price_of_limits_"}  # attributes of fits within limits only


def check_limited(tree: Any) -> None:
    """Refuse a limit of the expected cost that cannot be meant."""
    check_number("max_expected_cost", tree.max_expected_cost, 0, none=True)
    if tree.max_expected_cost is None:
        return
    if tree.feature_costs is None:
        raise InputError("max_expected_cost limits what tests cost; pass feature_costs as well.")
    if not _exact(tree):
        raise InputError("max_expected_cost needs the exact search; leave solver and guesses alone.")


def limit_of_cost(limit: float | None, job: Job) -> tuple[Constraint, ...]:
    """The constraint that tests cost at most so much a person; none without a limit, or where tests are free."""
    if limit is None or job.test_costs is None:
        return ()
    problem = job.problem
    asked = len(job.X) - 1 if problem.max_depth is None else min(problem.max_depth, len(job.X) - 1)
    return (cost_constraint(job.test_costs, job.weight, limit, problem.losses.shape[1], max(1, asked)),)


def applied_tree(tree: Tree, job: Job) -> Applied:
    """What a tree does to the rows of a fit."""
    actions = tree.action[tree.apply(job.X)]
    node_costs = question_costs(tree, job.test_costs, job.problem.feature_groups)
    if not node_costs.any():
        return Applied(actions, np.zeros((len(job.X), job.X.shape[1]), dtype=np.int64))
    paid, reached = np.zeros((len(job.X), job.X.shape[1]), dtype=np.int64), tree.rows_of_nodes(job.X)
    for node in np.flatnonzero(node_costs):
        paid[reached[node], tree.feature[node]] += 1
    return Applied(actions, paid)


def expected_cost_within(tree: Tree, job: Job, node_costs: np.ndarray) -> float:
    """What the tests of a chosen tree cost a person; never more than a limit that it keeps to."""
    for constraint in job.constraints:
        if constraint.kind == "expected_cost":
            return constraint.mean(applied_tree(tree, job))
    return expected_cost(tree, job.X, node_costs, job.weight)


def worth_of_limits(job: Job, found: Budgeted, labels: Sequence[Any] = ()) -> dict[str, Any]:
    """What one unit more of each limit is worth in the objective; shares by the label of the treatment."""
    worth: dict[str, Any] = {}
    for constraint, price in zip(job.constraints, found.multipliers, strict=True):
        if constraint.name:
            worth.setdefault(constraint.kind, {})[constraint.name] = price / job.total_weight
        elif constraint.action is None:
            worth[constraint.kind] = price / job.total_weight
        else:
            worth.setdefault(constraint.kind, {})[labels[constraint.action]] = price / job.total_weight
    return worth


def check_constraints(tree: Any, labels, n: int, budget_costs) -> np.ndarray | None:
    """Refuse budgets and shares that cannot be meant, before anything is computed.

    Returns the costs (n, K) that count against the budget; None without one.
    """
    costs = _spending_costs(tree.budget, budget_costs, n, labels)
    shares = {kind: _shares(kind, getattr(tree, kind), labels) for kind in ("max_share", "min_share")}
    most = np.array([shares["max_share"].get(k, 1.0) for k in range(len(labels))])
    least = np.array([shares["min_share"].get(k, 0.0) for k in range(len(labels))])
    if most.sum() < 1.0 - 1e-9:
        raise InputError(f"max_share leaves {1 - most.sum():.3g} of the people without a treatment; raise a share.")
    if least.sum() > 1.0 + 1e-9:
        raise InputError(f"min_share asks for {least.sum():.3g} of the people in all; lower a share.")
    if (least > most).any():
        k = int(np.argmax(least - most))
        raise InputError(f"min_share of {labels[k]!s} is {least[k]:g}, more than its max_share, {most[k]:g}; mend one.")
    if (shares["max_share"] or shares["min_share"] or tree.budget is not None) and not _exact(tree):
        raise InputError("budget, max_share and min_share need the exact search; leave solver and guesses alone.")
    return costs


def _exact(tree: Any) -> bool:
    return tree.solver == "direct" and tree.guesses is None


def _spending_costs(budget, budget_costs, n: int, labels) -> np.ndarray | None:
    """Costs (n, K) that count against the budget; None without one."""
    if budget is None:
        if budget_costs is not None:
            raise InputError("budget_costs are given, but no budget; set budget, the largest spend a person.")
        return None
    if not is_real(budget) or isinstance(budget, bool) or not abs(budget) <= sys.float_info.max:
        raise InputError(f"budget must be a finite number, the largest spend a person, or None; got {quoted(budget)}.")
    if budget_costs is None:
        raise InputError("A budget needs the treatments' costs; pass budget_costs to fit, such as {'drug': 120.0}.")
    try:
        return treatment_costs(budget_costs, n, labels)
    except InputError as error:
        raise InputError(f"budget_costs: {error}") from error


def _shares(kind: str, shares, labels) -> dict[int, float]:
    """Shares by position of the treatment."""
    if shares is None:
        return {}
    if nw.dependencies.is_pandas_series(shares):
        shares = shares.to_dict()
    if not isinstance(shares, Mapping):
        raise InputError(
            f"{kind} must be a mapping from treatment to share, such as {{'drug': 0.3}}; got {quoted(shares)}."
        )
    values = by_label(shares, 1, labels, argument=kind, what="share", missing=np.nan)[0]
    for label, share in shares.items():
        if not 0.0 <= as_numbers(share, kind).item() <= 1.0:
            raise InputError(f"{kind} of {label!s} must be a share from 0 to 1; got {share!s}.")
    return {k: float(share) for k, share in enumerate(values) if not np.isnan(share)}


def make_constraints(tree: Any, labels, costs: np.ndarray | None, weight: np.ndarray) -> tuple[Constraint, ...]:
    """The constraints of rows of positive weight; ``costs`` (n, K) are theirs."""
    out = [] if costs is None else [budget_constraint(costs, weight, tree.budget)]
    for kind in ("max_share", "min_share"):
        shares = _shares(kind, getattr(tree, kind), labels)
        out += [share_constraint(kind, k, len(labels), weight, share) for k, share in shares.items()]
    return tuple(out)


def search_within(tree: Any, job: Job, limits: SearchLimits, solve) -> Budgeted:
    """The best tree within the limits, or one sentence that says what cannot be met."""
    try:
        found = _exactly_within(job, limits, solve)
    except Infeasible as refused:
        raise InputError(_refusal(tree, refused)) from None
    if found.solution.status is Status.HEURISTIC and found.solution.gap > WORTH_SAYING * abs(found.solution.objective):
        warnings.warn(
            "Within budgets, shares and limits of cost, trees of more than three levels are found by prices alone: the "
            "tree is valid, and optimality_gap_ says how much better another could be; lower max_depth for a proof.",
            SearchWarning,
            stacklevel=4,
        )
    return found


def search_worst_group(tree: Any, job: Job, limits: SearchLimits, solve) -> tuple[Job, Budgeted]:
    """The best tree by the group that it serves worst: the best of one search per group, with the job of that search.

    Each search is of the trees that serve one group worst. The bound is the least of all searches' bounds, and the
    status that of the search with the weakest proof.
    """
    start, problem = now(), job.problem
    best: tuple[Job, Budgeted] | None = None
    bound, refused = math.inf, None
    weakest: Any = None
    for part in job.worst:
        left = None if limits.time_limit is None else max(0.0, limits.time_limit - (now() - start))
        own = replace(
            job,
            problem=replace(problem, losses=part.losses * job.weight[:, None]),
            constraints=(*job.constraints, *part.constraints),
        )
        try:
            found = _exactly_within(own, replace(limits, time_limit=left), solve)
        except Infeasible as error:
            if error.status is not Status.INFEASIBLE:  # nothing was found in time: nothing is known of these trees
                bound, weakest = min(bound, float(own.problem.losses.min(axis=1).sum())), error.status
            refused = error
            continue
        bound = min(bound, found.solution.lower_bound)
        if not found.solution.status.proved and weakest is None:
            weakest = found.solution.status
        if best is None or found.solution.objective < best[1].solution.objective:
            best = own, found
    if best is None:
        assert refused is not None, "every group was searched"
        raise InputError(_refusal(tree, replace_constraint(refused, job)))
    own, found = best
    solution = found.solution
    status = solution.status if weakest is None else weakest
    lower = min(bound, solution.objective)
    solution = replace(solution, lower_bound=lower, status=status, seconds=now() - start)
    return own, replace(found, solution=solution)


def replace_constraint(refused: Infeasible, job: Job) -> Infeasible:
    """The same, but it names a constraint only if the user asked for that."""
    if refused.constraint is not None and refused.constraint.kind == "worst_group":
        return Infeasible(None, None, refused.status)
    return refused


def _exactly_within(job: Job, limits: SearchLimits, solve) -> Budgeted:
    """The best tree: of loosened limits if it keeps to the limits exactly, so that rounding keeps no tree out."""
    start = now()
    loose = [with_limit(c, c.loosest) for c in job.constraints]
    found = solve_within(job.problem, loose, limits, solve=solve)
    if not found.sums:
        return found
    applied = applied_tree(found.solution.tree, job)
    if all(c.keeps(applied) for c in job.constraints):
        return found
    left = None if limits.time_limit is None else max(0.0, limits.time_limit - (now() - start))
    return solve_within(job.problem, job.constraints, replace(limits, time_limit=left), solve=solve)


def _refusal(tree: Any, refused: Infeasible) -> str:
    depth = tree._tree_size()[0]
    kind = "No tree" if depth is None else f"No tree of depth {depth}"
    if refused.status is Status.HEURISTIC:
        return f"{kind} within the limits was found by prices alone; loosen one, or lower max_depth."
    if refused.status is Status.INTERRUPTED:
        return f"{kind} within the limits was found before the interrupt; wait longer, or loosen a limit."
    if refused.status is not Status.INFEASIBLE:
        return (
            f"{kind} within the limits was found before the search ended by {refused.status.value}; raise "
            "the limit, or loosen a constraint."
        )
    constraint, least = refused.constraint, refused.least
    if constraint is None or least is None:
        return f"{kind} keeps to budget, limits and all shares at once; loosen one of them, or allow a larger tree."
    if constraint.name:
        return _refusal_by_name(tree, kind, constraint, least)
    if constraint.kind == "budget":
        return f"{kind} spends less than {_up(least):g} a person, but budget is {tree.budget:g}; raise it to that."
    assert constraint.action is not None
    name = tree.treatments_[constraint.action]
    asked = _shares(constraint.kind, getattr(tree, constraint.kind), tree.treatments_)[constraint.action]
    if constraint.kind == "max_share":
        return f"{kind} gives {name!s} to less than {_up(least):g} of the people, but max_share is {asked:g}; raise it."
    return f"{kind} gives {name!s} to more than {-_up(-least):g} of the people, but min_share is {asked:g}; lower it."


def _refusal_by_name(tree: Any, kind: str, constraint: Constraint, least: float) -> str:
    """What no tree keeps to: a limit on an outcome, or on the gap between two groups."""
    if constraint.kind == "limit":
        more = "above" if constraint.at_least else "below"
        shown = -_up(-least) if constraint.at_least else _up(least)
        return (
            f"{kind} has a mean of {constraint.name!r} {more} {shown:g}, but limits ask for "
            f"{tree.limits[constraint.name]:g}; change it to that."
        )
    return f"{kind} has a gap of {constraint.name} below {_up(least):g}; allow that, or a larger tree."


def _up(number: float) -> float:
    """Rounded up to six digits, so that whoever asks for it gets it."""
    if number == 0 or float(f"{number:.6g}") >= number:
        return float(f"{number:.6g}")
    unit = 10.0 ** (math.floor(math.log10(abs(number))) - 5)
    return float(f"{math.ceil(number / unit) * unit:.6g}")


def spend_and_shares(job: Job, found: Budgeted, labels: Sequence[Any]) -> tuple[float | None, dict[Any, float]]:
    """What the chosen tree spends a person on treatments, and the share that each of them gets."""
    applied = applied_tree(found.solution.tree, job)
    spend = [c.mean(applied) for c in job.constraints if c.kind == "budget"]
    total = float(job.weight.sum())
    shares = {label: float(job.weight[applied.actions == k].sum()) / total for k, label in enumerate(labels)}
    for constraint in job.constraints:
        if constraint.action is not None:
            shares[labels[constraint.action]] = constraint.mean(applied)
    return spend[0] if spend else None, shares
