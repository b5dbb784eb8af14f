"""Built-in studies: randomised trials with their arms, outcomes, baseline covariates, clusters and sources named."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd

from policytree.exceptions import InputError

DATA_DIRECTORY_VARIABLE = "POLICYTREE_DATA"


@dataclass(frozen=True, slots=True)
class Dataset:
    """A study, ready for :class:`policytree.DRPolicyTree`.

    Attributes
    ----------
    name : str
    frame : DataFrame of shape (n, columns)
        One row per observation; holds every column named below.
    treatment : str
        Column of the arm each row was observed in.
    outcomes : mapping of str to str
        Outcome columns and their units. The first is the default.
    direction : {"maximize", "minimize"}
        Which way the default outcome is better for whoever pays for the rule.
    covariates : tuple of str
        Columns a rule may split on (``X``). All are baseline: measured before assignment.
    confounders : tuple of str
        Further baseline columns for the nuisance models only (``W``): randomisation strata, and traits a rule should
        not look at.
    groups : str or None
        Column of the cluster: rows that share it are dependent.
    propensity : mapping of label to float, or None
        Known randomisation probabilities, the same for every row; None if they must be estimated given ``X`` and ``W``.
    description, source, licence : str
    """

    name: str
    frame: pd.DataFrame
    treatment: str
    outcomes: Mapping[str, str]
    direction: str
    covariates: tuple[str, ...]
    description: str
    source: str
    licence: str
    confounders: tuple[str, ...] = ()
    groups: str | None = None
    propensity: Mapping[object, float] | None = field(default=None)

    @property
    def outcome(self) -> str:
        """The default outcome's column."""
        return next(iter(self.outcomes))

    def fit_arguments(self, outcome: str | None = None) -> dict:
        """Arguments of ``fit(Y, T, *, X, W, propensity, groups)`` for one outcome.

        Parameters
        ----------
        outcome : str or None
            One of ``outcomes``; None means the default.

        Returns
        -------
        dict
            ``Y`` (n,) Series, ``T`` (n,) Series, ``X`` (n, p) DataFrame, ``W`` DataFrame or None, ``propensity``
            (n, K) DataFrame with one column per arm or None, ``groups`` (n,) Series or None.

        Raises
        ------
        InputError
            If ``outcome`` is not one of the study's outcomes.
        """
        outcome = self.outcome if outcome is None else outcome
        if outcome not in self.outcomes:
            raise InputError(f"{self.name} has no outcome {outcome!r}; choose one of {', '.join(self.outcomes)}.")
        frame, propensity = self.frame, None
        if self.propensity is not None:
            shares = np.tile(list(self.propensity.values()), (len(frame), 1))
            propensity = pd.DataFrame(shares, index=frame.index, columns=list(self.propensity))
        return {
            "Y": frame[outcome],
            "T": frame[self.treatment],
            "X": frame[list(self.covariates)],
            "W": frame[list(self.confounders)] if self.confounders else None,
            "propensity": propensity,
            "groups": frame[self.groups] if self.groups else None,
        }


