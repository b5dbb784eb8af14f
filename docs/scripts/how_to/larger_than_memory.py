"""
More rows than memory holds
===========================

Write the rows as codes to a folder once, and fit from there. Trees of depth two and three are then proved from sums
over pairs and triples of columns. Needs ``pip install "policytree[scale]"``.
"""

import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

from policytree import PolicyTree, Study
from policytree.encoded import encode
from policytree.study import Rewards

folder = Path(tempfile.mkdtemp())
rng = np.random.default_rng(0)
for part in range(3):  # in earnest: any Parquet, CSV, Arrow or DuckDB rows, in any number of files
    x = pd.DataFrame(rng.normal(size=(20_000, 4)), columns=["age", "income", "risk", "distance"])
    drug = np.where(x["risk"] > 0.5, 1.0, -0.2) + rng.normal(size=20_000)
    x.assign(reward_none=0.0, reward_drug=drug).to_parquet(folder / f"part{part}.parquet")

study = Study(
    folder / "*.parquet",
    outcome=Rewards(["reward_none", "reward_drug"]),
    covariates=["age", "income", "risk", "distance"],
)
data = encode(study, directory=folder / "codes", max_bins=32)
print(data)

# %%
# ``max_bins`` is how many distinct values a column keeps. The proof is for the tree among these thresholds, and the
# certificate says so.

tree = PolicyTree(max_depth=2, min_samples_leaf=1_000).fit(data)
print(tree.export_text())
print(tree.certificate())
tree.plot()

# %%
# Predictions go from file to file, a batch at a time:

print(tree.predict_to_file(folder / "part0.parquet", folder / "given.parquet", keep=["risk"]).name)
pd.read_parquet(folder / "given.parquet").head(3)

# %%
# Where files hold outcomes and treatments, the study says so, ``Study(files, treatment=..., outcome=...)``, and
# :func:`~policytree.encoded.stream_rewards` writes doubly robust rewards first: studies that ``encode`` takes. If the
# rows fit into memory after all, ``study.in_memory()`` is a study for everything else.
#
# How long it takes: :ref:`larger-than-memory`. An interrupted ``encode`` goes on where it stopped.
