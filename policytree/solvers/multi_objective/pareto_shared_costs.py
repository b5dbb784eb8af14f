"""The Pareto front with shared test costs: a column or a group is paid for once on a path.

Below a split on a column its group is free. So every first split has criteria of its own for what stands below it: the
same planes, but columns of its group have the price zero. What is known of trees of depth two comes from
``solvers/kernels/test_costs/shared_cost_pairs.py``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from policytree.solvers.core.rows import Node, occurring, rows_of
from policytree.solvers.exact.shared_test_costs import charge_spreads, charged_later
from policytree.solvers.kernels.base.layout import INF
from policytree.solvers.kernels.enumeration.layout import Criteria
from policytree.solvers.kernels.enumeration.stumps import least_bound
from policytree.solvers.kernels.test_costs.shared_cost_pairs import solve_two
from policytree.solvers.multi_objective.pareto_front import ParetoSearch, bound_as_node, price_of_split


class SharedCostSearch(ParetoSearch):
    """Search all trees of one set of rows, of which paths pay for a group of columns once.

    Parameters
    ----------
    criteria : Criteria
        The last of its prices is zero, in the bound and in every criterion.
    owner : ndarray of shape (n_columns,), int64
        The group of every column.
    flag, roots
        As for :class:`ParetoSearch`.
    """

    def __init__(self, criteria: Criteria, owner: np.ndarray, flag: np.ndarray, roots: Sequence[int] | None = None):
        super().__init__(criteria, flag, roots)
        self.owner = owner
        self.spreads = charge_spreads(bound_as_node(criteria).charges, criteria.groups, owner)

    def _below(self, c: Criteria, f: int) -> Criteria:
        return c._replace(groups=np.where(self.owner == self.owner[f], c.prices - 1, c.groups))

    def _first_splits(self, c: Criteria, columns: Sequence[int]) -> Iterator[tuple[int, int, np.ndarray]]:
        values, _ = self._two(bound_as_node(c), self.owner)
        order = np.arange(c.n)
        for f in sorted(columns, key=lambda f: int(values[f])):
            known = np.full(c.bins[f], values[f] if values[f] >= INF else values[f] - price_of_split(c, f)[0])
            yield f, int(least_bound(self._below(c, f), order, 0, c.n)), known

    def _later(self, f: int) -> np.ndarray:
        """As in ``exact/shared_test_costs.py``; sides have two levels, so that at most one group is concerned."""
        return charged_later(self.spreads, {int(self.owner[f])}, self.criteria.n)

    def _least_of_two(self, c: Criteria, rows: np.ndarray) -> int:
        part, columns, _ = occurring(rows_of(self._node(c), rows))  # a cut must leave rows on both sides
        return self._two(part, self.owner[columns])[1]

    def _two(self, node: Node, owner: np.ndarray) -> tuple[np.ndarray, int]:
        """The least bounds of trees of depth two by their first split's column, and of any."""
        values, tree = np.empty(len(owner), np.int64), np.empty(6, np.int64)
        free = np.zeros(len(owner), dtype=bool)  # what was paid for has the price zero already
        return values, int(solve_two(node.rows, node.rules, free, owner, 2, values, tree, self.flag))
