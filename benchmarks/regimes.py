"""Treatment regimes: true values of learnt rules, coverage of held-out intervals, double robustness per stage.

    python benchmarks/regimes.py --list
    python benchmarks/regimes.py --cell "depth two, n=500" --runs 200      # two minutes on one core
    python benchmarks/regimes.py --table                                   # from what was kept so far
    python benchmarks/regimes.py --seconds                               # 5,000 people, 3 stages, 10 covariates, 3 arms

The two-stage design is that of Nordland and Holst, Journal of Statistical Software 116(4) (polle): the best regime is
worth 1.4482, the best pair of stumps 1.4463, always treating .999. Without effect, neither decision matters and every
regime is worth 0. Cells named "held out" judge stumps on 500 people by `cross_val_regime_value`, with linear models;
cells named "robust" take the fixed sequence "1 then 1" on 600 people, with some of the models of some stages wrong: a
constant as the outcome model, equal chances in place of the propensity. "crossed" is a design in which the best second
stump depends on the first treatment. Every run is kept in `benchmarks/results/regimes.csv`.
"""

from __future__ import annotations

import argparse
import time
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from reporting import machine, markdown_head, markdown_table
from sklearn.base import clone
from sklearn.dummy import DummyRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression

from policytree import DRPolicyTree
from policytree.regimes import Stage, TreatmentRegime, cross_val_regime_value
from policytree.regimes.checking import check_stages

RESULTS = Path(__file__).parent / "results"
NEW_PEOPLE = 100_000


# --- the two-stage design of polle ---


class _People:
    """People of the design, treated step by step."""

    def __init__(self, n: int, seed, effect: bool):
        self.rng, self.effect = np.random.default_rng(seed), effect
        base, self.l1, self.l2, self.l3 = self.rng.normal(size=(4, n))
        self.c1 = self.l1 + self.rng.normal(size=n)
        self.first = pd.DataFrame({"B": base, "C1": self.c1, "L1": self.l1})

    def after(self, a1) -> tuple[np.ndarray, pd.DataFrame]:
        """Return the outcome of the first treatment, and the covariates known then."""
        self.c2 = 0.5 * self.l1 + a1 * self.effect + self.rng.normal(size=len(self.l1))
        return self.l1 + a1 * self.c1 * self.effect + self.l2, pd.DataFrame({"C2": self.c2, "L2": self.l2})

    def end(self, a2) -> np.ndarray:
        """Return the outcome of the second treatment."""
        return a2 * self.c2 * self.effect + self.l3


def two_stages(n: int, seed, effect: bool = True) -> list[Stage]:
    """A study of the design."""
    people = _People(n, seed, effect)
    a1 = (people.rng.random(n) < 1 / (1 + np.exp(-people.c1))).astype(int)
    y1, second = people.after(a1)
    a2 = (people.rng.random(n) < 1 / (1 + np.exp(-people.c2))).astype(int)
    return [Stage(a1, X=people.first, Y=y1), Stage(a2, X=second, Y=people.end(a2))]


def true_value(regime: TreatmentRegime, seed, effect: bool = True) -> float:
    """Mean outcome of new people who are treated by a regime."""
    people = _People(NEW_PEOPLE, seed, effect)
    a1 = regime.predict([Stage(X=people.first)])
    y1, second = people.after(a1)
    a2 = regime.predict([Stage(a1, X=people.first, Y=y1), Stage(X=second)])
    return float((y1 + people.end(a2)).mean())


# --- a design in which stumps must agree ---


def crossed(n: int, seed) -> list[Stage]:
    """After 1 the second treatment should be 1 where x > 0, after 0 where x <= 0; being right after 1 brings more."""
    rng = np.random.default_rng(seed)
    x, first, second = rng.normal(size=n), rng.integers(2, size=n), rng.integers(2, size=n)
    frame = pd.DataFrame({"x": x})
    outcome = _right(x, first, second) + 0.5 * rng.normal(size=n)
    return [
        Stage(first, X=frame, propensity=0.5),
        Stage(second, X=frame.rename(columns={"x": "now"}), Y=outcome, propensity=0.5),
    ]


def _right(x, first, second) -> np.ndarray:
    return np.where(second == np.where(first == 1, x > 0, x <= 0), 1.0 + 0.2 * first, 0.0)


def crossed_value(regime: TreatmentRegime, seed) -> float:
    """Mean outcome of new people of :func:`crossed`; at best 1.2."""
    x = np.random.default_rng(seed).normal(size=NEW_PEOPLE)
    frame = pd.DataFrame({"x": x})
    first = regime.predict([Stage(X=frame)])
    second = regime.predict([Stage(first, X=frame), Stage(X=frame.rename(columns={"x": "now"}))])
    return float(_right(x, first, second).mean())


