"""Instruments: rules beside those of Athey and Wager, and coverage of effects and held-out values; simulated.

    python benchmarks/instruments.py --list
    python benchmarks/instruments.py --cell "continuous 500" --runs 100     # some minutes on one core
    python benchmarks/instruments.py --table                                # from what was kept so far

Cells named "continuous" and "jump" are figure 2 of Athey and Wager (2021): rules of depth two, judged on new people.
Those named "coverage" hold intervals of averages against their truth, those named "held out" the value of stumps by
`cross_val_policy_value`, from linear models. Their people choose for reasons that bear on the outcome; two or four
offers depend on covariates, and move more people the better they are. Every run is kept in
`benchmarks/results/instruments.csv`; a cell that is asked for again goes on where it ended.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pandas as pd
from reporting import RESULTS, Simulation, with_error, write_tables
from scipy.special import expit, ndtr, softmax
from sklearn.linear_model import LinearRegression, LogisticRegression

from policytree import DRPolicyTree, PolicyTree, RewardEstimator, cross_val_policy_value, policy_value
from policytree.evaluation import instrument_summary
from policytree.exceptions import InputError
from policytree.weighting.study_data import StudyData

NEW_ROWS = 20_000
ROUNDING = 1e-9  # of means that are added up in another order
PUBLISHED = {  # Athey and Wager (2021), figure 2: means of 200 runs, and their Monte-Carlo errors
    "continuous 500": (0.069, 0.006), "continuous 1000": (0.111, 0.006),
    "continuous 2000": (0.165, 0.006), "continuous 4000": (0.220, 0.005),
    "jump 500": (0.041, 0.007), "jump 1000": (0.079, 0.009),
    "jump 2000": (0.213, 0.013), "jump 4000": (0.377, 0.009),
}  # fmt: skip


# --- designs: covariates, offer, treatment, outcome; effect and uptake under every offer, given the covariates ---


@dataclass(frozen=True)
class Draw:
    """A simulated study, and what is true of its rows."""

    X: np.ndarray
    offer: np.ndarray
    T: np.ndarray
    Y: np.ndarray
    effect: np.ndarray
    uptake: np.ndarray


def athey_wager(n: int, jump: bool, rng: np.random.Generator) -> Draw:
    """Their design: an offer, which nobody is kept by from what others refuse."""
    X, hidden = rng.normal(size=(n, 10)), rng.normal(size=n)
    offer = rng.binomial(1, expit(X[:, 2]))
    taken = offer * rng.binomial(1, expit(hidden + X[:, 3]))
    continuous = (np.maximum(0, X[:, 0]) + np.maximum(0, X[:, 1]) - 1) / 2
    effect = np.sign(X[:, 0] * X[:, 1]) / 2 if jump else continuous
    outcome = np.maximum(0, X[:, 2] + X[:, 3]) + taken * effect + hidden
    nodes, weights = np.polynomial.hermite_e.hermegauss(21)
    takes = expit(nodes[None] + X[:, [3]]) @ (weights / weights.sum())
    return Draw(X, offer, taken, outcome, effect, np.column_stack([np.zeros(n), takes]))


def own(n: int, offers: int, strength: float, rng: np.random.Generator) -> Draw:
    """Two or four offers; some take the treatment unasked, some whatever they are offered never do."""
    X, hidden = rng.normal(size=(n, 5)), rng.normal(size=n)
    tilt = np.linspace(0.0, 1.0, offers)
    chances = softmax(0.5 * X[:, [0]] * tilt, axis=1)
    offer = (rng.random(n)[:, None] > np.cumsum(chances, axis=1)).sum(axis=1)
    lift = np.column_stack([-1.2 + t * (1.8 + 0.5 * X[:, 1]) for t in tilt])
    resistance = 0.8 * hidden + 0.6 * rng.normal(size=n)  # standard normal
    taken = (resistance < lift[np.arange(n), offer]).astype(int)
    effect = strength * (0.3 + np.clip(X[:, 1], -1.5, 1.5))
    outcome = X[:, 0] + 0.5 * X[:, 2] + taken * effect + hidden + 0.5 * rng.normal(size=n)
    return Draw(X, offer, taken, outcome, effect, ndtr(lift))


@dataclass(frozen=True)
class Cell:
    """Settings of a simulation."""

    n: int
    jump: bool | None = None
    offers: int = 2
    strength: float = 1.0
    held_out: str | None = None

    def draw(self, rng: np.random.Generator, n: int | None = None) -> Draw:
        """A study, of so many rows."""
        n = self.n if n is None else n
        return own(n, self.offers, self.strength, rng) if self.jump is None else athey_wager(n, self.jump, rng)


CELLS = {f"{name} {n}": Cell(n, jump) for name, jump in (("continuous", False), ("jump", True))
         for n in (500, 1000, 2000, 4000)}  # fmt: skip
EFFECTS = {"effect": 1.0, "no effect": 0.0}
CELLS |= {f"coverage: {name}, {m} offers": Cell(1000, offers=m, strength=s)
          for name, s in EFFECTS.items() for m in (2, 4)}  # fmt: skip
CELLS |= {f"held out: {name}, {m} offers, {who}": Cell(1000, offers=m, strength=s, held_out=who)
          for who in ("compliers", "all") for name, s in EFFECTS.items() for m in (2, 4)}  # fmt: skip


def holds(estimate, target: float) -> bool:
    """Whether an interval holds the truth."""
    return estimate.lower - ROUNDING <= target <= estimate.upper + ROUNDING


def run_rules(cell: Cell, draw: int) -> dict:
    """Measure the value of rules of depth two for new people, by both kinds of rewards and their mean."""
    data, new = cell.draw(np.random.default_rng([1, draw])), cell.draw(np.random.default_rng([2, draw]), NEW_ROWS)
    start = time.process_time()
    model = RewardEstimator(method="instrument", random_state=draw)
    effects = model.fit_predict(StudyData.of(data.Y, data.T, X=data.X, instrument=data.offer))[1].to_numpy()
    seconds = time.process_time() - start
    per_person = model.offer_rewards_.to_numpy() @ model.first_stage_.weights  # as estimand="compliers" has it
    out = {"seconds": seconds}
    compliance = np.clip(model.compliance_.to_numpy(), model.min_compliance, None)
    between = effects * compliance / compliance.mean()  # effects of everybody, weighted by their compliance
    for name, rewards in (("compliers", per_person), ("all", effects), ("weighted", between)):
        tree = PolicyTree(max_depth=2).fit(data.X, np.column_stack([np.zeros(cell.n), rewards]))
        out[f"rule, {name}"] = float(np.mean((2 * tree.predict(new.X) - 1) * new.effect))
    return out


def run_coverage(cell: Cell, draw: int) -> dict:
    """Whether intervals of averages hold their truth."""
    data, (effect, gain_of_compliers, gain_of_all) = cell.draw(np.random.default_rng([1, draw])), truths(cell)
    start = time.process_time()
    model = RewardEstimator(method="instrument", random_state=draw)
    rewards = model.fit_predict(StudyData.of(data.Y, data.T, X=data.X, instrument=data.offer))
    seconds = time.process_time() - start
    weights, found = model.first_stage_.weights, instrument_summary(model)
    per_person = np.column_stack([np.zeros(cell.n), model.offer_rewards_.to_numpy() @ weights])
    low, high = found.robust_interval
    return {
        "estimate": found.effect.value, "truth": effect, "error": found.effect.standard_error, "seconds": seconds,
        "effect covered": float(holds(found.effect, effect)),
        "robust covered": float(low <= effect <= high),
        "compliers' gain covered": float(holds(policy_value(1, pd.DataFrame(per_person)), gain_of_compliers)),
        "gain of all covered": float(holds(policy_value(1, rewards), gain_of_all)),
        "gain of all off": float(rewards[1].mean() - gain_of_all),
    }  # fmt: skip


def contrast(new: Draw, offers: int) -> np.ndarray:
    """The contrast of offers of two-stage least squares in the population, scaled as the last offer's, (M,)."""
    shares = np.bincount(new.offer, minlength=offers) / len(new.offer)
    means = new.uptake.mean(axis=0)
    weights = shares * (means - shares @ means)
    return weights * (means[-1] - means[0]) / (weights @ means)


