"""The weighted sampling solver: trees of samples drawn by weight, the best by the full weighted objective."""

from __future__ import annotations

import math
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np

from policytree.common.own_thread import run_in_own_thread
from policytree.common.validation import is_real, is_whole
from policytree.exceptions import InputError, quoted
from policytree.problem.types import Problem, SearchLimits, Solution, Status
from policytree.solvers.core.labelled import LabelledRows
from policytree.solvers.core.limits import Stopwatch, stopped_by
from policytree.solvers.core.rescore import equivalent_points_bound, rescore
from policytree.solvers.exact.direct import solve_direct
from policytree.solvers.guided.bounded import solve_bounded

MOST_DRAWS = 100_000  # every draw has a seed of its own, made beforehand


def sampling_radius(size: int, delta: float = 0.05, n_draws: int = 1) -> float:
    """Confidence radius of a tree's error rate in a weighted sample (Theorem 3).

    Parameters
    ----------
    size : int
        Rows in the sample.
    delta : float
        Error probability, 0 < delta < 1.
    n_draws : int
        Number of samples for which the statement shall hold at once (union bound).

    Returns
    -------
    float
        With probability 1 - delta, the error rate in the sample (in all ``n_draws`` samples) differs from the weighted
        error rate by at most this, for a tree chosen before the sample is drawn, such as the optimal one.

    Notes
    -----
    Behrouz et al. (2022, arXiv:2210.06825), Theorem 3, by Hoeffding's inequality: ``P(|error| >= e) <= 2 exp(-2 S
    e^2)`` for the mean of S draws in [0, 1]. The printed exponent ``-2 e^2 / S`` belongs to the sum of S draws.
    """
    return math.sqrt(math.log(2.0 * n_draws / delta) / (2.0 * size))


def solve_sampling(
    problem: Problem,
    limits: SearchLimits | None = None,
    reference_losses: np.ndarray | None = None,
    *,
    amplification: float = 1.0,
    n_draws: int = 1,
    random_state=0,
    delta: float = 0.05,
    solve=solve_direct,
) -> Solution:
    """Draw rows with probabilities proportional to their weights, solve the sample, and judge by all rows.

    Losses of any kind become weighted labels first.

    Parameters
    ----------
    problem : Problem
    limits : SearchLimits, optional
        The time limit is for all draws together; with ``n_jobs`` > 1 draws run side by side, and otherwise one after
        the other. Neither changes the tree.
    reference_losses : ndarray of shape (n,), optional
        A reference's weighted loss in every row: lower bounds of a sample are guessed from it.
    amplification : float, default 1
        Draws per labelled row, r; a sample has ``r * m`` rows.
    n_draws : int, default 1
        Number of samples; the tree with the least full weighted objective is kept.
    random_state : int or None
        Seed.
    delta : float, default 0.05
        Error probability of the guarantees.
    solve : callable
        The solver of a sample, ``(Problem, SearchLimits) -> Solution``.

    Returns
    -------
    Solution
        ``objective`` is that of the problem's own losses, ``lower_bound`` the equivalent-points bound, which is
        certain; ``status`` is HEURISTIC, or the limit that struck. ``counters``: ``labelled_rows``, the ``drawn_rows``
        of a sample, and ``draws``, the number of samples. ``guarantees``, in the objective's unit: ``theorem_3``, the
        radius of :func:`sampling_radius`; ``probable_lower_bound``: with probability 1 - ``delta`` no tree has a
        smaller objective; and ``theorem_1``, where lower bounds were guessed: in its sample, no tree is better than
        the best sample's by more.

    Raises
    ------
    InputError
        If an option is out of range.

    Notes
    -----
    Behrouz et al. (2022, arXiv:2210.06825), Algorithm 2. ``probable_lower_bound``: an optimal tree's objective in a
    sample is at least the sample's optimum, and the mean of its error rate over D samples of S rows exceeds the
    weighted error rate by ``sqrt(log(1 / delta) / (2 D S))`` with probability delta at most (one-sided Hoeffding).

    Examples
    --------
    >>> import numpy as np
    >>> from policytree.problem.types import Problem
    >>> from policytree.solvers import solve_sampling
    >>> from policytree.solvers.core.binning import bin_matrix
    >>> losses = np.array([[0.0, 1.0], [0.0, 1.0], [1.0, 0.0]])
    >>> problem = Problem(bin_matrix(np.array([[1.0], [2.0], [3.0]])), losses, max_depth=1)
    >>> solution = solve_sampling(problem)
    >>> solution.objective, solution.status.name
    (1.0, 'HEURISTIC')
    """
    _check_options(amplification, n_draws, delta, random_state)
    limits = limits or SearchLimits()
    labelled = LabelledRows.of(problem)
    if not len(labelled.weight) or problem.leaf_penalty > 2 * labelled.total:  # no split can pay
        return solve(problem, limits)
    size = max(1, round(amplification * len(labelled.weight)))
    samples = _Samples(problem, labelled, reference_losses, size, n_draws, random_state, limits, solve)
    inner = samples.solutions()
    if not inner:
        return replace(solve(problem, replace(limits, time_limit=0.0)), status=Status.INTERRUPTED)
    if inner[0].status is Status.INFEASIBLE:  # leaf sizes are counted on all rows, so it is the problem that is so
        return solve(problem, limits)
    limited = [s.status for s in inner if not s.status.proved]
    limited += [Status.TIME_LIMIT] * (len(inner) < n_draws)
    best = _best_of(problem, labelled, inner, size, delta)
    return replace(best, status=limited[0] if limited else Status.HEURISTIC, seconds=samples.watch.seconds())


