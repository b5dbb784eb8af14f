"""Certificates of searches, and their grids: as facts, and in a few lines of text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from policytree.constraints.checks import asked, limits_tests
from policytree.data.features import CATEGORICAL, Feature, shown
from policytree.data.views import Shown
from policytree.problem.split_columns import LEVELS_TO_GROUP
from policytree.problem.types import BinnedData, Solution, SplitColumn, Status

LEAST_GROUP = -3.0  # thresholds of groups of levels are at most this (data/features.py::level_threshold)
SEVERAL = 2  # rows in a leaf from which a smallest leaf is a limit
MATERIAL = 1e-9  # of the objective: what rounded sums may hide without a word


@dataclass(frozen=True, slots=True, repr=False)
class SearchGrid(Shown):
    """The splits that a search chose from.

    Attributes
    ----------
    n_splits : int
        Possible splits of all columns together.
    n_features : int
        Columns that have any.
    exact : bool
        Whether these are all splits that ``categories`` allows; False if long columns were thinned (``max_bins``), or
        groupings of a category with many levels left out.
    single_levels : tuple of str
        Categorical columns with groups of levels that no split is about, since ``categories="levels"``.
    partly_grouped : tuple of str
        Those with too many levels for ``categories="groups"`` to search all groups.
    thinned : bool
        Whether long columns were thinned.

    Examples
    --------
    >>> from policytree import PolicyTree
    >>> X, rewards = [[1.0, 5.0], [2.0, 5.0], [3.0, 6.0]], [[1.0, 0.0], [1.0, 0.0], [0.0, 2.0]]
    >>> grid = PolicyTree(max_depth=1).fit(X, rewards).search_grid_
    >>> print(grid)
    3 possible splits of 2 covariates
    >>> grid.exact
    True
    """

    n_splits: int
    n_features: int
    exact: bool
    single_levels: tuple[str, ...] = ()
    partly_grouped: tuple[str, ...] = ()
    thinned: bool = False

    @classmethod
    def of(cls, columns: Sequence[SplitColumn], features: Sequence[Feature], thinned: bool) -> SearchGrid:
        """Of the columns of codes that a search got."""
        n_splits, names = sum(len(c.thresholds) for c in columns), tuple(f.name for f in features)
        categorical = [c for c in columns if features[c.feature].kind == CATEGORICAL]
        grouped = {c.feature for c in categorical if c.thresholds[0] <= LEAST_GROUP}
        levels = Counter(c.feature for c in categorical if c.thresholds[0] >= 0 and not c.missing_left)
        single = tuple(names[j] for j, n in sorted(levels.items()) if n >= LEVELS_TO_GROUP and j not in grouped)
        return cls(n_splits, len({c.feature for c in columns}), not thinned, single, thinned=thinned)

    @classmethod
    def of_data(cls, data: BinnedData) -> SearchGrid:
        """Of the codes that a search got."""
        partly = tuple(data.features[j].name for j in data.partly_grouped)
        grid = cls.of(data.columns, data.features, data.thinned)
        single = tuple(name for name in grid.single_levels if name not in partly)
        n_splits = grid.n_splits + data.implied
        return replace(grid, n_splits=n_splits, exact=data.exact, single_levels=single, partly_grouped=partly)

    def __str__(self) -> str:
        covariates = "1 covariate" if self.n_features == 1 else f"{self.n_features} covariates"
        notes = ["very long columns are thinned to their quantiles"] * self.thinned
        if self.single_levels:
            single = _named(self.single_levels)
            notes.append(f"{single}: one level against the rest; categories='groups' searches groups")
        if self.partly_grouped:
            partly = _named(self.partly_grouped)
            notes.append(f"{partly}: single levels and a few groups, since there are too many levels")
        said = f" ({'; '.join(notes)})" if notes else ""
        return f"{self.n_splits:,} possible splits of {covariates}{said}"


def _named(names: tuple[str, ...]) -> str:
    """Some names of columns: the first three, and how many more."""
    more = len(names) - 3
    return ", ".join(map(shown, names[:3])) + (f" and {more} more" if more > 0 else "")


def certificate(estimator: Any, objective: str) -> dict[str, str]:
    """Return the certificate of a fitted estimator of one tree, by name: status, objective, bound, gap, search, limits.

    Parameters
    ----------
    estimator : fitted estimator of one tree
    objective : str
        The objective without the price of the leaves, in words.
    """
    from policytree.trees.text import format_number  # the module loads pandas, which a tree does without

    estimator = getattr(estimator, "policy_tree_", estimator)
    direction = getattr(estimator, "direction", "minimize")
    per_leaf = getattr(estimator, "regularization_", estimator.regularization)
    prices = [f"{per_leaf:.4g} per leaf"] * bool(per_leaf)
    prices += ["what its questions cost"] * (estimator.feature_costs is not None and not limits_tests(estimator))
    price = (", plus " if direction == "minimize" else ", less ") + " and ".join(prices) if prices else ""
    facts = {
        "status": _status(estimator),
        "objective": f"{format_number(estimator.objective_value_)} ({objective} on the rows that chose the tree"
        f"{price}: flattered)",
        "bound": format_number(estimator.objective_bound_),
        "gap": format_number(estimator.optimality_gap_, 3),
    }
    solution = estimator.solution_
    if solution.objective and solution.resolution > MATERIAL * abs(solution.objective):
        least = format_number(solution.resolution, 2)
        facts["rounding"] = f"trees that differ by less than {least} count as equal"
    if estimator.feature_costs is not None:
        cost = format_number(estimator.expected_cost_)
        facts["questions"] = f"cost {cost} a row on average; held-out values leave it out"
    for each in asked(estimator):
        facts |= each.facts(estimator)
    if getattr(estimator, "depth_choice_", None) is not None:
        facts["depth"] = str(estimator.depth_choice_)
    facts |= theorems(solution, maximize=direction == "maximize")
    facts["search"] = f"{format_number(estimator.solution_.seconds, 2)} s"
    if estimator.solution_.compile_seconds:
        seconds = format_number(estimator.solution_.compile_seconds, 2)
        facts["compiling"] = f"{seconds} s, once on this machine, before the search"
    return facts


def theorems(solution: Solution, *, maximize: bool = False) -> dict[str, str]:
    """State the theorems of weighted sparse trees on a solution, in words with its own numbers; empty for a proof.

    Parameters
    ----------
    solution : Solution
        In the unit in which its numbers are to be read.
    maximize : bool
        Whether the objective is told as something to be large, minus that of the solution.

    Returns
    -------
    dict of str to str
        "theorem 1", where lower bounds were guessed, "theorem 2" of duplication, "theorem 3" of sampling (Behrouz,
        Lecuyer, Rudin and Seltzer, 2022, arXiv:2210.06825); "solver", where one was chosen.
    """
    from policytree.trees.text import format_number

    said, counted, facts = solution.guarantees, solution.counters, dict[str, str]()
    told = {name: format_number(value, 3) for name, value in said.items() if not isinstance(value, str)}
    if "reason" in said:
        facts["solver"] = str(said["reason"])
    if "theorem_1" in said:
        where = ", by the weights of the sample" if "drawn_rows" in counted else ""
        where = ", by the weights of the copies" if "duplicated_rows" in counted else where
        facts["theorem 1"] = (
            "guessed lower bounds may hide a better tree of the guessed thresholds and depth, better by at most "
            f"{told['theorem_1']}{where}"
        )
    if "theorem_2" in said:
        least = f"moves the best objective by at most {told['theorem_2']}"
        if said["dropped_weight"]:
            least = f"leaves {told['dropped_weight']} of the weight without a copy, so that the theorem has no bound"
        facts["theorem 2"] = (
            f"rounding weights to {counted['duplicated_rows']:,} copies {least}; on these rows it moves the objective "
            f"of no tree by more than {told['tree_rounding_error']}"
        )
    if "theorem_3" in said:
        sure, bound = f"{1.0 - float(said['delta']):.4g}", float(said["probable_lower_bound"])
        limit = f"above {format_number(-bound)}" if maximize else f"below {format_number(bound)}"
        facts["theorem 3"] = (
            f"with probability {sure}, objectives on {counted['drawn_rows']:,} drawn rows and on all differ by at most "
            f"{told['theorem_3']} for a tree chosen beforehand; with as much, that of no tree is {limit}"
        )
    return facts


def stated_guarantees(solution: Solution, *, maximize: bool = False) -> dict[str, float | str | None]:
    """:func:`theorems` as numbers: bounds in the objective's direction, None where a theorem has no bound."""
    stated: dict[str, float | str | None] = dict(solution.guarantees)
    if "probable_lower_bound" in stated:
        bound = float(solution.guarantees["probable_lower_bound"])
        del stated["probable_lower_bound"]
        stated["probable_bound"] = -bound if maximize else bound
    if stated.get("dropped_weight"):
        stated["theorem_2"] = None
    return stated


