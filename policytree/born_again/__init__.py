"""Born-again trees: the smallest single tree that predicts what an ensemble of trees predicts, everywhere.

    ensembles   trees as arrays, and what their ensemble predicts
    readers     fitted scikit-learn ensembles -> arrays
    grid        thresholds -> cells, and their classes
    regions     cells -> blocks of boxes, as the kernels take them
    search      exact search on a grid
    bounds      what every faithful tree needs, where that takes too long
    heuristic   faithful trees for what is too large
    trees       cuts of a grid -> Tree
    solve       all of it: ensemble -> tree and certificate
    faithful    whether a tree is faithful: shares nothing with the above but the arrays
    pruning     what no data reaches is left out, and what that changes
    fewer_trees a forest that votes -> fewer trees, the same decision everywhere

    fitted ensemble -> readers -> ensembles -> grid -> search (regions, kernels/) -> trees -> Tree
                                                  +--> heuristic, for what is too large; bounds, from parts of the grid
    Tree -> faithful (independent of grid and search), pruning

The search computes the smallest tree of every box of cells, small boxes first. A few features with few cells are the
*core*: all its boxes are one vector of numbers, and 64 vectors are processed side by side. The other features are the
*frame*; a box of the frame is trimmed to the cuts that are live in it, which leaves few of them (*blocks*).
``solve.py`` has the definitions and the proof that the trees are smallest; ``kernels/layout.py`` has the symbols.
``tests/support/born_again_oracles.py`` is brute force for all three objectives.
"""

from policytree.common.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
