"""
Without Python: the command line
================================

``policytree design`` goes from a CSV file to a report in one command. This page makes a small trial and runs it.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

folder = Path(tempfile.mkdtemp())
rng = np.random.default_rng(0)
n = 400
trial = pd.DataFrame({"age": rng.integers(20, 80, n), "smoker": rng.choice(["yes", "no"], n)})
trial["arm"] = rng.choice(["placebo", "drug"], n)
trial["score"] = (
    np.where(trial["arm"] == "drug", np.where(trial["age"] > 50, 2.0, -1.0), 0.0) + rng.normal(size=n)
).round(2)
trial.to_csv(folder / "trial.csv", index=False)


def run(*words):
    """Print a command as a person would type it, and the first lines of its output."""
    print("$ policytree", *words)
    done = subprocess.run([sys.executable, "-m", "policytree", *words], cwd=folder, capture_output=True, text=True)
    print("\n".join(done.stdout.splitlines()[:32]) or done.stderr)


# %%
# Look at the data first:

run("check", "trial.csv", "--treatment", "arm", "--outcome", "score")

# %%
# Then the whole way. ``--propensity 0.5``: it was a coin.

run("design", "trial.csv", "--treatment", "arm", "--outcome", "score", "--propensity", "0.5", "--max-depth", "1")

# %%
# The folder ``policytree-output`` now holds the report (one page, no network), the tree, tables and pictures:

print(*sorted(path.name for path in (folder / "policytree-output").iterdir()), sep="\n")

# %%
# Apply the rule to new people:

pd.DataFrame({"age": [30, 70], "smoker": ["no", "yes"]}).to_csv(folder / "new.csv", index=False)
run("predict", "policytree-output/tree.json", "new.csv")

# %%
# ``policytree design --help`` lists everything: clusters, strata, budgets, prices of questions. Exit codes: 0 done, 2
# bad input (one sentence says what and how to mend it), 130 interrupted.
