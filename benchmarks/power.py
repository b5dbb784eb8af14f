"""How often does a verdict recommend something, and how often wrongly? Trials of a control and other treatments.

    python benchmarks/power.py                                # all cells: some five minutes of one core
    python benchmarks/power.py --cell "no effect, n=300" --runs 100 --output /tmp/power.md

Every run draws a trial (`simulated.py`, covariates in quarters of their standard deviation), judges least squares and
the exact tree of depth two by five repetitions of five folds, as `cross_val_policy_value` does (`light_pipeline.py`:
the same scores), and decides against the first treatment, the control, by `against_reference`. Treatments are fixed
rules, judged by the mean of each row's scores over the repetitions. "designed for 80 %": the effect is the one that a
two-sample test of what covariates leave of outcomes shows in 80 % of trials; "of outcomes": the usual plan, one that a
two-sample test of outcomes as they are shows in 80 %. In that last table rewards are `RewardEstimator`'s, averaged over
two repetitions, and all tests see the same trials, so that 80 plus a difference from the two-sample test is a share
with the smaller error of that difference.

Verdicts. "any": something else than the control is recommended; "treatment", "tree": what; "shown best": the tree is
shown better than every treatment; "wrong side": the interval of treatment - control lies wholly above or below the
truth. Where nothing works, "any" is the error of one side (2.5 percent allowed).

Variances of tree - control. "N + b (.3 + 1/R)" is the library's (`evaluation/estimates.py::value_factor`); "N": the
mean over repetitions of the pooled variance, that of one cross-fitted pass; "M + b": the variance of each row's mean
over the repetitions, and that between repetitions; "folds": of 25 folds' means, corrected for the correlation of their
training rows (Nadeau and Bengio 2003), ``(1 / 25 + 1 / 4) S^2``; "true": what simulations show, for a measure of what
could be regained. "covered": the interval holds the mean true difference of the rules judged; "above": it lies wholly
above it; "better": it lies above zero; "shown best": those to all treatments do. In brackets: Monte-Carlo errors.
"""

from __future__ import annotations

import argparse
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from light_pipeline import FOLDS, held_out_scores
from reporting import machine, markdown_head, markdown_table
from scipy.special import stdtrit
from scipy.stats import ttest_ind
from simulated import POPULATION, Cell, no_effect
from sklearn.linear_model import LinearRegression

from policytree import RewardEstimator
from policytree.evaluation.estimates import value_factor
from policytree.evaluation.inference.step_down import against_reference
from policytree.weighting.cluster_robust import covariance_of_means

RESULTS = Path(__file__).parent / "results" / "power.md"
DESIGNED = 2.8016 * 2  # over the root of n: the effect that n rows of unit variance show in 80 % of trials
LIBRARY = "N + b (.3 + 1/R)"


def constant(effect: float):
    """The second treatment gives everybody the same gain; further ones none."""
    return lambda X, n_arms: np.column_stack([effect * (k == 1) + 0 * X[:, 0] for k in range(n_arms)])


def crossed(gain: float):
    """The second treatment helps half of the people and harms the others as much; the best rule gains ``gain``."""
    return lambda X, n_arms: np.column_stack([0 * X[:, 0], 2 * gain * np.sign(X[:, 0])])


def null(name: str, n: int, n_arms: int = 2, **how) -> Cell:
    """A trial in which nothing works."""
    return Cell(f"no effect, {name}", n, n_arms, no_effect, rounded=True, **how)


def designed(n: int, name: str = "", effect: float = 1.0, **how) -> Cell:
    """A trial that was planned for its average effect, in terms of the one that rows of unit variance show."""
    return Cell(f"designed for 80 %, n={n}{name}", n, 2, constant(effect * DESIGNED / np.sqrt(n)), rounded=True, **how)


NULLS = (
    null("n=300", 300), null("n=1000", 1000), null("n=100", 100), null("4 arms, n=300", 300, 4),
    null("shares .7 and .3, n=300", 300, shares=(0.7, 0.3)), null("curved, skewed, n=300", 300, wavy=True, skewed=True),
    null("60 clusters of 25", 1500, cluster_size=25),
)  # fmt: skip
DESIGNS = (
    designed(300), designed(1000), designed(100), designed(300, ", slopes of noise", slope=0.0),
    designed(300, ", arms' means only", slope=0.0, learner="means"),
)  # fmt: skip
PLANNED = tuple(
    designed(300, f" of outcomes, covariates explain {explained:.0%}", effect=1 / np.sqrt(1 - explained), slope=slope)
    for explained in (0.0, 0.1, 0.3)
    for slope in (np.sqrt(explained / (1 - explained)),)
)
TREES = (
    Cell("gain .24, n=300", 300, 2, crossed(0.24), rounded=True),
    Cell("gain .14, n=1000", 1000, 2, crossed(0.14), rounded=True),
    Cell("gain .24, n=1000", 1000, 2, crossed(0.24), rounded=True),
)
CELLS = {cell.name: cell for cell in (*NULLS, *DESIGNS, *TREES)}
PLANS = {cell.name: cell for cell in PLANNED}
MODELS: dict[str, object] = {"least squares": LinearRegression(), "the default": "auto"}


