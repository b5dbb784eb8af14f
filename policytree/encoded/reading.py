"""Columns of a study as arrays: numbers, categories, labels, rewards, weights; or one sentence why not."""

from __future__ import annotations

from typing import Any

import numpy as np

from policytree.common.validation import WEIGHT_RANGE
from policytree.data.feature_encoder import refuse_large_integers
from policytree.data.features import CATEGORICAL, Feature
from policytree.data.sources import NUMBER, Source, arrow, kind_of
from policytree.exceptions import InputError
from policytree.study.outcomes import Label, Rewards
from policytree.study.study import Study

MOST_CLASSES = 1000


# Fields of a study that trees from rewards or labels do not read, and what to do instead.
UNREAD = {
    "strata": "they matter for standard errors in memory only; leave them out",
    "arm_costs": "subtract costs from the columns of rewards, or fit a table in memory",
    "budget_costs": "fit a table in memory, where a Budget can be kept to",
    "further_outcomes": "fit a table in memory, where rules can be limited by them",
    "subgroups": "fit a table in memory, where groups can be compared",
}


def refuse_unread(study: Study, fields: dict[str, str], what: str) -> None:
    """Refuse what a study says and a reader does not read: no part of a study is ignored."""
    for field, remedy in fields.items():
        value = getattr(study, field)
        if value is not None and value != () and value != {}:
            raise InputError(f"{what} do not read {field} of a study; {remedy}.")


def outcome_to_learn(study: Study, what: str) -> Rewards | Label:
    """The rewards or labels of a study, of which trees are made; one sentence for outcomes that are neither.

    Parameters
    ----------
    study : Study
    what : str
        Who reads them, in the plural: "Encoded rows".
    """
    if not isinstance(study, Study):
        raise InputError(f"{what} come from a Study(table, outcome=Rewards([...])) or Label(...); got {study!r:.80}.")
    outcome = study.outcome
    if not isinstance(outcome, Rewards | Label):
        raise InputError(
            f"{what} hold rewards or labels, and the outcome of this study is {type(outcome).__name__}"
            f"({outcome.column!r}); score it first, scores = policytree.encoded.stream_rewards(RewardEstimator(), "
            "study, directory=...), and pass scores.learning."
        )
    refuse_unread(study, UNREAD, what)
    return outcome


def columns_to_learn(study: Study) -> list[str]:
    """The columns that trees from rewards or labels are made of, each once."""
    weights = [] if study.weights is None else [study.weights]
    return list(dict.fromkeys([*study.covariates, *study.outcome.columns().values(), *weights]))


def kinds_of(study: Study, source: Source, columns: list[str]) -> dict[str, str]:
    """Kinds of some columns of a study in a source, or one sentence that names the role.

    Outcomes, weights, probabilities and entries are numbers, but for columns of labels.
    """
    found: dict[str, str] = {}
    for role, column in study.roles:
        if column not in columns:
            continue
        kind = source.kinds([column], role)[column]
        number = role.split()[0] in ("outcome", "weights", "propensity", "entry", "reward")
        if number and column not in study.outcome.labelled and kind != NUMBER:
            raise InputError(f"Column {column!r} of {role} holds {kind}; it must hold numbers.")
        found[column] = kind
    return found


def numbers(column: Any) -> np.ndarray:
    """A column as float64, missing values as NaN."""
    pa = arrow()
    if pa.types.is_null(column.type):
        return np.full(len(column), np.nan)
    return column.cast(pa.float64(), safe=False).to_numpy()


def covariate(table: Any, name: str) -> np.ndarray:
    """A numeric covariate as float64, missing values as NaN; refuses infinite ones."""
    column = table.column(name)
    if arrow().types.is_integer(column.type):
        extremes = arrow().compute.min_max(column).as_py()
        refuse_large_integers(extremes["min"], extremes["max"], name, "covariates")
    x = numbers(column)
    if np.isinf(x).any():
        raise InputError(f"Covariate {name!r} holds infinite values; replace them by numbers or by missing values.")
    return x


def encoded_covariate(table: Any, feature: Feature) -> np.ndarray:
    """A covariate as float64: numbers, or positions of categories; NaN where missing."""
    if feature.kind != CATEGORICAL:
        return covariate(table, feature.name)
    return positions(table.column(feature.name), list(feature.categories))


def positions(column: Any, values: list) -> np.ndarray:
    """The place of every value among these, as float64; NaN for others and for missing ones."""
    pa = arrow()
    if pa.types.is_null(column.type):
        return np.full(len(column), np.nan)
    found = pa.array(values)
    if pa.types.is_integer(column.type) and pa.types.is_integer(found.type):
        shared = pa.uint64() if pa.types.is_uint64(column.type) else pa.int64()
    else:  # other parts may hold numbers of another type, which the type of this one would cut off
        shared = pa.float64() if kind_of(column.type) == NUMBER else column.type
    column, found = column.cast(shared, safe=False), found.cast(shared, safe=False)
    return numbers(pa.compute.index_in(column, value_set=found))


def value_counts(column: Any) -> dict:
    """How often each value occurs; missing ones are left out."""
    pa = arrow()
    if pa.types.is_null(column.type):
        return {}
    found = pa.compute.value_counts(column)
    pairs = zip(found.field("values").to_pylist(), found.field("counts").to_pylist(), strict=True)
    return {value: count for value, count in pairs if value is not None and value == value}


def row_weights(table: Any, weights: str | None, first_row: int) -> np.ndarray | None:
    """Weights of the rows, >= 0; None if there are none."""
    if weights is None:
        return None
    w = numbers(table.column(weights))
    bad = np.flatnonzero(~np.isfinite(w) | (w < 0))
    if len(bad):
        what = "a negative value" if np.isfinite(w[bad[0]]) else "a missing or infinite value"
        raise InputError(
            f"Column {weights!r} of weights has {what} in row {first_row + bad[0]}; weights must be numbers >= 0."
        )
    return w


def check_weights(largest: float) -> None:
    """Refuse weights that are all zero, or so large or small that nothing can be computed with them."""
    if largest == 0:
        raise InputError("weights are zero in all rows; give at least some rows weight.")
    if not WEIGHT_RANGE[0] <= largest <= WEIGHT_RANGE[1]:
        raise InputError(
            f"weights have a largest value of {largest:g}, beyond what can be computed with; multiply all weights by a "
            "constant, which changes no tree."
        )


def reward_columns(table: Any, rewards: Rewards, first_row: int) -> np.ndarray:
    """Rewards (K, m) of the rows, finite."""
    out = np.empty((len(rewards.of), table.num_rows))
    for row, name in zip(out, rewards.of, strict=True):
        row[:] = numbers(table.column(name))
        bad = np.flatnonzero(~np.isfinite(row))
        if len(bad):
            raise InputError(
                f"Column {name!r} of rewards contains NaN or infinity, first in row {first_row + bad[0]}; drop or mend "
                "those rows."
            )
    return out


def label_counts(table: Any, label: Label) -> dict:
    """How often each label occurs; refuses missing ones and numbers that are none."""
    column = table.column(label.column)
    counts = value_counts(column)
    if sum(counts.values()) < len(column):
        raise InputError(f"The labels {label.column!r} contain NaN or infinity; drop the rows without a class.")
    if any(isinstance(v, float) and not v.is_integer() for v in counts):
        raise InputError(f"The labels {label.column!r} are numbers with fractions, which are no classes; give labels.")
    if len(counts) > MOST_CLASSES:
        raise InputError(f"The labels {label.column!r} are more than {MOST_CLASSES:,} classes; is it the right column?")
    return counts
