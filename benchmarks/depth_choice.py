"""Cost of choosing the depth by data, beside fixed depths and other rules; simulated, truth known.

    python benchmarks/depth_choice.py                       # all designs: an hour on one core
    python benchmarks/depth_choice.py --design "exclusive or" --draws 20

Every draw is learnt from by trees of depth 0 to 3, with and without the price that ``regularization="auto"`` sets, and
every rule chooses among them by the same cross-validated scores (two repetitions of five folds). Regret: what the best
arm of every new row brings more than the tree. Results: `benchmarks/results/depth_choice.md`, of all designs that were
run with their own number of draws.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from default_rewards import NEW_ROWS, STUDIES, Study, _even, _normal
from reporting import machine, markdown_head, markdown_table

from policytree import PolicyTree, RewardEstimator
from policytree.estimators import depth_choice
from policytree.estimators.leaf_sizes import default_leaf_sizes

RESULTS = Path(__file__).parent / "results"
PARTS = RESULTS / "depth_choice"  # a file a design, so that they can be run apart
DEPTHS = (0, 1, 2, 3)
WHAT = """\
`python benchmarks/depth_choice.py`: regret of trees of fixed depth (leaves as the command line asks for), and of depths
chosen by rules from the same two repetitions of five-fold cross-validated rewards; in brackets the share of draws in
which there is a tree at all. "library": `max_depth="auto", regularization="auto"` (price of a quarter of a standard
error; a tree must gain more than one standard error over the best arm, judged on all rows; then the smallest within
half a standard error of the best); "library, no price" the same without a price. "best", "half", "one": the largest
mean, or the smallest depth within half or one standard error of it, one arm for all being cross-validated as well.
"votes": the depth that is best in most folds. No effect: every regret is zero, and every tree is one too many.

