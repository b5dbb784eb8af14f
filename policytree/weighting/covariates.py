"""The numbers that nuisance models learn from: X and W side by side, categories as indicator columns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from policytree.common.validation import LARGEST
from policytree.data.feature_encoder import FeatureEncoder
from policytree.data.features import CATEGORICAL
from policytree.exceptions import InputError

MAX_LEVELS = 32  # indicator columns per category; rarer values are pooled, so that an id column cannot fill the memory


@dataclass(frozen=True, slots=True)
class _Levels:
    """The values of a categorical column, NaN the last, that have an indicator; ``pools``: others share one more."""

    kept: np.ndarray
    pools: bool

    @classmethod
    def of(cls, codes: np.ndarray) -> _Levels:
        found, counts = np.unique(codes, return_counts=True)
        if len(found) < MAX_LEVELS:
            return cls(found, False)
        return cls(found[np.sort(np.argsort(counts, kind="stable")[1 - MAX_LEVELS :])], True)

    def indicators(self, codes: np.ndarray) -> np.ndarray:
        own = (codes[:, None] == self.kept) | (np.isnan(codes)[:, None] & np.isnan(self.kept))
        return np.column_stack([own, ~own.any(axis=1)]) if self.pools else own


@dataclass(frozen=True, slots=True)
class _Table:
    """One fitted argument (X or W)."""

    encoder: FeatureEncoder
    levels: tuple[_Levels, ...]

    @property
    def categorical(self) -> np.ndarray:
        return np.array([f.kind == CATEGORICAL for f in self.encoder.features], dtype=bool)

    def matrix(self, table) -> np.ndarray:
        encoded = self.encoder.encode(table)
        self._refuse_overflow(encoded)
        if not self.levels:
            return encoded
        mask = self.categorical
        own = (levels.indicators(codes) for levels, codes in zip(self.levels, encoded[:, mask].T, strict=True))
        return np.hstack([encoded[:, ~mask], *own])

    def _refuse_overflow(self, encoded: np.ndarray) -> None:
        large = np.flatnonzero((np.abs(encoded) > LARGEST).any(axis=0))
        if len(large):
            raise InputError(
                f"Column {self.encoder.features[large[0]].name!r} of {self.encoder.argument} holds values beyond "
                f"{LARGEST:g}, too large to compute with; rescale it or set them to missing."
            )

    def names(self) -> list[str]:
        """Names of the matrix's columns: ``age``, ``town=Rome``, ``town=missing``, ``town=other``."""
        features = np.array(self.encoder.features, dtype=object)
        out = [f.name for f in features[~self.categorical]]
        for feature, levels in zip(features[self.categorical], self.levels, strict=True):
            values = ["missing" if np.isnan(code) else feature.categories[int(code)] for code in levels.kept]
            out += [f"{feature.name}={v}" for v in values + ["other"] * levels.pools]
        return out

    def second_levels(self) -> list[str]:
        """Names of columns that say no more than the one before: the second value of categories that have two."""
        categorical = [f.name for f in np.array(self.encoder.features, dtype=object)[self.categorical]]
        values: dict[str, list[str]] = {}
        for name in self.names()[int((~self.categorical).sum()) :]:
            feature = max((n for n in categorical if name.startswith(f"{n}=")), key=len)
            values.setdefault(feature, []).append(name)
        return [names[1] for names in values.values() if len(names) == 2]


def _fit_table(table, argument: str) -> _Table:
    fitted = _Table(FeatureEncoder.fit(table, argument=argument), ())
    mask = fitted.categorical
    if not mask.any():
        return fitted
    return _Table(fitted.encoder, tuple(map(_Levels.of, fitted.encoder.encode(table)[:, mask].T)))


@dataclass(frozen=True, slots=True)
class Covariates:
    """Turns (X, W) into the float64 matrix of the nuisance models, the same way at fit and later.

    Numbers and booleans stay one column (NaN where missing); text and categorical columns become indicator columns, one
    per value, missing being a value of its own. From 32 values on, all but the 31 most frequent are pooled. Values not
    seen at fit get the pooled column, or zeros.
    """

    tables: tuple[_Table | None, _Table | None]

    @classmethod
    def fit(cls, X=None, W=None) -> Covariates:
        """Learn columns and categories of both tables; either may be None."""
        return cls(
            tuple(None if t is None else _fit_table(t, name) for t, name in ((X, "X"), (W, "W")))  # type: ignore[arg-type]
        )

    @property
    def empty(self) -> bool:
        """Whether there are no covariates at all."""
        return self.tables == (None, None)

    def names(self) -> list[str]:
        """Names of the columns of :meth:`matrix`; W's carry a prefix where X has the same name."""
        x, w = ([] if table is None else table.names() for table in self.tables)
        return x + [f"W:{name}" if name in x else name for name in w]

    def second_levels(self) -> list[str]:
        """Columns of X that say no more than another one: the second value of categories that have two."""
        return [] if self.tables[0] is None else self.tables[0].second_levels()

    def matrix(self, X, W, n: int | None = None) -> np.ndarray:
        """Nuisance covariates, shape (n, q), float64; ``n`` None takes the number of rows from the tables.

        Raises
        ------
        InputError
            If a table that was there at fit is missing, is new, has other columns, another length, or infinite values.
        """
        parts = []
        for table, fitted, name in ((X, self.tables[0], "X"), (W, self.tables[1], "W")):
            if (table is None) != (fitted is None):
                was = (
                    "was not given at fit; leave it out"
                    if fitted is None
                    else "was given at fit; pass it for these rows too"
                )
                raise InputError(f"{name} {was}.")
            if fitted is None:
                continue
            part = fitted.matrix(table)
            n = len(part) if n is None else n
            if len(part) != n:
                raise InputError(f"{name} has {len(part)} rows, but {n} are needed: one row per row of the other data.")
            parts.append(part)
        if not parts:
            if n is None:
                raise InputError("Without X and W there is nothing to predict from; pass the covariates given at fit.")
            return np.zeros((n, 0))
        return np.hstack(parts)