_RAND_PLANS = {
    **dict.fromkeys((11,), "free"),
    **dict.fromkeys((5, 6, 7, 17, 18, 19), "25%"),
    **dict.fromkeys((8, 9, 10), "50%"),
    **dict.fromkeys((2, 3, 4, 14, 15, 16), "95%"),
    **dict.fromkeys((1, 13), "deductible"),
}
_RAND_SITES = ("Dayton", "Seattle", "Fitchburg", "Franklin County", "Charleston", "Georgetown County")
_RAND_BASELINE = {  # constant within a person in the file
    "income": "income",
    "educdec": "education",
    "mhi": "mental_health",
    "xghindx": "general_health",
    "disea": "chronic_disease",
    "physlm": "physical_limitation",
    "female": "female",
    "black": "black",
}
_RAND_DESCRIPTION = """\
RAND Health Insurance Experiment, 1974-82: families in six sites were randomised to health insurance plans that differ
in the share of the bill the family pays (coinsurance) up to a yearly maximum. One row is one person in one study year;
5,912 persons, 20,190 rows. Outcomes are yearly.

Arms (arms="plan", the five groups of Manning et al. 1987): free care; 25%, 50%, 95% coinsurance; "deductible", the
individual deductible plan (95% of outpatient bills up to $150 a person, hospital care free). In the file the deductible
plan has coinsurance 0 like free care, though its members made a third fewer visits; and Dayton had 100% where the
other sites had 95%. Both are why the raw rate (arms="coinsurance") is a poor treatment: arm 0 mixes two plans, and
arms 95 and 100 never meet within a site. Nobody in Seattle has 50%: its value there rests on the outcome model alone.

Covariates are of the person's first year, so the rows of one person share them. Not used, because they are the plan or
come after assignment: plan, coins, logc, idp, mdeoff, fmde, pioff, lpi (the offer itself: maximum expenditure and
participation payment), tookphys (a second, randomised, intervention), time (eligibility in the year), year, and every
other use or spending column. child, fchild, linc, lfam, lnum repeat age, female, income and family size; ghindx is
general_health before RAND's imputation. Fractions in black, physical_limitation and chronic_disease are RAND's
imputations. Education is missing for four persons, who get the median, 12 years. The file does not say when income was
reported; within sites it is balanced over the plans.

Site, the randomisation stratum, and black are for adjustment only (W). Families, not persons, were randomised, and the
file has no family id. The column `household` rebuilds it from site, plan, income and offer (1,898 households, against
some 2,000 families published). Persons are the default clusters; with households as groups, standard errors of
differences between arms are a quarter to a third larger, and more honest."""


def load_rand_hie(*, arms: str = "plan", outcome: str = "visits") -> Dataset:
    """RAND Health Insurance Experiment, from the raw file that ships with statsmodels.

    Parameters
    ----------
    arms : {"plan", "coinsurance"}
        ``"plan"``: the five published plan groups ("25%", "50%", "95%", "deductible", "free"). ``"coinsurance"``: the
        raw rate in percent (0, 25, 50, 95, 100); see the description for why it identifies less.
    outcome : {"visits", "spending"}
        The default outcome: face-to-face visits to a physician a year, or dollars of medical spending a year (without
        dental care and outpatient psychotherapy).

    Returns
    -------
    Dataset
        20,190 rows; ``groups`` is "person".

    Raises
    ------
    InputError
        If an argument is unknown or statsmodels' file is missing.

    References
    ----------
    Manning, Newhouse, Duan, Keeler and Leibowitz (1987), American Economic Review 77(3), 251-277. Deb and Trivedi
    (2002), Journal of Health Economics 21(4), 601-625. Cameron and Trivedi (2005), Microeconometrics, Cambridge.
    """
    treatments = {"plan": "plan", "coinsurance": "coinsurance"}
    outcomes = {"visits": "face-to-face physician visits a year", "spending": "dollars of medical spending a year"}
    if arms not in treatments:
        raise InputError(f"arms must be 'plan' or 'coinsurance'; got {arms!r}.")
    if outcome not in outcomes:
        raise InputError(f"outcome must be 'visits' or 'spending'; got {outcome!r}.")
    path = _packaged_file("statsmodels", "datasets/randhie/src/randhie.csv")
    return Dataset(
        name="rand-hie",
        frame=_rand_frame(pd.read_csv(path)),
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
        groups="person",
        description=_RAND_DESCRIPTION,
        source="RAND Corporation; Cameron & Trivedi (2005), http://cameron.econ.ucdavis.edu/mmabook/mmadata.html; "
        "statsmodels/datasets/randhie/src/randhie.csv",
        licence="public domain (as stated by statsmodels)",
    )


