"""Large data: direct, duplication and sampling by seconds, objective and what the tree is worth on new people."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from weighted_trees.fitting import COLORS, proved, timed

from policytree import PolicyTree, RewardEstimator

SIZES = (20_000, 100_000)
DEPTH = 3
FEATURES, VALUES = 10, 100
NEW_PEOPLE = 200_000
REPEATS = 2  # the fastest counts
ABOUT = f"""A simulated trial: two treatments, chances of one half, outcomes with multiplicative noise; rewards by
RewardEstimator(method='ipw'), so that weights are real numbers. objective: mean reward of the rows;
test value: mean outcome of {NEW_PEOPLE:,} new people, whose outcomes under both treatments are known. error bound: on
the share of weight that is misclassified, by rounding (certain) or by Theorem 3 (with probability .95)."""
METHODS = {
    "direct": {},
    **{f"duplication, p = {p}": {"solver": "duplication", "solver_options": {"factor": p}} for p in (10, 50, 100)},
    **{
        f"sampling, r = {r:g}": {"solver": "sampling", "solver_options": {"amplification": r}, "random_state": 0}
        for r in (0.1, 0.5, 1.0)
    },
}


def people(n: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Covariates of ``VALUES`` levels, and what each of two treatments would bring each person."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, VALUES, (n, FEATURES)).astype(float)
    Z = X / (VALUES - 1)
    gain = np.sin(3 * Z[:, 0]) * (Z[:, 1] > 0.4) - 0.8 * Z[:, 2] * (Z[:, 3] < 0.5) - 0.3 + 0.4 * Z[:, 4] * Z[:, 5]
    base = 0.7 + 0.5 * Z[:, 6] + 0.5 * Z[:, 7]
    return X, np.column_stack([base, base + gain]), rng.lognormal(0.0, 0.5, n)


def show(study) -> None:
    """One table for both sizes, one picture."""
    study.heading(f"3. Large data: depth {DEPTH}, {FEATURES} features of {VALUES} values, inverse propensity rewards")
    study.show(ABOUT)
    tables = [compare(study, n) for n in ((2_000,) if study.quick else SIZES)]
    table = pd.concat(tables)
    study.table(table, "sizes", digits=4, index=False)
    show_prices(study, table)
    draw(study, table)


def compare(study, n: int) -> pd.DataFrame:
    """Every solver on one trial."""
    X, outcomes, noise = people(n, seed=1)
    chance = np.random.default_rng(2)
    T = chance.integers(0, 2, n)
    Y = outcomes[np.arange(n), T] * noise / np.exp(0.125)  # the noise has mean one
    estimator = RewardEstimator(method="ipw")
    rewards = estimator.fit_predict(Y, T, propensity=np.full((n, 2), 0.5))
    X_new, new, _ = people(NEW_PEOPLE, seed=3)
    weight = float(np.ptp(np.asarray(rewards), axis=1).mean())
    rows = []
    for name, options in METHODS.items():
        study.step(f"{n:,} rows: {name}")
        tree = PolicyTree(max_depth=DEPTH, **options)
        seconds = min(timed(tree, X, rewards) for _ in range(REPEATS))
        test = new[np.arange(len(new)), tree.predict(X_new).astype(int)].mean()
        told, counted = tree.solution_.guarantees, tree.solution_.counters
        rows.append({"rows": n, "solver": name, "seconds": seconds, "objective": tree.objective_value_,
                     "gap": tree.optimality_gap_, "proved": proved(tree), "test value": test,
                     "rows solved": counted.get("duplicated_rows", counted.get("drawn_rows", n)),
                     "weight dropped": told.get("dropped_weight", np.nan),
                     "error bound": told.get("rounding_error", told.get("theorem_3", np.nan)) / weight})  # fmt: skip
    study.show(f"{n:,} rows: the same treatment for all is worth {new.mean(axis=0).max():.4f} on new people, the "
               f"best treatment of each {new.max(axis=1).mean():.4f}")  # fmt: skip
    return pd.DataFrame(rows)


def show_prices(study, table: pd.DataFrame) -> None:
    """Ratios within this run."""
    rows = []
    for n, part in table.groupby("rows"):
        direct = part.iloc[0]
        for row in part.iloc[1:].itertuples(index=False):
            rows.append({"rows": n, "solver": row.solver, "seconds / direct": row.seconds / direct["seconds"],
                         "lost objective": direct["objective"] - row.objective,
                         "lost test value": direct["test value"] - row[6]})  # fmt: skip
    study.show("\nAgainst direct:")
    study.table(pd.DataFrame(rows), "sizes_against_direct", digits=4, index=False)


def draw(study, table: pd.DataFrame) -> None:
    """Seconds against objective and test value."""
    sizes = list(dict.fromkeys(table["rows"]))
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    markers = dict(zip(METHODS, "osDPv^<", strict=True))
    for row in table.itertuples(index=False):
        color = COLORS[row.solver.partition(",")[0]]
        face = color if row.rows == sizes[-1] else "white"
        for ax, value in zip(axes, (row.objective, row[6]), strict=True):
            label = row.solver if row.rows == sizes[-1] else None
            ax.plot(row.seconds, value, markers[row.solver], color=color, markerfacecolor=face, label=label)
    for ax, title in zip(
        axes, ("objective: mean reward of the rows", "test value: mean outcome of new people"), strict=True
    ):
        ax.set(xscale="log", xlabel="seconds", title=title)
    for ax in axes:
        ax.set_xticks([0.1, 0.2, 0.5, 1, 2], ["0.1", "0.2", "0.5", "1", "2"])
        ax.xaxis.set_minor_formatter("")
    rows = [f"{n:,} rows" for n in sizes]
    figure.suptitle(f"filled: {rows[-1]}; open: {', '.join(rows[:-1]) or 'none'}", fontsize=10)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)
    study.figure(figure, "sizes")
