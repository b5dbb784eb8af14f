"""Do held-out intervals cover what they say? Simulated trials and studies with known truths.

    python benchmarks/coverage.py                    # all cells, 1,000 runs each: about an hour on one core
    python benchmarks/coverage.py --list
    python benchmarks/coverage.py --cell "no effect, n=300, 2 arms" --runs 200

Every run draws a study, calls `cross_val_policy_value` with a light learner (`LinearLearner`: linear outcome models by
least squares, cross-fitted in two folds, then the exact tree) and compares intervals with the true values of the rules
that were judged. Results are saved after every cell; see `benchmarks/README.md` for the columns.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from reporting import machine, markdown_head, markdown_table
from scipy.stats import norm, qmc
from sklearn.base import BaseEstimator, clone
from sklearn.ensemble import HistGradientBoostingRegressor

from policytree import PolicyTree, cross_val_policy_value
from policytree.evaluation import compare_with_best
from policytree.evaluation.held_out import settled

RESULTS = Path(__file__).parent / "results"
N_FEATURES = 4
POPULATION = norm.ppf(qmc.Sobol(N_FEATURES, seed=1).random(2**13))
PROCEDURES = ("repeated", "adaptive", "single", "sequential", "split")


# --- what the truth is ---


def no_effect(X, n_arms):
    """All arms the same."""
    return np.zeros((len(X), n_arms))


def linear_effects(X, n_arms):
    """Two arms: .4 x0 + .3 for the second; further ones .3 - .4 x1 and .2."""
    columns = (0.0 * X[:, 0], 0.4 * X[:, 0] + 0.3, 0.3 - 0.4 * X[:, 1], 0.2 + 0.0 * X[:, 0])
    return np.column_stack(columns[:n_arms])


def wavy_effects(X, n_arms):
    """No outcome model of ours is right: steps, a product, heavy curvature."""
    columns = (
        0.0 * X[:, 0],
        0.5 * np.sign(X[:, 0] * X[:, 1]) + 0.1,
        0.6 * (np.abs(X[:, 2]) < 0.5),
        np.sin(2 * X[:, 3]) * 0.5,
    )
    return np.column_stack(columns[:n_arms])


@dataclass(frozen=True)
class Cell:
    """A kind of study to simulate."""

    name: str
    n: int
    n_arms: int = 2
    effects: object = linear_effects
    confounded: bool = False
    cluster_size: int = 1
    weighted: bool = False
    depth: int = 2
    learner: str = "linear"
    wavy: bool = False
    skewed: bool = False

    def draw(self, rng) -> dict:
        """A study: arguments of `cross_val_policy_value`."""
        n, size = self.n, self.cluster_size
        X = rng.standard_normal((n, N_FEATURES))
        if size > 1:  # half of the first two covariates' variance, and some of the outcome's, is of the cluster
            shared = np.repeat(rng.standard_normal((n // size, 2)), size, axis=0)
            X[:, :2] = (X[:, :2] + shared) / np.sqrt(2)
        if self.depth > 2:
            X = np.round(X, 1)  # fewer thresholds: depth three a thousand times over
        T, propensity = self._treat(X, rng)
        noise = rng.standard_exponential(n) - 1 if self.skewed else rng.standard_normal(n)
        base = np.cos(2 * X[:, 1]) + X[:, 2] ** 2 - 1 if self.wavy else X[:, 1]
        y = base + self.effects(X, self.n_arms)[np.arange(n), T] + noise
        study = {"Y": y, "T": T, "X": X, "propensity": propensity}
        if size > 1:
            study["groups"] = np.repeat(np.arange(n // size), size)
            study["Y"] = y + 0.5 * np.repeat(rng.standard_normal(n // size), size)
        if self.weighted:
            study["sample_weight"] = np.exp(0.5 * X[:, 2]) * rng.uniform(0.5, 1.5, n)
        return study

    def _treat(self, X, rng):
        """Arms, by chance or confounded with the first two covariates (the learner then fits a logistic model)."""
        n, size = self.n, self.cluster_size
        if self.confounded:
            p = 1 / (1 + np.exp(-(0.5 * X[:, 0] + 0.5 * X[:, 1])))
            return (rng.random(n) < p).astype(int), None
        arms = np.repeat(rng.permuted(np.arange(n // size) % self.n_arms), size)  # clusters are randomised whole
        return arms, {k: 1 / self.n_arms for k in range(self.n_arms)}

    def truth(self) -> tuple[np.ndarray, np.ndarray]:
        """Expected outcome of every point of the population under every arm, and the points' weights."""
        X = POPULATION
        weight = np.exp(0.5 * X[:, 2]) if self.weighted else np.ones(len(X))
        base = np.cos(2 * X[:, 1]) + X[:, 2] ** 2 - 1 if self.wavy else X[:, 1]
        return base[:, None] + self.effects(X, self.n_arms), weight / weight.sum()


