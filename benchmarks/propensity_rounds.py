"""Rounds of boosted propensities that a few of them choose, beside those that many choose.

    python benchmarks/propensity_rounds.py [--draws 12] [--cell "n=400, 2 arms"]

`PropensityStack` fits few rounds first, and more where the best number of rounds is so large that more may be used.
Every draw is fitted with all rounds; the table counts the draws in which the first rung alone chooses others.
"""

from __future__ import annotations

import argparse

import numpy as np
from reporting import RESULTS, machine, markdown_head, markdown_table

from policytree.weighting.boosting import boost
from policytree.weighting.stacking import PROPENSITY_RATE, PROPENSITY_ROUNDS, RUNGS, UNDERSMOOTHING, indicators

N_FOLDS = 5
ROUNDS = np.array(PROPENSITY_ROUNDS)
ASSIGNMENTS = {  # log-odds of an arm by the covariates
    "by lot": lambda Z, k: np.zeros(len(Z)),
    "slight slopes": lambda Z, k: 0.15 * Z[:, k],
    "slopes": lambda Z, k: 0.6 * Z[:, k],
    "product of signs": lambda Z, k: 0.3 * np.sign(Z[:, 0] * Z[:, 1]),
}


def draw(n: int, n_arms: int, assignment: str, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Six covariates, two of them two-valued, and the arms."""
    Z = rng.normal(size=(n, 6))
    Z[:, 4:] = Z[:, 4:] > 0
    odds = np.column_stack([ASSIGNMENTS[assignment](Z, k) * (-1.0) ** k * (k > 0) for k in range(n_arms)])
    chances = np.exp(odds) / np.exp(odds).sum(axis=1, keepdims=True)
    return Z, (rng.random(n)[:, None] > chances.cumsum(axis=1)[:, :-1]).sum(axis=1)


def errors(Z: np.ndarray, arm: np.ndarray, n_arms: int, fold: np.ndarray) -> np.ndarray:
    """Brier scores out of fold, summed over rows, after every number of rounds."""
    out, got = np.zeros(len(ROUNDS)), indicators(arm, n_arms)
    objective = "binary" if n_arms == 2 else "multiclass"
    for f in range(N_FOLDS):
        learns, held_out = fold != f, fold == f
        model = boost(Z[learns], arm[learns], None, objective, int(ROUNDS[-1]), PROPENSITY_RATE)
        stages = model.stages(Z[held_out], PROPENSITY_ROUNDS)
        found = np.stack([1.0 - stages, stages], axis=2) if n_arms == 2 else stages
        out += ((found - got[held_out]) ** 2).sum(axis=(1, 2))
    return out


def chosen(found: np.ndarray, rungs: tuple[int, ...]) -> tuple[int, int]:
    """The rounds of least error among those that are fitted, and how many were fitted in all."""
    fitted = 0
    for rung in rungs:
        best, fitted = ROUNDS[found[:rung].argmin()], fitted + ROUNDS[rung - 1]
        if UNDERSMOOTHING * best <= ROUNDS[rung - 1]:
            break
    return int(best), int(fitted)


def main() -> None:
    """Fit all draws, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=12)
    parser.add_argument("--cell", default="", help="part of the name of the cells to run")
    asked = parser.parse_args()
    lines = []
    for n in (400, 1_500, 6_000):
        for n_arms in (2, 4):
            for assignment in ASSIGNMENTS:
                name = f"n={n}, {n_arms} arms, {assignment}"
                if asked.cell not in name:
                    continue
                rng = np.random.default_rng([n, n_arms, list(ASSIGNMENTS).index(assignment)])
                studies = [draw(n, n_arms, assignment, rng) for _ in range(asked.draws)]
                each = [errors(*study, n_arms, rng.permutation(n) % N_FOLDS) for study in studies]
                now, before = ([chosen(one, rungs) for one in each] for rungs in (RUNGS, RUNGS[1:]))
                differ = sum(a[0] != b[0] for a, b in zip(now, before, strict=True))
                fitted = [f"{np.mean([rounds for _, rounds in way]):.0f}" for way in (now, before)]
                lines.append([name, str(len(each)), str(differ), *fitted])
                print(lines[-1], flush=True)
    heading = ["cell", "draws", "other rounds chosen", "rounds fitted", "without the first rung"]
    table = markdown_table(heading, lines, set(heading[1:]))
    if not asked.cell:
        head = markdown_head("Rounds of boosted propensities that a few of them choose, beside more", machine())
        (RESULTS / "propensity_rounds.md").write_text(head + table, encoding="utf-8")
    print(table)


if __name__ == "__main__":
    main()
