"""Recommendations of a saved regime for every row of a table with one row per person and decision."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from policytree.cli.predicting import actions_by, in_words, table_of
from policytree.cli.reading import Reading
from policytree.cli.tables import AS_IT_IS, Batch, require_column
from policytree.exceptions import InputError
from policytree.regimes.course import NOTHING_GIVEN, OUTCOME, TREATMENT
from policytree.regimes.export import regime_from_dict
from policytree.serialization.labels import label_from_json
from policytree.serialization.parsing import MALFORMED
from policytree.trees.tree import Tree
from policytree.trees.unseen_values import Unseen


@dataclass(frozen=True, slots=True)
class SavedRegime:
    """A regime that ``policytree design`` saved, and the columns of its table.

    Attributes
    ----------
    trees : list of (str, Tree)
    person, stage, treatment, outcome : str
        Names of columns.
    times : list
        Values of the column of the decision, in order.
    history : list of dict of str to (int, str or tuple)
        By decision, where every column of a history comes from: the decision, and the column of its row.
    """

    trees: list[tuple[str, Tree]]
    person: str
    stage: str
    treatment: str
    outcome: str
    times: list[Any]
    history: list[dict[str, tuple[int, str | tuple[str]]]]


def saved_regime(data: Mapping[str, Any]) -> SavedRegime:
    """A regime and its columns from what a file holds.

    Raises
    ------
    InputError
        If the file is damaged, or was written by ``TreatmentRegime.to_json``, which knows no table.
    """
    trees = regime_from_dict(data)
    design = data.get("design")
    if not isinstance(design, dict):
        raise InputError(
            "This regime does not say which columns its table has: only the regime.json that `policytree design` "
            "writes does. In Python, use TreatmentRegime.predict."
        )
    try:
        person, stage, treatment, outcome = (design[name] for name in ("id", "stage", "treatment", "outcome"))
        times = [label_from_json(time) for time in design["times"]]
        history = [
            {str(name): (int(s), column if isinstance(column, str) else (str(column[0]),)) for name, s, column in each}
            for each in design["history"]
        ]
        named = all(isinstance(name, str) for name in (person, stage, treatment, outcome))
        if not named or not len(times) == len(history) == len(trees):
            raise TypeError("columns and decisions do not fit")
    except MALFORMED as error:
        raise InputError(f"The regime's field 'design' is malformed ({error}); save it again.") from error
    return SavedRegime(trees, person, stage, treatment, outcome, times, history)


def recommendations(
    regime: SavedRegime, path: str, column: str, reading: Reading = AS_IT_IS
) -> tuple[pd.DataFrame, list[tuple[Tree, Unseen]]]:
    """The file's rows with what the rule of their decision gives them in a new last column; and unseen values.

    A row without a treatment is one for which something is to be decided if it is the person's last one; before that,
    nothing was to be decided, and nothing is recommended. Treatments and outcomes of earlier decisions are read from
    their rows.

    Raises
    ------
    InputError
        If a column is missing or of another kind, the new one exists, a person has two rows at a decision, or none at
        an earlier one.
    """
    wanted = {regime.person, regime.stage, regime.treatment}
    numeric = {regime.stage, regime.outcome}
    for (_, tree), sources in zip(regime.trees, regime.history, strict=True):
        for j in tree.used_features:
            feature = tree.features[j]
            if feature.name not in sources:
                raise InputError(f"The regime does not say where {feature.name!r} comes from; save it again.")
            source = sources[feature.name][1]
            name = _column(regime, source)
            wanted.add(name)
            if not in_words(feature):
                numeric.add(name)
    batch = table_of(path, sorted(numeric), reading)
    if column in batch.cells.columns:
        raise InputError(f"'{path}' already has a column {column!r}; choose another name with --column.")
    for name in sorted(wanted):
        require_column(name, "which the regime reads", batch.cells)
    at = _decisions(regime, batch)
    rows = _rows_by_person(regime, batch, at)
    given = batch.words(regime.treatment)
    out = np.full(len(batch.cells), None, dtype=object)
    heard: list[tuple[Tree, Unseen]] = []
    for s, (_, tree) in enumerate(regime.trees):
        own = np.flatnonzero(at == s)
        later = rows.iloc[:, s + 1 :].ge(0).any(axis=1) if s + 1 < rows.shape[1] else pd.Series(False, rows.index)
        persons = batch.cells[regime.person].iloc[own]
        decided = given.iloc[own].notna().to_numpy() | ~later.loc[persons].to_numpy()
        own = own[decided]
        if not len(own):
            continue
        frame = _history(regime, s, tree, batch, rows.loc[batch.cells[regime.person].iloc[own]].to_numpy())
        actions, unseen = actions_by(tree, frame)
        out[own] = actions
        heard += [(tree, part) for part in unseen]
    return batch.cells.assign(**{column: out}), heard


def _column(regime: SavedRegime, source: str | tuple[str]) -> str:
    """The column of the table that a part of a history is read from."""
    return source if isinstance(source, str) else {TREATMENT: regime.treatment, OUTCOME: regime.outcome}[source[0]]


def _decisions(regime: SavedRegime, batch: Batch) -> np.ndarray:
    """Which decision every row is about, by position."""
    cells = batch.words(regime.stage)
    if all(isinstance(time, int | float) and not isinstance(time, bool) for time in regime.times):
        values = pd.to_numeric(cells, errors="coerce")
        found = pd.Index([float(time) for time in regime.times]).get_indexer(pd.Index(values.astype(float)))
    else:
        found = pd.Index([str(time) for time in regime.times]).get_indexer(pd.Index(cells.astype(str)))
    bad = np.flatnonzero(found < 0)
    if len(bad):
        known = ", ".join(map(str, regime.times))
        raise InputError(
            f"Column {regime.stage!r} is {cells.iloc[bad[0]]!s} in row {bad[0] + 1} below the header; the regime's "
            f"decisions are {known}."
        )
    return found


def _rows_by_person(regime: SavedRegime, batch: Batch, at: np.ndarray) -> pd.DataFrame:
    """Positions of every person's rows, a column per decision; -1 where there is none."""
    persons = batch.words(regime.person)
    if persons.isna().any():
        row = int(np.flatnonzero(persons.isna())[0])
        raise InputError(f"Column {regime.person!r} is missing in row {row + 1} below the header; every row needs one.")
    long = pd.DataFrame({"person": persons.to_numpy(), "at": at, "row": np.arange(len(at))})
    twice = np.flatnonzero(long.duplicated(["person", "at"]))
    if len(twice):
        k = twice[0]
        raise InputError(f"Person {persons.iloc[k]} has two rows at {regime.times[at[k]]}; keep one of them.")
    rows = long.pivot(index="person", columns="at", values="row").reindex(columns=range(len(regime.times)))
    rows = rows.fillna(-1).astype(np.int64)
    for s in range(1, rows.shape[1]):
        back = np.flatnonzero((rows[s] >= 0) & (rows[s - 1] < 0))
        if len(back):
            raise InputError(
                f"Person {rows.index[back[0]]} has a row at {regime.times[s]}, but none at {regime.times[s - 1]}, of "
                "which the rule reads; add it."
            )
    return rows


