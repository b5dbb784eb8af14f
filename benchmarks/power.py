"""How often does a verdict recommend something, and how often wrongly? Trials of a control and other treatments.

    python benchmarks/power.py                                # all cells: some 15 minutes of one core
    python benchmarks/power.py --cell "no effect, n=300" --runs 100 --output /tmp/power.md

Every run draws a trial (`simulated.py`, covariates in tenths), judges least squares and the exact tree of depth two by
five repetitions of five folds, as `cross_val_policy_value` does (`light_pipeline.py`: the same scores), and decides
against the first treatment, the control, by `against_reference`.

Treatments are fixed rules, judged by the mean of each row's scores over the repetitions. "designed for 80 %": the
effect is the one that a two-sample test of what covariates leave of outcomes shows in 80 % of trials. Of the tree's
variance there are several estimates; "N + b (.3 + 1/R)" is the library's (`evaluation/estimates.py::value_factor`):

- **N**: the mean over repetitions of the pooled variance; one cross-fitted pass, with the point averaged.
- **N + b**: and all of the variance between repetitions.
- **M + 2b**: the variance of each row's mean over the repetitions, and twice that between them.
- **folds**: of 25 folds' means, corrected for the correlation of their training rows (Nadeau and Bengio 2003):
  ``(1 / 25 + 1 / 4) S^2``.
- **true**: the standard error that simulations show, for a measure of what could be regained.

"any": something else than the control is recommended; "treatment", "tree": what; "shown best": the tree is shown better
than every treatment. Where nothing works, "any" is the error of one side (2.5 percent allowed). "covered": the interval
of tree - control holds the mean true difference of the rules judged; "above": the interval lies wholly above it. In
brackets: Monte-Carlo errors.
"""

from __future__ import annotations

import argparse
import pickle
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from light_pipeline import FOLDS, held_out_scores
from reporting import machine, markdown_head, markdown_table
from scipy.special import stdtrit
from simulated import POPULATION, Cell, no_effect

from policytree.evaluation.estimates import value_factor
from policytree.evaluation.inference.step_down import against_reference
from policytree.weighting.cluster_robust import covariance_of_means

RESULTS = Path(__file__).parent / "results" / "power.md"
DESIGNED = 2.8016 * 2  # over the root of n: the effect that n rows of unit variance show in 80 % of trials


def constant(effect: float):
    """The second treatment gives everybody the same gain; further ones none."""
    return lambda X, n_arms: np.column_stack([effect * (k == 1) + 0 * X[:, 0] for k in range(n_arms)])


def crossed(gain: float):
    """The second treatment helps half of the people and harms the others as much; the best rule gains ``gain``."""
    return lambda X, n_arms: np.column_stack([0 * X[:, 0], 2 * gain * np.sign(X[:, 0])])


def null(name: str, n: int, n_arms: int = 2, **how) -> Cell:
    """A trial in which nothing works."""
    return Cell(f"no effect, {name}", n, n_arms, no_effect, rounded=True, **how)


def designed(n: int, name: str = "", **how) -> Cell:
    """A trial that was planned for its average effect."""
    return Cell(f"designed for 80 %, n={n}{name}", n, 2, constant(DESIGNED / np.sqrt(n)), rounded=True, **how)


NULLS = (
    null("n=300", 300), null("n=1000", 1000), null("n=100", 100), null("4 arms, n=300", 300, 4),
    null("shares .7 and .3, n=300", 300, shares=(0.7, 0.3)), null("curved, skewed, n=300", 300, wavy=True, skewed=True),
    null("60 clusters of 25", 1500, cluster_size=25),
)  # fmt: skip
DESIGNS = (
    designed(300), designed(1000), designed(100), designed(300, ", slopes of noise", slope=0.0),
    designed(300, ", arms' means only", slope=0.0, learner="means"),
)  # fmt: skip
TREES = (
    Cell("gain .24, n=300", 300, 2, crossed(0.24), rounded=True),
    Cell("gain .14, n=1000", 1000, 2, crossed(0.14), rounded=True),
    Cell("gain .24, n=1000", 1000, 2, crossed(0.24), rounded=True),
)
CELLS = {cell.name: cell for cell in (*NULLS, *DESIGNS, *TREES)}


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
    return {
        "target": float((shares * reached).sum(axis=1).mean() - weight @ means[:, 0]),
        "degrees": cell.n // cell.cluster_size - 1,
        "theta": scores.mean(axis=2), "within": np.array([covariance(s, groups) for s in scores]),
        "averaged": covariance(scores.mean(axis=0), groups), "folds": np.array(folds),
    }  # fmt: skip


def covariance(scores: np.ndarray, groups) -> np.ndarray:
    """Of the means of scores (rules, n)."""
    return covariance_of_means((scores - scores.mean(axis=1, keepdims=True)).T, np.ones(scores.shape[1]), groups)