def _rand_frame(raw: pd.DataFrame) -> pd.DataFrame:
    """Readable columns, with covariates of each person's first year; same rows in the same order as the file."""
    first_rows = raw.loc[raw.groupby("zper")["year"].idxmin()].set_index("zper")
    first = first_rows.loc[raw["zper"]].reset_index()
    offer = ["site", "plan", "income", "mdeoff", "pioff"]
    frame = pd.DataFrame(
        {
            "person": raw["zper"],
            "household": first.groupby(offer, dropna=False).ngroup(),
            "year": raw["year"],
            "plan": raw["plan"].map(_RAND_PLANS),
            "coinsurance": raw["coins"],
            "visits": raw["mdvis"],
            "spending": raw["meddol"],
            "site": raw["site"].map(dict(enumerate(_RAND_SITES, start=1))),
            "age": np.floor(first["xage"]).astype(int),
            "family_size": first["num"],
            # 1 excellent (the file's omitted category), 2 good, 3 fair, 4 poor
            "self_rated_health": 1 + first[["hlthg", "hlthf", "hlthp"]].to_numpy() @ np.array([1, 2, 3]),
            **{name: first[column] for column, name in _RAND_BASELINE.items()},
        }
    )
    # one value per person: the median over persons, not over person-years
    return frame.fillna({"education": float(first_rows["educdec"].median())})


def _load_nsw() -> Dataset:
    """National Supported Work job training, the Dehejia-Wahba sample, from causaldata."""
    raw = pd.read_stata(_packaged_file("causaldata", "nsw_mixtape/nsw_mixtape.dta"))
    frame = raw.drop(columns="data_id").astype(float)
    return Dataset(
        name="nsw",
        frame=frame.assign(treat=np.where(frame["treat"] == 1, "training", "control")),
        treatment="treat",
        outcomes={"re78": "earnings in 1978, dollars"},
        direction="maximize",
        covariates=("age", "educ", "marr", "nodegree", "re74", "re75"),
        confounders=("black", "hisp"),
        description="National Supported Work Demonstration, randomised job training, 1975-77: the 445 men of LaLonde's "
        "experimental sample for whom Dehejia and Wahba found 1974 earnings (185 trained). The file has "
        "neither site nor randomisation ratio: estimate the propensity.",
        source="LaLonde (1986), AER 76(4); Dehejia & Wahba (1999), JASA 94(448); causaldata (Cunningham's Mixtape)",
        licence="MIT (causaldata)",
    )


_LALONDE_SOURCE = "https://users.nber.org/~rdehejia/nswdata.html or github.com/jjchern/lalonde"
_LALONDE_CONTROLS = {
    "lalonde": ("the 425 men randomised to no training", None),
    "lalonde-psid": (
        "2,490 men of the Panel Study of Income Dynamics (PSID-1), not randomised",
        "psid_controls.csv.gz",
    ),
    "lalonde-cps": ("15,992 men of the Current Population Survey (CPS-1), not randomised", "cps_controls.csv.gz"),
}


def _load_lalonde(data_dir: str | os.PathLike | None, name: str = "lalonde") -> Dataset:
    """LaLonde's 297 trained men with the experiment's controls, or with men from a survey, from a data directory."""
    told, file = _LALONDE_CONTROLS[name]
    raw = pd.read_csv(_data_file("nsw_lalonde.csv.gz", _LALONDE_SOURCE, data_dir))
    if file is not None:
        survey = pd.read_csv(_data_file(file, _LALONDE_SOURCE, data_dir))
        raw = pd.concat([raw[raw["treat"] == 1], survey[raw.columns]], ignore_index=True)
    return Dataset(
        name=name,
        frame=raw.assign(treat=raw["treat"].map({0: "control", 1: "training"})),
        treatment="treat",
        outcomes={"re78": "earnings in 1978, dollars"},
        direction="maximize",
        covariates=("age", "education", "married", "nodegree", "re75"),
        confounders=("black", "hispanic"),
        description="National Supported Work Demonstration, randomised job training, 1975-77: LaLonde's 297 trained "
        f"men and, as controls, {told}. Earnings of 1974 are known for part of them only (see nsw). The file has "
        "neither site nor randomisation ratio: estimate the propensity. Race is for adjustment only.",
        source="LaLonde (1986), AER 76(4), 604-620; R. Dehejia's page, https://users.nber.org/~rdehejia/nswdata.html",
        licence="CC0 (jjchern/lalonde)",
    )


_ACTG_ARMS = (
    "zidovudine",
    "zidovudine + didanosine",
    "zidovudine + zalcitabine",
    "didanosine",
)