def planned_run(cell: Cell, seed: int) -> dict[str, bool]:
    """Return which tests show the treatment better than the control in one trial."""
    study = cell.draw(np.random.default_rng([seed, sum(map(ord, cell.name))]))
    y, t = study["Y"], study["T"]
    shown = {"two-sample test": ttest_ind(y[t == 1], y[t == 0], alternative="greater").pvalue < 0.025}
    for name, model in MODELS.items():
        rewards = RewardEstimator(model, n_repeats=2, random_state=seed)
        scores = rewards.fit_predict(y, t, X=study["X"], propensity=study["propensity"]).to_numpy()
        gain = scores[:, 1] - scores[:, 0]
        found = Difference(gain.mean(), gain.std(ddof=1) / np.sqrt(cell.n), cell.n - 1)
        shown[name] = found.value > found.half_width
    return shown


def planned(results: dict[str, list[dict]]) -> str:
    """Table of trials planned for a test of outcomes."""
    lines = []
    for name, runs in results.items():
        shown = {test: np.array([run[test] for run in runs], float) for test in runs[0]}
        test = shown["two-sample test"]
        more = {model: shown[model] - test for model in MODELS}
        lines.append([
            name, str(len(runs)), share(test), *(share(shown[model]) for model in MODELS),
            *(f"{80 + 100 * d.mean():.1f} ({100 * d.std() / np.sqrt(len(d)):.1f})" for d in more.values()),
        ])  # fmt: skip
    names = ["cell", "runs", "two-sample test", *MODELS, *(f"80 + difference, {model}" for model in MODELS)]
    return markdown_table(names, lines, set(names[1:]))


def one_run(cell: Cell, seed: int) -> dict:
    """Estimates and covariances of one trial, from which verdicts by any variance follow. The tree is rule 0."""
    rng = np.random.default_rng([seed, sum(map(ord, cell.name))])
    study, (means, weight) = cell.draw(rng), cell.truth()
    held = held_out_scores(study, rng, linear=cell.learner != "means")
    scores, groups = held.scores, study.get("groups")
    shares = np.array([np.bincount(fold) / cell.n for fold in held.folds])
    folds = [[s[:, fold == k].mean(axis=1) for k in range(FOLDS)] for s, fold in zip(scores, held.folds, strict=True)]
    chosen = held.chosen(POPULATION)
    reached = sum((chosen == k) @ (weight * means[:, k]) for k in range(cell.n_arms))
    truths = weight @ means
    return {
        "target": float((shares * reached).sum(axis=1).mean() - truths[0]), "effect": float(truths[1] - truths[0]),
        "degrees": cell.n // cell.cluster_size - 1,
        "theta": scores.mean(axis=2), "within": np.array([covariance(s, groups) for s in scores]),
        "averaged": covariance(scores.mean(axis=0), groups), "folds": np.array(folds),
    }  # fmt: skip


def covariance(scores: np.ndarray, groups) -> np.ndarray:
    """Of the means of scores (rules, n)."""
    return covariance_of_means((scores - scores.mean(axis=1, keepdims=True)).T, np.ones(scores.shape[1]), groups)


@dataclass(frozen=True)
class Difference:
    """Estimate with the attributes that a closed test needs."""

    value: float
    standard_error: float
    degrees_of_freedom: int
    level: float = 0.95

    @property
    def half_width(self) -> float:
        """Half of the interval."""
        return float(stdtrit(self.degrees_of_freedom, 0.5 + self.level / 2)) * self.standard_error


def contrast(covariances: np.ndarray, a: int, b: int):
    """Variance of a difference, from a covariance matrix or several."""
    return covariances[..., a, a] + covariances[..., b, b] - 2 * covariances[..., a, b]


def parts(run: dict, a: int, b: int) -> dict[str, float]:
    """Estimates of the variance of rule ``a`` less rule ``b``."""
    between = (run["theta"][:, a] - run["theta"][:, b]).var(ddof=1)
    pooled, averaged = contrast(run["within"], a, b).mean(), contrast(run["averaged"], a, b)
    folds = run["folds"][..., a] - run["folds"][..., b]
    return {
        LIBRARY: pooled + value_factor(5, 5) * between, "N": pooled, "M + b": averaged + between,
        "folds": (1 / folds.size + 1 / 4) * folds.var(ddof=1),
    }  # fmt: skip


def difference(run: dict, a: int, b: int, kind: str = LIBRARY) -> Difference:
    """Rule ``a`` minus rule ``b``; rules that nobody learns have one estimate of the variance."""
    value = float((run["theta"][:, a] - run["theta"][:, b]).mean())
    variance = contrast(run["averaged"], a, b) if 0 not in (a, b) else parts(run, a, b)[kind]
    return Difference(value, float(np.sqrt(max(variance, 0.0))), run["degrees"])


