"""DaskPolicyTree and DaskOptimalTreeClassifier: the best tree for rows that are spread over machines."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field, fields, replace
from typing import Any, Self

import numpy as np

from policytree.common.docstrings import shares_documentation
from policytree.common.executors import NO_WORKERS_TIMEOUT
from policytree.encoded.solve import MOST_BYTES, solve_by_tables, tables_answer
from policytree.encoded.streams import LeafSums, Streams, pairs_of
from policytree.estimators.arguments import own_arguments_first
from policytree.estimators.classifier import OptimalTreeClassifier
from policytree.estimators.encoded_fit import keep_answer, question_of
from policytree.estimators.inputs import check_number
from policytree.estimators.policy import PolicyTree
from policytree.exceptions import InputError
from policytree.on_dask import parts
from policytree.on_dask.reading import Engine, dask, encode_partitions, reduced
from policytree.solvers.core.limits import Clock
from policytree.solvers.out_of_core.table_search import Side, Stopped, Triple
from policytree.study.study import Study


def _client(client: Any) -> Any:
    """The client that is given, or the one that is open; None: dask's schedulers in this process."""
    if client is not None:
        return client
    from distributed import get_client

    try:
        return get_client()
    except ValueError:  # none is open
        return None


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
        """Add up the rows of every leaf; see :meth:`Streams.leaves`."""
        return self._sum("Adding up leaves", "leaves", feature, goes_left, children, stoppable=False)[0]

    def least(self) -> int:
        """Return a lower bound for all trees."""
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


class _OnDask:
    """Base of both estimators: fits on dask."""

    client: Any
    no_workers_timeout: float | None
    classes_: np.ndarray
    treatments_: np.ndarray
    verbose: int
    max_bins: int | None

    def _fit_dask(self, study: Study):
        check_number("no_workers_timeout", self.no_workers_timeout, 0, none=True)
        engine = Engine(_client(self.client), self.no_workers_timeout)
        local = self.to_local(fitted=False)
        local._check_arguments()
        with ExitStack() as stack:
            report = None
            if self.verbose:
                report = stack.enter_context(self._progress(engine))
                report("Coding rows", 0, 0)
            data, coded = encode_partitions(engine, study, self.max_bins or 64)
            question, limits = question_of(local, data, {})
            used = question.places(data, question.split_features)
            if not tables_answer(question, used):
                raise InputError(
                    "On dask, trees have a max_depth of 3 at most and no max_leaf_nodes; set these, or fit a sample of "
                    "the rows in memory."
                )
            sign, clock = 1 if question.minimize else -1, Clock(limits.time_limit)
            tables = DaskTables(data, used, question.min_leaf > 1, sign, 1, clock, report, engine=engine, coded=coded)
            answer = solve_by_tables(tables, question, limits.memory_limit or MOST_BYTES)
        return keep_answer(self, data, answer)

    def _progress(self, engine: Engine):
        """Show what is read, and where the dashboard is."""
        from policytree.common.progress import reading_progress, say

        if engine.client is not None:
            say(f"Dask's dashboard: {engine.client.dashboard_link}")
        return reading_progress()

    def to_local(self, *, fitted: bool = True) -> Any:
        """The plain estimator, with what this one has learnt: it needs no dask.

        Parameters
        ----------
        fitted : bool, default True
            Whether to copy what was learnt.
        """
        cls: Any = type(self).__mro__[2]
        arguments = {f.name: getattr(self, f.name) for f in fields(cls)}
        local = cls(**arguments | {"max_bins": None})
        if fitted:
            vars(local).update({name: v for name, v in vars(self).items() if name.endswith("_")})
        return local

    def predict(self, X: Any) -> Any:
        """Labels of every row: of a dask DataFrame as a dask Series, computed later; of a table as an array."""
        local = self.to_local()
        if not hasattr(X, "map_partitions"):
            return local.predict(X)
        labels = self.treatments_ if isinstance(local, PolicyTree) else self.classes_
        return X.map_partitions(_predict, local, meta=("prediction", labels.dtype))


def _predict(part: Any, local: Any) -> Any:
    import pandas as pd

    labels = local.predict(part) if len(part) else np.empty(0, dtype=object)
    return pd.Series(labels, index=part.index, name="prediction")


