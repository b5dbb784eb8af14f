"""Rows of dask frames to codes on the workers: the same steps as for files, each a tree of tasks."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from policytree.encoded.plan import encoded_data
from policytree.encoded.reading import Roles
from policytree.encoded.scan import make_plan, quantile_searches, take_parts
from policytree.encoded.sources import UNKNOWN
from policytree.encoded.store import EncodedData
from policytree.exceptions import InputError
from policytree.on_dask import parts
from policytree.solvers.clock import LOOK_EVERY

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
    """Runs tasks: on the workers of a client, or by dask's own schedulers in this process."""

    client: Any = None

    def run(self, task: Any, stopped: Callable[[], bool] = lambda: False) -> Any:
        """The value of a delayed task; None if it was stopped."""
        try:
            return self._run(task, stopped)
        except InputError as error:  # names of columns without their roles
            raise InputError(re.sub(f"'({parts.X}|{parts.REWARD})", "'", str(error))) from error

    def _run(self, task: Any, stopped: Callable[[], bool]) -> Any:
        if self.client is None:
            return dask().compute(task)[0]
        future = self.client.compute(task)
        while not future.done():
            if stopped():
                future.cancel()
                return None
            time.sleep(LOOK_EVERY / 10)
        return future.result()

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


def common_kinds(found: list[dict], columns: list[str]) -> dict[str, str]:
    """The kind of every column in all parts, or one sentence."""
    out: dict[str, str] = {}
    for column in columns:
        name = column.partition(":")[2] or column
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


def roles_of(X: Any, target: Any, weight: Any) -> Roles:
    """Columns as the parts name them."""
    names = [f"{parts.X}{name}" for name in X.columns]
    rewards = [f"{parts.REWARD}{name}" for name in target.columns] if target.ndim == 2 else []
    y = None if rewards else parts.LABEL
    return Roles(tuple(names), tuple(rewards), y, None if weight is None else parts.WEIGHT)


def encode_partitions(engine: Engine, X: Any, target: Any, weight: Any, max_bins: int) -> tuple[EncodedData, list]:
    """Rows as codes on the workers, and what the codes mean; the first has no rows of its own."""
    delayed = dask().delayed
    roles = roles_of(X, target, weight)
    tables = engine.keep(partitions(X, target, weight))
    found = engine.run(delayed(list)([delayed(parts.kinds_of)(table) for table in tables]))
    kinds = common_kinds(found, roles.columns)
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
        labels = np.empty(len(target.columns), dtype=object)
        labels[:] = list(target.columns)
    return replace(data, features=features, labels=labels), coded