@lru_cache
def truths(cell: Cell) -> tuple[float, float, float]:
    """The effect on compliers, what treating all brings per person by compliers alone, and by everybody."""
    new = cell.draw(np.random.default_rng(0), 1_000_000)
    moved = new.uptake @ contrast(new, cell.offers)
    gain = float((moved * new.effect).mean())
    return gain / float(moved.mean()), gain, float(new.effect.mean())


def run_held_out(cell: Cell, draw: int) -> dict:
    """Whether held-out intervals hold the mean true value of the judged stumps, by its difference to treating all."""
    data, new = cell.draw(np.random.default_rng([1, draw])), cell.draw(np.random.default_rng([2, draw]), NEW_ROWS)
    start = time.process_time()
    rewards = RewardEstimator(
        LinearRegression(), LogisticRegression(), "instrument", model_uptake=LogisticRegression(),
        estimand=cell.held_out, random_state=draw,
    )  # fmt: skip
    estimator = DRPolicyTree(rewards=rewards, max_depth=1, min_samples_leaf=50, random_state=draw)
    found = cross_val_policy_value(
        estimator, StudyData.of(data.Y, data.T, X=data.X, instrument=data.offer), cv=5, n_repeats=3, random_state=draw
    )
    seconds = time.process_time() - start
    gains = new.effect if cell.held_out == "all" else new.uptake @ contrast(new, cell.offers) * new.effect
    truth = [
        np.average(
            [(tree.predict(new.X) * gains).mean() for tree in repetition.trees],
            weights=np.bincount(repetition.folds.fold),
        )
        for repetition in found.repetitions
    ]
    value, policy = float(np.mean(truth)), found.estimates["policy tree"]
    return {
        "estimate": policy.value, "truth": value, "error": policy.standard_error, "seconds": seconds,
        "value covered": float(holds(policy, value)),
        "difference covered": float(holds(found.differences["always 1"], value - gains.mean())),
        "tree recommended": float(found.verdict.use_tree),
    }  # fmt: skip


