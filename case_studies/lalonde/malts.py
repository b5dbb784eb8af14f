"""LaLonde: our matching after learning to stretch beside the authors' (pymalts2).

Public interface used: MatchingRewards.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import combinations, product
from pathlib import Path

import numpy as np
import pandas as pd
from lalonde.men import men_of

from policytree.exceptions import InputError
from policytree.weighting import MatchingRewards

PYTHON = "POLICYTREE_MALTS_PYTHON"  # variable: the Python that has pymalts2
INSTALL = (
    'pymalts2 runs in a Python of its own: python3.11 -m venv DIR; DIR/bin/pip install pymalts2 "pandas<2" '
    f'"scikit-learn<1.2" "numpy<1.25" "scipy<1.11" "matplotlib<3.9" "seaborn<0.13"; {PYTHON}=DIR/bin/python.'
)
PEER = Path(__file__).with_name("malts_peer.py")
SEEDS = 3
DISCRETE = ["marr", "nodegree", "black", "hisp"]
OURS = {"ours, mean of 10": {}, "ours, linear of 50": {"n_neighbors": 50, "estimate": "linear"}}
AS_OURS = {"k_tr": 10, "k_est": 10, "estimator": "mean", "smooth_cate": False}
DEFAULTS = {"k_tr": 15, "k_est": 50, "estimator": "linear", "smooth_cate": True}


def ours(table: pd.DataFrame, settings: dict, seed: int) -> tuple[np.ndarray, float]:
    """Effects by MatchingRewards, and seconds of processor time."""
    start = time.process_time()
    fitted = MatchingRewards(**settings, random_state=seed).fit(
        table["outcome"], table["treated"], X=table.drop(columns=["outcome", "treated"])
    )
    rewards = fitted.rewards_
    return (rewards[1] - rewards[0]).to_numpy(), time.process_time() - start


def theirs(fits: list[dict], folder: Path) -> list[tuple[np.ndarray, float]]:
    """Effects by pymalts2 in its own Python, and seconds of processor time; two processes share the fits."""
    with ThreadPoolExecutor(2) as pool:
        halves = list(pool.map(asked_of_peer, (fits[::2], fits[1::2]), (folder / "even", folder / "odd")))
    return [halves[k % 2][k // 2] for k in range(len(fits))]


def asked_of_peer(fits: list[dict], folder: Path) -> list[tuple[np.ndarray, float]]:
    """The answers of one process to some fits."""
    folder.mkdir()
    asked, told = folder / "question.json", folder / "answers.json"
    asked.write_text(json.dumps(fits), encoding="utf-8")
    # pymalts2 orders covariates by a set of names, and its search depends on their order.
    alone = {"PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | alone
    try:
        command = [os.environ[PYTHON], str(PEER), str(asked), str(told)]
        subprocess.run(command, check=True, capture_output=True, text=True, env=variables)
    except FileNotFoundError as error:
        raise InputError(INSTALL) from error
    except subprocess.CalledProcessError as error:
        said = error.stderr.strip().splitlines() or [f"it ended with code {error.returncode}."]  # killed: no word
        raise InputError(f"pymalts2 failed: {said[-1]} {INSTALL}") from error
    return [(np.array(a["effects"]), a["seconds"]) for a in json.loads(told.read_text(encoding="utf-8"))]


def all_fits(table: pd.DataFrame, kinds: dict, seeds: int) -> Iterator[tuple[str, np.ndarray, float]]:
    """Program, effects and seconds, by every program and every seed of the splits."""
    for name, seed in product(OURS, range(seeds)):
        yield name, *ours(table, OURS[name], seed)
    with tempfile.TemporaryDirectory() as folder:
        names, fits = [], []
        for (name, (settings, scaled)), seed in product(kinds.items(), range(seeds)):
            file = Path(folder) / f"scaled_{scaled}.csv"
            (standardised(table) if scaled else table).to_csv(file, index=False)
            names.append(name)
            fits.append({"table": str(file), "discrete": DISCRETE, "seed": seed, "settings": settings})
        for name, found in zip(names, theirs(fits, Path(folder)), strict=True):
            yield name, *found


def standardised(table: pd.DataFrame) -> pd.DataFrame:
    """The table with covariates per standard deviation, as MatchingRewards takes them; but for yes and no."""
    numbers = [name for name in table if name not in ("outcome", "treated", *DISCRETE)]
    return table.assign(**{name: table[name] / table[name].std(ddof=0) for name in numbers})


def the_men() -> pd.DataFrame:
    """The 445 men as one table: covariates, outcome, treated."""
    men = men_of("nsw")
    return pd.concat([men["X"], men["W"]], axis=1).assign(outcome=men["Y"], treated=men["T"].eq("training").astype(int))


def same_decision(a: np.ndarray, b: np.ndarray) -> float:
    """Percent of men whom both treat or both do not."""
    return 100.0 * float(np.mean((a > 0.0) == (b > 0.0)))


def show_men(study) -> None:
    """Effects, decisions and seconds on the 445 men."""
    study.heading("1. Effects of training on 445 men, dollars, over seeds of the splits")
    seeds = 2 if study.quick else SEEDS
    table = the_men()
    kinds = {"pymalts2, mean of 10": (AS_OURS, False), "pymalts2, mean of 10, SD": (AS_OURS, True)}
    if not study.quick:
        kinds["pymalts2, defaults"] = (DEFAULTS, False)
    found: dict[str, list] = {}
    seconds: dict[str, list] = {}
    for name, effect, took in all_fits(table, kinds, seeds):
        found.setdefault(name, []).append(effect)
        seconds.setdefault(name, []).append(took)
    rows = []
    for name, effects in found.items():
        pairs = list(combinations(effects, 2))
        means = [effect.mean() for effect in effects]
        own = np.where(table["treated"] == 1, 1.0, -1.0) * (table["outcome"] - table["outcome"].mean())
        rows.append({
            "program": name, "mean effect": np.mean(means), "least": min(means), "most": max(means),
            "SD of effects": np.mean([effect.std() for effect in effects]),
            "treated %": 100.0 * np.mean([np.mean(effect > 0.0) for effect in effects]),
            "seeds: corr. x100": 100.0 * np.mean([np.corrcoef(pair)[0, 1] for pair in pairs]),
            "seeds: same decision %": np.mean([same_decision(*pair) for pair in pairs]),
            "with own outcome: corr. x100": 100.0 * np.mean([np.corrcoef(own, effect)[0, 1] for effect in effects]),
            "processor s": np.median(seconds[name]),
        })  # fmt: skip
    study.table(pd.DataFrame(rows).set_index("program").T, "malts_men", digits=1)
    rows = []
    for a, b in combinations(found, 2):
        pairs = list(product(found[a], found[b]))
        rows.append({"first": a, "second": b,
                     "correlation": np.mean([np.corrcoef(pair)[0, 1] for pair in pairs]),
                     "same decision %": np.mean([same_decision(*pair) for pair in pairs])})  # fmt: skip
    study.show("Between programs, mean over all pairs of seeds:")
    study.table(pd.DataFrame(rows), "malts_between", digits=2, index=False)


def main(study) -> None:
    """Run the part."""
    if not os.environ.get(PYTHON):
        raise InputError(INSTALL)
    ours(the_men(), {}, 0)  # compiled code is loaded before anything is timed
    study.step("the 445 men")
    show_men(study)
