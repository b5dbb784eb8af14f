"""Interface between engines and a lower bound of the whole problem."""

from __future__ import annotations

from typing import Protocol

from policytree.solvers.core.rows import Splits


class RootBound(Protocol):
    """A lower bound of the whole problem, raised by turns of work.

    It holds for all trees deeper than those that were searched, and so for the problem, since the incumbent is the best
    of the others. It holds whenever the work stops.

    Attributes
    ----------
    counter : str
        The name in ``Solution.counters`` under which a search counts how often it raised the bound.
    """

    counter: str

    def pays(self, seconds: float) -> bool:
        """Whether to work on it beside a search of so many seconds (of a usual machine, see ``core.work_units``).

        False once it was worked on: subsets ask after every slice of theirs, and give it a turn each time it is true.
        """

    def work(self, best: int, tree: Splits, depth: int, seconds: float) -> int:
        """Work on the bound; return what all trees deeper than ``depth`` cost at least, -INF if nothing is known.

        Parameters
        ----------
        best : int
            The value of the incumbent, ``tree``. Trees down to ``depth`` are proved to be no better.
        seconds : float
            Of a usual machine.
        """