def _best_of(problem: Problem, labelled: LabelledRows, inner: list[Solution], size: int, delta: float) -> Solution:
    """The draw whose tree has the least full weighted objective, with what all draws say about the optimum."""
    judged = [rescore(problem, s.tree) for s in inner]
    best = min(range(len(judged)), key=lambda k: judged[k][1])  # the first of equals
    tree, objective = judged[best]
    unit = labelled.total / size
    mean_bound = labelled.constant + unit * float(np.mean([s.lower_bound - s.resolution for s in inner]))
    fall = labelled.total * math.sqrt(math.log(1.0 / delta) / (2.0 * len(inner) * size))
    certain = min(objective, equivalent_points_bound(problem))
    stated: dict[str, float | str] = {
        "theorem_3": labelled.total * sampling_radius(size, delta, len(inner)),
        "delta": delta,
        "probable_lower_bound": min(objective, max(certain, mean_bound - fall)),
    }
    if "theorem_1" in inner[best].guarantees:
        stated["theorem_1"] = unit * float(inner[best].guarantees["theorem_1"])
    counted = {"labelled_rows": len(labelled.weight), "drawn_rows": size, "draws": len(inner), "best_draw": best}
    return replace(
        inner[best],
        tree=tree,
        objective=objective,
        lower_bound=certain,
        resolution=unit * inner[best].resolution,
        counters={**inner[best].counters, **counted},
        guarantees=stated,
    )


def _check_options(amplification, n_draws, delta, random_state) -> None:
    if not is_real(amplification) or not 0 < amplification < math.inf:
        raise InputError(f"amplification must be a number > 0; got {quoted(amplification)}.")
    if not is_whole(n_draws) or isinstance(n_draws, bool) or not 1 <= n_draws <= MOST_DRAWS:
        raise InputError(f"n_draws must be an integer from 1 to {MOST_DRAWS:,}; got {quoted(n_draws)}.")
    if not is_real(delta) or not 0 < delta < 1:
        raise InputError(f"delta must lie between 0 and 1; got {quoted(delta)}.")
    if random_state is not None and (not is_whole(random_state) or random_state < 0):
        raise InputError(f"random_state must be an integer >= 0 or None; got {quoted(random_state)}.")


class _Samples:
    """Draws samples, each from a seed of its own, and solves them one after the other or side by side."""

    def __init__(
        self, problem, labelled: LabelledRows, reference, size, n_draws, random_state, limits: SearchLimits, solve
    ):
        self.problem, self.labelled, self.reference = problem, labelled, reference
        self.size, self.solve = size, solve
        self.limits = limits
        self.watch = Stopwatch(limits)
        self.seeds = np.random.SeedSequence(random_state).spawn(int(n_draws))
        self.stop = threading.Event()

    def solutions(self) -> list[Solution]:
        """Solutions of the samples in the order of their seeds; those that a limit left out are missing."""
        workers = min(self.limits.n_jobs, len(self.seeds))
        if workers > 1:
            return self._side_by_side(workers)
        out: list[Solution] = []
        for k in range(len(self.seeds)):
            solution = self._one(k, self.limits)
            if solution is not None:
                out.append(solution)
            if solution is None or solution.status is Status.INTERRUPTED:
                break
        return out

    def _side_by_side(self, workers: int) -> list[Solution]:
        """Draws in threads of their own, which do not see Ctrl-C: the event passes it on to their searches."""
        limits = replace(self.limits, n_jobs=max(1, self.limits.n_jobs // workers))

        def draw_all() -> list[Solution | None]:
            with ThreadPoolExecutor(workers) as pool:
                return list(pool.map(lambda k: self._one(k, limits, workers), range(len(self.seeds))))

        done = run_in_own_thread(draw_all, stop=self.stop.set)
        found = [solution for solution in done if solution is not None]
        return [replace(s, status=Status.INTERRUPTED) for s in found] if self.stop.is_set() else found

    def _one(self, k: int, limits: SearchLimits, workers: int = 1) -> Solution | None:
        """Solve draw k in its share of the time left; None if no time is left and an earlier draw has an answer."""
        if self.stop.is_set():
            return None
        seconds = self.watch.left()
        if seconds is not None:
            if seconds == 0.0 and k >= workers:
                return None
            seconds /= math.ceil((len(self.seeds) - k) / workers)
        rng = np.random.default_rng(self.seeds[k])
        counts = rng.multinomial(self.size, self.labelled.weight / self.labelled.total)
        sample, reference = self.labelled.count_problem(self.problem, counts, self.reference)
        # A sample's bound certifies nothing about the problem: the report shows none.
        limits = self.labelled.limits(limits, counts, math.inf, seconds)
        with stopped_by(self.stop):
            return solve_bounded(sample, reference, limits, solve=self.solve)
