"""encode: rows of any number to codes on the disk, a batch at a time.

The source is read a few times: once for its values (:mod:`policytree.encoded.scan`), twice more as a rule where columns
have many values, and once to write codes and losses. Every file is written whole under another name and renamed. Files
written before the job was stopped are kept, and the same call goes on from there.
"""

from __future__ import annotations

import os
import zlib
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from policytree.common.validation import check_count, check_verbose
from policytree.data.sources import arrow
from policytree.encoded.jobs import NOTE, FolderJob
from policytree.encoded.plan import (
    MANIFEST_FIELDS,
    NOTE_FIELDS,
    STATE_FIELDS,
    Plan,
    least_from_json,
    least_to_json,
    open_encoded,
)
from policytree.encoded.reading import (
    columns_to_learn,
    encoded_covariate,
    kinds_of,
    outcome_to_learn,
    reward_columns,
    row_weights,
)
from policytree.encoded.scan import (
    Tally,
    find_quantiles,
    label_places,
    make_plan,
    tally_table,
    weighted_rewards,
)
from policytree.encoded.store import (
    MANIFEST,
    STATE,
    VERSION,
    EncodedData,
    crc_of,
    pack,
    rows_file,
    scaled_rewards,
)
from policytree.exceptions import InputError
from policytree.problem.split_columns import MAX_BINS
from policytree.serialization.files import save_bytes
from policytree.study.outcomes import Label, Rewards
from policytree.study.study import Study

FILE_ROWS = 1 << 20  # rows of the source to a file; fewer where there are many columns
FILE_NUMBERS = 1 << 25


def encode(
    study: Study,
    *,
    directory: str | os.PathLike,
    max_bins: int = 64,
    overwrite: bool = False,
    n_jobs: int = 1,
    verbose: int = 0,
) -> EncodedData:
    """Write rows as codes to a folder, for trees of more rows than memory holds.

    Parameters
    ----------
    study : Study
        Its outcome are :class:`policytree.study.Rewards`, for :class:`policytree.PolicyTree`, or a
        :class:`policytree.study.Label`, for :class:`policytree.OptimalTreeClassifier`. Covariates are numbers, or text
        (categories); missing values are allowed. Rows of weight 0 count as absent. The rows, in memory or larger than
        it, are read several times.
    directory : path
        Folder for the codes, which is made if it does not exist. One byte a feature and row (two if ``max_bins`` is
        above 256), and eight for every treatment and for the weight; of labels a byte or two for the class.
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
        For ``fit`` in place of a table; :func:`policytree.encoded.open_encoded` opens it again.

    Raises
    ------
    InputError
        If a column is missing, changes its type between files or holds what cannot be used, or if the folder cannot be
        written to.

    Notes
    -----
    The result does not depend on the size of batches, and what is fitted to it not on the order of rows: trees have the
    objective and the values of a fit to the table in memory, to the last bit, since both are exact sums that are
    rounded once. Of trees that are equally good, a fit to more than 50,000 rows may find another one.

    If the same call is made again, a job that was stopped goes on where it was, after the last file of rows if the
    source is files that did not change; of a job that has ended, files that were damaged since are written again. All
    files have checksums. Nothing in the folder can run code, but who may write to it can change what trees are fitted
    to.

    Examples
    --------
    >>> import tempfile
    >>> import pandas as pd
    >>> from policytree import PolicyTree, Study
    >>> from policytree.encoded import encode
    >>> from policytree.study import Rewards
    >>> rows = pd.DataFrame({"age": [30, 40, 50, 60], "none": [1.0, 1, 0, 0], "drug": [0.0, 0, 2, 2]})
    >>> study = Study(rows, outcome=Rewards(["none", "drug"]), covariates=["age"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     data = encode(study, directory=folder)
    ...     PolicyTree(max_depth=1).fit(data).predict(pd.DataFrame({"age": [35, 55]})).tolist()
    ['none', 'drug']
    """
    outcome_to_learn(study, "Encoded rows")
    check_count(max_bins, "max_bins", 2)
    check_count(n_jobs, "n_jobs", 1)
    check_verbose(verbose)
    if max_bins > MAX_BINS:
        raise InputError(f"max_bins must lie between 2 and {MAX_BINS}; got {max_bins}.")
    return _Job(study, int(max_bins), Path(directory)).carry_out(overwrite, n_jobs, verbose)