def run(cell: Cell, draw: int) -> dict:
    """One study; ``refused`` where its instrument was found too weak."""
    try:
        if cell.jump is not None:
            return run_rules(cell, draw)
        return run_coverage(cell, draw) if cell.held_out is None else run_held_out(cell, draw)
    except InputError as error:
        if "instrument hardly changes" not in str(error):
            raise
        return {"refused": 1}


RULES = ["rule, compliers", "rule, all", "rule, weighted"]
SHARES = ["effect covered", "robust covered", "compliers' gain covered", "gain of all covered", "gain of all off",
          "value covered", "difference covered", "tree recommended"]  # fmt: skip
COLUMNS = ["cell", "draw", "estimate", "truth", "error", "seconds", *RULES, *SHARES, "refused"]


def rules_table(found: pd.DataFrame) -> pd.DataFrame:
    """Means of what rules bring, beside the published ones, with Monte-Carlo errors in brackets."""
    rows = []
    for name, part in found.groupby("cell", sort=False):
        mean, error = PUBLISHED[name]
        row = {"cell": name, "runs": len(part), "published": f"{mean:.3f} ({error:.3f})"}
        row |= {column: with_error(part[column], 3) for column in RULES}
        rows.append(row | {"seconds": f"{part['seconds'].median():.1f}"})
    return pd.DataFrame(rows)


def coverage_table(found: pd.DataFrame) -> pd.DataFrame:
    """Bias, standard errors and coverage of every cell, with Monte-Carlo errors in brackets."""
    rows = []
    for name, part in found.groupby("cell", sort=False):
        used = part[part["estimate"].notna()]
        off = used["estimate"] - used["truth"]
        row = {"cell": name, "runs": len(used), "bias": with_error(off, 3), "SE / SD": f"{_ratio(used, off):.2f}"}
        for column in SHARES:
            row[column] = with_error(used[column], 3) if used[column].notna().any() else ""
        rows.append(row | {"refused": len(part) - len(used), "seconds": f"{used['seconds'].median():.1f}"})
    return pd.DataFrame(rows)


def _ratio(used: pd.DataFrame, off: pd.Series) -> float:
    return float(used["error"].mean() / off.std()) if len(used) > 1 else np.nan


RULES_ARE = """\
`python benchmarks/instruments.py`. Rules of depth two, the mean of (2 pi - 1) tau on 20,000 new people (figure 2 of
Athey and Wager, 2021, who learn with instrumental forests, 200 runs): from rewards of compliers (the default of
`DRPolicyTree`), from their equation (44) for all, and from that weighted by compliance. Monte-Carlo errors in brackets;
processor seconds of the rewards (median).

"""
COVERAGE_IS = """
Coverage by nominal 95 % intervals, n = 1,000. "coverage": bias and SE / SD are those of the effect on compliers;
`robust` is the interval of Anderson and Rubin; the gains are mean rewards by estimand "compliers" and "all" (`off`: the
error of that).
"held out": bias and SE / SD are those of the value of stumps from linear models, five folds, three repetitions, against
the mean true value of the judged rules; differences are those to treating everybody. `refused`: runs whose instrument
was found too weak.

"""


SIMULATION = Simulation(CELLS, run, COLUMNS)


def main() -> None:
    """Run what is asked for, and keep it."""
    asked = SIMULATION.parser(__doc__, RESULTS / "instruments.csv", runs=100).parse_args()
    found = SIMULATION.asked_for(asked)
    if found is None:
        return
    rules = found["cell"].isin(list(PUBLISHED))
    parts = ((RULES_ARE, rules_table, rules), (COVERAGE_IS, coverage_table, ~rules))
    shown = [(text, make(found[rows])) for text, make, rows in parts if rows.any()]
    write_tables(asked.output, "Instruments", shown)


if __name__ == "__main__":
    main()
