"""The authors' MALTS in a Python of its own: pymalts2 needs pandas below 2 and scikit-learn below 1.2.

Run as a script: ``python malts_peer.py QUESTION ANSWERS``. The question is a JSON list of fits: a CSV ``table``
(``outcome``, ``treated`` and covariates), its ``discrete`` columns, the ``seed`` of the splits and the ``settings``;
an answer holds the effects of all rows and the seconds of processor time.

The splits are here those of ``pymalts2.malts_mf``, which knows no seed (it has 0); the metric, the matched groups, the
effects and their smoothing are as there. Left out are its table of who was matched with whom, and a Gaussian process
with 100 searches for standard errors, neither of which says anything about effects.
"""

import json
import sys
import time
from pathlib import Path

import pandas as pd
from pymalts2 import malts
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.model_selection import RepeatedStratifiedKFold

SPLITS = 5


def answer(fit: dict) -> dict:
    """Effects by one fit, and how long it took."""
    table, settings = pd.read_csv(fit["table"]), fit["settings"]
    start = time.process_time()
    splits = RepeatedStratifiedKFold(n_splits=SPLITS, n_repeats=1, random_state=fit["seed"])
    parts = []
    for others, learning in splits.split(table, table["treated"]):
        model = malts("outcome", "treated", table.iloc[learning], discrete=fit["discrete"], k=settings["k_tr"])
        model.fit()
        groups = model.get_matched_groups(table.iloc[others], settings["k_est"])
        parts.append(model.CATE(groups, model=settings["estimator"])["CATE"])
    effects = pd.concat(parts, axis=1).mean(axis=1).loc[table.index]
    if settings["smooth_cate"]:
        covariates = table[model.continuous + model.discrete]
        effects = pd.Series(GradientBoostingRegressor(random_state=0).fit(covariates, effects).predict(covariates))
    return {"effects": effects.tolist(), "seconds": time.process_time() - start}


if __name__ == "__main__":
    asked, told = map(Path, sys.argv[1:])
    told.write_text(json.dumps([answer(fit) for fit in json.loads(asked.read_text())]))
