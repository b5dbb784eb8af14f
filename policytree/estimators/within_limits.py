"""The best tree within constraints: its search, the sentence where there is none, and what constraints are worth."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from policytree.common.callers import stacklevel_outside
from policytree.constraints.checks import asked
from policytree.estimators.inputs import expected_cost, question_costs
from policytree.estimators.search import Job
from policytree.exceptions import InputError, SearchWarning
from policytree.problem.types import SearchLimits, Status
from policytree.solvers.constrained.solve import Budgeted, Infeasible, solve_within
from policytree.solvers.core.constraints import Applied, with_limit
from policytree.solvers.core.limits import now
from policytree.trees.tree import Tree

WORTH_SAYING = 1e-12  # of the objective: a smaller gap is rounding
FITTED = {"spend_", "shares_", "multipliers_", "price_of_limits_"}  # attributes of fits within limits only


def applied_tree(tree: Tree, job: Job) -> Applied:
    """Apply a tree to the rows of a fit: their actions, and the tests paid for."""
    actions = tree.action[tree.apply(job.X)]
    node_costs = question_costs(tree, job.test_costs, job.problem.feature_groups)
    if not node_costs.any():
        return Applied(actions, np.zeros((len(job.X), job.X.shape[1]), dtype=np.int64))
    paid, reached = np.zeros((len(job.X), job.X.shape[1]), dtype=np.int64), tree.rows_of_nodes(job.X)
    for node in np.flatnonzero(node_costs):
        paid[reached[node], tree.feature[node]] += 1
    return Applied(actions, paid)


def expected_cost_within(tree: Tree, job: Job, node_costs: np.ndarray) -> float:
    """Return the mean cost per person of a chosen tree's tests; never more than a limit that it keeps to."""
    for constraint in job.constraints:
        if constraint.kind == "expected_cost":
            return constraint.mean(applied_tree(tree, job))
    return expected_cost(tree, job.X, node_costs, job.weight)


def worth_of_limits(job: Job, found: Budgeted, labels: Sequence[Any] = ()) -> dict[str, Any]:
    """Return the shadow price of each limit in the objective; shares by the label of the treatment."""
    worth: dict[str, Any] = {}
    for constraint, price in zip(job.constraints, found.multipliers, strict=True):
        if constraint.name:
            worth.setdefault(constraint.kind, {})[constraint.name] = price / job.total_weight
        elif constraint.action is None:
            worth[constraint.kind] = price / job.total_weight
        else:
            worth.setdefault(constraint.kind, {})[labels[constraint.action]] = price / job.total_weight
    return worth


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
            stacklevel=stacklevel_outside(),
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
    if refused.constraint is not None and refused.least is not None:
        for each in asked(tree):
            if how := each.refusal(refused.constraint, refused.least, getattr(tree, "treatments_", ())):
                return f"{kind} {how}"
    return f"{kind} keeps to all constraints at once; loosen one of them, or allow a larger tree."


def spend_and_shares(job: Job, found: Budgeted, labels: Sequence[Any]) -> tuple[float | None, dict[Any, float]]:
    """Return the chosen tree's spending per person on treatments, and the share that each of them gets."""
    applied = applied_tree(found.solution.tree, job)
    spend = [c.mean(applied) for c in job.constraints if c.kind == "budget"]
    total = float(job.weight.sum())
    shares = {label: float(job.weight[applied.actions == k].sum()) / total for k, label in enumerate(labels)}
    for constraint in job.constraints:
        if constraint.action is not None:
            shares[labels[constraint.action]] = constraint.mean(applied)
    return spend[0] if spend else None, shares
