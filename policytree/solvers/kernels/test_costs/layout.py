"""Trees that are cheap to apply: words and tuples of the search for the next test.

Objects are rows that some test tells apart: equal rows are one object, with the class of most of their weight. A test
is a column: a cut of it sends codes up to the cut one way (two-way), or every code goes its own way (multi-way).

Symbols: n objects, m columns, B codes of a column, S codes of all columns, K classes.
"""

from typing import NamedTuple

from policytree.solvers.kernels.base.layout import codes_2d, f8, flags_1d, i8, int_1d, long_1d, real_1d

# Split rules, which score tests (scores.py).
REGULARIZED, IMPURITY, IMPURITY_PER_COST, IMPURE_PAIRS, BALANCE = 0, 1, 2, 3, 4
MULTIWAY = -1  # instead of a cut


class Objects(NamedTuple):
    """The objects that a tree must tell apart, with their classes and weights."""

    codes: codes_2d  # (objects, columns): the codes of an object are neighbours
    labels: long_1d
    weights: real_1d  # whole numbers if rows have no weights
    total: f8  # of the weights


class Tests(NamedTuple):
    """The columns."""

    offset: long_1d  # where each column's codes begin among all codes, and the end of the last
    multiway: flags_1d


class Scoring(NamedTuple):
    """How tests are scored: the split rule, its impurity and its weight; and when a node is a leaf."""

    rule: i8  # REGULARIZED ... BALANCE
    gini: i8  # 1: Gini, 0: entropy
    complexity: f8  # weight of the impurity reduction
    threshold: f8  # nodes of no more probability are leaves


class NodeRows(NamedTuple):
    """The objects of one node: a stretch of a permutation of all objects."""

    rows: int_1d
    start: i8
    end: i8
