"""encode: rows of any number to codes on the disk, a batch at a time.

The source is read a few times: once for its values (:mod:`policytree.encoded.scan`), twice more as a rule where columns
have many values, and once to write codes and losses. Every file is written whole under another name and renamed. What
was written before the job was stopped is kept, and the same call goes on from there.
"""

from __future__ import annotations

import dataclasses
import json
import os
import zlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from policytree.checks import check_count
from policytree.encoded.jobs import FolderJob
from policytree.encoded.plan import Plan, encoded_data, open_encoded, plan_from_json
from policytree.encoded.reading import Roles, encoded_covariate, reward_columns, row_weights
from policytree.encoded.scan import (
    Tally,
    find_quantiles,
    label_places,
    make_plan,
    tally_table,
    threads,
    weighted_rewards,
)
from policytree.encoded.sources import Source, arrow, open_source
from policytree.encoded.store import (
    MANIFEST,
    STATE,
    VERSION,
    EncodedData,
    Stored,
    pack,
    read_json,
    rows_file,
    scaled_rewards,
)
from policytree.exceptions import InputError
from policytree.progress import stage_progress
from policytree.serialization.files import save_bytes, save_text
from policytree.split_columns import MAX_BINS

FILE_ROWS = 1 << 20  # rows of the source to a file; fewer where there are many columns
FILE_NUMBERS = 1 << 25


def encode(
    source: Any,
    X: Sequence[str],
    *,
    directory: str | os.PathLike,
    rewards: Sequence[str] | None = None,
    y: str | None = None,
    weights: str | None = None,
    max_bins: int = 64,
    overwrite: bool = False,
    n_jobs: int = 1,
    verbose: int = 0,
) -> EncodedData:
    """Write rows as codes to a folder, for trees of more rows than memory holds.

    Parameters
    ----------
    source : path, list of paths, Arrow dataset or table, DuckDB relation, or DataFrame
        Parquet, CSV and Arrow files by name, folder or pattern. It is read several times.
    X : list of str
        Columns that trees may split on: numbers, or text (categories); missing values are allowed.
    directory : path
        Folder for the codes, which is made if it does not exist. One byte a feature and row (two if ``max_bins`` is
        above 256), and eight for every treatment, or for every class but the first.
    rewards : list of str, optional
        Columns of rewards, one a treatment; for :class:`policytree.PolicyTree`.
    y : str, optional
        Column of labels; for :class:`policytree.OptimalTreeClassifier`. Either this or ``rewards``.
    weights : str, optional
        Column of weights >= 0; rows of weight 0 count as absent.
    max_bins : int, default 64
        Most codes of a number, missing ones included, 2 to 65,536. Columns of more values are cut at their exact
        quantiles; trees are then proved given these bins, and ``status_`` says so.
    overwrite : bool, default False
        Whether to replace other encoded rows in ``directory``.
    n_jobs : int, default 1
        Threads.
    verbose : int, default 0
        1 shows progress.

    Returns
    -------
    EncodedData
        For ``fit`` in place of a table; :func:`policytree.open_encoded` opens it again.

    Raises
    ------
    InputError
        If a column is missing, changes its type between files or holds what cannot be used, or if the folder cannot be
        written to.

    Notes
    -----
    The result does not depend on the size of batches, and what is fitted to it not on the order of rows. A job that was
    stopped goes on where it was if the same call is made again: after the last file of rows if the source is files that
    did not change.

    Examples
    --------
    >>> import tempfile
    >>> import pandas as pd
    >>> from policytree import PolicyTree, encode
    >>> rows = pd.DataFrame({"age": [30, 40, 50, 60], "none": [1.0, 1, 0, 0], "drug": [0.0, 0, 2, 2]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     data = encode(rows, ["age"], rewards=["none", "drug"], directory=folder)
    ...     PolicyTree(max_depth=1).fit(data).predict(pd.DataFrame({"age": [35, 55]})).tolist()
    ['none', 'drug']
    """
    roles = _roles(X, rewards, y, weights)
    check_count(max_bins, "max_bins", 2)
    check_count(n_jobs, "n_jobs", 1)
    if max_bins > MAX_BINS:
        raise InputError(f"max_bins must lie between 2 and {MAX_BINS}; got {max_bins}.")
    opened = open_source(source)
    kinds: dict[str, str] = {}
    for argument, columns in roles.by_argument().items():
        kinds |= opened.kinds(columns, argument)
    job = _Job(opened, roles, kinds, int(max_bins), Path(directory))
    if job.finished(overwrite):
        return open_encoded(directory)
    with ExitStack() as stack:
        if stack.enter_context(job.alone(overwrite)):
            return open_encoded(directory)
        job.pool = stack.enter_context(threads(n_jobs))
        if verbose:
            job.stage = stack.enter_context(stage_progress()).stage
        return job.run()


