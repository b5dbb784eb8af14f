"""Weighted sparse trees: three solvers, their guesses and their rivals, as in the papers.

Public interface used: OptimalTreeClassifier and PolicyTree (solvers direct, duplication, sampling), Guesses,
ReferenceGuesses, RewardEstimator, MatchingRewards, load_dataset, policytree.weighting. One module a figure or table:
duplication_time.py (Fig. 1), sparsity.py (Figs. 2 and 3), sizes.py (large data); and parts of their own: guesses.py
(Tables 4 to 7), grid.py (Table 3's grid), printed_trees.py (printed trees, Table 8, Spiral), repeats.py (Fig. 1's
conclusion), lalonde_costs.py.
"""

from __future__ import annotations

from weighted_trees import data, duplication_time, peers, sizes, sparsity

PUBLISHED_TAKES = "Figs. 2 and 3 with five folds, six prices, at most an hour a fit: hours"


def main(study) -> None:
    """Run the study."""
    missing = [peers.PACKAGES[name] for name in peers.MODULES if not peers.installed(name)]
    if missing:
        study.show(f"Not installed, so not in the tables: {', '.join(missing)}\n")
    sets = data.load(study)
    duplication_time.show(study, sets)
    sparsity.show(study, sets)
    sizes.show(study)
