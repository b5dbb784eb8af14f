"""The RAND Health Insurance Experiment: families randomised to insurance plans, 1974-82."""

from __future__ import annotations

import os

import numpy as np
import pandas as pd

from policytree.datasets.files import packaged_file, refuse_directory
from policytree.datasets.study import Dataset
from policytree.exceptions import InputError, quoted

_PLANS = {
    **dict.fromkeys((11,), "free"),
    **dict.fromkeys((5, 6, 7, 17, 18, 19), "25%"),
    **dict.fromkeys((8, 9, 10), "50%"),
    **dict.fromkeys((2, 3, 4, 14, 15, 16), "95%"),
    **dict.fromkeys((1, 13), "deductible"),
}
_SITES = ("Dayton", "Seattle", "Fitchburg", "Franklin County", "Charleston", "Georgetown County")
_BASELINE = {  # constant within a person in the file
    "income": "income",
    "educdec": "education",
    "mhi": "mental_health",
    "xghindx": "general_health",
    "disea": "chronic_disease",
    "physlm": "physical_limitation",
    "female": "female",
    "black": "black",
}
_SITES_TAKEN = {
    "all": """\
Nobody in Seattle has 50%: its value there
rests on the outcome model alone (sites="every_arm" leaves Seattle out).""",
    "every_arm": """\
Seattle is left out: nobody there has 50%,
so that its rows cannot show what that plan does there (sites="all" keeps its 4,036 rows).""",
}
_DESCRIPTION = """\
RAND Health Insurance Experiment, 1974-82: families in six sites were randomised to health insurance plans that differ
in the share of the bill the family pays (coinsurance) up to a yearly maximum. One row is one person in one study year;
{persons:,} persons, {rows:,} rows. Outcomes are yearly.

Arms (arms="plan", the five groups of Manning et al. 1987): free care; 25%, 50%, 95% coinsurance; "deductible", the
individual deductible plan (95% of outpatient bills up to $150 a person, hospital care free). In the file the deductible
plan has coinsurance 0 like free care, though its members made a third fewer visits; and Dayton had 100% where the
other sites had 95%. Both are why the raw rate (arms="coinsurance") is a poor treatment: arm 0 mixes two plans, and
arms 95 and 100 never meet within a site. {sites}

Covariates are of the person's first year, so the rows of one person share them. Not used, because they are the plan or
come after assignment: plan, coins, logc, idp, mdeoff, fmde, pioff, lpi (the offer itself: maximum expenditure and
participation payment), tookphys (a second, randomised, intervention), time (eligibility in the year), year, and every
other use or spending column. child, fchild, linc, lfam, lnum repeat age, female, income and family size; ghindx is
general_health before RAND's imputation. Fractions in black, physical_limitation and chronic_disease are RAND's
imputations. Education is missing for four persons, who get the median, 12 years. The file does not say when income was
reported; within sites it is balanced over the plans.

Site, the randomisation stratum, and black are for adjustment only (W). Families, not persons, were randomised, and the
file has no family id. The column `household` rebuilds it from site, plan, income and offer (1,898 households in the six
sites, against some 2,000 families published; {households:,} in these rows). Households are the default clusters; with
persons as groups, standard errors of differences between raw means of arms come out a fifth to a quarter smaller, and
too small."""


