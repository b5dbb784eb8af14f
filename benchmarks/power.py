"""How often does a verdict recommend something, and how often wrongly? Trials of a control and other treatments.

    python benchmarks/power.py                    # all cells, 300 runs each: some 20 minutes on one core
    python benchmarks/power.py --cell null300 --runs 100

Every run draws a trial (`simulated.py`), judges a light learner (`LinearLearner`, depth two) by five repetitions of
five folds, and decides against the first treatment, the control. "any": something else than the control is recommended;
"treatment", "tree": what; "shown best": the tree is shown better than every treatment. Where nothing works, "any" is
the error of one side (2.5 percent allowed). "covered": the interval of tree - control holds the mean true difference of
the rules judged; with the variance N + b (kappa 1), and with kappa = .3 + 1 / R, which the library takes
(`evaluation/estimates.py::value_factor`). In brackets: Monte-Carlo errors.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from held_out_coverage import targets
from reporting import machine, markdown_head, markdown_table
from simulated import Cell, LinearLearner, no_effect, unwatched

from policytree import cross_val_policy_value
from policytree.evaluation.estimates import mean_estimate, value_factor
from policytree.evaluation.inference.step_down import against_reference

RESULTS = Path(__file__).parent / "results" / "power.md"
DESIGNED = 2.8016 * 2 / np.sqrt(300)  # the effect that 300 rows of unit variance show in 80 % of trials


def constant(effect: float):
    """The second treatment gives everybody the same gain; further ones none."""
    return lambda X, n_arms: np.column_stack([effect * (k == 1) + 0 * X[:, 0] for k in range(n_arms)])


def crossed(gain: float):
    """The second treatment helps half of the people and harms the others as much; the best rule gains ``gain``."""
    return lambda X, n_arms: np.column_stack([0 * X[:, 0], 2 * gain * np.sign(X[:, 0])])


CELLS = {
    "null300": Cell("null300", 300, 2, no_effect),
    "null1000": Cell("null1000", 1000, 2, no_effect),
    "null300x4": Cell("null300x4", 300, 4, no_effect),
    "power300": Cell("power300", 300, 2, constant(DESIGNED)),
    "cross300": Cell("cross300", 300, 2, crossed(0.24)),
    "cross1000a": Cell("cross1000a", 1000, 2, crossed(0.14)),
    "cross1000b": Cell("cross1000b", 1000, 2, crossed(0.24)),
}
WORDS = {
    "null300": "no effect, n=300", "null1000": "no effect, n=1000", "null300x4": "no effect, 4 arms, n=300",
    "power300": "designed for 80 %, n=300", "cross300": "gain .24, n=300", "cross1000a": "gain .14, n=1000",
    "cross1000b": "gain .24, n=1000",
}  # fmt: skip


def one_run(cell: Cell, seed: int) -> dict:
    """Estimates and variances of one trial, from which verdicts of any ``kappa`` follow."""
    rng = np.random.default_rng([seed, sum(map(ord, cell.name))])
    study, (means, weight) = cell.draw(rng), cell.truth()
    Y, T = study.pop("Y"), study.pop("T")
    table = cross_val_policy_value(LinearLearner(2), Y, T, **study, random_state=seed)
    names = ["policy tree", *(f"always {k}" for k in range(cell.n_arms))]
    scores = np.array([[r.scores[name] for name in names] for r in table.repetitions])
    pairs = range(len(names))

    def variance(of: np.ndarray, a: int, b: int) -> float:
        return mean_estimate(of[a] - of[b]).standard_error ** 2 if a != b else 0.0

    return {
        "target": targets(table, means, weight, table.repetitions), "truths": weight @ means, "theta": scores.mean(2),
        "s2": np.array([[[variance(each, a, b) for b in pairs] for a in pairs] for each in scores]),
        "navg": np.array([[variance(scores.mean(0), a, b) for b in pairs] for a in pairs]),
    }  # fmt: skip


@dataclass(frozen=True)
class Difference:
    """What a closed test asks of an estimate."""

    value: float
    standard_error: float
    level: float = 0.95
    degrees_of_freedom: int = 10**6


def difference(run: dict, a: int, b: int, kappa: float) -> Difference:
    """Rule ``a`` minus rule ``b``; the tree is rule 0, and rules that nobody learns have no ``kappa``."""
    each = run["theta"][:, a] - run["theta"][:, b]
    within = run["navg"][a, b] if 0 not in (a, b) else run["s2"][:, a, b].mean() + kappa * each.var(ddof=1)
    return Difference(float(each.mean()), float(np.sqrt(within)))


def judged(run: dict, kappa: float) -> dict[str, float]:
    """What a verdict against the control says, and whether the interval of tree - control covers."""
    names = ["tree", *(f"arm {k}" for k in range(run["theta"].shape[1] - 1))]

    def between(a: str, b: str) -> Difference:
        return difference(run, names.index(a), names.index(b), kappa)

    found = against_reference("tree", names[2:], "arm 0", between, "maximize")
    own = between("tree", "arm 0")
    error = abs(own.value - (run["target"] - run["truths"][0]))
    treatment = bool(found.shown) and not found.tree_best
    tree = found.tree_best or (found.tree and not found.shown)
    return {
        "any": treatment or tree, "treatment": treatment, "tree": tree, "shown best": found.tree_best,
        "covered": error <= 1.959964 * own.standard_error + 1e-9, "SE": own.standard_error,
        "error": own.value - (run["target"] - run["truths"][0]),
    }  # fmt: skip


def summary(name: str, runs: list[dict]) -> list[list[str]]:
    """Lines of the table for a cell."""
    out = []
    for label, kappa in ((".3 + 1/R", value_factor(5, 5)), ("1", 1.0)):
        found = [judged(run, kappa) for run in runs]
        line = [WORDS[name], label, str(len(runs))]
        for column in ("any", "treatment", "tree", "shown best", "covered"):
            p = np.mean([each[column] for each in found])
            line.append(f"{100 * p:.1f} ({100 * np.sqrt(p * (1 - p) / len(runs)):.1f})")
        ratio = np.mean([each["SE"] for each in found]) / np.std([each["error"] for each in found])
        out.append([*line, f"{ratio:.2f}"])
    return out


def save(results: dict[str, list[dict]], path: Path) -> None:
    """All cells so far."""
    names = ["cell", "kappa", "runs", "any", "treatment", "tree", "shown best", "covered", "SE / SD"]
    lines = [line for name, runs in results.items() for line in summary(name, runs)]
    head = markdown_head("Recommended, and covered (percent)", machine())
    about = (__doc__ or "").split("\n\n")[-1].replace("\n", " ").strip()
    path.write_text(f"{head}{about}\n\n{markdown_table(names, lines, set(names[2:]))}", encoding="utf-8")


def main(arguments: list[str] | None = None) -> None:
    """Run the cells asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=300)
    parser.add_argument("--cell", action="append", choices=list(CELLS))
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    results = {}
    for name in options.cell or CELLS:
        with unwatched():
            results[name] = [one_run(CELLS[name], seed) for seed in range(options.runs)]
        save(results, options.output)
        print("\n".join(" | ".join(line) for line in summary(name, results[name])), flush=True)


if __name__ == "__main__":
    main()
