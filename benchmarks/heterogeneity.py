"""How often the tests for heterogeneity reject: without any (size, 5 % is right) and with some (power).

    python benchmarks/heterogeneity.py --runs 400

Two tests of `heterogeneity_test`, both together, and for comparison the slope test on ordinary cross-fitted predictions
(`calibration_test`), which has no right size. Outcome models: linear regression. Monte-Carlo error at 400 runs: 1.1
points.
"""

from __future__ import annotations

import argparse
import sys

import numpy as np
import pandas as pd
from sklearn.linear_model import LinearRegression, LogisticRegression

from policytree import RewardEstimator, heterogeneity_test
from policytree.evaluation import calibration_test

CELLS = {  # rows, arms, what else
    "randomised, n = 300": (300, 2, ""),
    "randomised, n = 1,000": (1_000, 2, ""),
    "four arms, n = 300": (300, 4, ""),
    "four arms, n = 1,000": (1_000, 4, ""),
    "confounded, n = 1,000": (1_000, 2, "confounded"),
    "60 clusters of 25": (1_500, 2, "clusters"),
    "weights, n = 1,000": (1_000, 2, "weights"),
    "heavy tails, n = 300": (300, 2, "heavy tails"),
}
LEVEL = 0.05


def draw(rng: np.random.Generator, n: int, n_arms: int, kind: str, effect: float) -> tuple[dict, dict]:
    """Arguments of the test, and how nuisances are learnt; ``effect`` is the change of arm 1's effect with x0."""
    X = rng.normal(size=(n, 5))
    data: dict = {"X": pd.DataFrame(X, columns=[f"x{j}" for j in range(5)])}
    p = np.full((n, n_arms), 1.0 / n_arms)
    noise = rng.normal(size=n)
    if kind == "confounded":
        p[:, 1] = 1 / (1 + np.exp(-0.7 * X[:, 0]))
        p[:, 0] = 1 - p[:, 1]
    elif kind == "clusters":
        cluster = np.repeat(np.arange(n // 25), 25)
        data["groups"] = cluster
        X[:, 0] = rng.normal(size=n // 25)[cluster]
        data["X"]["x0"] = X[:, 0]
        noise += rng.normal(size=n // 25)[cluster]
    elif kind == "weights":
        data["sample_weight"] = rng.lognormal(0, 0.7, size=n)
    elif kind == "heavy tails":
        noise = rng.standard_t(3, size=n)
    T = (rng.random(n)[:, None] > p.cumsum(axis=1)).sum(axis=1)
    if kind == "clusters":  # whole clusters get one arm
        T = rng.integers(n_arms, size=n // 25)[data["groups"]]
    data |= {"T": T, "Y": X[:, 0] + 0.5 * X[:, 1] + (T == 1) * (0.3 + effect * X[:, 0]) + noise}
    if kind != "confounded":
        data["propensity"] = p
    return data, {"model_regression": LinearRegression(), "model_propensity": LogisticRegression()}


def rejections(rng: np.random.Generator, cell: tuple, effect: float, runs: int) -> dict[str, float]:
    """Share of runs in which every test's p-value is below the level."""
    hits: dict[str, list[bool]] = {}
    for run in range(runs):
        data, learners = draw(rng, *cell, effect)
        estimator = RewardEstimator(**learners, random_state=run).fit(**data)
        found = heterogeneity_test(**data, fitted=estimator, random_state=run)
        rows = {key: data[key] for key in ("Y", "T", "groups", "sample_weight") if key in data}
        nuisances = {"regression": estimator.regression_, "propensity": estimator.propensity_}
        pooled = calibration_test(**rows, **nuisances)
        p = {"both": found.p_value, "predicted": found.p_predicted, "linear": found.p_linear,
             "pooled folds": pooled["slope_p_adjusted"].min()}  # fmt: skip
        for name, value in p.items():
            hits.setdefault(name, []).append(value < LEVEL)
    return {name: float(np.mean(values)) for name, values in hits.items()}


def main(arguments: list[str] | None = None) -> int:
    """Print one table a strength of heterogeneity."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=400)
    parser.add_argument("--effect", type=float, nargs="*", default=[0.0, 0.3])
    parser.add_argument("--cells", nargs="*", help="parts of the names of cells; all by default")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    for effect in options.effect:
        rows = {}
        for name, cell in CELLS.items():
            if options.cells and not any(part in name for part in options.cells):
                continue
            print(f"effect {effect:g}: {name}", file=sys.stderr, flush=True)
            rows[name] = rejections(np.random.default_rng(options.seed), cell, effect, options.runs)
        print(f"\nThe effect of arm 1 changes by {effect:g} a standard deviation of x0.")
        print(f"Share of {options.runs} runs rejected at 5 %:")
        print((100 * pd.DataFrame(rows).T).to_string(float_format=lambda v: f"{v:5.1f}"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