class _Job(FolderJob):
    """One encoding: readings of the source, then files."""

    files, note = r"rows-\d{6,}\.(bin|json)", "rows-{k:06d}.json"
    what, doing, again = "encoded rows", "encoding", "encode the source again"
    fields: ClassVar = {MANIFEST: MANIFEST_FIELDS, STATE: STATE_FIELDS, NOTE: NOTE_FIELDS}

    def __init__(self, study: Study, max_bins: int, directory: Path):
        columns, source = columns_to_learn(study), study.source
        self.study, self.kinds, self.max_bins = study, kinds_of(study, source, columns), max_bins
        file_rows = max(1, min(FILE_ROWS, FILE_NUMBERS // len(columns)))
        roles = [[*study.covariates], repr(study.outcome), study.weights, study.direction]
        super().__init__(
            source, columns, file_rows, directory, {"version": VERSION, "max_bins": max_bins, "roles": roles}
        )

    def whole(self) -> EncodedData | None:
        """Open the data that this very job has written before; None if files of it were damaged since."""
        data = open_encoded(self.directory)
        return data if all(data.is_intact(k) for k in range(len(data.stored))) else None

    def run(self) -> EncodedData:
        """Everything, from where an earlier run ended; or what was damaged since."""
        if (self.directory / MANIFEST).exists():
            self._mend(open_encoded(self.directory))
            return open_encoded(self.directory)
        plan = self.begin(lambda: {"plan": self._plan().to_json()})["plan"]
        self.total = self.total or self.source.count_rows()
        notes = self._write_rows(plan)
        of_files = [least_from_json(note["least"], plan) for note in notes if note["rows"]]
        least = [np.minimum.reduce(values) for values in zip(*of_files, strict=True)]
        manifest = {
            "plan": plan.to_json(),
            "least": least_to_json(least),
            "inexact": sum(note["inexact"] for note in notes),
            "stored": [{key: note[key] for key in ("file", "rows", "crc")} for note in notes if note["rows"]],
        }
        self.end(manifest, len(notes))
        return open_encoded(self.directory)

    def _mend(self, data: EncodedData) -> None:
        """Write damaged files again; the source says what stood in them."""
        plan = self.read(MANIFEST)["plan"]
        self.total = self.source.count_rows()
        damaged = {s.file: s for k, s in enumerate(data.stored) if not data.is_intact(k)}
        if not damaged:
            return
        n_files = max(int(name[len("rows-") : -len(".bin")]) for name in damaged) + 1
        known = {k for k in range(n_files) if rows_file(k) not in damaged}
        for k, first_row, table in self.missing_tables("Writing damaged files again", known, n_files):
            content, note = self._file(plan, table, first_row)
            if (note["rows"], note["crc"]) != (damaged[rows_file(k)].rows, damaged[rows_file(k)].crc):
                raise InputError(
                    f"The source holds other rows than were written to '{self.directory}', so that it cannot be "
                    f"mended; {self.again}, with overwrite=True."
                )
            save_bytes(self.directory / rows_file(k), content)
        self.source.refuse_changed()

    def _plan(self) -> Plan:
        tally = Tally()
        self.total = self.source.count_rows()
        for first_row, table in self.tables("Reading values"):
            tally.merge(tally_table(table, self.study, self.kinds, first_row, self.each))
        self.total = tally.rows
        if tally.rows == 0:
            raise InputError("The source has no rows; there is nothing to encode.")
        if tally.n_rows == 0:
            raise InputError("weights are zero in all rows; give at least some rows weight.")
        cuts = find_quantiles(tally, self.study, self.max_bins, self.tables, self.each)
        return make_plan(self.study, self.kinds, tally, cuts, self.max_bins)

    # --- files of rows ---

    def _write_rows(self, plan: Plan) -> list[dict]:
        """Write all files of rows that are not there yet; returns what is to be known of each."""
        notes = self.known_notes()
        for k, first_row, table in self.missing_tables("Writing codes", notes):
            notes[k] = self._write_file(plan, table, first_row)
            self.save_note(k, notes[k])
        if sum(note["rows"] for note in notes.values()) != plan.n_rows:
            raise InputError("The source changed while it was read; encode it again, with overwrite=True.")
        self.source.refuse_changed()
        return [notes[k] for k in range(len(notes))]

    def is_intact(self, note: dict) -> bool:
        """Whether the file of a note holds what was written."""
        return not note["rows"] or crc_of(self.directory / note["file"]) == note["crc"]

    def _write_file(self, plan: Plan, table: Any, first_row: int) -> dict:
        content, note = self._file(plan, table, first_row)
        if note["rows"]:
            save_bytes(self.directory / note["file"], content)
        return note

    def _file(self, plan: Plan, table: Any, first_row: int) -> tuple[bytes, dict]:
        """Encode a table: the bytes of its file, and its note."""
        content, least, inexact, rows = encode_table(plan, self.study, table, first_row, self.each)
        note = {"file": rows_file(first_row // self.file_rows), "rows": rows, "crc": zlib.crc32(content)}
        return content, note | {"least": least_to_json(least), "inexact": inexact}


def encode_table(
    plan: Plan, study: Study, table: Any, first_row: int, each
) -> tuple[bytes, list[np.ndarray], int, int]:
    """A table as the content of a file; smallest values of codes, how many losses were rounded, and its rows."""
    codes, numbers, least, inexact = code_table(plan, study, table, first_row, each)
    return pack(codes, numbers), least, inexact, codes.shape[1]


def code_table(plan: Plan, study: Study, table: Any, first_row: int, each):
    """Codes and numbers, as files have them, of rows of positive weight; smallest values of codes; rounded losses."""
    weight = row_weights(table, study.weights, first_row)
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
    if isinstance(study.outcome, Label):
        codes[-1] = label_places(table.column(study.outcome.column), plan.labels)
        numbers = weights
        scaled = np.ldexp(np.ones(table.num_rows) if weight is None else weight, plan.relative.exponent)[None]
    else:
        assert isinstance(study.outcome, Rewards), "checked before"
        rewards = weighted_rewards(reward_columns(table, study.outcome, first_row), weight)
        numbers = np.vstack([rewards, weights])
        scaled = scaled_rewards(rewards, plan.relative.exponent)
    inexact = int((np.rint(scaled) != scaled).any(axis=0).sum())
    return codes, numbers, least, inexact
