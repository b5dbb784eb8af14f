"""Rows of dask frames to codes on the workers: the same steps as for files, each a tree of tasks."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from policytree.common.executors import NO_WORKERS_TIMEOUT, WorkerWatch
from policytree.data.sources import FORMATS, Source, common_kinds, is_dask, row_groups
from policytree.encoded.plan import encoded_data
from policytree.encoded.reading import columns_to_learn, kinds_of, outcome_to_learn
from policytree.encoded.scan import make_plan, quantile_searches, read_quantiles, take_parts, tally_table
from policytree.encoded.store import EncodedData
from policytree.exceptions import InputError
from policytree.on_dask import parts
from policytree.solvers.core.limits import LOOK_EVERY
from policytree.study.study import Study

FAN_IN = 8  # parts that one task adds up


def dask() -> Any:
    """Return dask, or one sentence that says how to get it."""
    try:
        import dask
        import dask.dataframe
    except ImportError as error:
        raise InputError("This needs dask; install it with: pip install 'policytree[dask]'.") from error
    return dask


@dataclass
class Engine:
    """Runs tasks: on the workers of a client, or by dask's own schedulers in this process.

    Attributes
    ----------
    client : distributed.Client or None
    no_workers_timeout : float or None
        Seconds without a worker after which a task is given up; None: never.
    """

    client: Any = None
    no_workers_timeout: float | None = NO_WORKERS_TIMEOUT

    def run(self, task: Any, stopped: Callable[[], bool] = lambda: False) -> Any:
        """The value of a delayed task; None if it was stopped.

        Raises
        ------
        InputError
            If the task raises one, or the cluster has no workers, or no scheduler, any more.
        """
        if self.client is None:
            return dask().compute(task)[0]
        watch, future = WorkerWatch(self.client, self.no_workers_timeout), self.client.compute(task)
        try:
            while not future.done():
                if stopped():
                    future.cancel()
                    return None
                watch.look()
                time.sleep(LOOK_EVERY / 10)
        except BaseException:  # nobody waits for it any more
            future.cancel()
            raise
        return watch.result(future)

    def keep(self, tasks: list) -> list:
        """Compute tasks and leave what comes out where it is; what a worker takes along when it dies is made anew."""
        kept = self.client.persist(tasks) if self.client is not None else dask().persist(*tasks)
        return list(kept)


def reduced(tasks: list, add: Callable[[list], Any]) -> Any:
    """One task for the sum of many, a few at a time."""
    delayed = dask().delayed(add)
    while True:
        tasks = [delayed(tasks[k : k + FAN_IN]) for k in range(0, len(tasks), FAN_IN)]
        if len(tasks) == 1:
            return tasks[0]


def tables_of(study: Study, columns: list[str]) -> list:
    """Some columns of all parts of a study as tasks, each an Arrow table.

    Parts are the partitions of a dask DataFrame, or the row groups of Parquet files, which workers must see under the
    same names.

    Raises
    ------
    InputError
        If the rows are neither.
    """
    delayed = dask().delayed
    if is_dask(study.rows):
        part = delayed(parts.arrow_part)
        return [part(each, columns) for each in study.rows.to_delayed()]
    if not study.is_larger_than_memory:
        raise InputError(
            "The rows of this study are in memory; fit PolicyTree or OptimalTreeClassifier, or spread them over "
            "workers: Study(dask.dataframe.from_pandas(table, npartitions=8), ...)."
        )
    files = study.source.files
    other = [file for file in files if FORMATS.get(file.suffix) != "parquet"]
    if other or not files:
        raise InputError(
            f"{repr(str(other[0])) if other else 'This'} is no Parquet file; read other rows with dask.dataframe and "
            "make a study of that frame."
        )
    read = delayed(parts.read_row_group)
    return [read(str(file.resolve()), k, columns) for file in files for k in range(row_groups(file))]


def encode_partitions(engine: Engine, study: Study, max_bins: int) -> tuple[EncodedData, list]:
    """Rows as codes on the workers, and what the codes mean; the first has no rows of its own."""
    delayed = dask().delayed
    outcome_to_learn(study, "Trees on dask")
    columns = columns_to_learn(study)
    kinds = kinds_of(study, study.source, columns) if isinstance(study.rows, Source) else None
    tables = engine.keep(tables_of(study, columns))
    if not tables:
        raise InputError("The study has no rows; pass at least one.")
    if kinds is None:
        types = engine.run(delayed(list)([delayed(parts.types_of)(table) for table in tables]))
        named = [(f"partition {k}", each) for k, each in enumerate(types)]
        kinds = common_kinds(named, columns, "", "convert it")
    study = study.without_rows()
    tally = engine.run(reduced([delayed(tally_table)(t, study, kinds) for t in tables], parts.merge_tallies))
    if tally.n_rows == 0:
        what = "weights are zero in all rows" if tally.rows else "The study has no rows; pass at least one"
        raise InputError(f"{what}.")
    searches = quantile_searches(tally, max_bins)
    while open_ := {name: s for name, s in searches.items() if s.result is None}:
        shared = delayed(open_)
        tasks = [delayed(read_quantiles)(t, shared, study) for t in tables]
        take_parts(open_, engine.run(reduced(tasks, parts.merge_quantiles)))
    cuts = {name: s.result for name, s in searches.items() if s.result is not None}
    plan = make_plan(study, kinds, tally, cuts, max_bins)
    shared = delayed(plan)
    coded = engine.keep([delayed(parts.code_part)(t, shared, study) for t in tables])
    least, inexact = engine.run(reduced([delayed(parts.notes_of_part)(c) for c in coded], parts.merge_notes))
    return encoded_data(Path(), plan, least, inexact, ()), coded
