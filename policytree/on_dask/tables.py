"""Tables of rows on workers: every worker adds up its own, and tasks add these up a few at a time."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from policytree.encoded.streams import LeafSums, Streams, pairs_of
from policytree.on_dask import parts
from policytree.on_dask.reading import Engine, dask, reduced
from policytree.solvers.out_of_core.table_search import Side, Stopped, Triple


@dataclass
class DaskTables(Streams):
    """As :class:`policytree.encoded.streams.Streams`, of rows that workers hold.

    Attributes
    ----------
    engine : Engine
    coded : list
        Tasks whose values are coded parts.
    """

    engine: Engine = field(default_factory=Engine)
    coded: list = field(default_factory=list)

    def pairs(self, sides: list[Side | None]) -> list[dict[tuple[int, int], np.ndarray]]:
        """Tables of all pairs of features, of the rows of each side."""
        places = [tuple(pair) for pair in pairs_of(len(self.used)).tolist()]
        found = iter(self._sum(f"Adding up {len(places)} pairs of features", "pairs", sides))
        return [{pair: next(found) for pair in places} for _ in sides]

    def triples(self, triples: list[Triple]) -> dict[Triple, np.ndarray]:
        """Tables of triples of features."""
        found = self._sum(f"Adding up {len(triples)} triples of features", "triples", triples)
        in_order = sorted(triples, key=lambda t: t[0])  # as parts return them: by first feature, then as given
        return dict(zip(in_order, found, strict=True))

    def leaves(self, feature: np.ndarray, goes_left: np.ndarray, children: np.ndarray) -> LeafSums:
        """What the rows of every leaf hold; see :meth:`Streams.leaves`."""
        return self._sum("Adding up leaves", "leaves", feature, goes_left, children, stoppable=False)[0]

    def least(self) -> int:
        """What no tree can go below."""
        return int(self._sum("Adding up rows", "least", stoppable=False)[0])

    def _sum(self, title: str, what: str, *arguments: Any, stoppable: bool = True) -> list:
        """Sums of all rows, as the parts' lists say them."""
        if stoppable:
            self.check_time()
        question = {
            "data": replace(self.data, stored=()),
            "used": self.used,
            "counted": self.counted,
            "sign": self.sign,
            "what": what,
            "arguments": arguments,
        }
        if self.report is not None:
            self.report(title, 0, self.data.n_rows)
        delayed = dask().delayed
        shared = delayed(question, traverse=False)
        task = reduced([delayed(parts.sums_of_part)(part, shared) for part in self.coded], parts.add_sums)
        found = self.engine.run(task, self._out_of_time if stoppable else lambda: False)
        if found is None:
            raise Stopped(self.clock.status)
        self.read_rows += self.data.n_rows
        return found
