"""
Take the rule elsewhere: SQL, Python, scikit-learn, JSON
========================================================

A tree is a few questions. Any system can ask them.
"""

import numpy as np
import pandas as pd

from policytree import PolicyTree

rng = np.random.default_rng(0)
X = pd.DataFrame({"age": rng.integers(20, 80, 500).astype(float), "region": rng.choice(["north", "south"], 500)})
rewards = pd.DataFrame({"leave": 0.0, "treat": np.where((X["age"] > 50) & (X["region"] == "south"), 1.0, -1.0)})
tree = PolicyTree(max_depth=2).fit(X, rewards)

print(tree.export_text())

# %%
# An SQL expression, for a ``SELECT``:

print(tree.export_sql())

# %%
# NULL is a missing value, and so is NaN where a database has both. MySQL and BigQuery write names in backticks, and a
# backslash in a text twice:

print(tree.export_sql(dialect="mysql"))

# %%
# A Python function that needs no package:

source = tree.export_python()
print(source)

# %%
# Rules as a table (for a spreadsheet, ``.to_csv``), and as data:

pd.DataFrame(tree.to_rules())

# %%
print(tree.to_json()[:300], "...")

# %%
# An equal scikit-learn tree, for tools that draw, explain or convert those. Categories become 0/1 columns; thresholds
# are chosen so that these rows go the same way in 32-bit floats.

equal = tree.to_sklearn(X)
table = tree.sklearn_table(X)
print(type(equal).__name__, "agrees on all rows:", bool((equal.predict(table) == tree.predict(X)).all()))

# %%
# Nothing is executed when a saved tree is loaded: trees are JSON with a published schema, no pickle. The field
# ``checksum`` tells a text that was changed or damaged from one as saved. It does not tell a forged one: whoever
# changes a text on purpose can give it a new checksum.

from policytree.exceptions import InputError
from policytree.serialization import from_json

try:
    from_json(tree.to_json().replace('"north"', '"North"'))
except InputError as error:
    print(error)

# %%
# For a journal: as wide as a column (3.5 inches) or a page (7 inches), no text smaller than 7 points, and names that
# people read. Labels come from a mapping or from a CSV file with the columns ``name``, ``label``, ``unit``, ``values``;
# ``"humanize"`` makes names readable that have none. On the command line:
# ``policytree plot tree.json -o tree.pdf --width column --labels labels.csv``.

figure = tree.plot(width="column", labels={"age": "Age at entry (years)"}, unit="patients")
print(figure.caption_)