# --- cells ---


@dataclass(frozen=True)
class Cell:
    """Settings of a simulation: ``wrong`` are pairs of a model and a stage."""

    kind: str
    n: int
    effect: bool = True
    wrong: tuple[tuple[str, int], ...] = ()


WRONG = {
    "nothing": (),
    "outcome 1": (("outcome", 1),),
    "outcome 2": (("outcome", 2),),
    "both outcomes": (("outcome", 1), ("outcome", 2)),
    "propensity 1": (("propensity", 1),),
    "propensity 2": (("propensity", 2),),
    "both propensities": (("propensity", 1), ("propensity", 2)),
    "outcome 1 and propensity 2": (("outcome", 1), ("propensity", 2)),
    "propensity 1 and outcome 2": (("propensity", 1), ("outcome", 2)),
    "all": (("outcome", 1), ("outcome", 2), ("propensity", 1), ("propensity", 2)),
}
CELLS = {f"depth two, n={n}": Cell("depth two", n) for n in (500, 2_000)}
CELLS["stumps, n=500"] = Cell("stumps", 500)
CELLS["crossed, n=500"] = Cell("crossed", 500)
CELLS |= {
    "held out: effect": Cell("held out", 500),
    "held out: no effect": Cell("held out", 500, effect=False),
}
CELLS |= {f"robust: {name} wrong": Cell("robust", 600, wrong=wrong) for name, wrong in WRONG.items()}


def _linear(**options) -> DRPolicyTree:
    return DRPolicyTree(LinearRegression(), LogisticRegression(), max_depth=1, **options)


def run(cell: Cell, draw: int) -> dict:
    """One study."""
    if cell.kind == "held out":
        return _held_out(cell, draw)
    if cell.kind == "robust":
        return _robust(cell, draw)
    if cell.kind == "crossed":
        stages, value, options = crossed(cell.n, [1, draw]), crossed_value, {"history": [["x"], ["now"]]}
        learner = _linear()
    else:
        stages, value, options = two_stages(cell.n, [1, draw]), true_value, {}
        learner = DRPolicyTree(max_depth=2 if cell.kind == "depth two" else 1)
    start = time.process_time()
    regime = TreatmentRegime(learner, random_state=draw, **options).fit(stages)
    out = {"seconds": time.process_time() - start, "true value": value(regime, [2, draw])}
    if cell.kind != "depth two":
        together = TreatmentRegime(learner, search="joint", random_state=draw, **options).fit(stages)
        out["joint value"] = value(together, [2, draw])
        out["joint gain"] = out["joint value"] - out["true value"]
    return out


def _held_out(cell: Cell, draw: int) -> dict:
    """Whether intervals hold the mean true value of the judged regimes, and its differences to fixed sequences."""
    stages = two_stages(cell.n, [1, draw], cell.effect)
    regime = TreatmentRegime(_linear(), random_state=draw)
    start = time.process_time()
    found = cross_val_regime_value(regime, stages, baselines=False, random_state=draw)
    seconds = time.process_time() - start
    course, truth = check_stages(stages), 0.0
    if cell.effect:  # otherwise every regime is worth 0
        fits = [fit for repetition in range(len(found.scores)) for fit in found.validation.fits(repetition)]
        judged = [true_value(clone(regime).fit_course(course.take(fit.train)), [2, draw]) for fit in fits]
        truth = float(np.average(judged, weights=[len(fit.test) for fit in fits]))
    arms = {f"always {a} then {b}": _fixed_value(a, b) * cell.effect for a in (0, 1) for b in (0, 1)}
    arms = {name: value for name, value in arms.items() if name in found.differences}
    value, best = found.estimates["regime"], found.against_best
    return {
        "estimate": value.value, "truth": truth, "error": value.standard_error, "seconds": seconds,
        "value covered": _holds(value, truth),
        "difference covered": float(np.mean([_holds(found.differences[a], truth - v) for a, v in arms.items()])),
        "best covered": float(best.lower <= truth - max(arms.values()) <= best.upper),
        "recommended": float(found.verdict.rule == "regime"),
        "better than once": float(found.against_once.better),
    }  # fmt: skip


def _fixed_value(a: int, b: int) -> float:
    """Mean outcome if everybody gets a, then b: E[C1] = 0, E[C2] = a."""
    return float(a * b)


def _holds(estimate, target: float) -> float:
    return float(estimate.lower <= target <= estimate.upper)


