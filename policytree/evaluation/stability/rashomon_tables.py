"""Common parts of near-ties: decisions, people, columns, the simplest of them; as tables and in words."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from policytree.data.views import Shown, as_text
from policytree.evaluation.stability.rashomon_decisions import Decisions, TreeList
from policytree.exceptions import InputError
from policytree.problem.types import Status
from policytree.serialization import to_dict
from policytree.trees.text import counted
from policytree.trees.tree import Tree

if TYPE_CHECKING:
    from policytree.plotting.rashomon import NearTiesDisplay

SHOWN = 8  # columns in the text


@dataclass(frozen=True, slots=True)
class Exclusion:
    """Cost of leaving out some columns.

    Attributes
    ----------
    columns : tuple of str
    objective : float
        Of the best tree without them, proved.
    cost : float
        By how much it is worse than the best tree, >= 0.
    near_tie : bool
        Whether it is a near-tie.
    n_trees : int
        Near-ties that do without the columns; at least so many if not ``complete``.
    complete : bool
    tree : Tree or None
        The best tree without the columns, if it is a near-tie.
    """

    columns: tuple[str, ...]
    objective: float
    cost: float
    near_tie: bool
    n_trees: int
    complete: bool
    tree: Tree | None = field(repr=False)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class NearTies(Shown):
    """All trees near the best one, on the rows that it was learnt from.

    Numbers are facts about these rows and losses, not estimates: nothing here says what a rule is worth for others.

    Attributes
    ----------
    trees : sequence of Tree
        The best near-ties, the best one first, as many as were asked for; each is made when it is asked for. A leaf
        may give another action than the best one there.
    n_trees : int
        All near-ties; at least so many if not ``complete``.
    status : Status
        OPTIMAL if the count was not stopped, otherwise by what.
    objective, limit : float
        The best objective and the worst of a near-tie, in the unit of the estimator's ``objective_value_``.
    objectives : ndarray of shape (n_listed,)
    epsilon : float or None
        None if a slack was given.
    relative_to : {"objective", "gain"}
        Base of the share epsilon: the best objective, or its gain over the best single leaf.
    max_depth : int
    decided : Decisions
        Treatments of the rows by the listed trees.
    simplest : Tree
        Of all near-ties (of the listed, if the count was stopped) the one with the fewest leaves, then the fewest
        columns, then the best objective.
    exclusions : tuple of Exclusion
        For ``without=``.
    exact : bool
        False if thresholds were thinned (``max_bins``): near-ties are then those among the thresholds kept.

    Examples
    --------
    >>> from policytree import OptimalTreeClassifier
    >>> from policytree.evaluation import near_ties
    >>> X, y = [[1, 0], [2, 0], [3, 1], [4, 1]], [0, 0, 1, 0]
    >>> ties = near_ties(OptimalTreeClassifier(max_depth=1, regularization=0.0), X, y, slack=0.0)
    >>> ties.n_trees, ties.objective
    (3, 0.25)
    """

    trees: TreeList = field(repr=False)
    n_trees: int
    status: Status
    objective: float
    limit: float
    objectives: np.ndarray = field(repr=False)
    epsilon: float | None
    relative_to: str
    max_depth: int
    decided: Decisions = field(repr=False)
    simplest: Tree = field(repr=False)
    exclusions: tuple[Exclusion, ...] = field(repr=False)
    exact: bool

    @property
    def complete(self) -> bool:
        """Whether all near-ties were counted."""
        return self.status is Status.OPTIMAL

    @property
    def truncated(self) -> bool:
        """Whether fewer trees are listed than there are: decisions, people and columns are then those of the listed."""
        return len(self.trees) < self.n_trees or not self.complete

    @property
    def slack(self) -> float:
        """How much worse than the best tree a near-tie may be."""
        return abs(self.limit - self.objective)

    # --- decisions ---

    @property
    def n_decisions(self) -> int:
        """Different decision functions of the listed trees on the rows."""
        return len(self.decided)

    def decisions(self) -> pd.DataFrame:
        """Different decision functions on the rows, the best first.

        Returns
        -------
        DataFrame
            One row each: ``tree`` (position in ``trees`` of its simplest tree), ``n_trees`` (listed trees that decide
            so), ``objective`` (the best of these), ``n_leaves`` and ``columns`` (names) of that simplest tree, and
            ``differs``, the share of people (of weight) whom it treats otherwise than the best tree.
        """
        of_tree, leaves, asks = self.decided.of_tree, self.trees.n_leaves, self.trees.asks
        order = np.lexsort((np.arange(len(of_tree)), asks.sum(axis=1), leaves, of_tree))
        simple = order[np.searchsorted(of_tree[order], np.arange(self.n_decisions))]
        best = np.full(self.n_decisions, -1)
        best[of_tree[::-1]] = np.arange(len(of_tree))[::-1]  # of several assignments the last one stays: the first tree
        return pd.DataFrame({
            "tree": simple,
            "n_trees": np.bincount(of_tree, minlength=self.n_decisions),
            "objective": self.objectives[best],
            "n_leaves": leaves[simple],
            "columns": [self._names(asks[i]) for i in simple],
            "differs": self.decided.distances(),
        }).rename_axis("decision")  # fmt: skip

    def policy(self, decision: int = 0) -> np.ndarray:
        """Assign every row of positive weight by a decision function, in the user's labels; shape (n,)."""
        labels = np.array(self.trees.actions, dtype=object)
        return labels[self.decided.actions(range(self.n_decisions)[decision])[self.decided.group]]

    # --- people ---

    def arm_shares(self) -> pd.DataFrame:
        """Share of the decision functions that give each row of positive weight each action, (n, K)."""
        shares = self.decided.counts() / self.n_decisions
        return pd.DataFrame(shares[self.decided.group], columns=list(self.trees.actions))

    def settled(self) -> np.ndarray:
        """Whether all decision functions treat a row of positive weight alike, (n,), bool."""
        return (self.decided.counts().max(axis=1) == self.n_decisions)[self.decided.group]

    @property
    def settled_share(self) -> float:
        """Share of people (of weight) whom all listed near-ties treat alike; at most this of all, if truncated."""
        return float(np.average(self.settled(), weights=self.decided.weight))

    @property
    def agreement(self) -> float:
        """Share of people whom two decision functions treat alike, on average over all pairs; 1 if there is one."""
        m, counts = self.n_decisions, self.decided.counts()
        alike = (counts * (counts - 1)).sum(axis=1) / (m * (m - 1)) if m > 1 else np.ones(len(counts))
        return float(alike @ self.decided.masses())

    # --- columns ---

    def variables(self) -> pd.DataFrame:
        """How many listed near-ties ask about each column, those asked about most first.

        Returns
        -------
        DataFrame
            Index ``column``. ``trees``: share of trees that ask about it. ``decisions``: share of decision functions
            that no listed tree expresses without it. ``best``, ``simplest``: whether these trees ask about it.
        """
        asks, of_tree = self.trees.asks, self.decided.of_tree
        without = np.zeros((self.n_decisions, asks.shape[1]), bool)
        np.logical_or.at(without, of_tree, ~asks)
        frame = pd.DataFrame({
            "trees": asks.mean(axis=0),
            "decisions": 1.0 - without.mean(axis=0),
            "best": asks[0],
            "simplest": np.isin(np.arange(asks.shape[1]), self.simplest.used_features),
        }, index=pd.Index(self.trees.features, name="column"))  # fmt: skip
        return frame.sort_values("trees", ascending=False, kind="stable")

    def avoiding(self, columns: str | Iterable[str]) -> np.ndarray:
        """Positions in ``trees`` of the near-ties that ask about none of these columns (names).

        Raises
        ------
        InputError
            If there is no such column.
        """
        names = [columns] if isinstance(columns, str) else list(columns)
        unknown = [name for name in names if name not in self.trees.features]
        if unknown:
            known = ", ".join(self.trees.features[:SHOWN])
            raise InputError(f"columns names {unknown[0]!r}, which X does not have; its columns are {known}, ...")
        positions = [self.trees.features.index(name) for name in names]
        return np.flatnonzero(~self.trees.asks[:, positions].any(axis=1))

    def without(self) -> pd.DataFrame:
        """Tabulate the costs of leaving out columns, as asked by ``without=``.

        Returns
        -------
        DataFrame
            Index ``columns``. ``objective`` of the best tree without them, proved; ``cost``, by how much that is worse;
            ``near_tie``, whether that is within the limit; ``n_trees``, near-ties that do without them.
        """
        records = [(", ".join(e.columns), e.objective, e.cost, e.near_tie, e.n_trees) for e in self.exclusions]
        names = ["columns", "objective", "cost", "near_tie", "n_trees"]
        return pd.DataFrame(records, columns=names).set_index("columns")

    # --- words ---

    def statements(self, *, unit: str = "people") -> tuple[str, ...]:
        """Numbers of trees and decisions, settled people, and what is left out, in sentences."""
        least = "" if self.complete else "at least "
        thinned = "" if self.exact else " among the thresholds kept"
        trees = "tree" if self.n_trees == 1 else "trees"
        lines = [
            f"There {'is' if self.n_trees == 1 else 'are'} {least}{self.n_trees:,} {trees} of depth at most "
            f"{self.max_depth}{thinned} {self._how_near()}."
        ]
        if self.truncated:
            lines.append(f"The following is about the best {len(self.trees):,} of them.")
        lines.append(self._decided(unit))
        return (*lines, *map(self._exclusion, self.exclusions))

    def _decided(self, unit: str) -> str:
        """Describe the listed trees as decisions."""
        people = counted(len(self.decided.group), unit)
        if self.n_decisions == 1:
            return f"They are one and the same decision on {people}."
        return (
            f"They are {self.n_decisions:,} different decisions on {people}; {self.settled_share:.0%} of {unit} are "
            f"treated alike by all, two decisions treat {self.agreement:.0%} alike on average, and the one farthest "
            f"from the best tree's treats {self.decided.distances().max():.0%} otherwise."
        )

    def _how_near(self) -> str:
        spans = f"objective {self.objective:.6g} to {self.limit:.6g}"
        if self.epsilon is None:
            return f"within {self.slack:.6g} of the best ({spans})"
        of = "of the best objective" if self.relative_to == "objective" else "of the best tree's gain over one leaf"
        return f"within {100 * self.epsilon:.4g}% {of} ({spans})"

    def _exclusion(self, e: Exclusion) -> str:
        names = ", ".join(e.columns)
        if e.cost <= 0:
            return f"Doing without {names} costs nothing: {e.n_trees:,} of these trees do."
        near = f"{e.n_trees:,} near-ties do without" if e.near_tie else "no near-tie does without"
        return f"Doing without {names} costs {e.cost:.4g} at least (objective {e.objective:.6g}): {near}."

    def plot(self, **options: Any) -> NearTiesDisplay:
        """Draw the columns that near-ties ask about, and the treatments that they give to people.

        Options are ``title``, ``n_columns`` and ``unit``, as in
        :meth:`policytree.plotting.rashomon.NearTiesDisplay.plot`.
        """
        from policytree.plotting.rashomon import NearTiesDisplay

        return NearTiesDisplay(self).plot(**options)

    def to_text(self, n_columns: int = SHOWN, *, unit: str = "people") -> str:
        """Show how many near-ties there are, what they ask about, and the simplest; ``unit`` is what the rows are."""
        return as_text(self._shown(n_columns, unit))

    def _shown(self, n_columns: int = SHOWN, unit: str = "people") -> list[Any]:
        frame = self.variables().head(n_columns)
        frame = frame[frame["trees"] > 0].reset_index()
        lines: list[Any] = list(self.statements(unit=unit))
        if len(frame):
            for name in ("trees", "decisions"):
                frame[name] = [f"{share:.0%}" for share in frame[name]]
            for name in ("best", "simplest"):
                frame[name] = frame[name].map({True: "yes", False: "-"})
            lines += ["Covariates that they ask about (share of trees; of decisions that need it):", frame]
        return [*lines, "The simplest of them:", self.simplest]

    def to_dict(self) -> dict:
        """Plain Python values that JSON can hold; trees as by :func:`policytree.serialization.to_dict`."""
        exclusions = [
            {"columns": list(e.columns), "objective": e.objective, "cost": e.cost, "near_tie": bool(e.near_tie),
             "n_trees": e.n_trees, "complete": e.complete}
            for e in self.exclusions
        ]  # fmt: skip
        return {
            "n_trees": self.n_trees,
            "complete": self.complete,
            "n_listed": len(self.trees),
            "n_decisions": self.n_decisions,
            "max_depth": self.max_depth,
            "objective": self.objective,
            "limit": self.limit,
            "epsilon": self.epsilon,
            "relative_to": None if self.epsilon is None else self.relative_to,
            "settled_share": self.settled_share,
            "agreement": self.agreement,
            "variables": _records(self.variables()),
            "decisions": _records(self.decisions()),
            "without": exclusions,
            "best": to_dict(self.trees[0]),
            "simplest": to_dict(self.simplest),
        }

    def _names(self, asked: np.ndarray) -> tuple[str, ...]:
        return tuple(name for name, used in zip(self.trees.features, asked, strict=True) if used)


def _records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows of a table as plain values."""
    rows = frame.reset_index().to_dict("records")
    return [{k: list(v) if isinstance(v, tuple) else v for k, v in row.items()} for row in rows]