def _history(regime: SavedRegime, s: int, tree: Tree, batch: Batch, rows: np.ndarray) -> pd.DataFrame:
    """The columns that a tree asks about, of people whose rows at all decisions are known."""
    out: dict[str, Any] = {}
    for j in tree.used_features:
        feature = tree.features[j]
        r, source = regime.history[s][feature.name]
        at = rows[:, r]
        if source == (TREATMENT,):
            known = regime.trees[r][1].actions
            out[feature.name] = _treatments(batch.words(regime.treatment).iloc[at], known, regime, at)
            continue
        name = _column(regime, source)
        values: Callable[[str], pd.Series] = batch.words if in_words(feature) else batch.typed.__getitem__
        out[feature.name] = values(name).iloc[at].to_numpy()
    return pd.DataFrame(out, index=pd.RangeIndex(len(rows)))


def _treatments(cells: pd.Series, known: tuple, regime: SavedRegime, at: np.ndarray) -> np.ndarray:
    """Match the treatments of an earlier decision to the names of the fit; "none" where nothing was given."""
    labels = {str(label) for label in known}
    out = np.empty(len(cells), dtype=object)
    for k, cell in enumerate(cells):
        text = NOTHING_GIVEN if cell is None or cell != cell else str(cell).strip()
        number = pd.to_numeric(text, errors="coerce")
        if text not in labels and number == number and number == round(number):
            text = str(int(number))  # a column of whole numbers with gaps is written with decimals
        if text not in labels and text != NOTHING_GIVEN:
            raise InputError(
                f"Column {regime.treatment!r} is {cell!s} in row {at[k] + 1} below the header; the treatments of that "
                f"decision are {', '.join(sorted(labels))}."
            )
        out[k] = text
    return out
