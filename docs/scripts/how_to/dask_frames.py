"""
Rows on many machines: dask
===========================

The same trees from a dask DataFrame. Needs ``pip install "policytree[dask]"``. The tree does not depend on how the
rows are divided.
"""

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd

from policytree import Study
from policytree.on_dask import DaskOptimalTreeClassifier
from policytree.study import Label

dask.config.set(scheduler="synchronous")  # this page runs in one process; with a distributed.Client it is the cluster
rng = np.random.default_rng(0)
table = pd.DataFrame(rng.normal(size=(20_000, 4)), columns=["age", "income", "risk", "distance"])
table["label"] = np.where((table["risk"] > 0.5) ^ (rng.random(20_000) < 0.1), "yes", "no")
rows = dd.from_pandas(table, npartitions=4)

study = Study(rows, outcome=Label("label"), covariates=["age", "income", "risk", "distance"])
tree = DaskOptimalTreeClassifier(regularization=0.005, max_depth=2, max_bins=16).fit(study)
local = tree.to_local()  # an ordinary estimator: predict, plot, export
print(local.export_text())
print(local.certificate())
local.plot()

# %%
# ``DaskPolicyTree`` does it for ``outcome=Rewards([...])``. Parquet files that all workers see do as well as a frame. A
# client that is open is used; ``client=`` names another one.
