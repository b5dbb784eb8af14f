"""Tiny problems for brute force, drawn by hypothesis (it shrinks them) or by a seeded generator (fuller ones)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from hypothesis import strategies as st

from policytree.data.features import CATEGORICAL, Feature
from policytree.problem.types import Problem
from policytree.solvers.core.binning import bin_matrix
from tests.support import oracles

NAN = float("nan")


@dataclass(frozen=True)
class Case:
    """A problem as a user has it, before binning.

    ``X`` (n, p) float64 with NaN for missing; ``categorical`` lists the columns whose numbers are category positions.
    """

    X: np.ndarray
    losses: np.ndarray
    penalty: float = 0.0
    max_depth: int | None = 2
    min_leaf: int = 1
    arms: np.ndarray | None = None
    min_leaf_per_arm: int = 0
    categorical: tuple[int, ...] = ()
    max_leaf_nodes: int | None = None
    feature_costs: np.ndarray | None = None
    weights: np.ndarray | None = None
    root_features: tuple[int, ...] | None = None
    grouped: bool = False

    @property
    def features(self) -> tuple[Feature, ...]:
        """Feature descriptions; categories are named by letters."""
        return tuple(
            Feature(f"x{j}", CATEGORICAL, tuple("abcdefgh")) if j in self.categorical else Feature(f"x{j}")
            for j in range(self.X.shape[1])
        )

    def problem(self) -> Problem:
        """The binned problem that solvers take."""
        return Problem(
            bin_matrix(self.X, self.features, categories="groups" if self.grouped else "levels"),
            self.losses,
            leaf_penalty=self.penalty,
            max_depth=self.max_depth,
            min_leaf=self.min_leaf,
            arms=self.arms,
            min_leaf_per_arm=self.min_leaf_per_arm,
            max_leaf_nodes=self.max_leaf_nodes,
            feature_costs=self.feature_costs,
            weights=self.weights,
            root_features=self.root_features,
        )

    def optimum(self) -> Fraction | None:
        """The exact optimum by brute force; None if infeasible."""
        return oracles.best_tree(
            self.X,
            self.losses,
            self.penalty,
            self.max_depth,
            self.min_leaf,
            self.arms,
            self.min_leaf_per_arm,
            self.categorical,
            self.max_leaf_nodes,
            self.feature_costs,
            self.weights,
            self.root_features,
            self.grouped,
        )[0]

    def fast_optimum(self, unit: int = 1) -> int | None:
        """``unit`` times the optimum, by the numpy recursion; ``unit`` times losses, penalty and costs are whole."""

        def whole(values):
            times = np.rint(np.asarray(values) * unit).astype(np.int64)
            assert (times == np.asarray(values) * unit).all()
            return times

        features = np.array(oracles.column_features(self.X, self.categorical), dtype=np.intp)
        roots = self.root_features
        return oracles.best_objective_fast(
            oracles.code_columns(self.X, self.categorical),
            whole(self.losses),
            int(whole(self.penalty)),
            self.max_depth,
            self.min_leaf,
            self.arms,
            self.min_leaf_per_arm,
            self.max_leaf_nodes,
            None if self.feature_costs is None else whole(self.feature_costs)[features],
            None if self.weights is None else self.weights.astype(np.int64),
            None if roots is None else [c for c, f in enumerate(features) if f in roots],
        )

    def but(self, **changes) -> Case:
        """The same case with some fields changed."""
        return replace(self, **changes)

    def __repr__(self) -> str:
        """Code that can be pasted into a test."""

        def show(array):
            return "None" if array is None else f"np.array({array.tolist()!r})".replace("nan", "np.nan")

        return (
            f"Case(X={show(self.X)}.reshape{self.X.shape}, losses={show(self.losses)}, penalty={self.penalty!r}, "
            f"max_depth={self.max_depth!r}, min_leaf={self.min_leaf!r}, arms={show(self.arms)}, "
            f"min_leaf_per_arm={self.min_leaf_per_arm!r}, categorical={self.categorical!r}, "
            f"max_leaf_nodes={self.max_leaf_nodes!r}, feature_costs={show(self.feature_costs)}, "
            f"weights={show(self.weights)}, root_features={self.root_features!r}, grouped={self.grouped!r})"
        )


@st.composite
def cases(draw, max_rows=8, max_features=3, max_actions=4, missing=True, categories=True, constraints=True, costs=True):
    """Tiny cases: ties, duplicate rows, constant columns, negative and zero and fractional losses, and so on."""
    n = draw(st.integers(1, max_rows))
    p = draw(st.integers(0, max_features))
    K = draw(st.integers(1, max_actions))
    categorical = tuple(j for j in range(p) if categories and draw(st.integers(0, 3)) == 3)
    columns = []
    for j in range(p):
        n_values = draw(st.sampled_from([1, 2, 3, 5, n]))
        value = st.integers(0, max(0, min(n_values, 8) - 1)).map(float)
        if j not in categorical:
            value = value.map(lambda v: 0.5 * v - 1.0)
        if missing and draw(st.integers(0, 2)) == 2:
            value = st.one_of(value, st.just(NAN))
        columns.append(draw(st.lists(value, min_size=n, max_size=n)))
    X = np.array(columns, dtype=np.float64).T.reshape(n, p)
    # Eighths are sums of powers of two: every total is an exact float64, so optima can be compared with ==.
    unit = draw(st.sampled_from([1.0, 1.0, 0.125]))
    size = draw(st.sampled_from([1, 3, 20]))
    loss = st.integers(-size, size).map(lambda v: v * unit)
    losses = np.array(draw(st.lists(st.lists(loss, min_size=K, max_size=K), min_size=n, max_size=n)))
    penalty = draw(st.sampled_from([0.0, 0.0, 0.125, 0.5, 1.0, 3.0]))
    max_depth = draw(st.sampled_from([0, 1, 2, 2, 3, 4, None]))
    case = Case(X, losses, penalty, max_depth, categorical=categorical)
    if constraints and draw(st.booleans()):
        arms = np.array(draw(st.lists(st.integers(0, K - 1), min_size=n, max_size=n)), dtype=np.intp)
        case = case.but(min_leaf=draw(st.integers(1, 4)), arms=arms, min_leaf_per_arm=draw(st.integers(0, 2)))
    if constraints and draw(st.booleans()):
        case = case.but(max_leaf_nodes=draw(st.sampled_from([None, 1, 2, 3, 4, 5, 6, 20])))
        if p and draw(st.booleans()):
            case = case.but(root_features=tuple(draw(st.sets(st.integers(0, p - 1)))))
    if costs and draw(st.booleans()):
        eighths = st.integers(0, 8).map(lambda v: v * unit / 8)
        case = case.but(feature_costs=np.array(draw(st.lists(eighths, min_size=p, max_size=p)), dtype=np.float64))
        if draw(st.booleans()):
            whole = st.integers(0, 4).map(float)
            case = case.but(weights=np.array(draw(st.lists(whole, min_size=n, max_size=n))))
    return case


def random_case(rng: np.random.Generator, max_rows: int = 11, max_features: int = 3, costs: bool = True) -> Case:
    """A case drawn by a seeded generator: the same variety as :func:`cases`, with fuller sizes."""
    # The larger of two draws: small cases have trivial answers, a few of them are enough.
    n = int(rng.integers(1, max_rows + 1, 2).max())
    p = int(rng.integers(0, max_features + 1, 2).max())
    K = int(rng.choice([1, 2, 3, 4], p=[0.04, 0.4, 0.32, 0.24]))
    X = np.empty((n, p))
    categorical = []
    for j in range(p):
        kind = rng.choice(
            ["binary", "few", "many", "constant", "category", "copy"], p=[0.2, 0.3, 0.28, 0.04, 0.1, 0.08]
        )
        X[:, j] = {
            "binary": rng.integers(0, 2, n),
            "few": rng.integers(-2, 3, n) / 2,
            "many": rng.permutation(n) * 0.1,
            "constant": np.full(n, 7.0),
            "category": rng.integers(0, 4, n),
            "copy": X[:, j - 1] if j else rng.integers(0, 2, n),
        }[kind]
        if kind == "category" or (kind == "copy" and j - 1 in categorical):
            categorical.append(j)
        if rng.random() < 0.25:
            X[rng.random(n) < 0.3, j] = NAN
    losses = random_losses(rng, n, K)
    penalty = float(rng.choice([0.0, 0.0, 0.0, 0.125, 0.5, 1.0, 2.0]))
    max_depth = rng.choice([0, 1, 2, 3, 4, None], p=[0.04, 0.12, 0.26, 0.3, 0.14, 0.14])
    case = Case(X, losses, penalty, max_depth, categorical=tuple(categorical))
    if rng.random() < 0.3:
        case = case.but(min_leaf=int(rng.integers(2, 4)))
    if rng.random() < 0.15:
        arms = rng.permutation(np.arange(n) % K) if rng.random() < 0.8 else rng.integers(0, K, n)
        case = case.but(arms=arms.astype(np.intp), min_leaf_per_arm=int(rng.integers(1, 3)))
    return _with_scope(rng, case, costs)


def _with_scope(rng: np.random.Generator, case: Case, costs: bool) -> Case:
    """Sometimes a largest number of leaves, a first split from some features, and test costs of eighths."""
    (n, p), size = case.X.shape, float(np.abs(case.losses).max())
    if rng.random() < 0.3:
        case = case.but(max_leaf_nodes=int(rng.integers(1, 8)))
    if p and rng.random() < 0.2:
        case = case.but(root_features=tuple(np.flatnonzero(rng.random(p) < 0.5).tolist()))
    if costs and rng.random() < 0.35:
        unit = 2.0 ** np.ceil(np.log2(max(size, 1.0))) / 64
        case = case.but(feature_costs=rng.integers(0, [1, 2, 9, 40][rng.integers(4)], p) * unit)
        if rng.random() < 0.6:
            case = case.but(weights=rng.integers(0, 5, n).astype(np.float64))
    return case


def random_losses(rng: np.random.Generator, n: int, K: int) -> np.ndarray:
    """Losses (n, K) whose sums are exact in float64: label errors, small or large integers, eighths."""
    kind = rng.choice(["labels", "weighted labels", "small", "large", "eighths", "sparse"])
    if kind == "labels":
        return (rng.integers(0, K, n)[:, None] != np.arange(K)).astype(np.float64)
    if kind == "weighted labels":
        return rng.integers(1, 9, n)[:, None] * (rng.integers(0, K, n)[:, None] != np.arange(K)).astype(np.float64)
    if kind == "small":
        return rng.integers(-2, 3, (n, K)).astype(np.float64)
    if kind == "large":
        return rng.integers(-(10**6), 10**6, (n, K)).astype(np.float64)
    if kind == "eighths":
        return rng.integers(-40, 40, (n, K)) / 8
    return rng.integers(-5, 6, (n, K)) * (rng.random((n, K)) < 0.3)


def grouped_case(rng: np.random.Generator) -> Case:
    """A random case, one of whose columns is a category of three to seven levels that splits may group."""
    case = random_case(rng, max_rows=9)
    while not case.X.shape[1]:
        case = random_case(rng, max_rows=9)
    X = case.X.copy()
    X[:, 0] = rng.integers(0, int(rng.integers(3, 8)), len(X))
    X[rng.random(len(X)) < rng.choice([0.0, 0.2]), 0] = NAN
    return case.but(X=X, categorical=tuple(sorted({0, *case.categorical})), grouped=True)


def penalised_case(rng: np.random.Generator) -> Case:
    """Weighted labels, a leaf penalty of their order and depth three or more: where bounds have most to decide."""
    n, p, K = int(rng.integers(6, 11)), int(rng.integers(1, 4)), int(rng.integers(2, 4))
    X = rng.integers(0, int(rng.integers(2, 5)), (n, p)).astype(np.float64)
    losses = rng.integers(0, 9, n)[:, None] * (rng.integers(0, K, n)[:, None] != np.arange(K))
    return Case(X, losses.astype(np.float64), float(rng.integers(1, 4)), rng.choice([3, 4, None]))


def planted_case(rng: np.random.Generator, n: int, p: int, K: int, n_values: int, **fields) -> Case:
    """Integer features and losses that follow a depth-two rule plus noise; for sizes beyond brute force."""
    X = rng.integers(0, n_values, (n, p)).astype(np.float64)
    half = (n_values - 1) / 2
    arm = (np.where(X[:, 0] <= half, X[:, 1 % p] <= half, X[:, 2 % p] <= half).astype(int)) % K
    losses = rng.integers(-20, 21, (n, K)) - 10 * (np.arange(K) == arm[:, None])
    return Case(X, losses.astype(np.float64), **fields)
