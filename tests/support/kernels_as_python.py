"""A plugin of pytest for runs with NUMBA_DISABLE_JIT=1, in which kernels are Python, so that coverage.py sees them.

    NUMBA_DISABLE_JIT=1 python -m pytest -p tests.support.kernels_as_python ...

Compiled kernels read fields of records as attributes, as numpy does of ``numpy.record`` only. Vector code is written
for LLVM; what a few lines of numpy say as well is said so here. Tests that get to other vector code are skipped.
"""

from __future__ import annotations

import importlib
import sys

import numpy as np
import pytest
from numba import config

KERNELS = "policytree.solvers.kernels"
assert config.DISABLE_JIT, "this plugin is for NUMBA_DISABLE_JIT=1"


def _replace(module: str, name: str, by) -> None:
    """Replace what a module of kernels defines, there and wherever it was imported."""
    old = getattr(importlib.import_module(f"{KERNELS}.{module}"), name)
    for other in [found for key, found in sys.modules.items() if key.startswith("policytree.")]:
        for each in [key for key, value in vars(other).items() if value is old]:
            setattr(other, each, by(old) if by is _record else by)


def _record(dtype: np.dtype) -> np.dtype:
    """The same type, whose fields are attributes too."""
    return np.dtype((np.record, dtype))


def add_rows_to_block(to, to_at, what, what_at, items, a, b, width):
    """Add a row to those rows of a block that are listed in ``items[a:b]``, as binary/simd.py does."""
    flat, row = to.reshape(-1), what.reshape(-1)[what_at : what_at + width]
    for item in items[a:b]:
        first = to_at + int(item) * width
        flat[first : first + width] += row


def add_vectors(to, to_at, what, what_at, n):
    """Add ``n`` vectors of eight, as depth_two/binary_pairs.py does."""
    to.reshape(-1)[to_at : to_at + 8 * n] += what.reshape(-1)[what_at : what_at + 8 * n]


def bits_set(word):
    """Number of bits that are set in a word."""
    return (int(word) & (1 << 64) - 1).bit_count()


def running_sums(inside, table, columns):
    """Running sums along the columns of a table, as pricing/max_rectangle.py does."""
    table[:columns] = inside.reshape(-1, table.shape[1])[:columns].cumsum(axis=1)


def _best_runs(table, best):
    """The best run of consecutive rows of a table, or 0, for each of its columns."""
    total = best[:] = 0
    for row in table:
        total = np.maximum(total, 0) + row
        np.maximum(best, total, out=best)


def runs_of_rows(table, columns, first, end, best):
    """The best run of columns in each row, as pricing/max_rectangle.py does."""
    _best_runs(np.diff(table[:columns])[:, first:end], best[first:end])


def runs_from_row(table, columns, row, first, end, best):
    """The best run of columns in the rows from one on, as pricing/max_rectangle.py does."""
    _best_runs(table[:columns, first:end] - table[:columns, row, None], best[first:end])


for module in ("exact.direct", "nonadditive.ranking", "rashomon.enumerate"):
    importlib.import_module(f"policytree.solvers.{module}")
for name in ("NODE", "SOLVED", "SIDE"):
    _replace("base.layout", name, _record)
for name in ("KNOWN", "KNOWN_REAL"):
    _replace("subsets.table", name, _record)
_replace("binary.simd", "add_rows_to_block", add_rows_to_block)
_replace("depth_two.binary_pairs", "add_vectors", add_vectors)
_replace("subsets.bit_sets", "bits_set", bits_set)
for function in (running_sums, runs_of_rows, runs_from_row):
    _replace("pricing.max_rectangle", function.__name__, function)


#: Messages where a test gets to vector code, or asks for attributes that only a compiled kernel has.
SKIPPED = ("is not usable in pure-python", "'function' object has no attribute")


def _skip_compiled(item):
    """Skip what only compiled kernels can do."""
    try:
        return (yield)
    except (NotImplementedError, AttributeError) as error:
        if not any(said in str(error) for said in SKIPPED):
            raise
        pytest.skip(str(error))


pytest_runtest_setup = pytest.hookimpl(wrapper=True)(_skip_compiled)
pytest_runtest_call = pytest.hookimpl(wrapper=True)(_skip_compiled)