@dataclass(frozen=True)
class Difference:
    """What a closed test asks of an estimate."""

    value: float
    standard_error: float
    degrees_of_freedom: int
    level: float = 0.95


def contrast(covariances: np.ndarray, a: int, b: int):
    """Variance of a difference, from a covariance matrix or several."""
    return covariances[..., a, a] + covariances[..., b, b] - 2 * covariances[..., a, b]


def parts(run: dict, a: int, b: int) -> dict[str, float]:
    """Estimates of the variance of rule ``a`` less rule ``b``."""
    between = (run["theta"][:, a] - run["theta"][:, b]).var(ddof=1)
    pooled, averaged = contrast(run["within"], a, b).mean(), contrast(run["averaged"], a, b)
    folds = run["folds"][..., a] - run["folds"][..., b]
    return {
        "N + b (.3 + 1/R)": pooled + value_factor(5, 5) * between, "N": pooled, "N + b": pooled + between,
        "M + 2b": averaged + 2 * between, "folds": (1 / folds.size + 1 / 4) * folds.var(ddof=1),
    }  # fmt: skip


def difference(run: dict, a: int, b: int, kind: str, scale: float = 1.0) -> Difference:
    """Rule ``a`` minus rule ``b``; rules that nobody learns have one estimate of the variance."""
    value = float((run["theta"][:, a] - run["theta"][:, b]).mean())
    fixed = 0 not in (a, b)
    variance = contrast(run["averaged"], a, b) if fixed else scale**2 * parts(run, a, b)[kind]
    return Difference(value, float(np.sqrt(max(variance, 0.0))), run["degrees"])


def judged(run: dict, kind: str, scale: float = 1.0) -> dict[str, float]:
    """What a verdict against the control says, and whether the interval of tree - control covers."""
    names = ["tree", *(f"arm {k}" for k in range(run["theta"].shape[1] - 1))]

    def between(a: str, b: str) -> Difference:
        return difference(run, names.index(a), names.index(b), kind, scale)

    found = against_reference("tree", names[2:], "arm 0", between, "maximize")
    own = between("tree", "arm 0")
    treatment = bool(found.shown) and not found.tree_best
    tree = found.tree_best or (found.tree and not found.shown)
    error, half = own.value - run["target"], stdtrit(run["degrees"], 0.975) * own.standard_error + 1e-9
    return {
        "any": treatment or tree, "treatment": treatment, "tree": tree, "shown best": found.tree_best,
        "covered": abs(error) <= half, "above": error > half, "SE": own.standard_error, "error": error,
    }  # fmt: skip


SHARES = ("any", "treatment", "tree", "shown best", "covered", "above")
KINDS = ("N + b (.3 + 1/R)", "N", "N + b", "M + 2b", "folds")


def summary(name: str, runs: list[dict], kinds=KINDS) -> list[list[str]]:
    """Lines of the table for a cell."""
    out = []
    found = [judged(run, kinds[0]) for run in runs]
    true = np.std([each["error"] for each in found]) / np.mean([each["SE"] for each in found])
    for kind in (*kinds, "true"):
        how = (kinds[0], true) if kind == "true" else (kind, 1.0)
        found = [judged(run, *how) for run in runs]
        line = [name, kind, str(len(runs))]
        for column in SHARES:
            p = np.mean([each[column] for each in found])
            line.append(f"{100 * p:.1f} ({100 * np.sqrt(p * (1 - p) / len(runs)):.1f})")
        ratio = np.mean([each["SE"] for each in found]) / np.std([each["error"] for each in found])
        out.append([*line, f"{ratio:.2f}"])
    return out


def save(lines: list[list[str]], path: Path) -> None:
    """All cells so far."""
    names = ["cell", "variance", "runs", *SHARES, "SE / SD"]
    head = markdown_head("Recommended, and covered (percent)", machine())
    about = (__doc__ or "").split("\n\n", 2)[-1].strip()
    path.write_text(f"{head}{about}\n\n{markdown_table(names, lines, set(names[2:]))}", encoding="utf-8")


def main(arguments: list[str] | None = None) -> None:
    """Run the cells asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--cell", action="append", choices=list(CELLS))
    parser.add_argument("--output", type=Path, default=RESULTS)
    parser.add_argument("--keep", type=Path, help="folder for the runs themselves")
    options = parser.parse_args(arguments)
    lines: list[list[str]] = []
    for name in options.cell or CELLS:
        runs = [one_run(CELLS[name], seed) for seed in range(options.runs)]
        if options.keep:
            (options.keep / f"{name}.pickle").write_bytes(pickle.dumps(runs))
        lines += summary(name, runs)
        save(lines, options.output)
        print("\n".join(" | ".join(line) for line in lines[-len(KINDS) - 1 :]), flush=True)


if __name__ == "__main__":
    main()