def cells() -> list[Cell]:
    """The twelve of the acceptance, then others."""
    out = [
        Cell(f"{name}, n={n}, {arms} arms", n, arms, effects)
        for name, effects in (("no effect", no_effect), ("effects", linear_effects))
        for n in (300, 1_000)
        for arms in (2, 4)
    ]
    out += [
        Cell("confounded, n=1000", 1_000, confounded=True),
        Cell("60 clusters of 25", 1_500, cluster_size=25),
        Cell("weights, n=1000", 1_000, weighted=True),
        Cell("depth 3, n=1000", 1_000, depth=3),
        Cell("other: boosting, non-linear, skewed, n=1000", 1_000, 2, wavy_effects, learner="boosting", wavy=True,
             skewed=True),
        Cell("other: wrong linear model, 4 arms, n=600", 600, 4, wavy_effects, wavy=True, skewed=True),
        Cell("other: no effect, confounded, n=1000", 1_000, 2, no_effect, confounded=True),
        Cell("other: no effect, 60 clusters of 25", 1_500, 2, no_effect, cluster_size=25),
    ]  # fmt: skip
    return out


# --- a light learner behind the library's own interface ---


class Scores:
    """Doubly robust scores of new rows by the models of two folds; what `reward_estimator_` must offer."""

    def __init__(self, arms, models, logits):
        self._arms, self._models, self._logits = arms, models, logits

    def means(self, X, fold=None):
        """Expected outcomes (n, K)."""
        chosen = self._models if fold is None else [self._models[fold]]
        return np.mean([np.column_stack([predict(X) for predict in models]) for models in chosen], axis=0)

    def probabilities(self, X, propensity, fold=None):
        """Probabilities of the arms (n, K)."""
        if propensity is not None:
            return np.tile([propensity[k] for k in self._arms], (len(X), 1))
        chosen = self._logits if fold is None else [self._logits[fold]]
        p = np.mean([1 / (1 + np.exp(-_with_one(X) @ b)) for b in chosen], axis=0)
        return np.clip(np.column_stack([1 - p, p]), 0.01, 0.99)

    def scores(self, Y, T, X, propensity, fold=None):
        """Scores (n, K)."""
        out, p, rows = self.means(X, fold), self.probabilities(X, propensity, fold), np.arange(len(Y))
        out[rows, T] += (Y - out[rows, T]) / p[rows, T]
        return out

    def predict_rewards(self, Y, T, *, X, W, propensity):
        """Scores as a frame."""
        return pd.DataFrame(self.scores(Y, T, X, propensity), columns=self._arms)

    def predict_outcomes(self, *, X, W):
        """Expected outcomes as a frame."""
        return pd.DataFrame(self.means(X), columns=self._arms)


def _with_one(X):
    return np.column_stack([np.ones(len(X)), X])


def least_squares(X, y, w):
    """A linear outcome model."""
    A = _with_one(X)
    b = np.linalg.solve(A.T @ (w[:, None] * A) + 1e-9 * np.eye(A.shape[1]), A.T @ (w * y))
    return lambda X: _with_one(X) @ b


def boosting(X, y, w):
    """Boosted trees."""
    model = HistGradientBoostingRegressor(max_iter=30, max_leaf_nodes=8, learning_rate=0.15, early_stopping=False)
    return model.fit(X, y, w).predict


def logistic(X, t, w):
    """Coefficients of a logistic regression by Newton's method."""
    A, b = _with_one(X), np.zeros(X.shape[1] + 1)
    for _ in range(6):
        p = 1 / (1 + np.exp(-A @ b))
        b += np.linalg.solve(A.T @ ((w * p * (1 - p))[:, None] * A) + 1e-6 * np.eye(len(b)), A.T @ (w * (t - p)))
    return b


