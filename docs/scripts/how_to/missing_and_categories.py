"""
Missing values and categories
=============================

Hand over the table as it is. Text columns are categories: a split asks for one value against the rest, or, with
``categories="groups"``, for several. Missing values go to the side that is better for the objective, and the tree says
which.
"""

import numpy as np
import pandas as pd

from policytree import PolicyTree

rng = np.random.default_rng(0)
X = pd.DataFrame(
    {"region": rng.choice(["north", "south", "east"], 600), "age": rng.integers(20, 80, 600).astype(float)}
)
X.loc[rng.random(600) < 0.1, "age"] = np.nan
gain = np.where(X["region"] == "south", 1.0, np.where(X["age"].isna() | (X["age"] > 60), 0.5, -0.5))
rewards = pd.DataFrame({"leave": 0.0, "treat": gain + rng.normal(scale=0.3, size=600)})

tree = PolicyTree(max_depth=2).fit(X, rewards)
print(tree.export_text())
tree.plot(X=X)

# %%
# New people may have values that nobody had before. They go to the side that is shown, and a warning says so.

import warnings

with warnings.catch_warnings(record=True) as heard:
    warnings.simplefilter("always")
    print(tree.predict(pd.DataFrame({"region": ["south", "west"], "age": [30.0, np.nan]})))
print(heard[0].message)

# %%
# Six regions of which three gain: one against the rest finds a third of the gain. Groups find all of it, and prove it:
# of up to eight levels every grouping is searched, of up to 53 at depth one. The certificate names columns with more. A
# level of few rows goes where these few are better off, so set ``min_samples_leaf``, and pool rare levels beforehand.

regions = pd.DataFrame({"region": np.repeat(list("abcdef"), 100)})
gains = np.column_stack([np.zeros(600), np.where(regions["region"].isin(["a", "c", "e"]), 1.0, -1.0)])
for categories in ("levels", "groups"):
    tree = PolicyTree(max_depth=1, categories=categories).fit(regions, gains)
    print(tree.export_text(), tree.certificate(), sep="\n")

# %%
# Categories with an order (such as "low", "middle", "high") are better handed over as numbers: then one split can
# part low and middle from high. Pandas and polars frames, Arrow tables and plain arrays are all taken.
