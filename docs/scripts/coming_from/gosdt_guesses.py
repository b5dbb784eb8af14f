"""
From GOSDT with guesses
=======================

The same three guesses from a reference ensemble, around any of the solvers, with real weights, and with what each guess
may have cost.

.. list-table::
   :header-rows: 1
   :widths: 50 50

   * - there
     - here
   * - ``ThresholdGuessBinarizer(n_estimators=40, max_depth=1)``, then 0/1 columns
     - ``guesses="thresholds"``, on the columns as they are
   * - ``depth_budget`` by the ensemble's VC dimension
     - ``guesses="depth"``
   * - ``warm_labels`` of a reference: guessed lower bounds
     - ``guesses="lower_bounds"``
   * - all three
     - ``guesses="all"``
   * - another reference
     - ``guesses=ReferenceGuesses(n_estimators=50, max_depth=2)``
   * - ``GOSDTClassifier(regularization=0.01, depth_budget=5)`` (a budget of five is depth four)
     - ``OptimalTreeClassifier(regularization=0.01, max_depth=4)``
   * - ``similar_support``, ``allow_small_reg``, ``cancellation``, ``worker_limit``
     - nothing; nothing; nothing; ``n_jobs=``
   * - ``time_limit``, ``result_.lower_bound``, ``upper_bound``
     - ``time_limit``, ``objective_bound_``, ``objective_value_``, ``optimality_gap_``

How much do guesses save? McTavish and others measure on FICO's table of people with a line of credit (who repays
badly?), with 40 stumps as a reference and .0005 for a leaf. No package ships the file, to which FICO's terms of use
apply. Where it is not at hand, a quarter of RAND's insurance trial takes its place: who saw no doctor during the year?
"""

import os
import time
import warnings
from pathlib import Path

import pandas as pd

import policytree
from policytree import OptimalTreeClassifier, load_dataset
from policytree.exceptions import SearchWarning
from policytree.guesses import ReferenceGuesses

folder = os.environ.get("POLICYTREE_DATA") or Path(policytree.__file__).parents[2] / "shared" / "data"
file = Path(folder) / "classification" / "fico_heloc.csv.gz"
if file.is_file():
    table, price = pd.read_csv(file), 0.0005
    X, y = table.iloc[:, :-1], table.iloc[:, -1].to_numpy()
    print(f"FICO: {len(y):,} people, {X.shape[1]} columns, {price} for a leaf.")
else:
    study, price = load_dataset("rand-hie").study()[::4], 0.001
    X, y = study.X, (study.Y == 0).to_numpy()
    print(f"{file.name} is not here; RAND instead: {len(y):,} people, {X.shape[1]} columns, {price} for a leaf.")

# %%
# Trees have depth four, in the last line the guessed depth. "fit" has all seconds, the reference's among them, "search"
# those of the search, which ends after four. "at most" says by how much any other tree can be better, among those that
# the last column names.

warnings.simplefilter("ignore", SearchWarning)  # where a search meets its limit, the table says so
STUMPS = {"n_estimators": 40, "max_depth": 1}


def fitted(guesses, max_depth=4):
    """A tree, and its line of the table."""
    start = time.perf_counter()
    tree = OptimalTreeClassifier(max_depth=max_depth, regularization=price, guesses=guesses, time_limit=4.0).fit(X, y)
    found = tree.solution_
    kept = int(found.guarantees.get("kept_thresholds", tree.search_grid_.n_splits))
    return tree, {
        "fit": f"{time.perf_counter() - start:.1f} s",
        "search": f"{found.seconds:.2f} s",
        "objective": f"{found.objective:.4f}",
        "status": found.status.value,
        "at most": f"{found.guarantees.get('theorem_a_1', found.gap):.4f}",
        "among trees of": f"{kept:,} thresholds, {'any depth' if max_depth is None else f'depth {max_depth}'}",
    }


bounded, all_three = (ReferenceGuesses(**STUMPS, lower_bounds=True, depth=depth) for depth in (False, True))
fitted(bounded)  # compiled before anything is timed
trees, lines = {}, {}
for name, guesses, *depth in (
    ("no guess", None),
    ("thresholds", ReferenceGuesses(**STUMPS)),
    ("thresholds, lower bounds", bounded),
    ("thresholds, lower bounds, depth", all_three, None),
):
    trees[name], lines[name] = fitted(guesses, *depth)
print(pd.DataFrame(lines).T.to_string())

# %%
# The search without guesses is stopped, and its objective beside that of "thresholds" shows what the stumps' few
# thresholds cost: a richer reference keeps more. Guessed thresholds alone leave a proof of the best tree among them.
# Guessed lower bounds cost at most what ``theorem_1`` says; a guessed depth, at most what ``theorem_a_1`` does, which
# speaks of deeper trees, too. Both are in the unit of the objective, beside the gap:

print(trees["thresholds, lower bounds, depth"].solution_)

# %%
# With weights (``sample_weight=``) nothing changes, and ``solver="duplication"`` or ``"sampling"`` take the same
# guesses (:doc:`/tutorials/weighted_trees`). The published runs on FICO's table, redone, are in
# ``case_studies/weighted_trees`` (Tables 4 to 7). :doc:`/comparison` has gosdt's seconds beside ours.