"""


def _sides(X):
    return np.where((X[:, 0] > 0) ^ (X[:, 1] > 0), 0.5, -0.5)


def _against_nothing(effect):
    return np.column_stack([np.zeros(len(effect)), effect])


ALL = {study.name: study for study in STUDIES} | {
    study.name: study
    for study in (
        Study("exclusive or", (500,), _normal(6), _even, lambda X: _against_nothing(_sides(X)), trial=True),
        Study(
            "exclusive or with a decoy", (500,), _normal(6), _even,
            lambda X: _against_nothing(_sides(X) + 0.2 * (X[:, 2] > 0) - 0.1), trial=True,
        ),
        Study(
            "parity of three", (500,), _normal(6), _even,
            lambda X: _against_nothing(0.5 * np.sign(X[:, 0] * X[:, 1] * X[:, 2])), trial=True,
        ),
        Study(
            "one arm better", (300,), _normal(6), _even, lambda X: np.column_stack([X[:, 0], X[:, 0] + 0.3]), trial=True
        ),
        Study("no effect, trial", (300,), _normal(6), _even, lambda X: np.repeat(X[:, :1], 2, axis=1), trial=True),
    )
}  # fmt: skip
CHOSEN = {
    "three arms": ((1_000,), 16), "no effect": ((1_000,), 16), "exclusive or": ((500,), 40),
    "exclusive or with a decoy": ((500,), 40), "parity of three": ((500,), 24), "one arm better": ((300,), 60),
    "no effect, trial": ((300,), 100), "steps, trial": ((200, 300), 60), "linear, trial": ((300,), 60),
    "nonlinear confounding": ((1_000,), 16),
}  # fmt: skip


def run(study: Study, n: int, draw: int) -> list[dict]:
    """Choose a depth by every rule on one draw; return the choices and their costs."""
    X, T, Y = study.draw(n, np.random.default_rng([78, n, draw]))
    propensity = study.chances(X[:1])[0] if study.trial else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rewards = RewardEstimator(random_state=draw).fit_predict(Y, T, X=X, propensity=propensity).to_numpy()
        leaf, per_arm = default_leaf_sizes(Y, T, rewards.shape[1])
        tree = PolicyTree(
            max_depth="auto", regularization="auto", min_samples_leaf=leaf, min_samples_per_treatment=per_arm,
            random_state=draw,
        )  # fmt: skip
        chosen: dict[str, tuple[int, float]] = {}
        for name, price in (("library", "auto"), ("library, no price", 0.0)):
            kept: list = []
            with _noted(kept):
                tree.set_params(regularization=price).fit(X, rewards, T)
            chosen[name] = tree.max_depth_, tree.regularization_
        scores = kept[0]
        for name, depth in _other_rules(scores, _single_leaf(rewards, tree, draw)).items():
            chosen[name] = depth, 0.0
        chosen |= {f"depth {depth}": (depth, 0.0) for depth in DEPTHS}
        new, rows, known = study.covariates(NEW_ROWS, np.random.default_rng(99)), [], {}
        means = study.means(new)
        for name, (depth, price) in chosen.items():
            if (depth, price) not in known:
                known[depth, price] = _judged(tree, depth, price, (X, rewards, T), new, means)
            regret, has_tree = known[depth, price]
            rows.append({"design": study.name, "n": n, "draw": draw, "rule": name, "regret": regret, "tree": has_tree})
    return rows


def _judged(tree: PolicyTree, depth: int, price: float, data, new, means) -> tuple[float, bool]:
    fixed = PolicyTree(**tree.get_params() | {"max_depth": depth, "regularization": price}).fit(*data)
    arms = np.asarray(fixed.predict(new)).astype(int)
    return float((means.max(axis=1) - means[np.arange(len(arms)), arms]).mean()), fixed.get_n_leaves() > 1


class _noted:
    """Keeps the cross-validated scores that a fit computes."""

    def __init__(self, kept: list):
        self.kept, self.original = kept, depth_choice.held_out_scores

    def __enter__(self) -> None:
        def noted(*arguments):
            found = self.original(*arguments)
            self.kept.append(found[0])
            return found

        depth_choice.held_out_scores = noted

    def __exit__(self, *_) -> None:
        depth_choice.held_out_scores = self.original


def _single_leaf(rewards: np.ndarray, tree: PolicyTree, seed: int) -> np.ndarray:
    """Cross-validated scores of one arm for all, in the folds of the trees."""
    n, rng, out = len(rewards), np.random.RandomState(seed), np.zeros(len(rewards))
    rows = depth_choice.RewardRows(rewards, -rewards, np.ones(n))
    for _ in range(depth_choice.REPEATS):
        for train, test in depth_choice._folds(rows, rng).splits():
            out[test] += rewards[test, rewards[train].mean(axis=0).argmax()] / depth_choice.REPEATS
    return out


def _other_rules(scores: np.ndarray, single: np.ndarray) -> dict[str, int]:
    """Depths by usual rules."""
    every = np.vstack([single, scores])
    values = every.mean(axis=1)
    best = int(values.argmax())
    behind = every[best] - every
    errors = behind.std(axis=1, ddof=1) / np.sqrt(every.shape[1])
    within = {name: int(np.flatnonzero(behind.mean(axis=1) <= k * errors + 1e-12)[0])
              for name, k in (("half", 0.5), ("one", 1.0))}  # fmt: skip
    parts = np.array_split(np.random.default_rng(0).permutation(every.shape[1]), 10)
    votes = np.bincount([every[:, part].mean(axis=1).argmax() for part in parts], minlength=len(every))
    return {"best": best, **within, "votes": int(votes.argmax())}


def table(found: pd.DataFrame) -> pd.DataFrame:
    """Mean regret with its standard error, and the share of draws with a tree."""
    cells = found.groupby(["design", "n", "rule"], sort=False).agg(
        regret=("regret", "mean"), error=("regret", "sem"), tree=("tree", "mean"), draws=("draw", "nunique")
    )
    text = [f"{c.regret:.3f} ({c.error:.3f}) [{c.tree:.0%}]" for c in cells.itertuples()]
    wide = pd.Series(text, index=cells.index).unstack("rule", sort=False)
    return wide.assign(draws=cells["draws"].groupby(level=[0, 1], sort=False).first()).reset_index()


def main() -> None:
    """Run the designs asked for; results are printed after every design and saved if all were asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--design", choices=list(CHOSEN))
    parser.add_argument("--draws", type=int, help="in place of each design's own number")
    asked = parser.parse_args()
    PARTS.mkdir(exist_ok=True)
    for name, (sizes, draws) in CHOSEN.items():
        if asked.design in (None, name):
            found = pd.DataFrame([r for n in sizes for k in range(asked.draws or draws) for r in run(ALL[name], n, k)])
            print(table(found).T.to_string(header=False), flush=True)
            if asked.draws is None:
                found.to_csv(PARTS / f"{name.replace(' ', '_').replace(',', '')}.csv", index=False)
    lines = table(pd.concat([pd.read_csv(part) for part in sorted(PARTS.glob("*.csv"))])).astype(str)
    text = markdown_head("Which depth", machine()) + WHAT + markdown_table(list(lines), lines.values.tolist())
    (RESULTS / "depth_choice.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
