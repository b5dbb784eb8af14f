"""Fewer leaves within the error of the best: what the simplest rule costs, and how many splits on noise it avoids.

    python benchmarks/fewest_leaves.py                      # all designs, 40 draws each: some minutes on one core
    python benchmarks/fewest_leaves.py --draws 10 --design "exclusive or"

Trees of the depth that data choose (`max_depth="auto"`, `regularization="auto"`), and those of them with the fewest
leaves whose cross-validated value is within so many standard errors of the best (`max_leaf_nodes="auto"` takes one).
All rules see the same draws, folds and rewards (least squares; known probabilities, or a logit). Regret: what the best
arm of every new row brings more than the tree. Noise: columns on which no difference between arms depends.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from default_rewards import Study
from depth_choice import ALL, CHOSEN
from reporting import machine, markdown_head, markdown_table
from sklearn.linear_model import LinearRegression, LogisticRegression

from policytree import PolicyTree, RewardEstimator
from policytree.estimators.leaf_sizes import default_leaf_sizes

RESULTS = Path(__file__).parent / "results" / "fewest_leaves.md"
RULES = {"depth only": None, "0.5 errors": 0.5, "1 error": 1.0}
NEW = 4_000


def noise_columns(study: Study) -> set[int]:
    """Columns that change no difference between arms where they are shuffled."""
    rng = np.random.default_rng(5)
    X = study.covariates(NEW, rng)

    def effects(table: np.ndarray) -> np.ndarray:
        means = study.means(table)
        return means - means[:, :1]

    def shuffled(j: int) -> np.ndarray:
        table = X.copy()
        table[:, j] = rng.permutation(table[:, j])
        return table

    return {j for j in range(X.shape[1]) if np.allclose(effects(X), effects(shuffled(j)))}


def run(study: Study, n: int, draw: int, noise: set[int], new: np.ndarray) -> list[dict]:
    """What every rule comes to on one draw."""
    X, T, Y = study.draw(n, np.random.default_rng([52, n, draw]))
    propensity, means = study.chances(X[:1])[0] if study.trial else None, study.means(new)
    rewards = RewardEstimator(LinearRegression(), LogisticRegression(), random_state=draw).fit_predict(
        Y, T, X=X, propensity=propensity
    )
    leaf, per_arm = default_leaf_sizes(Y, T, rewards.shape[1])
    tree = PolicyTree("auto", "auto", min_samples_leaf=leaf, min_samples_per_treatment=per_arm, random_state=draw)
    tree.set_params(max_leaf_nodes="auto").fit(X, rewards.to_numpy(), T)
    size, table, rows = (
        {"max_depth": tree.max_depth_, "regularization": tree.regularization_},
        tree.depth_choice_.leaves,
        [],
    )
    for name, within in RULES.items():
        most = None
        if within is not None and table is not None:
            most = int(table["max_leaf_nodes"][table["behind"] <= within * table["standard_error"]].min())
        tree = PolicyTree(**tree.get_params() | size | {"max_leaf_nodes": most}).fit(X, rewards.to_numpy(), T)
        arms, found = np.asarray(tree.predict(new)).astype(int), tree.tree_
        regret = float((means.max(axis=1) - means[np.arange(len(arms)), arms]).mean())
        splits = found.feature[~found.is_leaf]
        rows.append({"rule": name, "draw": draw, "regret": regret, "leaves": found.n_leaves,
                     "noise": int(np.isin(splits, [*noise]).sum())})  # fmt: skip
    return rows


def line(name: str, n: int, found: pd.DataFrame) -> list[str]:
    """Means over the draws; differences from the depth alone are paired."""
    by = {rule: part.set_index("draw") for rule, part in found.groupby("rule", sort=False)}
    first, out = by["depth only"], [name, str(n), f"{by['depth only']['regret'].mean():.3f}"]
    for rule in list(RULES)[1:]:
        gap = by[rule]["regret"] - first["regret"]
        out.append(f"{gap.mean():+.4f} ({gap.sem():.4f})")
    return [
        *out,
        " / ".join(f"{by[rule]['leaves'].mean():.2f}" for rule in RULES),
        " / ".join(f"{by[rule]['noise'].mean():.2f}" for rule in RULES), str(len(first)),
    ]  # fmt: skip


def main() -> None:
    """Run all designs and keep the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=40)
    parser.add_argument("--design", action="append", choices=list(CHOSEN))
    asked, lines = parser.parse_args(), []
    warnings.simplefilter("ignore")
    for name, (sizes, _) in CHOSEN.items():
        if asked.design and name not in asked.design:
            continue
        study, new = ALL[name], ALL[name].covariates(NEW, np.random.default_rng(99))
        noise = noise_columns(study)
        for n in sizes:
            found = pd.DataFrame([row for k in range(asked.draws) for row in run(study, n, k, noise, new)])
            lines.append(line(name, n, found))
            print(" | ".join(lines[-1]), flush=True)
    names = [
        "design", "n", "regret, depth only", "0.5 errors: more regret", "1 error: more regret",
        f"leaves: {' / '.join(RULES)}", "splits on noise", "draws",
    ]  # fmt: skip
    about = (__doc__ or "").split("\n\n")[-1].replace("\n", " ").strip()
    text = markdown_head("Fewest leaves", machine()) + about + "\n\n" + markdown_table(names, lines, set(names[1:]))
    RESULTS.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