def claims(n_rules: int, between: Callable[[int, int], Any]) -> dict[str, bool]:
    """Claims of a verdict against the control (rule 1) about the tree (rule 0) and the arms, from their differences."""
    names = ["tree", *(f"arm {k}" for k in range(n_rules - 1))]
    found = against_reference(
        "tree", names[2:], "arm 0", lambda a, b: between(names.index(a), names.index(b)), "maximize"
    )
    treatment = bool(found.shown) and not found.tree_best
    tree = found.tree_best or (found.tree and not found.shown)
    return {"any": treatment or tree, "treatment": treatment, "tree": tree, "shown best": found.tree_best}


def verdict(run: dict) -> dict[str, bool]:
    """Return the claims of a verdict against the control, and whether its first interval misses the truth."""
    first = difference(run, 2, 1)
    told = claims(run["theta"].shape[1], partial(difference, run))
    return {**told, "wrong side": abs(first.value - run["effect"]) > first.half_width}


def verdicts(runs: list[dict]) -> list[str]:
    """Cells of a line: shares with Monte-Carlo errors."""
    found = [verdict(run) for run in runs]
    return [share([each[name] for each in found]) for name in found[0]]


def share(found) -> str:
    """A percentage with its Monte-Carlo error."""
    p = float(np.mean(found))
    return f"{100 * p:.1f} ({100 * np.sqrt(p * (1 - p) / len(found)):.1f})"


def variances(runs: list[dict]) -> list[list[str]]:
    """A line for every variance of tree - control."""
    rules = range(1, runs[0]["theta"].shape[1])
    kinds = list(parts(runs[0], 0, 1))
    own = {kind: [[difference(run, 0, k, kind) for k in rules] for run in runs] for kind in kinds}
    errors = np.array([each[0].value - run["target"] for each, run in zip(own[LIBRARY], runs, strict=True)])
    true = errors.std() / np.mean([each[0].standard_error for each in own[LIBRARY]])
    own["true"] = [
        [Difference(d.value, true * d.standard_error, d.degrees_of_freedom) for d in each] for each in own[LIBRARY]
    ]
    lines = []
    for kind, found in own.items():
        half = np.array([each[0].half_width for each in found]) + 1e-9
        lower = np.array([[d.value - d.half_width for d in each] for each in found])
        ratio = np.mean([each[0].standard_error for each in found]) / errors.std()
        shares = (abs(errors) <= half, errors > half, lower[:, 0] > 0, (lower > 0).all(axis=1))
        lines.append([kind, *map(share, shares), f"{ratio:.2f} ({ratio / np.sqrt(2 * len(runs)):.2f})"])
    return lines


def save(results: dict[str, list[dict]], plans: dict[str, list[dict]], path: Path) -> str:
    """Both tables of all cells so far, as text."""
    names = ["cell", "runs", "any", "treatment", "tree", "shown best", "wrong side"]
    lines = [[name, str(len(runs)), *verdicts(runs)] for name, runs in results.items()]
    tables = f"## Verdicts\n\n{markdown_table(names, lines, set(names[1:]))}"
    names = ["cell", "variance", "covered", "above", "better", "shown best", "SE / SD"]
    learnt = {cell.name for cell in (*NULLS, *TREES)}
    lines = [[name, *line] for name, runs in results.items() if name in learnt for line in variances(runs)]
    tables += f"\n## Variances of tree - control\n\n{markdown_table(names, lines, set(names[2:]))}"
    if plans:
        tables += f"\n## Trials planned for a test of outcomes\n\n{planned(plans)}"
    about = (__doc__ or "").split("\n\n", 2)[-1].strip()
    path.write_text(f"{markdown_head('Power of verdicts (percent)', machine())}{about}\n\n{tables}", encoding="utf-8")
    return tables


def main(arguments: list[str] | None = None) -> None:
    """Run the cells asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--cell", action="append", choices=[*CELLS, *PLANS])
    parser.add_argument("--output", type=Path, default=RESULTS)
    parser.add_argument("--keep", type=Path, help="folder where runs are kept, and added to")
    options = parser.parse_args(arguments)
    results, plans = {}, {}
    for name in options.cell or [*CELLS, *PLANS]:
        kept, run, cell = (results, one_run, CELLS[name]) if name in CELLS else (plans, planned_run, PLANS[name])
        file = None if options.keep is None else options.keep / f"{name}.pickle"
        kept[name] = pickle.loads(file.read_bytes()) if file is not None and file.exists() else []
        kept[name] += [run(cell, seed) for seed in range(len(kept[name]), options.runs)]
        if file is not None:
            file.write_bytes(pickle.dumps(kept[name]))
        print(name, len(kept[name]), flush=True)
    print(save(results, plans, options.output))


if __name__ == "__main__":
    main()