def _load_actg175(data_dir: str | os.PathLike | None) -> Dataset:
    """ACTG 175, four antiretroviral treatments, from a data directory."""
    raw = pd.read_csv(_data_file("actg175.csv.gz", "the R package speff2trial on CRAN, data set ACTG175", data_dir))
    frame = raw.assign(arm=raw["arms"].map(dict(enumerate(_ACTG_ARMS)))).drop(columns=["arms", "treat"])
    return Dataset(
        name="actg175",
        frame=frame,
        treatment="arm",
        outcomes={"cd420": "CD4 cells per cubic mm at 20 weeks", "cd820": "CD8 cells per cubic mm at 20 weeks"},
        direction="maximize",
        covariates=(
            "age",
            "wtkg",
            "hemo",
            "drugs",
            "karnof",
            "oprior",
            "z30",
            "preanti",
            "gender",
            "strat",
            "symptom",
            "cd40",
            "cd80",
        ),
        confounders=("race", "homo"),
        propensity=dict.fromkeys(sorted(_ACTG_ARMS), 0.25),
        description="AIDS Clinical Trials Group study 175: 2,139 adults with HIV and 200 to 500 CD4 cells, randomised "
        "1:1:1:1 to four treatments. zprior is constant and str2 repeats strat; offtrt, r, cd496, cens and days come "
        "after randomisation and are no covariates; race and homo are for adjustment only.",
        source="Hammer et al. (1996), NEJM 335(15), 1081-1090; speff2trial 1.0.5 on CRAN",
        licence="GPL-2 (speff2trial)",
    )


_LOADERS: dict[str, Callable[..., Dataset]] = {
    "rand-hie": load_rand_hie,
    "nsw": _load_nsw,
    "actg175": _load_actg175,
    **{name: partial(_load_lalonde, name=name) for name in _LALONDE_CONTROLS},
}
_FROM_DIRECTORY = frozenset({"actg175", *_LALONDE_CONTROLS})
DATASET_NAMES = tuple(_LOADERS)


def load_dataset(name: str, *, data_dir: str | os.PathLike | None = None) -> Dataset:
    """Load a built-in study by name.

    Parameters
    ----------
    name : {"rand-hie", "nsw", "actg175", "lalonde", "lalonde-psid", "lalonde-cps"}
    data_dir : path or None
        Directory that holds the files of studies that no package ships, or has them in ``trials/``: ``actg175.csv.gz``;
        ``nsw_lalonde.csv.gz``, ``psid_controls.csv.gz`` and ``cps_controls.csv.gz`` for the last three. None means the
        environment variable ``POLICYTREE_DATA``.

    Returns
    -------
    Dataset

    Raises
    ------
    InputError
        If the name is unknown, the package or file with the data is missing, or ``data_dir`` is given for a study
        that comes with a package.
    """
    if name not in _LOADERS:
        raise InputError(f"There is no data set {name!r}; choose one of {', '.join(DATASET_NAMES)}.")
    if name in _FROM_DIRECTORY:
        return _LOADERS[name](data_dir)
    if data_dir is not None:
        raise InputError(f"{name} comes with a Python package and takes no data directory; leave data_dir out.")
    return _LOADERS[name]()


def _packaged_file(package: str, relative: str) -> Path:
    """Path of a file inside an installed package, without importing the package."""
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise InputError(f"This data set comes with the package {package}; install it with `pip install {package}`.")
    path = Path(spec.submodule_search_locations[0]) / relative
    if not path.is_file():
        raise InputError(f"The installed {package} lacks {relative}; reinstall it with `pip install -U {package}`.")
    return path


def _data_file(name: str, origin: str, data_dir: str | os.PathLike | None) -> Path:
    """Path of a file in the data directory or its folder ``trials``."""
    directory = data_dir if data_dir is not None else os.environ.get(DATA_DIRECTORY_VARIABLE)
    if not directory:
        raise InputError(
            f"{name} is not part of the package: get it from {origin}, and name its directory by data_dir or the "
            f"environment variable {DATA_DIRECTORY_VARIABLE}."
        )
    for path in (Path(directory) / name, Path(directory) / "trials" / name):
        if path.is_file():
            return path
    raise InputError(f"{name} is not in {directory} nor its folder trials; get it from {origin}.")