class LinearLearner(BaseEstimator):
    """Least squares per arm in two folds, doubly robust scores, the exact tree."""

    def __init__(self, max_depth=2, outcome=least_squares, direction="maximize", min_samples_leaf=1):
        self.max_depth = max_depth
        self.min_samples_leaf = min_samples_leaf
        self.outcome = outcome
        self.direction = direction

    def fit(self, Y, T, *, X, W, propensity, sample_weight, groups):
        """Scores out of fold, and the tree for them."""
        n = len(Y)
        w = np.ones(n) if sample_weight is None else sample_weight
        units = np.arange(n) if groups is None else np.unique(groups, return_inverse=True)[1]
        fold = np.random.default_rng(0).permutation(units.max() + 1)[units] % 2
        arms = np.unique(T)
        models, logits = [], []
        for f in (0, 1):
            use = fold != f
            models.append([self.outcome(X[use & (k == T)], Y[use & (k == T)], w[use & (k == T)]) for k in arms])
            logits.append(None if propensity is not None else logistic(X[use], T[use], w[use]))
        self.reward_estimator_ = Scores(arms, models, logits)
        rewards = np.empty((n, len(arms)))
        for f in (0, 1):
            rows = fold == f
            rewards[rows] = self.reward_estimator_.scores(Y[rows], T[rows], X[rows], propensity, f)
        tree = PolicyTree(max_depth=self.max_depth, min_samples_leaf=self.min_samples_leaf)
        self.policy_tree_ = tree.fit(X, rewards, sample_weight=sample_weight)
        self.rewards_ = rewards
        return self

    def apply(self, X):
        """Leaves."""
        return self.policy_tree_.apply(X)

    def predict(self, X):
        """Arms."""
        return self.policy_tree_.predict(X)


# --- a run ---


def true_value(tree, means, weight) -> float:
    """Expected outcome of the population under a tree."""
    arms = tree.tree_.action[tree.tree_.apply(POPULATION)]
    return float(weight @ means[np.arange(len(means)), arms])


def targets(table, means, weight, repetitions) -> float:
    """Mean true value of the judged rules, each by the weight of its rows."""
    total = 0.0
    for repetition in repetitions:
        fold = repetition.folds.fold[table.judged]
        own = table.observed.sample_weight
        of_rows = np.ones(len(fold)) if own is None else own[table.judged]
        shares = np.bincount(fold, weights=of_rows)
        values = [true_value(tree, means, weight) for tree in repetition.trees]
        total += float(np.average(values, weights=shares[np.unique(fold)])) / len(repetitions)
    return total


def judge(table, repetitions, truths, target, best_value) -> dict:
    """What the intervals of some repetitions say, and whether it is true."""

    def estimate(scores):
        return table.validation.estimate(scores, table.observed, 0.95)

    value = estimate([r.scores["policy tree"] for r in repetitions])
    differences = {
        f"always {k}": estimate([r.scores["policy tree"] - r.scores[f"always {k}"] for r in repetitions])
        for k in range(len(truths))
    }
    first = differences["always 0"]
    best = compare_with_best(differences, "maximize")
    return {
        "value": value.lower <= target <= value.upper,
        "difference": first.lower <= target - truths[0] <= first.upper,
        "against best": best.lower <= target - best_value <= best.upper,
        "worse": best.worse, "better": best.better, "width": first.upper - first.lower,
        "best width": best.upper - best.lower, "error": first.value - (target - truths[0]), "se": first.standard_error,
        "arms worse": any(d.upper < 0 for d in differences.values()),
    }  # fmt: skip


def one_run(cell: Cell, seed: int, procedures) -> list[dict]:
    """One simulated study under every procedure."""
    rng = np.random.default_rng([seed, sum(map(ord, cell.name))])
    study, (means, weight) = cell.draw(rng), cell.truth()
    truths = weight @ means
    learner = LinearLearner(cell.depth, boosting if cell.learner == "boosting" else least_squares)
    Y, T = study.pop("Y"), study.pop("T")
    out = []

    def add(name, table, repetitions, target):
        record = judge(table, repetitions, truths, target, truths.max())
        out.append({"procedure": name, "repetitions": len(repetitions), **record})

    if set(procedures) & {"repeated", "adaptive", "single"}:
        table = cross_val_policy_value(learner, Y, T, **study, random_state=seed)
        done = table.repetitions
        target = targets(table, means, weight, done)
        add("repeated", table, done, target)
        add("single", table, done[:1], targets(table, means, weight, done[:1]))
        early = next((r for r in (3, 4) if settled(done[:r], table.observed, table.validation, 0.95)), len(done))
        add("adaptive", table, done[:early], target if early == 5 else targets(table, means, weight, done[:early]))
        whole = clone(learner).fit(Y, T, W=None, **{"sample_weight": None, "groups": None, **study})
        out[0]["all rows"] = _covers_shown(table, true_value(whole.policy_tree_, means, weight) - truths[0])
    for name in ("sequential", "split"):
        if name in procedures:
            table = cross_val_policy_value(learner, Y, T, **study, validation=name, random_state=seed)
            add(name, table, table.repetitions, targets(table, means, weight, table.repetitions))
    return out


