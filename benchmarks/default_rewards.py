"""Cost of the default rewards: regret of exact trees, coverage of average effects, seconds; simulated, truth known.

    python benchmarks/default_rewards.py                        # all designs, 100 draws each: half an hour on one core
    python benchmarks/default_rewards.py --design "three arms" --n 1000 --draws 20
    python benchmarks/default_rewards.py --grf ../shared/data/reference/grf_regrets.csv   # on the draws of a file

Every draw is learnt from twice: by the defaults, and by what the defaults were before (outcome models of each arm alone
that tune themselves by inner cross-validation, a slightly penalised logit). `regret`: a tree of depth two, judged by
the true means of new rows against the best such tree. `covered`: whether the 95 % interval of the average effect of
every arm against the first holds the truth. `false better`: without any effect, how often a fixed rule is called better
than both arms. Results: `benchmarks/results/default_rewards.md`.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from reporting import machine, markdown_head, markdown_table

from policytree import PolicyTree, RewardEstimator, policy_value
from policytree.weighting.learners import OutcomeClassifier, OutcomeRegressor, propensity_learner

sys.path.insert(0, str(Path(__file__).parents[1] / "case_studies"))
from simulations.designs import three_arms, three_arms_no_effect
from simulations.learning import truth_of

RESULTS = Path(__file__).parent / "results"
NEW_ROWS, TRUTH_ROWS, DEPTH = 15_000, 400_000, 2
WHAT = """\
`python benchmarks/default_rewards.py`: the default rewards and what they were before (outcome models of each arm alone
with inner cross-validation, a slightly penalised logit), on the same draws. Regret of an exact tree of depth two; share
of 95 % intervals of average effects (every arm against the first) that hold the truth, and their bias; how often a
fixed rule is called better than both arms where nothing has an effect; processor seconds of the rewards (median).
Standard errors in brackets.

