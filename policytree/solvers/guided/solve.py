"""Any solver with guesses: fewer thresholds, less depth, and losses bounded from below by a reference's."""

from __future__ import annotations

import inspect
from dataclasses import replace

from policytree.common.validation import as_numbers, is_whole
from policytree.exceptions import InputError, quoted
from policytree.guesses.lower_bounds import check_reference
from policytree.guesses.thresholds import kept_cuts
from policytree.problem.types import GATES, Guesses, Problem, SearchLimits, SizeGates, Solution, Status
from policytree.solvers.core.columns import keep_cuts, single_cuts
from policytree.solvers.exact.binary_features import blocks_for
from policytree.solvers.exact.direct import solve_direct
from policytree.solvers.exact.estimate import estimated_seconds
from policytree.solvers.guided.bounded import solve_bounded
from policytree.solvers.guided.theorems import theorem_4_1, theorem_a_1


def solve_with_guesses(
    problem: Problem, guesses: Guesses, limits: SearchLimits | None = None, *, solve=solve_direct
) -> Solution:
    """Solve a problem within guesses.

    Parameters
    ----------
    problem : Problem
    guesses : Guesses
        ``thresholds``: one array per feature (see :func:`policytree.guesses.thresholds.kept_cuts`); ``max_depth``: an
        upper limit beside the problem's; ``reference_losses``: see
        :func:`policytree.guesses.lower_bounds.bounded_losses`.
    limits : SearchLimits, optional
    solve : callable
        The solver, ``(Problem, SearchLimits) -> Solution``. One that counts rows (duplication, sampling, "auto") has
        a third parameter, ``reference_losses``: it makes its copies or draws of the rows as they are, and bounds the
        losses of these.

    Returns
    -------
    Solution
        ``objective`` is that of the problem's own losses; ``lower_bound`` holds for all trees within the guessed
        thresholds and depth; ``status`` is OPTIMAL_GIVEN_GUESSES where the solver's is OPTIMAL and a guess took
        something away. ``guarantees``: ``guessed``, what was guessed; and ``theorem_1``, where lower bounds were
        guessed: the tree's objective exceeds that of the best tree within guessed thresholds and depth by at most this
        much (of solvers that count rows: its objective in the copies, or the draw, that of the best tree there); those
        of :func:`policytree.solvers.guided.theorems.theorem_4_1`, where there is a reference's tree; and those of
        :func:`policytree.solvers.guided.theorems.theorem_a_1`, where the depth was guessed.

    Raises
    ------
    InputError
        If guesses do not fit the problem.

    Notes
    -----
    Theorem 4.3 of McTavish et al. (AAAI 2022), with weights Theorem 1 of Behrouz et al. (2022): for the tree t that is
    found and the best one t*, ``R(t) <= sum_i max(r_i, l_i(t*)) + penalty * leaves of t*``. Here i runs over groups of
    rows that no split tells apart, which makes the right-hand side smaller than over rows. It exceeds ``R(t*)`` by
    ``sum_i max(r_i - l_i(t*), 0)``; t* is not known, but it gives every group one action: the sum of the largest such
    terms bounds it.

    Guessed thresholds become columns of two values where that makes the search shorter, by an estimate: the trees are
    the same.
    """
    gates = GATES if limits is None else limits.gates
    guessed, inside = _restrict(problem, guesses, gates)
    # The theorems are about sums of losses over rows; other objectives have solvers that are told which.
    sums = "objective" not in getattr(solve, "keywords", {})
    stated = theorem_4_1(inside, guesses) if sums else {}
    if guesses.reference_losses is None:
        solution = solve(inside, limits)
    else:
        reference = as_numbers(guesses.reference_losses, "reference_losses")
        check_reference(reference, inside.data.n_rows)
        if "reference_losses" in inspect.signature(solve).parameters:  # it counts rows, so it bounds the counted ones
            solution = solve(inside, limits, reference)
        else:
            solution = solve_bounded(inside, reference, limits, solve=solve)
        if float(solution.guarantees.get("theorem_1", 0.0)) > solution.resolution:
            guessed.append("lower bounds")
    if sums and "depth" in guessed and solution.status is not Status.INFEASIBLE:
        stated |= theorem_a_1(inside, solution)
    return _named(solution, guessed, stated)


def _restrict(problem: Problem, guesses: Guesses, gates: SizeGates) -> tuple[list[str], Problem]:
    """The problem within guessed thresholds and depth, and what that took away."""
    guessed: list[str] = []
    inside = problem
    if guesses.thresholds is not None:
        cuts = kept_cuts(problem.data, guesses.thresholds)
        if sum(map(len, cuts)) < (problem.data.n_bins - 1).sum():
            guessed.append("thresholds")
            inside = replace(inside, data=keep_cuts(problem.data, cuts, exact=False))
    depth = guesses.max_depth
    if depth is not None and (not is_whole(depth) or depth < 0):
        raise InputError(f"max_depth of Guesses must be an integer >= 0 or None; got {quoted(depth)}.")
    if depth is not None and (problem.max_depth is None or depth < problem.max_depth):
        guessed.append("depth")
        inside = replace(inside, max_depth=depth)
    return guessed, _two_valued(inside, gates) if "thresholds" in guessed else inside


def _two_valued(problem: Problem, gates: SizeGates) -> Problem:
    """The problem with a column of two values for every cut, where these are searched faster."""
    if (problem.data.n_bins - 1).sum() > gates.most_guessed_cuts:  # blocks end far below
        return problem
    split = replace(problem, data=single_cuts(problem.data))
    if blocks_for(split, gates) is None:
        return problem
    return split if estimated_seconds(split, gates) < estimated_seconds(problem, gates) else problem


def _named(solution: Solution, guessed: list[str], stated: dict[str, float | str]) -> Solution:
    """The status, what it is due to, and what theorems state."""
    if stated:
        solution = replace(solution, guarantees={**solution.guarantees, **stated})
    if not guessed:
        return solution
    status = Status.OPTIMAL_GIVEN_GUESSES if solution.status is Status.OPTIMAL else solution.status
    return replace(solution, status=status, guarantees={**solution.guarantees, "guessed": ", ".join(guessed)})
