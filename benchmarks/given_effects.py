"""Do intervals of effects on those whom rules give a treatment cover? Simulated trials with known effects.

    python benchmarks/given_effects.py --runs 200        # results/given_effects.md; 10 minutes on one core

Every run draws a trial of 400 people, two treatments by lot and three covariates. The effect is ``effect`` times the
sign of the first covariate (none under no effect), noise is standard normal. Rules of depth two are learnt and judged
by `cross_val_policy_value` (linear outcome models, 3 folds, 3 repetitions); `given_effects` then states the effect of
every treatment on those whom rules learnt without them give it. The truth is the mean true effect on these people.
Intervals of both treatments are to hold together in 95 % of runs (Bonferroni).
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from reporting import machine, markdown_head, markdown_table
from sklearn.linear_model import LinearRegression

from policytree import DRPolicyTree, Study, cross_val_policy_value
from policytree.evaluation.policy_value.given_effects import given_effects

RESULTS = Path(__file__).parent / "results"
EFFECTS, PEOPLE = (0.0, 0.15, 0.3), 400
HEADER = ("effect", "runs", "drug covered", "none covered", "both covered", "mean error", "SE / SD")


def run(seed: int, effect: float) -> dict[str, tuple[float, float, bool]]:
    """By treatment: error of the estimate, its standard error, and whether the interval covers."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(rng.normal(size=(PEOPLE, 3)), columns=list("abc"))
    gain = effect * np.sign(table["a"].to_numpy())
    arm = rng.permutation(np.repeat(["drug", "none"], PEOPLE // 2))
    table["arm"], table["score"] = arm, (arm == "drug") * gain + rng.normal(size=PEOPLE)
    study = Study(
        table, treatment="arm", outcome="score", direction="maximize", propensity={"drug": 0.5, "none": 0.5},
        control="none",
    )  # fmt: skip
    model = DRPolicyTree(LinearRegression(), max_depth=2, min_samples_leaf=20, cv=2, random_state=0, regularization=0.0)
    values = cross_val_policy_value(model, study, cv=3, n_repeats=3, random_state=seed)
    found = {}
    for each in given_effects(values):
        sign = 1.0 if each.treatment == "drug" else -1.0
        shown = [r.policy[values.judged] == each.treatment for r in values.repetitions]
        truth = sum(float(sign * gain[given].sum()) for given in shown) / sum(int(given.sum()) for given in shown)
        covered = bool(each.effect.lower <= truth <= each.effect.upper)
        found[each.treatment] = (each.effect.value - truth, each.effect.standard_error, covered)
    return found


def cell(effect: float, runs: int) -> tuple[str, ...]:
    """A row of the table."""
    found = [run(seed, effect) for seed in range(runs)]

    def share(hits: list[bool]) -> str:
        p = float(np.mean(hits))
        return f"{100 * p:.1f} ({100 * np.sqrt(p * (1 - p) / len(hits)):.1f}) %"

    covered = [share([each[arm][2] for each in found if arm in each]) for arm in ("drug", "none")]
    errors, sizes = (np.array([each[arm][k] for each in found for arm in each]) for k in (0, 1))
    both = share([all(hit for *_, hit in each.values()) for each in found])
    error = f"{errors.mean():+.4f} ({errors.std(ddof=1) / np.sqrt(len(errors)):.4f})"
    return (f"{effect:g}", str(runs), *covered, both, error, f"{np.sqrt((sizes**2).mean()) / errors.std(ddof=1):.2f}")


def main() -> None:
    """Run all cells and keep the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=200)
    runs = parser.parse_args().runs
    warnings.simplefilter("ignore")
    start, lines = time.process_time(), []
    for effect in EFFECTS:
        lines.append(cell(effect, runs))
        print(lines[-1], f"{time.process_time() - start:.0f} s", flush=True)
    head = markdown_head("Effects on those whom rules give a treatment", machine())
    (RESULTS / "given_effects.md").write_text(head + markdown_table(HEADER, lines), encoding="utf-8")


if __name__ == "__main__":
    main()
