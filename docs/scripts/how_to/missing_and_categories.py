"""
Missing values and categories
=============================

Hand over the table as it is. Text columns are categories: a split asks for one value against the rest. Missing values
go to the side that is better for the objective, and the tree says which.
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
# Categories with an order (such as "low", "middle", "high") are better handed over as numbers: then one split can
# part low and middle from high. Pandas and polars frames, Arrow tables and plain arrays are all taken.
