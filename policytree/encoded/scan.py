"""The first readings of a source: what its columns hold, and where their quantiles lie."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from policytree.common.validation import sorted_labels
from policytree.data.features import Feature
from policytree.data.sources import NUMBER, arrow
from policytree.encoded.coding import Coding, category_coding, category_feature, number_coding
from policytree.encoded.plan import Plan, scale_of
from policytree.encoded.reading import (
    MOST_CLASSES,
    check_weights,
    covariate,
    label_counts,
    numbers,
    positions,
    reward_columns,
    row_weights,
    value_counts,
)
from policytree.encoded.tally import CategoryTally, Counts, NumberTally, QuantileSearch, cut_values
from policytree.exceptions import InputError
from policytree.solvers.core.exact_sums import ExactSum
from policytree.study.outcomes import Label, Rewards
from policytree.study.study import Study

MOST_CATEGORIES = 10_000
Each = Callable[[Callable[[Any], Any], Iterable[Any]], list]  # a map over columns, in threads or not
Tables = Callable[[str], Iterable[tuple[int, Any]]]  # name of the step -> (first row, table) of the whole source


@dataclass
class Tally:
    """Tallies of a part of the rows; parts add up by :meth:`merge`."""

    columns: dict[str, NumberTally | CategoryTally] = field(default_factory=dict)
    labels: dict = field(default_factory=dict)
    rows: int = 0  # all
    n_rows: int = 0  # of positive weight
    relative: ExactSum = field(default_factory=ExactSum)
    base: ExactSum = field(default_factory=ExactSum)
    weight: ExactSum = field(default_factory=ExactSum)
    largest_weight: float = 0.0

    def merge(self, other: Tally) -> None:
        """Add the rows of another part."""
        for name, tally in other.columns.items():
            if name in self.columns:
                self.columns[name].merge(tally)  # type: ignore[arg-type]
            else:
                self.columns[name] = tally
        for label, count in other.labels.items():
            self.labels[label] = self.labels.get(label, 0) + count
        self.rows += other.rows
        self.n_rows += other.n_rows
        for mine, theirs in zip(self.sums, other.sums, strict=True):
            mine.merge(theirs)
        self.largest_weight = max(self.largest_weight, other.largest_weight)
        self.check()

    @property
    def sums(self) -> tuple[ExactSum, ExactSum, ExactSum]:
        """Totals of losses and weights."""
        return self.relative, self.base, self.weight

    def check(self) -> None:
        """Refuse what has more values than a tree, or a person, can make use of."""
        for name, tally in self.columns.items():
            if isinstance(tally, CategoryTally) and len(tally.counts) > MOST_CATEGORIES:
                raise InputError(
                    f"Covariate {name!r} has more than {MOST_CATEGORIES:,} categories; leave it out, or put rare "
                    "ones together."
                )
        if len(self.labels) > MOST_CLASSES:
            raise InputError(f"The labels are of more than {MOST_CLASSES:,} classes; is it the right column?")


def tally_table(table: Any, study: Study, kinds: dict[str, str], first_row: int = 0, each: Each | None = None) -> Tally:
    """Tally a table."""
    weight = row_weights(table, study.weights, first_row)
    kept = None if weight is None or (weight > 0).all() else weight > 0

    def tally(name: str) -> NumberTally | CategoryTally:
        if kinds[name] != NUMBER:  # of a column without any value, a frame says text
            return _tally_categories(table.column(name), kept)
        out = NumberTally()
        out.add(covariate(table, name), kept)
        return out

    run = each or (lambda f, items: [f(item) for item in items])
    out = Tally(dict(zip(study.covariates, run(tally, study.covariates), strict=True)), rows=table.num_rows)
    used = table if kept is None else table.filter(arrow().array(kept))
    out.n_rows = used.num_rows
    if weight is not None:
        weight = weight if kept is None else weight[kept]
        out.weight.add(weight)
        out.largest_weight = float(weight.max(initial=0.0))
    if isinstance(study.outcome, Label):
        out.labels = label_counts(used, study.outcome)
    elif out.n_rows:
        assert isinstance(study.outcome, Rewards), "checked before"
        rewards = reward_columns(table, study.outcome, first_row)
        rewards = weighted_rewards(rewards if kept is None else rewards[:, kept], weight)
        out.base.add(np.abs(rewards[0]))
        out.relative.add(np.abs(rewards[1:] - rewards[:1]).max(axis=0, initial=0.0))
    out.check()
    return out


def _tally_categories(column: Any, kept: np.ndarray | None) -> CategoryTally:
    counts = value_counts(column)
    missing = len(column) - sum(counts.values())
    if kept is None:
        return CategoryTally(counts, missing, missing > 0)
    some = column.filter(arrow().array(kept))
    found = value_counts(some)
    return CategoryTally({v: found.get(v, 0) for v in counts}, len(some) - sum(found.values()), missing > 0)


def weighted_rewards(rewards: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
    """Rewards (K, m) times weights; refuses what is too large to be compared."""
    with np.errstate(over="ignore", invalid="ignore"):
        values = rewards if weight is None else rewards * weight
        relative = values[1:] - values[:1]
    if not (np.isfinite(relative).all() and np.isfinite(values[:1]).all()):
        raise InputError("rewards are too large to be added up; divide them by a constant.")
    return values


def make_plan(study: Study, kinds: dict[str, str], tally: Tally, cuts: dict[str, np.ndarray], max_bins: int) -> Plan:
    """Decide on codes and scales once all values are known.

    ``cuts``: of numeric columns of many values, the largest value of every code but the last.
    """
    features, codings, thinned = [], [], []
    for j, name in enumerate(study.covariates):
        column = tally.columns[name]
        coding: Coding | None
        if isinstance(column, CategoryTally):
            features.append(category_feature(name, column))
            coding = category_coding(j, features[-1], column)
        else:
            features.append(Feature(name, has_missing=column.any_missing))
            largest, kept = cuts.get(name), False
            if largest is None:
                largest, kept = cut_values(column.distinct or Counts(), column.present, max_bins - (column.missing > 0))
            thinned += [] if kept else [j]
            coding = number_coding(j, largest, column.present, column.missing)
        codings += [coding] if coding is not None else []
    weighted = study.weights is not None
    if weighted:
        check_weights(tally.largest_weight)
    total = tally.weight.rounded() if weighted else float(tally.n_rows)
    labels, of_labels = _labels(study.outcome, tally), isinstance(study.outcome, Label)
    tally.base.rounded()  # refuses rewards that are too large to be added up
    # A row of weight w loses w at most, whatever its class.
    relative = scale_of(total if of_labels else tally.relative.rounded())
    return Plan(
        tuple(features), tuple(codings), labels, of_labels, weighted, relative, total, tally.n_rows, tuple(thinned),
        study.direction,
    )  # fmt: skip


def _labels(outcome: Any, tally: Tally) -> np.ndarray:
    """Treatments, or classes as in memory."""
    names = [*tally.labels] if isinstance(outcome, Label) else list(outcome.of)
    if isinstance(outcome, Label) and len({type(name) for name in names}) == 1:
        return sorted_labels(np.array(names))
    labels = np.empty(len(names), dtype=object)
    labels[:] = names
    return sorted_labels(labels) if isinstance(outcome, Label) else labels


def find_quantiles(tally: Tally, study: Study, max_bins: int, tables: Tables, each: Each) -> dict[str, np.ndarray]:
    """Cut values of numeric columns with more values than are counted one by one; reads the source a few times."""
    searches = quantile_searches(tally, max_bins)
    while open_ := {name: s for name, s in searches.items() if s.result is None}:
        found: dict[str, Any] = {}
        for first_row, table in tables("Locating quantiles"):
            add_parts(found, read_quantiles(table, open_, study, first_row, each))
        take_parts(open_, found)
    return {name: s.result for name, s in searches.items() if s.result is not None}


def quantile_searches(tally: Tally, max_bins: int) -> dict[str, QuantileSearch]:
    """One search for every numeric column of many values."""
    columns = {name: t for name, t in tally.columns.items() if isinstance(t, NumberTally) and t.distinct is None}
    return {name: QuantileSearch(t, max_bins - (t.missing > 0)) for name, t in columns.items()}


def read_quantiles(
    table: Any, searches: dict[str, QuantileSearch], study: Study, first_row: int = 0, each: Each | None = None
) -> dict[str, Any]:
    """Read a table for each search: counts, or values and their counts."""
    weight = row_weights(table, study.weights, first_row)
    kept = None if weight is None else weight > 0

    def read(name: str):
        x = numbers(table.column(name))
        x = x[~np.isnan(x) if kept is None else kept & ~np.isnan(x)]
        search = searches[name]
        return search.collect(x) if search.collecting else search.count(x)

    run = each or (lambda f, items: [f(item) for item in items])
    return dict(zip(searches, run(read, searches), strict=True))


def add_parts(found: dict[str, Any], more: dict[str, Any]) -> None:
    """Add what one part of the rows holds to what others do."""
    for name, part in more.items():
        if name not in found:
            found[name] = part
        elif isinstance(part, Counts):
            found[name].add(part.values, part.counts)
        else:
            found[name] = found[name] + part


def take_parts(searches: dict[str, QuantileSearch], found: dict[str, Any]) -> None:
    """Let every search take in what all rows hold."""
    for name, search in searches.items():
        if search.collecting:
            search.take_collected(found[name])
        else:
            search.take_counts(found[name])


def label_places(column: Any, labels: np.ndarray) -> np.ndarray:
    """The class of every label."""
    return positions(column, labels.tolist()).astype(np.int64)
