"""How often gates stop or mark a verdict: under clean data, where they must not, and with a broken question.

    python -m benchmarks.verdicts [--draws 60]

Each cell is a design of which ``--draws`` data sets are drawn; nuisances are linear unless the cell says that they are
the default mixtures, trees of depth one, one repetition of two folds. Clean designs: the share of verdicts that are
"supported", and for the rest the gate that failed. Broken questions: the share that is refused or "cannot be said".
Fragile ones: the share that is at least marked. Kept in ``benchmarks/results/verdicts.json``.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.linear_model import LinearRegression, LogisticRegression

from policytree import DRPolicyTree, cross_val_policy_value
from policytree.exceptions import InputError
from policytree.weighting.study_data import by_columns

RESULTS = Path(__file__).parent / "results" / "verdicts.json"


def draw(rng, n=300, arms=("drug", "placebo"), *, kind="trial", effect=0.3, strength=0.6):
    """Covariates, treatment and outcome of a study, and the arguments that state its design."""
    X = pd.DataFrame(
        {"age": rng.integers(20, 80, n), "bmi": rng.normal(27, 4, n).round(1), "sex": rng.integers(2, size=n)}
    )
    z, K = (X["age"] - 50) / 17, len(arms)
    options: dict = {"control": arms[-1]}
    if kind == "strata":
        high = rng.integers(2, size=n)
        codes = (rng.random(n) > np.where(high == 1, 0.7, 0.4)).astype(int)
        share = np.where(high == 1, 0.7, 0.4)
        X["site"] = high
        options |= {"strata": high, "propensity": pd.DataFrame({arms[0]: share, arms[1]: 1 - share})}
    elif kind == "observational":
        codes = (rng.random(n) > 1 / (1 + np.exp(-strength * z))).astype(int)
    else:
        codes = rng.integers(K, size=n)
        options["propensity"] = dict.fromkeys(arms, 1 / K)
    Y = pd.Series(0.5 * z + effect * (codes == 0) + rng.normal(size=n), name="score")
    return {"X": X, "T": pd.Series(np.array(arms)[codes], name="arm"), "Y": Y, "direction": "maximize", **options}


def named_harm(rng):
    """An outcome named like harm without a direction."""
    study = draw(rng)
    return study | {"Y": study["Y"].rename("pain_score"), "direction": None}


def swapped(rng):
    """A 2:1 trial whose chances are stated the other way round."""
    study = draw(rng)
    T = pd.Series(np.where(rng.random(300) < 2 / 3, "drug", "placebo"), name="arm")
    return study | {"T": T, "propensity": {"drug": 1 / 3, "placebo": 2 / 3}}


def mediator(rng):
    """Draw a study with a mediator of the treatment among the covariates."""
    study = draw(rng)
    drug = (study["T"] == "drug").to_numpy()
    M = 1.0 * drug + rng.normal(size=300)
    Y = pd.Series(M + 0.7 * rng.normal(size=300), name="score")
    return study | {"X": study["X"].assign(marker=M.round(2)), "Y": Y}


def leak(rng):
    """The outcome in another unit, with little noise, among the covariates."""
    study = draw(rng)
    return study | {"X": study["X"].assign(other=np.exp(study["Y"] + 0.05 * rng.normal(size=300)))}


def later_measurement(rng):
    """The outcome's own measurement some weeks earlier, under a name that says nothing."""
    study = draw(rng, effect=1.0)
    reading = study["Y"] + 0.6 * rng.normal(size=300)
    return study | {"X": study["X"].assign(reading=reading.round(2))}


def censored(rng):
    """A time that ended early in some, beside the record of how it ended."""
    study = draw(rng)
    came, lost = rng.exponential(10, 300), rng.exponential(15, 300)
    Y = pd.Series(np.minimum(came, lost).round(2) + 0.01, name="survtime")
    return study | {"X": study["X"].assign(status=(came <= lost).astype(int)), "Y": Y}


