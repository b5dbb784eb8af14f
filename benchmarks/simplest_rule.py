"""The simplest rule within the error of the best: what it costs, and how many splits on noise it avoids.

    python benchmarks/simplest_rule.py                      # what is lacking of 40 draws a design: an hour on one core
    python benchmarks/simplest_rule.py --cell "exclusive or, n=500" --runs 100
    python benchmarks/simplest_rule.py --table              # the table from the draws that are kept

Trees of the depth that data choose (`max_depth="auto"`, `regularization="auto"`: "depth"); of these the fewest leaves
whose cross-validated value is within a standard error of the best ("leaves"); of these the most stable, which asks only
about columns that recur in nine of ten trees of the folds ("auto", as `max_leaf_nodes="auto"` takes); and all leaves
with columns that recur ("stable"). All see the same draws, folds and rewards (least squares; known probabilities, or a
logit). Regret: what the best arm of every new row brings more than the tree. Noise: splits on columns on which no
difference between arms depends.

Every draw is kept in `results/simplest_rule.csv`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np
import pandas as pd
from default_rewards import Study, _even, _normal
from depth_choice import ALL, CHOSEN
from reporting import RESULTS, Simulation, with_error, write_tables
from sklearn.linear_model import LinearRegression, LogisticRegression

from policytree import PolicyTree, RewardEstimator
from policytree.estimators import depth_choice
from policytree.estimators.leaf_sizes import default_leaf_sizes

OUTPUT = RESULTS / "simplest_rule.csv"
RULES = ("depth", "leaves", "auto", "stable")
MEASURES = ("regret", "leaves", "noise")
COLUMNS = ["cell", "draw", *(f"{measure}_{rule}" for rule in RULES for measure in MEASURES)]
NEW = 4_000
THREE_LEAVES = Study(
    "three leaves", (500,), _normal(6), _even,
    lambda X: np.column_stack([X[:, 0], X[:, 0] + np.where((X[:, 1] < -0.7) | (X[:, 2] > 0), 0.5, -0.5)]), trial=True,
)  # fmt: skip


@dataclass(frozen=True)
class Cell:
    """A design and a number of rows."""

    study: Study
    n: int


CELLS = {f"{name}, n={n}": Cell(ALL[name], n) for name, (sizes, _) in CHOSEN.items() if name in ALL for n in sizes}
CELLS["three leaves, n=500"] = Cell(THREE_LEAVES, 500)
CELLS["50 covariates, few matter, trial, n=500"] = Cell(ALL["50 covariates, few matter, trial"], 500)


@cache
def judged_by(cell: Cell) -> tuple[np.ndarray, np.ndarray, list[int]]:
    """New rows of a cell, their mean outcomes, and the columns that change no difference between arms if shuffled."""
    X, rng = cell.study.covariates(NEW, np.random.default_rng(99)), np.random.default_rng(5)

    def effects(table: np.ndarray) -> np.ndarray:
        means = cell.study.means(table)
        return means - means[:, :1]

    def shuffled(j: int) -> np.ndarray:
        table = X.copy()
        table[:, j] = rng.permutation(table[:, j])
        return table

    noise = [j for j in range(X.shape[1]) if np.allclose(effects(X), effects(shuffled(j)))]
    return X, cell.study.means(X), noise


def stable_columns(tree: PolicyTree, X, rewards, T, draw: int) -> list[int]:
    """Columns that recur in the trees of the folds, of any number of leaves."""
    rows = depth_choice.RewardRows(X, -rewards, np.ones(len(X)), tree._arms(T, len(X)))
    seed = np.random.RandomState(draw)
    plans = [depth_choice._folds(rows, seed) for _ in range(depth_choice.REPEATS)]
    share = depth_choice.held_out_scores(tree, rows, [(tree.max_depth_, None)], tree.regularization_, plans)[2][0]
    return np.flatnonzero(share >= min(depth_choice.RECURS, share.max())).tolist()


def one_run(cell: Cell, draw: int) -> dict:
    """What every rule comes to on one draw."""
    study, (new, means, noise) = cell.study, judged_by(cell)
    X, T, Y = study.draw(cell.n, np.random.default_rng([52, cell.n, draw]))
    rewards = RewardEstimator(LinearRegression(), LogisticRegression(), random_state=draw).fit_predict(
        Y, T, X=X, propensity=study.chances(X[:1])[0] if study.trial else None
    )
    values = rewards.to_numpy()
    leaf, per_arm = default_leaf_sizes(Y, T, values.shape[1])
    tree = PolicyTree("auto", "auto", min_samples_leaf=leaf, min_samples_per_treatment=per_arm, random_state=draw)
    auto = tree.set_params(max_leaf_nodes="auto").fit(X, values, T)
    size = {"max_depth": auto.max_depth_, "regularization": auto.regularization_, "max_leaf_nodes": None}
    asked: dict[str, dict] = {"depth": {}, "leaves": {"max_leaf_nodes": auto.max_leaf_nodes_}, "stable": {}}
    if auto.max_depth_:
        asked["stable"] = {"split_features": stable_columns(auto, X, values, T, draw)}
    fitted = {rule: PolicyTree(**auto.get_params() | size | own).fit(X, values, T) for rule, own in asked.items()}
    found = {}
    for rule, each in ({"auto": auto} | fitted).items():
        arms, splits = np.asarray(each.predict(new)).astype(int), each.tree_.feature[~each.tree_.is_leaf]
        found[f"regret_{rule}"] = float((means.max(axis=1) - means[np.arange(NEW), arms]).mean())
        found[f"leaves_{rule}"] = each.tree_.n_leaves
        found[f"noise_{rule}"] = int(np.isin(splits, noise).sum())
    return found


def tables(draws: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """A line for every cell, and one for all; differences from the depth alone are paired."""
    lines = []
    for cell, part in [*draws.groupby("cell", sort=False), ("all", draws)]:
        more = {rule: part[f"regret_{rule}"] - part["regret_depth"] for rule in RULES[1:]}
        lines.append({
            "cell": cell, "draws": len(part), "regret, depth": f"{part['regret_depth'].mean():.3f}",
            **{f"{rule}: more regret": with_error(gap) for rule, gap in more.items()},
            f"leaves: {', '.join(RULES)}": " / ".join(f"{part[f'leaves_{rule}'].mean():.2f}" for rule in RULES),
            "splits on noise": " / ".join(f"{part[f'noise_{rule}'].mean():.2f}" for rule in RULES),
        })  # fmt: skip
    yield f"{(__doc__ or '').split(chr(10) * 2)[2]}\n\n", pd.DataFrame(lines)


def main(arguments: list[str] | None = None) -> None:
    """Draw what is lacking, and write the table."""
    simulation = Simulation(CELLS, one_run, COLUMNS)
    asked = simulation.parser(__doc__, OUTPUT, runs=40).parse_args(arguments)
    draws = simulation.asked_for(asked)
    if draws is not None:
        write_tables(asked.output, "The simplest rule within the error of the best", tables(draws))


if __name__ == "__main__":
    main()