@shares_documentation(PolicyTree)
@own_arguments_first
@dataclass(eq=False, repr=False)
class DaskPolicyTree(_OnDask, PolicyTree):
    """:class:`policytree.PolicyTree` for dask DataFrames: the same tree, without the rows ever being in one place.

    Workers code their rows and add up tables over pairs (depth two) and triples (depth three) of columns, which are
    added up in a tree of tasks; nothing else leaves them. A worker that dies costs time only; if all die and none comes
    back, the fit says so.

    Parameters
    ----------
    max_bins : int or None, default 64
        Most codes of a number; see :func:`policytree.encoded.encode`. None means 64.
    client : distributed.Client, optional
        Where to compute; by default the client that is open, else dask's scheduler in this process.
    no_workers_timeout : float or None, default 45
        Seconds without a single worker after which a fit ends with an error; None waits for workers without end.

    Attributes
    ----------
    treatments_ : ndarray of shape (K,)

    Notes
    -----
    Depth three at most. Arguments that encoded rows do not take (costs of features, budgets, guesses, other solvers)
    are refused here as well.

    Examples
    --------
    >>> import dask.dataframe as dd
    >>> import pandas as pd
    >>> from policytree import Study
    >>> from policytree.on_dask import DaskPolicyTree
    >>> from policytree.study import Rewards
    >>> rows = pd.DataFrame({"age": [30, 40, 50, 60], "none": [1.0, 1, 0, 0], "drug": [0.0, 0, 2, 2]})
    >>> frame = dd.from_pandas(rows, npartitions=2)
    >>> study = Study(frame, outcome=Rewards(["none", "drug"]), covariates=["age"])
    >>> tree = DaskPolicyTree(max_depth=1).fit(study)
    >>> tree.predict(rows[["age"]]).tolist()
    ['none', 'none', 'drug', 'drug']
    """

    max_bins: int | None = field(default=64, kw_only=True)
    client: Any = field(default=None, kw_only=True)
    no_workers_timeout: float | None = field(default=NO_WORKERS_TIMEOUT, kw_only=True)

    def fit(self, study: Study) -> Self:
        """Find the tree.

        Parameters
        ----------
        study : Study
            Of a dask DataFrame, or of Parquet files, which all workers see under their names and of which every row
            group is read on its own. Its outcome are :class:`policytree.study.Rewards`.

        Returns
        -------
        DaskPolicyTree
            This estimator, fitted.

        Raises
        ------
        InputError
            If the study cannot be used, or a column holds what is no number and no text.
        """
        return self._fit_dask(study)


@shares_documentation(OptimalTreeClassifier)
@own_arguments_first
@dataclass(eq=False, repr=False)
class DaskOptimalTreeClassifier(_OnDask, OptimalTreeClassifier):
    """:class:`policytree.OptimalTreeClassifier` for dask DataFrames; see :class:`DaskPolicyTree`.

    Parameters
    ----------
    max_depth : int, default 2
        Three at most.
    max_bins : int or None, default 64
        Most codes of a number; see :func:`policytree.encoded.encode`. None means 64.
    client : distributed.Client, optional
        Where to compute; by default the client that is open, else dask's scheduler in this process.
    no_workers_timeout : float or None, default 45
        Seconds without a single worker after which a fit ends with an error; None waits for workers without end.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)

    Examples
    --------
    >>> import dask.dataframe as dd
    >>> import pandas as pd
    >>> from policytree import Study
    >>> from policytree.on_dask import DaskOptimalTreeClassifier
    >>> from policytree.study import Label
    >>> frame = dd.from_pandas(pd.DataFrame({"age": [30, 40, 50, 60], "ill": [0, 0, 1, 1]}), npartitions=2)
    >>> tree = DaskOptimalTreeClassifier(max_depth=1).fit(Study(frame, outcome=Label("ill"), covariates=["age"]))
    >>> tree.predict(pd.DataFrame({"age": [35, 55]})).tolist()
    [0, 1]
    """

    max_depth: int | None = 2
    max_bins: int | None = field(default=64, kw_only=True)
    client: Any = field(default=None, kw_only=True)
    no_workers_timeout: float | None = field(default=NO_WORKERS_TIMEOUT, kw_only=True)

    def fit(self, study: Study) -> Self:
        """Find the tree.

        Parameters
        ----------
        study : Study
            Of a dask DataFrame, or of Parquet files, which all workers see under their names and of which every row
            group is read on its own. Its outcome is a :class:`policytree.study.Label`.

        Returns
        -------
        DaskOptimalTreeClassifier
            This estimator, fitted.

        Raises
        ------
        InputError
            If the study cannot be used, or a column holds what is no number and no text.
        """
        return self._fit_dask(study)