def load(
    name: str,
    data_dir: str | os.PathLike | None,
    *,
    arms: str = "plan",
    outcome: str = "visits",
    sites: str = "every_arm",
) -> Dataset:
    """Load the study from the raw file that ships with statsmodels; :func:`load_dataset` describes the options.

    Returns
    -------
    Dataset
        20,190 rows of six sites, or 16,154 of five; ``groups`` is "household".

    Raises
    ------
    InputError
        If an argument is unknown, no site has every arm (as with ``arms="coinsurance"``, since 95 and 100 never meet)
        or statsmodels' file is missing.

    References
    ----------
    Manning, Newhouse, Duan, Keeler and Leibowitz (1987), American Economic Review 77(3), 251-277. Deb and Trivedi
    (2002), Journal of Health Economics 21(4), 601-625. Cameron and Trivedi (2005), Microeconometrics, Cambridge.
    """
    refuse_directory(name, data_dir)
    treatments = {"plan": "plan", "coinsurance": "coinsurance"}
    outcomes = {"visits": "face-to-face physician visits a year", "spending": "dollars of medical spending a year"}
    if not isinstance(arms, str) or arms not in treatments:
        raise InputError(f"arms must be 'plan' or 'coinsurance'; got {quoted(arms)}.")
    if not isinstance(outcome, str) or outcome not in outcomes:
        raise InputError(f"outcome must be 'visits' or 'spending'; got {quoted(outcome)}.")
    if not isinstance(sites, str) or sites not in _SITES_TAKEN:
        raise InputError(f"sites must be 'all' or 'every_arm'; got {quoted(sites)}.")
    path = packaged_file("statsmodels", "datasets/randhie/src/randhie.csv")
    frame = _readable(pd.read_csv(path))
    if sites == "every_arm":
        frame = _where_every_arm_was_offered(frame, treatments[arms])
    return Dataset(
        randomized=True,
        name="rand-hie",
        frame=frame,
        treatment=treatments[arms],
        outcomes={outcome: outcomes.pop(outcome), **outcomes},
        direction="minimize",
        covariates=(
            "age",
            "female",
            "income",
            "education",
            "family_size",
            "general_health",
            "self_rated_health",
            "mental_health",
            "chronic_disease",
            "physical_limitation",
        ),
        confounders=("site", "black"),
        groups="household",
        description=_DESCRIPTION.format(
            persons=frame["person"].nunique(),
            rows=len(frame),
            households=frame["household"].nunique(),
            sites=_SITES_TAKEN[sites],
        ),
        source="RAND Corporation; Cameron & Trivedi (2005), http://cameron.econ.ucdavis.edu/mmabook/mmadata.html; "
        "statsmodels/datasets/randhie/src/randhie.csv",
        licence="public domain (as stated by statsmodels)",
    )


def _where_every_arm_was_offered(frame: pd.DataFrame, arm: str) -> pd.DataFrame:
    """The rows of sites in which somebody has each arm, numbered anew.

    Raises
    ------
    InputError
        If there is no such site.
    """
    offered = frame.groupby("site")[arm].nunique() == frame[arm].nunique()
    if not offered.any():
        raise InputError(f"sites='every_arm' leaves no row: no site has all {frame[arm].nunique()} arms of {arm!r}.")
    return frame[frame["site"].map(offered)].reset_index(drop=True)


def _readable(raw: pd.DataFrame) -> pd.DataFrame:
    """Readable columns, with covariates of each person's first year; same rows in the same order as the file."""
    first_rows = raw.loc[raw.groupby("zper")["year"].idxmin()].set_index("zper")
    first = first_rows.loc[raw["zper"]].reset_index()
    offer = ["site", "plan", "income", "mdeoff", "pioff"]
    frame = pd.DataFrame(
        {
            "person": raw["zper"],
            "household": first.groupby(offer, dropna=False).ngroup(),
            "year": raw["year"],
            "plan": raw["plan"].map(_PLANS),
            "coinsurance": raw["coins"],
            "visits": raw["mdvis"],
            "spending": raw["meddol"],
            "site": raw["site"].map(dict(enumerate(_SITES, start=1))),
            "age": np.floor(first["xage"]).astype(int),
            "family_size": first["num"],
            # 1 excellent (the file's omitted category), 2 good, 3 fair, 4 poor
            "self_rated_health": 1 + first[["hlthg", "hlthf", "hlthp"]].to_numpy() @ np.array([1, 2, 3]),
            **{name: first[column] for column, name in _BASELINE.items()},
        }
    )
    # one value per person: the median over persons, not over person-years
    return frame.fillna({"education": float(first_rows["educdec"].median())})