def _covers_shown(table, truth) -> bool:
    difference = table.differences["always 0"]
    return difference.lower <= truth <= difference.upper


# --- tables ---


def summary(records: pd.DataFrame) -> pd.DataFrame:
    """Coverage and widths per procedure, in percent where they are shares."""
    rows = []
    single = records.loc[records["procedure"] == "single", "width"].mean()
    for name in PROCEDURES:
        part = records[records["procedure"] == name]
        if not len(part):
            continue
        rows.append({"procedure": name, "runs": len(part), "repetitions": part["repetitions"].mean()})
        shares = ("value", "difference", "against best", "worse", "better", "arms worse")
        rows[-1] |= {column: 100 * part[column].mean() for column in shares}
        rows[-1] |= {"all rows": 100 * part["all rows"].astype(float).mean() if name == "repeated" else np.nan}
        rows[-1] |= {"width ratio": part["width"].mean() / single, "SE / SD": part["se"].mean() / part["error"].std()}
        p = part["difference"].mean()
        rows[-1]["MC error"] = 100 * np.sqrt(p * (1 - p) / len(part))
    return pd.DataFrame(rows)


def save(results: dict[str, pd.DataFrame], stem: Path) -> None:
    """All cells so far."""
    frame = pd.concat([table.assign(cell=name) for name, table in results.items()])
    frame = frame[["cell", *[c for c in frame.columns if c != "cell"]]]
    frame.to_csv(stem.with_suffix(".csv"), index=False, float_format="%.6g")
    shown = frame.copy()
    for column in shown.columns[3:]:
        digits = 2 if column in ("width ratio", "SE / SD", "MC error") else 1
        shown[column] = [("" if np.isnan(v) else f"{v:.{digits}f}") for v in shown[column].astype(float)]
    names = list(shown.columns)
    lines = [[str(value) for value in row] for row in shown.itertuples(index=False)]
    head = markdown_head("Coverage of held-out intervals (percent; nominal 95)", machine())
    table = markdown_table(names, lines, set(names[2:]))
    stem.with_suffix(".md").write_text(head + table, encoding="utf-8")


def run_cell(cell: Cell, runs: int, procedures) -> pd.DataFrame:
    """All runs of a cell; says how it goes."""
    start, records = time.perf_counter(), []
    for seed in range(runs):
        records += one_run(cell, seed, procedures)
        if (seed + 1) % 100 == 0 or seed + 1 == runs:
            table = summary(pd.DataFrame(records))
            print(f"{cell.name}: {seed + 1} runs, {time.perf_counter() - start:.0f} s", flush=True)
    print(table.to_string(index=False, float_format=lambda v: f"{v:.2f}") + "\n", flush=True)
    return table


def main(arguments: list[str] | None = None) -> None:
    """Run the cells asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=1_000)
    parser.add_argument("--other-runs", type=int, default=300, help="runs of the cells that begin with 'other'")
    parser.add_argument("--cell", action="append", help="part of a cell's name; may be repeated")
    parser.add_argument("--procedures", default=",".join(PROCEDURES))
    parser.add_argument("--output", type=Path, default=RESULTS / "coverage")
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args(arguments)
    chosen = [c for c in cells() if not options.cell or any(part in c.name for part in options.cell)]
    if options.list:
        print("\n".join(c.name for c in chosen))
        return
    if not chosen:
        sys.exit("no cell has such a name; see --list")
    results = {}
    for cell in chosen:
        runs = min(options.runs, options.other_runs) if cell.name.startswith("other") else options.runs
        results[cell.name] = run_cell(cell, runs, options.procedures.split(","))
        save(results, options.output)


if __name__ == "__main__":
    main()
