"""
Time limits, progress and the gap
=================================

Every search can be stopped, by a limit or by Ctrl-C. You keep the best tree so far, and a bound: no tree is better
than that.
"""

import warnings

import numpy as np
import pandas as pd

from policytree import PolicyTree

rng = np.random.default_rng(0)
X = pd.DataFrame(rng.normal(size=(3_000, 12)))
rewards = pd.DataFrame({"no": 0.0, "yes": rng.normal(size=3_000)})  # pure noise is the hardest case

with warnings.catch_warnings(record=True) as heard:
    warnings.simplefilter("always")
    tree = PolicyTree(max_depth=4, time_limit=0.5).fit(X, rewards)
print(tree.status_)
print(f"best tree {tree.objective_value_:.4f}, no tree is above {tree.objective_bound_:.4f}")
print(heard[-1].message)

# %%
# These make a search shorter: fewer levels; a price per leaf (``regularization``); fewer distinct values
# (``max_bins=64``; the proof is then for these thresholds, and the status says so); more threads (``n_jobs=-1``; the
# tree does not depend on them).

coarse = PolicyTree(max_depth=3, max_bins=16, n_jobs=2).fit(X, rewards)
print(coarse.certificate())

# %%
# ``verbose=1`` shows progress. A search that looks long is announced before it starts. The kernels are compiled once
# on a machine, when they are first needed: ``policytree warmup`` does it beforehand.
