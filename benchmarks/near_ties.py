"""How many trees are near the best one, and how long it takes to count them.

    python benchmarks/near_ties.py [--data ../shared/data] [--time-limit 120]

Processor seconds on one core: whole counts with the search for the best tree, kernels warm; the best 1,000 trees are
written down.
"""

import argparse
import time
from fractions import Fraction

import numpy as np
from cases import MissingData, data_directory, policy, table

from policytree.problem.types import Problem, SearchLimits
from policytree.solvers.core.binning import bin_matrix
from policytree.solvers.core.compilation import all_kernels, load_kernels
from policytree.solvers.rashomon.enumerate import enumerate_rashomon

LISTED = 1_000


def grid(n: int, values: int, p: int):
    """Rows of normal covariates rounded to some ``values`` each, with noisy labels of a rule on three of them."""
    rng = np.random.default_rng(0)
    X = np.round(rng.normal(size=(n, p)) * values / 7)
    rule = (X[:, 0] > 0) ^ ((X[:, 1] > 0) & (X[:, 2] > 0))
    labels = rng.random(n) < 0.3 + 0.4 * rule
    return X, (labels[:, None] != np.arange(2)).astype(float)


def problems(directory):
    """Name, features, losses, price of a leaf as a share of the rows, depth, epsilon (of the gain?), rows of a leaf."""
    compas = table(directory, "compas")
    fico = table(directory, "fico_heloc")
    weighted = table(directory, "fico_heloc", log_normal=True)
    arms = policy(directory, 10_000, 10, 3, "continuous")
    yield "COMPAS, 134 thresholds", compas.X, compas.losses, 0.01, 2, "0.02", False, 1
    yield "COMPAS, 134 thresholds", compas.X, compas.losses, 0.01, 3, "0.02", False, 1
    yield "COMPAS, 134 thresholds", compas.X, compas.losses, 0.001, 3, "0.02", False, 1
    yield "FICO, 1,917 thresholds", fico.X, fico.losses, 0.0, 2, "0.02", False, 1
    yield "FICO, 1,917 thresholds", fico.X, fico.losses, 0.0, 2, "0.1", False, 1
    yield "FICO, log-normal weights", weighted.X, weighted.losses, 0.0, 2, "0.02", False, 1
    yield "FICO, 1,917 thresholds", fico.X, fico.losses, 0.005, 3, "0.01", False, 1
    yield "FICO, 1,917 thresholds", fico.X, fico.losses, 0.0, 3, "0.01", False, 1
    yield "10,000 x 10 continuous, 3 arms", arms.X, arms.losses, 0.0, 2, "0.02", True, 1
    yield "2,500 of these rows, 50 to a leaf", arms.X[:2_500], arms.losses[:2_500], 0.0, 2, "0.02", True, 50
    yield "100,000 x 5, 200 values each", *grid(100_000, 200, 5), 0.001, 3, "0.01", False, 1


def main() -> None:
    """Print one line a problem."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", help="directory that holds classification/")
    parser.add_argument("--time-limit", type=float, default=120.0)
    options = parser.parse_args()
    load_kernels(all_kernels())
    print("| problem | price of a leaf | depth | epsilon | near-ties | seconds |\n|---|---|---|---|---|---|")
    try:
        for name, X, losses, price, depth, epsilon, of_gain, least_leaf in problems(data_directory(options.data)):
            problem = Problem(bin_matrix(X), losses, price * len(X), depth, min_leaf=least_leaf)
            share = Fraction(epsilon)
            start = time.process_time()
            found = enumerate_rashomon(
                problem,
                lambda best, leaf, share=share, of_gain=of_gain: share * (leaf - best if of_gain else best),
                LISTED,
                SearchLimits(options.time_limit),
            )
            seconds = time.process_time() - start
            least = "" if found.complete else "at least "
            share = f"{epsilon} of the gain" if of_gain else epsilon
            print(f"| {name} | {price:g} | {depth} | {share} | {least}{found.n_trees:,} | {seconds:.2f} |", flush=True)
    except MissingData as missing:
        raise SystemExit(str(missing)) from None


if __name__ == "__main__":
    main()
