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

``solve.py`` has the definitions and says why the trees are smallest; ``kernels/layout.py`` has the words of the search.
"""

from policytree.common.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