def _roles(X, rewards, y, weights) -> Roles:
    """Check which columns are what."""
    for name, columns in (("X", X), ("rewards", rewards)):
        named = (
            isinstance(columns, Sequence) and not isinstance(columns, str) and all(isinstance(c, str) for c in columns)
        )
        if columns is not None and not (named and len(columns)):
            raise InputError(f"{name} must be a list of column names; got {columns!r}.")
        if columns is not None and len(set(columns)) < len(columns):
            raise InputError(f"{name} names a column twice; name each once.")
    if (rewards is None) == (y is None):
        raise InputError("Give either rewards, one column a treatment, or y, a column of labels.")
    for name, column in (("y", y), ("weights", weights)):
        if column is not None and not isinstance(column, str):
            raise InputError(f"{name} must be the name of a column; got {column!r}.")
    twice = set(X) & {*(rewards or ()), y, weights}
    if twice:
        raise InputError(f"Column {min(map(str, twice))!r} is in X and has another role as well; leave it out of X.")
    return Roles(tuple(X), tuple(rewards or ()), y, weights)


class _Job(FolderJob):
    """One encoding: readings of the source, then files."""

    files = r"rows-\d{6,}\.(bin|json)"
    what, doing = "encoded rows", "encoding"

    def __init__(self, source: Source, roles: Roles, kinds: dict, max_bins: int, directory: Path):
        file_rows = max(1, min(FILE_ROWS, FILE_NUMBERS // len(roles.columns)))
        asked = {"version": VERSION, "max_bins": max_bins, "roles": dataclasses.asdict(roles)}
        super().__init__(source, roles.columns, file_rows, directory, json.loads(json.dumps(asked)))
        self.roles, self.kinds, self.max_bins = roles, kinds, max_bins

    def run(self) -> EncodedData:
        """Everything, from where an earlier run ended."""
        state = self.directory / STATE
        if state.exists():
            plan = plan_from_json(read_json(state)["plan"])
        else:
            plan = self._plan()
            save_text(state, json.dumps({"asked": self.asked, "plan": plan.to_json()}))
        self.total = self.total or self.source.count_rows()
        notes = self._write_rows(plan)
        least = [_least(plan, notes, i) for i in range(len(plan.codings))]
        stored = [{key: note[key] for key in ("file", "rows", "crc")} for note in notes if note["rows"]]
        inexact = sum(note["inexact"] for note in notes)
        manifest = {
            "version": VERSION,
            "asked": self.asked,
            "plan": plan.to_json(),
            "least": [[None if np.isinf(v) else v for v in values] for values in least],
            "inexact": inexact,
            "stored": stored,
        }
        save_text(self.directory / MANIFEST, json.dumps(manifest))
        for name in [STATE, *(note["file"].replace(".bin", ".json") for note in notes)]:
            (self.directory / name).unlink(missing_ok=True)
        return encoded_data(self.directory, plan, least, inexact, [Stored(**s) for s in stored])

    def _plan(self) -> Plan:
        tally = Tally()
        self.total = self.source.count_rows()
        for first_row, table in self.tables("Reading values"):
            tally.merge(tally_table(table, self.roles, self.kinds, first_row, self.each))
        self.total = tally.rows
        if tally.rows == 0:
            raise InputError("The source has no rows; there is nothing to encode.")
        if tally.n_rows == 0:
            raise InputError("weights are zero in all rows; give at least some rows weight.")
        cuts = find_quantiles(tally, self.roles, self.max_bins, self.tables, self.each)
        return make_plan(self.roles, self.kinds, tally, cuts, self.max_bins)

    # --- files of rows ---

    def _write_rows(self, plan: Plan) -> list[dict]:
        """Write all files of rows that are not there yet; returns what is to be known of each."""
        notes = list(self._notes_on_disk())
        for first_row, table in self.tables("Writing codes", len(notes) * self.file_rows):
            note = self._write_file(plan, table, first_row)
            save_text(self.directory / note["file"].replace(".bin", ".json"), json.dumps(note))
            notes.append(note)
        if sum(note["rows"] for note in notes) != plan.n_rows:
            raise InputError("The source changed while it was read; encode it again, with overwrite=True.")
        self.source.refuse_changed()
        return notes

    def _notes_on_disk(self) -> Iterator[dict]:
        k = 0
        while (path := self.directory / rows_file(k).replace(".bin", ".json")).exists():
            yield read_json(path)
            k += 1

    def _write_file(self, plan: Plan, table: Any, first_row: int) -> dict:
        content, least, inexact, rows = encode_table(plan, self.roles, table, first_row, self.each)
        file = rows_file(first_row // self.file_rows)
        if rows:
            save_bytes(self.directory / file, content)
        finite = [[None if np.isinf(v) else v for v in values] for values in least]
        return {"file": file, "rows": rows, "crc": zlib.crc32(content), "least": finite, "inexact": inexact}


def _least(plan: Plan, notes: list[dict], i: int) -> np.ndarray:
    """The smallest value of every code of the i-th coding, over all files."""
    every = [np.array([np.inf if v is None else v for v in note["least"][i]]) for note in notes if note["rows"]]
    return np.minimum.reduce(every)


def encode_table(
    plan: Plan, roles: Roles, table: Any, first_row: int, each
) -> tuple[bytes, list[np.ndarray], int, int]:
    """A table as the content of a file; smallest values of codes, how many losses were rounded, and its rows."""
    codes, numbers, least, inexact = code_table(plan, roles, table, first_row, each)
    return pack(codes, numbers), least, inexact, codes.shape[1]


def code_table(plan: Plan, roles: Roles, table: Any, first_row: int, each):
    """Codes and numbers, as files have them, of rows of positive weight; smallest values of codes; rounded losses."""
    weight = row_weights(table, roles, first_row)
    if weight is not None and not (weight > 0).all():
        table = table.filter(arrow().array(weight > 0))
        weight = weight[weight > 0]
    codes = np.empty((len(plan.codings) + plan.of_labels, table.num_rows), dtype=plan.dtype)

    def fill(i: int) -> np.ndarray:
        coding = plan.codings[i]
        x = encoded_covariate(table, plan.features[coding.feature])
        codes[i] = coding.codes(x, plan.dtype)
        return coding.least(x, codes[i])

    least = each(fill, range(len(plan.codings)))
    weights = np.empty((0, table.num_rows)) if weight is None else weight[None]
    if plan.of_labels:
        codes[-1] = label_places(table.column(roles.y), plan.labels)
        numbers = weights
        scaled = np.ldexp(np.ones(table.num_rows) if weight is None else weight, plan.relative.exponent)[None]
    else:
        rewards = weighted_rewards(reward_columns(table, roles, first_row), weight)
        numbers = np.vstack([rewards, weights])
        scaled = scaled_rewards(rewards, plan.relative.exponent)
    inexact = int((np.rint(scaled) != scaled).any(axis=0).sum())
    return codes, numbers, least, inexact