def _robust(cell: Cell, draw: int) -> dict:
    """The held-out value of a fixed sequence, whose truth is 1, with some models wrong."""
    learners = [_linear(), _linear()]
    for model, stage in cell.wrong:
        if model == "outcome":
            learners[stage - 1].set_params(model_regression=DummyRegressor())
        else:
            learners[stage - 1].set_params(model_propensity="shares")
    start = time.process_time()
    found = cross_val_regime_value(
        TreatmentRegime(learners, random_state=draw), two_stages(cell.n, [1, draw]), sequences=[(1, 1)],
        baselines=False, cv=5, n_repeats=1, random_state=draw,
    )  # fmt: skip
    value = found.estimates["always 1 then 1"]
    return {
        "estimate": value.value, "truth": _fixed_value(1, 1), "error": value.standard_error,
        "seconds": time.process_time() - start, "value covered": _holds(value, _fixed_value(1, 1)),
    }  # fmt: skip


# --- tables ---

KEPT = ["cell", "draw", "estimate", "truth", "error", "seconds"]
SHOWN = ["true value", "joint value", "joint gain", "value covered", "difference covered", "best covered",
         "recommended", "better than once"]  # fmt: skip
WHAT = """\
`python benchmarks/regimes.py`: regimes of two decisions, learnt by backward induction unless "joint" is said.
`true value`: mean outcome of 100,000 new people under the learnt regime; the best regime is worth 1.4482, the best pair
of stumps 1.4463, always treating 1 ("crossed": the best pair of stumps 1.2). `joint value`: the same of both stumps
found at once; `joint gain`: paired difference. `bias` and `spread`: of the held-out value, in "held out" against the
mean true value of the judged regimes, in "robust" of the sequence "1 then 1" against 1. `value covered`,
`difference covered`, `best covered`: share of 95 % intervals that hold the truth, of the value, of the differences to
the fixed sequences, and of the difference to the best of them. `recommended`: the verdict says to use the regime
against what people got and every fixed sequence; `better than once`: deciding at both stages is called better than at
one only. Monte-Carlo errors in brackets; processor seconds (median).

"""


def table(found: pd.DataFrame) -> pd.DataFrame:
    """Every cell's means, with Monte-Carlo errors in brackets."""
    rows = []
    for name, part in found.groupby("cell", sort=False):
        off = (part["estimate"] - part["truth"]).dropna()
        row = {"cell": name, "runs": len(part), "bias": "", "spread": ""}
        if len(off):
            row |= {"bias": _with_error(off), "spread": f"{off.std():.4f}"}
        for column in SHOWN:
            values = part[column].dropna()
            row[column] = _with_error(values) if len(values) else ""
        rows.append(row | {"seconds": f"{part['seconds'].median():.2f}"})
    return pd.DataFrame(rows)


def _with_error(values: pd.Series) -> str:
    return f"{values.mean():.4f} ({values.std() / np.sqrt(len(values)):.4f})"


def main() -> None:
    """Run what is asked for, and keep it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cell", action="append", choices=list(CELLS))
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--seconds", action="store_true")
    parser.add_argument("--output", type=Path, default=RESULTS / "regimes.csv")
    asked = parser.parse_args()
    if asked.list:
        print("\n".join(CELLS))
        return
    if asked.seconds:
        _seconds()
        return
    if not asked.table:
        for draw in range(asked.first, asked.first + asked.runs):
            for name in asked.cell or CELLS:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    row = pd.DataFrame([{"cell": name, "draw": draw, **run(CELLS[name], draw)}])
                row.reindex(columns=[*KEPT, *SHOWN]).to_csv(
                    asked.output, mode="a", header=not asked.output.exists(), index=False
                )
    found = pd.read_csv(asked.output).drop_duplicates(["cell", "draw"], keep="last")
    order = {name: k for k, name in enumerate(CELLS)}
    found = found.sort_values("cell", key=lambda names: names.map(order), kind="stable")
    shown = table(found)
    print(shown.to_string(index=False))
    lines = [[str(value) for value in line] for line in shown.to_numpy()]
    written = markdown_head("Treatment regimes", machine()) + WHAT + markdown_table(list(shown.columns), lines)
    asked.output.with_suffix(".md").write_text(written, encoding="utf-8")


def _seconds() -> None:
    """5,000 people, three stages, ten covariates and three arms at each."""
    rng = np.random.default_rng(0)
    n, stages = 5_000, []
    for s in range(3):
        X, T = rng.normal(size=(n, 10)), rng.integers(3, size=n)
        frame = pd.DataFrame(X, columns=[f"x{j} at {s + 1}" for j in range(10)])
        stages.append(Stage(T, X=frame, Y=X[:, 0] * (T == 1) + X[:, 1] * (T == 2) + rng.normal(size=n)))
    start, processor = time.perf_counter(), time.process_time()
    TreatmentRegime(DRPolicyTree(), random_state=0).fit(stages)
    print(f"wall {time.perf_counter() - start:.1f} s, processor {time.process_time() - processor:.1f} s")


if __name__ == "__main__":
    main()
