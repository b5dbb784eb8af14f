"""The exact search on the design with which fastpolicytree was published, beside its figures and R policytree's.

    python benchmarks/published_policy_trees.py [--draws 3] [--only "continuous 2,000 x 10"]

Cussens, Hatamyar, Shah and Kreif (2025), Fast learning of optimal policy trees, arXiv 2506.15435, section 3: covariates
are standard normal or Bernoulli(1/2), treatments are drawn with equal chances, and the outcome is X1 + X2 1(W >= 1) +
X3 1(W = m - 1) plus a uniform error on (0, 1). Rewards are augmented inverse probability weighted scores. Theirs come
from grf's causal forests, ours from regression forests of each arm, cross-fitted in five folds, with the shares of the
arms as propensities. Processor seconds of whole fits, kernels warm; theirs are means of ten draws on another machine.
"""

from __future__ import annotations

import argparse
import time
import warnings
from dataclasses import dataclass

import numpy as np
from reporting import RESULTS, machine, markdown_head, markdown_table, write_csv
from sklearn.ensemble import RandomForestRegressor
from sklearn.model_selection import KFold

from policytree import PolicyTree

MINUTE, HOUR = 60.0, 3600.0
SOURCE = (
    "Cussens, Hatamyar, Shah and Kreif, arXiv 2506.15435, table 1, as in paper.md of github.com/jcussens/tailoring, 24 "
    "November 2025: means of ten draws, elapsed processor time, machine and versions not named there (fastpolicytree "
    "1.0 is on CRAN since 24 June 2025)"
)


@dataclass(frozen=True)
class Cell:
    """One line of the published table.

    Attributes
    ----------
    binary : bool
        Whether covariates have two values.
    n, p, arms, depth : int
    policytree_seconds, fastpolicytree_seconds : float
        As published.
    """

    binary: bool
    n: int
    p: int
    arms: int
    depth: int
    policytree_seconds: float
    fastpolicytree_seconds: float

    @property
    def name(self) -> str:
        """Name in the table."""
        kind = "binary" if self.binary else "continuous"
        return f"{kind} {self.n:,} x {self.p}, {self.arms} arms, depth {self.depth}"


CELLS = (
    Cell(True, 10_000, 60, 2, 2, 1.352 * MINUTE, 0.210),
    Cell(True, 10_000, 60, 10, 2, 1.306 * MINUTE, 0.420),
    Cell(True, 10_000, 60, 2, 3, 45.177 * MINUTE, 5.245),
    Cell(True, 10_000, 60, 10, 3, 47.047 * MINUTE, 11.440),
    Cell(False, 2_000, 10, 2, 2, 2.735, 0.407),
    Cell(False, 2_000, 10, 3, 2, 3.531, 0.702),
    Cell(False, 2_000, 10, 2, 3, 9.975 * HOUR, 10.799 * MINUTE),
    Cell(False, 2_000, 10, 3, 3, 12.376 * HOUR, 37.925 * MINUTE),
)


def study(binary: bool, n: int, p: int, arms: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Covariates (n, p) and rewards (n, arms) of one draw."""
    X = rng.integers(0, 2, (n, p)).astype(float) if binary else rng.standard_normal((n, p))
    treatment = rng.integers(0, arms, n)
    Y = X[:, 0] + X[:, 1] * (treatment >= 1) + X[:, 2] * (treatment == arms - 1) + rng.random(n)
    means = np.empty((n, arms))
    for learn, rest in KFold(5, shuffle=True, random_state=0).split(X):
        for arm in range(arms):
            rows = learn[treatment[learn] == arm]
            forest = RandomForestRegressor(100, min_samples_leaf=5, max_features=1 / 3, random_state=0)
            means[rest, arm] = forest.fit(X[rows], Y[rows]).predict(X[rest])
    took = treatment[:, None] == np.arange(arms)
    return X, means + took * (Y[:, None] - means) / took.mean(axis=0)


def fit(X: np.ndarray, rewards: np.ndarray, depth: int) -> tuple[float, PolicyTree]:
    """Processor seconds of a whole fit, and the tree."""
    start = time.process_time()
    model = PolicyTree(max_depth=depth).fit(X, rewards)
    return time.process_time() - start, model


def seconds_text(seconds: float) -> str:
    """A duration as tables show it."""
    if seconds >= HOUR:
        return f"{seconds / HOUR:.1f} h"
    return f"{seconds / MINUTE:.1f} min" if seconds >= 100 else f"{seconds:.2g} s"


def main() -> None:
    """Fit every cell; results/published_policy_trees.{csv,md}."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--only", default="", help="part of the names of the cells; nothing is written then")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    about = machine()
    rows, lines, made = [], [], {}
    for cell in (cell for cell in CELLS if arguments.only in cell.name):
        taken = []
        for draw in range(arguments.draws):
            key = (cell.binary, cell.n, cell.p, cell.arms, draw)
            if key not in made:
                made[key] = study(*key[:4], np.random.default_rng(draw))
            X, rewards = made[key]
            fit(X[:300], rewards[:300], cell.depth)  # kernels and libraries
            seconds, model = fit(X, rewards, cell.depth)
            taken.append(seconds)
            rows.append(
                {
                    "case": cell.name,
                    "draw": draw,
                    "seconds": round(seconds, 4),
                    "mean reward": float(model.score(X, rewards)),
                    "status": model.status_.value,
                    "fastpolicytree_published": cell.fastpolicytree_seconds,
                    "policytree_r_published": cell.policytree_seconds,
                }
            )
        proved = all(row["status"] == "optimal" for row in rows[-arguments.draws :])
        lines.append(
            [
                cell.name,
                f"{seconds_text(float(np.mean(taken)))} ({min(taken):.2g} to {max(taken):.2g})",
                "yes" if proved else "no",
                seconds_text(cell.fastpolicytree_seconds),
                seconds_text(cell.policytree_seconds),
            ]
        )
        print(*lines[-1], sep=" | ", flush=True)
    header = ["case", "here", "proved", "fastpolicytree", "R's policytree"]
    facts = about | {
        "here": f"{arguments.draws} draws; mean (least to most) processor seconds of whole fits, one thread, warm",
        "published": SOURCE,
        "command": f"`python benchmarks/published_policy_trees.py --draws {arguments.draws}`",
    }
    text = markdown_head("The published design of fastpolicytree", facts)
    text += markdown_table(header, lines, right=set(header[1:]) - {"proved"})
    if not arguments.only:
        write_csv(RESULTS / "published_policy_trees.csv", rows)
        (RESULTS / "published_policy_trees.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