def repeated_ids(rng):
    """Persons with three rows each, without clusters."""
    study = draw(rng)
    return study | {"X": study["X"].assign(patient_id=np.arange(300) // 3)}


def wrong_by_stratum(rng):
    """Sites with chances of .7 and .4, stated as .5."""
    study = draw(rng, kind="strata")
    return study | {"propensity": dict.fromkeys(("drug", "placebo"), 0.5)}


DEFAULT = {"learners": ("auto", "auto")}
CLEAN = {
    "two arms, n = 300": draw,
    "two arms, n = 1,000": lambda rng: draw(rng, 1000),
    "three arms, n = 300": lambda rng: draw(rng, 300, ("high", "low", "placebo")),
    "three arms, n = 1,000": lambda rng: draw(rng, 1000, ("high", "low", "placebo")),
    "strata, n = 300": lambda rng: draw(rng, kind="strata"),
    "strata, n = 1,000": lambda rng: draw(rng, 1000, kind="strata"),
    "observational, effect 1, n = 1,000": lambda rng: draw(rng, 1000, kind="observational", effect=1.0),
    "the same, default models": lambda rng: draw(rng, 1000, kind="observational", effect=1.0) | DEFAULT,
    "the same, effect .4": lambda rng: draw(rng, 1000, kind="observational", effect=0.4, strength=0.3) | DEFAULT,
}
BROKEN = {
    "harm by its name, no direction": named_harm,
    "2:1 chances swapped": swapped,
    "a mediator": mediator,
    "a leak": leak,
    "a later measurement": later_measurement,
    "disguised censoring": censored,
    "repeated ids": repeated_ids,
    "chances wrong by stratum": wrong_by_stratum,
}


FRAGILE = {
    "observational, n = 300": lambda rng: draw(rng, kind="observational"),
    "observational, age does as much as the drug": lambda rng: draw(rng, 1000, kind="observational", strength=1.2),
    "an open name, no direction": lambda rng: draw(rng) | {"direction": None},
}


def verdict(study, refusable: bool) -> tuple[str, list[str]]:
    """The strength of a verdict and the gates that failed; "refused" where the question is refused."""
    study = dict(study)
    learners = study.pop("learners", (LinearRegression(), LogisticRegression(max_iter=1000)))
    model = DRPolicyTree(*learners, max_depth=1, cv=2, direction=study.pop("direction"), random_state=0)
    try:
        found = by_columns(cross_val_policy_value, model, cv=2, n_repeats=1, random_state=0, **study).verdict
    except InputError:
        if not refusable:
            raise  # a clean study that is refused is a fault of this file or of the library
        return "refused", ["refused"]
    return found.strength, [gate.name for gate in found.gates if gate.state != "supported"]


def cell(make, draws: int, refusable: bool = True) -> dict:
    """Shares over the draws, with Monte-Carlo errors, and the gates that failed."""
    found = [verdict(make(np.random.default_rng(seed)), refusable) for seed in range(draws)]
    out: dict = {"draws": draws}
    for name, states in (
        ("supported", ("supported",)),
        ("marked", ("fragile", "refused", "cannot be said")),
        ("stopped", ("refused", "cannot be said")),
    ):
        share = float(np.mean([strength in states for strength, _ in found]))
        out[name], out[f"{name}_error"] = share, float(np.sqrt(share * (1 - share) / draws))
    return out | {"gates": dict(Counter(gate for _, gates in found for gate in gates))}


def main() -> None:
    """Run all cells and keep the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=60)
    draws = parser.parse_args().draws
    warnings.simplefilter("ignore")
    results: dict = {"clean": {}, "broken": {}, "fragile": {}}
    shown_of = {"clean": "supported", "broken": "stopped", "fragile": "marked"}
    for kind, cells in (("clean", CLEAN), ("broken", BROKEN), ("fragile", FRAGILE)):
        for name, make in cells.items():
            start = time.process_time()
            results[kind][name] = found = cell(make, draws, kind != "clean")
            shown = found[shown_of[kind]]
            print(f"{kind:7} {name:44} {shown:.2f}  {found['gates']}  {time.process_time() - start:.0f} s", flush=True)
    RESULTS.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