def certificate_text(estimator: Any, objective: str) -> str:
    """:func:`certificate` as lines."""
    return "\n".join(f"{name:<10} {text}" for name, text in certificate(estimator, objective).items())


def _status(estimator: Any) -> str:
    """How the search ended, and so what is proved of which trees among which splits."""
    allowed, among = _allowed(estimator), f"among {estimator.search_grid_}"
    best = f"no tree{allowed} is better"
    words = {
        Status.OPTIMAL: f"optimal: {best}, {among}",
        Status.OPTIMAL_GIVEN_GUESSES: f"optimal given the guesses: {best} within them, {among}",
        Status.HEURISTIC: f"heuristic: nothing is proved beyond the bound, {among}",
    }
    if estimator.status_ is Status.OPTIMAL_GIVEN_GUESSES and estimator.guesses_ is None:
        return f"optimal for these thresholds: {best}, {among}"
    stopped = f"{estimator.status_.value}: a better tree{allowed} may exist, but none beyond the bound, {among}"
    return words.get(estimator.status_, stopped)


def _allowed(estimator: Any) -> str:
    """The trees that were searched, in words after "tree"; nothing where all are allowed."""
    limits, depth = [], getattr(estimator, "max_depth_", estimator.max_depth)
    if depth is not None:
        limits.append(f"of depth {depth} or less" if depth else "of depth 0")
    leaves = getattr(estimator, "max_leaf_nodes_", estimator.max_leaf_nodes)
    if leaves is not None:
        limits.append(f"at most {leaves} leaves")
    if estimator.min_samples_leaf >= SEVERAL:
        limits.append(f"{estimator.min_samples_leaf} rows or more in every leaf")
    per_treatment = getattr(estimator, "min_samples_per_treatment", 0)
    if per_treatment:
        limits.append(f"{per_treatment} of every treatment in it")
    words = " and ".join(limits)
    if depth is None and limits:
        words = f"with {words}"
    if any(not each.objective() for each in asked(estimator)):
        words += " within the limits"
    if estimator.root_feature is not None:
        roots = estimator.root_feature
        names = [roots] if isinstance(roots, str | int) else list(roots)
        words += f" that begins with {' or '.join(map(str, names))}"
    return f" {words.strip()}" if words.strip() else ""