"""


@dataclass(frozen=True)
class Study:
    """A design: covariates, and from them chances of the arms (n, K) and mean outcomes (n, K).

    Attributes
    ----------
    noise : float or None
        Standard deviation of the outcome; None: outcomes are 0 or 1 with these means.
    trial : bool
        Whether the chances are told to the learner.
    rule : callable, or None
        A fixed rule, X -> arms, for designs without effects.
    """

    name: str
    sizes: tuple[int, ...]
    covariates: Callable
    chances: Callable
    means: Callable
    noise: float | None = 1.0
    trial: bool = False
    rule: Callable | None = None

    def draw(self, n: int, rng: np.random.Generator):
        """X, T, Y of a study."""
        X = self.covariates(n, rng)
        chances, means = self.chances(X), self.means(X)
        T = (rng.uniform(size=n)[:, None] > chances.cumsum(axis=1)).sum(axis=1)
        mean = means[np.arange(n), T]
        Y = (rng.uniform(size=n) < mean).astype(float) if self.noise is None else mean + self.noise * rng.normal(size=n)
        return X, T, Y


def _logistic(x):
    return 1.0 / (1.0 + np.exp(-x))


def _two(p):
    return np.column_stack([1.0 - p, p])


def _softmax(*logits):
    odds = np.exp(np.column_stack(logits))
    return odds / odds.sum(axis=1, keepdims=True)


def _normal(p):
    return lambda n, rng: rng.normal(size=(n, p))


def _even(X):
    return np.full((len(X), 2), 0.5)


def _confounder(X):
    return np.sin(2.0 * X[:, 0]) + 0.5 * X[:, 1] * X[:, 2]


def _published(design, sizes, rule=None):
    return Study(design.name, sizes, design.covariates, design.chances, design.means, design.noise, rule=rule)


def _nonlinear(X):
    base, effect = _confounder(X), 0.5 * np.sign(X[:, 3])
    return np.column_stack([base - effect / 2.0, base + effect / 2.0])


def _binary(X):
    base = -0.5 + 0.7 * X[:, 0] + 0.5 * (X[:, 2] > 0) * X[:, 1]
    return _logistic(base[:, None] + np.column_stack([np.zeros(len(X)), 0.8 * (X[:, 3] > 0) - 0.2, 0.5 * X[:, 1]]))


def _alternating(X):
    """Confounding whose sign alternates, so that averages are right and rules are not."""
    return np.sign(np.sin(2.5 * X[:, 0]))


STUDIES = (
    _published(three_arms(), (1_000, 2_500)),
    _published(three_arms_no_effect(), (1_000,), lambda X: (X[:, 4] < 0.6).astype(int)),
    Study("nonlinear confounding", (1_000,), _normal(6), lambda X: _two(_logistic(0.4 * _confounder(X))), _nonlinear),
    Study(
        "binary outcome, three arms",
        (1_000,),
        _normal(8),
        lambda X: _softmax(np.zeros(len(X)), 0.6 * X[:, 0], 0.6 * X[:, 1] * (X[:, 2] > 0)),
        _binary,
        None,
    ),
    Study(
        "sign-varying confounding, no effect",
        (1_000,),
        _normal(5),
        lambda X: _two(_logistic(0.6 * _alternating(X) * np.sign(X[:, 1]))),
        lambda X: np.repeat(0.5 * _alternating(X)[:, None], 2, axis=1),
        rule=lambda X: (X[:, 1] > 0).astype(int),
    ),
    Study(
        "50 covariates, few matter, trial",
        (500,),
        _normal(50),
        _even,
        lambda X: np.column_stack([X[:, 0], X[:, 0] + np.sign(X[:, 1]) * (X[:, 2] > -0.5)]),
        trial=True,
    ),
    Study(
        "linear, trial",
        (300, 500),
        _normal(6),
        _even,
        lambda X: np.column_stack([X[:, 0] + X[:, 1], X[:, 0] + X[:, 1] + 0.4 * X[:, 2] + 0.2]),
        trial=True,
    ),
    Study(
        "steps, trial",
        (200, 300),
        _normal(6),
        _even,
        lambda X: np.column_stack([X[:, 0], X[:, 0] + 0.6 * np.where((X[:, 1] > 0) & (X[:, 2] > 0), 1.0, -0.5)]),
        trial=True,
    ),
)


def learners(binary: bool, seed: int) -> dict[str, RewardEstimator]:
    """The defaults now, and as they were."""
    outcome = (OutcomeClassifier if binary else OutcomeRegressor)(random_state=seed)
    return {
        "default": RewardEstimator(random_state=seed),
        "before": RewardEstimator(outcome, propensity_learner(), random_state=seed),
    }


@dataclass(frozen=True)
class Truth:
    """New rows, their means, the value of the best tree of depth two on them, and average outcomes."""

    X: np.ndarray
    means: np.ndarray
    best: float
    average: np.ndarray

    @classmethod
    def of(cls, study: Study) -> Truth:
        """Compute it for a design, always on the same rows."""
        rng = np.random.default_rng(99)
        many, X = study.covariates(TRUTH_ROWS, rng), study.covariates(NEW_ROWS, rng)
        means, known = study.means(X), study.means(many[:10_000])
        rule = PolicyTree(max_depth=DEPTH, max_bins=64).fit(many[:10_000], known)
        best = means[np.arange(NEW_ROWS), np.asarray(rule.predict(X)).astype(int)].mean()
        return cls(X, means, float(best), study.means(many).mean(axis=0))

    def regret(self, tree) -> float:
        """Return the best tree's mean outcome less this tree's."""
        arms = np.asarray(tree.predict(self.X)).astype(int)
        return self.best - float(self.means[np.arange(len(arms)), arms].mean())


def run(study: Study, n: int, draw: int, truth: Truth, learners=learners) -> list[dict]:
    """One draw, learnt from by each of the learners (of whether outcomes are binary, and a seed)."""
    X, T, Y = study.draw(n, np.random.default_rng([2026, n, draw]))
    rows = []
    for name, estimator in learners(study.noise is None, draw).items():
        started = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            propensity = study.chances(X[:1])[0] if study.trial else None
            rewards = estimator.fit_predict(Y, T, X=X, propensity=propensity)
        seconds = time.process_time() - started
        tree = PolicyTree(max_depth=DEPTH).fit(X, rewards)
        effects = [policy_value(k, rewards, baseline=0) for k in range(1, rewards.shape[1])]
        true = [truth.average[k] - truth.average[0] for k in range(1, rewards.shape[1])]
        row = {
            "design": study.name, "n": n, "draw": draw, "rewards": name, "regret": truth.regret(tree),
            "covered": np.mean([e.lower <= t <= e.upper for e, t in zip(effects, true, strict=True)]),
            "bias": np.mean([e.value - t for e, t in zip(effects, true, strict=True)]), "seconds": seconds,
        }  # fmt: skip
        if study.rule is not None:
            rule = study.rule(X)
            row["false better"] = all(
                policy_value(rule, rewards, baseline=k).lower > 0 for k in range(rewards.shape[1])
            )
        rows.append(row)
    return rows


def table(found: pd.DataFrame, against: str = "before") -> pd.DataFrame:
    """Means over the draws with their standard errors, and the regret less that of a learner on the same draws."""
    out = []
    for (design, n), part in found.groupby(["design", "n"], sort=False):
        wide = part.pivot(index="draw", columns="rewards", values="regret")
        for name in sorted(wide, key=lambda name: name != against):
            own, gain = part[part["rewards"] == name], wide[name] - wide[against]
            false = own["false better"].dropna().astype(float) if "false better" in own else ()
            share = f"{100 * np.mean(false):.0f} %" if len(false) else ""
            out.append({
                "design": design, "n": n, "draws": len(wide), "rewards": name,
                "regret": f"{own['regret'].mean():.3f} ({own['regret'].sem():.3f})",
                f"less {against}": "" if name == against else f"{gain.mean():+.3f} ({gain.sem():.3f})",
                "covered": f"{100 * own['covered'].mean():.0f} %", "bias": f"{own['bias'].mean():+.3f}",
                "false better": share, "seconds": f"{own['seconds'].median():.2f}",
            })  # fmt: skip
    return pd.DataFrame(out)


def beside_grf(published: pd.DataFrame) -> pd.DataFrame:
    """Regret of the defaults on draws of which a file has that of grf's scores (columns n, run, grf), and the pairs."""
    design, rows = three_arms(), []
    truth = truth_of(design, np.random.default_rng(99), n_new=NEW_ROWS)
    for line in published.itertuples():
        drawn = design.draw(line.n, np.random.default_rng([line.run, line.n]))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            rewards = RewardEstimator(random_state=line.run).fit_predict(drawn.Y, drawn.T, X=drawn.X)
        tree = PolicyTree(max_depth=DEPTH).fit(drawn.X, rewards)
        regret = truth.regret(np.asarray(tree.predict(truth.X)).astype(int))
        rows.append({"n": line.n, "default": regret, "grf": line.grf, "default less grf": regret - line.grf})
    groups = pd.DataFrame(rows).groupby("n")
    means, errors = groups.mean().map("{:+.3f}".format), groups.sem().map(" ({:.3f})".format)
    return (means + errors).assign(draws=groups.size()).reset_index()


def main() -> None:
    """Run the designs asked for; results are printed after every design and saved if all were asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--design", choices=[study.name for study in STUDIES])
    parser.add_argument("--n", type=int)
    parser.add_argument("--draws", type=int, default=100)
    parser.add_argument("--first", type=int, default=0, help="number of the first draw: others than those of the table")
    parser.add_argument("--grf", type=Path, help="a table of grf's regrets: the same draws, nothing else")
    asked = parser.parse_args()
    if asked.grf is not None:
        print(beside_grf(pd.read_csv(asked.grf)).to_string(index=False))
        return
    found: list[dict] = []
    for study in STUDIES:
        if asked.design not in (None, study.name):
            continue
        truth = Truth.of(study)
        for n in study.sizes if asked.n is None else (asked.n,):
            own = [row for draw in range(asked.first, asked.first + asked.draws) for row in run(study, n, draw, truth)]
            found += own
            print(table(pd.DataFrame(own)).to_string(index=False), flush=True)
    if asked.design is None and asked.n is None:
        lines = table(pd.DataFrame(found)).astype(str)
        text = markdown_head("Default rewards", machine()) + WHAT + markdown_table(list(lines), lines.values.tolist())
        (RESULTS / "default_rewards.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
