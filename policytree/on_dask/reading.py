"""Rows of dask frames to codes on the workers: the same steps as for files, each a tree of tasks."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from policytree.common.executors import NO_WORKERS_TIMEOUT, WorkerWatch
from policytree.encoded.plan import encoded_data
from policytree.encoded.reading import Roles
from policytree.encoded.scan import make_plan, quantile_searches, take_parts
from policytree.encoded.sources import FORMATS, UNKNOWN, files_of, open_source, row_groups, warn_of_mixed_booleans
from policytree.encoded.store import EncodedData
from policytree.exceptions import InputError, quoted
from policytree.on_dask import parts
from policytree.solvers.core.limits import LOOK_EVERY

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
        try:
            return self._run(task, stopped)
        except InputError as error:  # names of columns without their roles
            raise InputError(re.sub(f"'({parts.X}|{parts.REWARD})", "'", str(error))) from error

    def _run(self, task: Any, stopped: Callable[[], bool]) -> Any:
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


def partitions(X: Any, target: Any, weight: Any) -> list:
    """Arrow tables of all partitions, as tasks."""
    each = [_delayed(name, frame) for name, frame in (("X", X), ("rewards or y", target), ("sample_weight", weight))]
    count = len(each[0])
    for name, tasks in (("rewards or y", each[1]), ("sample_weight", each[2])):
        if tasks and len(tasks) != count:
            raise InputError(
                f"X has {count} partitions, but {name} {len(tasks)}; make them from one frame, or repartition them "
                "alike."
            )
    part = dask().delayed(parts.arrow_part)
    weights = each[2] or [None] * count
    return [part(x, t, w) for x, t, w in zip(each[0], each[1], weights, strict=True)]


def _delayed(name: str, frame: Any) -> list:
    if frame is None:
        return []
    if not hasattr(frame, "to_delayed") or not hasattr(frame, "map_partitions"):  # nor a dask array
        raise InputError(f"{name} must be a dask DataFrame or Series; got {type(frame).__name__}.")
    return list(frame.to_delayed())


def common_kinds(found: list[dict], columns: list[str], compared: bool) -> dict[str, str]:
    """The kind of every column in all parts, or one sentence; ``compared``: whether types have been, by their files."""
    out: dict[str, str] = {}
    for column in columns:
        name = column.partition(":")[2] or column
        if not compared:
            warn_of_mixed_booleans(name, [(kinds[column][1], f"partition {k}") for k, kinds in enumerate(found)])
        for kinds in found:
            kind, type_ = kinds[column]
            if kind is None:
                raise InputError(f"Column {name!r} has type {type_}; turn it into numbers or text, or leave it out.")
            known = out.setdefault(column, kind)
            if UNKNOWN not in (kind, known) and kind != known:
                raise InputError(f"Column {name!r} holds {known} in one partition and {kind} in another; convert it.")
            if known == UNKNOWN:
                out[column] = kind
    return out


@dataclass(frozen=True)
class Rows:
    """Rows in parts.

    Attributes
    ----------
    tables : list of tasks
        Each an Arrow table.
    X : list
        Names of the columns that trees may split on.
    rewards : list
        Names of the treatments; empty for labels.
    weighted : bool
    of_files : bool
    """

    tables: list
    X: list
    rewards: list
    weighted: bool
    of_files: bool = False

    @property
    def roles(self) -> Roles:
        """Columns as the parts name them."""
        y = None if self.rewards else parts.LABEL
        named = [tuple(f"{role}{name}" for name in names) for role, names in self.named]
        return Roles(named[0], named[1], y, parts.WEIGHT if self.weighted else None)

    @property
    def named(self) -> list[tuple[str, list]]:
        """Columns by the role that stands before their names."""
        return [(parts.X, self.X), (parts.REWARD, self.rewards)]


def rows_of_frames(X: Any, target: Any, weight: Any) -> Rows:
    """Dask frames, which must have partitions alike."""
    tables = partitions(X, target, weight)
    rewards = list(target.columns) if target.ndim == 2 else []
    return Rows(tables, list(X.columns), rewards, weight is not None)


def are_files(X: Any) -> bool:
    """Whether X names files and is no frame."""
    single = str | os.PathLike
    return isinstance(X, single) or (isinstance(X, list | tuple) and bool(X) and all(isinstance(x, single) for x in X))


def rows_of_files(paths: Any, X: Any, rewards: Any, y: Any, weight: Any) -> Rows:
    """Parquet files, which workers must see under the same names; every row group is a part.

    Parameters
    ----------
    paths : path, or list of paths
        Files, folders or patterns.
    X : list of str or None
        What trees may split on; None: all columns without another role.
    rewards : list of str, or None
    y, weight : str or None
    """
    files = files_of([paths] if isinstance(paths, str | os.PathLike) else list(paths))
    other = [file for file in files if FORMATS.get(file.suffix) != "parquet"]
    if other:
        raise InputError(f"'{other[0]}' is no Parquet file; read other files with dask.dataframe and pass the frame.")
    given = [
        ("rewards", rewards),
        ("y", None if y is None else [y]),
        ("sample_weight", None if weight is None else [weight]),
    ]
    for name, columns in [("columns", X), *given]:
        if columns is not None and not (
            isinstance(columns, list | tuple) and columns and all(isinstance(c, str) for c in columns)
        ):
            raise InputError(f"With files, {name} must name columns of them; got {quoted(columns)}.")
    source = open_source(files)
    taken = {name for _, columns in given for name in columns or []}
    X = [c for c in source.parts[0].schema.names if c not in taken] if X is None else list(X)
    for name, columns in [("columns", X), *given]:
        source.kinds(list(columns or []), name)
    columns = {f"{parts.X}{name}": name for name in X} | {f"{parts.REWARD}{name}": name for name in rewards or []}
    columns |= {role: name for role, name in ((parts.LABEL, y), (parts.WEIGHT, weight)) if name is not None}
    read = dask().delayed(parts.read_row_group)
    tasks = [read(str(file.resolve()), k, columns) for file in files for k in range(row_groups(file))]
    return Rows(tasks, X, list(rewards or []), weight is not None, of_files=True)


def encode_partitions(engine: Engine, rows: Rows, max_bins: int) -> tuple[EncodedData, list]:
    """Rows as codes on the workers, and what the codes mean; the first has no rows of its own."""
    delayed = dask().delayed
    roles = rows.roles
    if not rows.tables:
        raise InputError("X has no rows; pass at least one.")
    tables = engine.keep(rows.tables)
    found = engine.run(delayed(list)([delayed(parts.kinds_of)(table) for table in tables]))
    kinds = common_kinds(found, roles.columns, rows.of_files)
    tally = engine.run(reduced([delayed(parts.tally_part)(t, roles, kinds) for t in tables], parts.merge_tallies))
    if tally.n_rows == 0:
        what = "weights are zero in all rows" if tally.rows else "X has no rows; pass at least one"
        raise InputError(f"{what}.")
    searches = quantile_searches(tally, max_bins)
    while open_ := {name: s for name, s in searches.items() if s.result is None}:
        shared = delayed(open_)
        tasks = [delayed(parts.quantiles_of_part)(t, shared, roles) for t in tables]
        take_parts(open_, engine.run(reduced(tasks, parts.merge_quantiles)))
    cuts = {name: s.result for name, s in searches.items() if s.result is not None}
    plan = make_plan(roles, kinds, tally, cuts, max_bins)
    shared = delayed(plan)
    coded = engine.keep([delayed(parts.code_part)(t, shared, roles) for t in tables])
    least, inexact = engine.run(reduced([delayed(parts.notes_of_part)(c) for c in coded], parts.merge_notes))
    data = encoded_data(Path(), plan, least, inexact, ())
    features = tuple(replace(f, name=f.name.removeprefix(parts.X)) for f in data.features)
    labels = data.labels
    if not data.of_labels:
        labels = np.empty(len(rows.rewards), dtype=object)
        labels[:] = rows.rewards
    return replace(data, features=features, labels=labels), coded
