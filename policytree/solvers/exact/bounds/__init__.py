"""Lower bounds of the whole problem: conflict pairs and row duals, each a ``RootBound``.

    conflict_pairs.py    the conflict-pair bound for noisy tables of many columns: pairs of rows that want
                         different actions
    dual_fitting.py      dual fitting: row duals under the constraints of the boxes that violate them most, found
                         in turn
    root_bound.py        what an engine asks of a lower bound of the whole problem
    row_duals.py         row duals: dual variables of rows whose sum bounds all trees with many leaves

Conflict pairs bound every subset of the subset search, too, once they bound the whole problem better than it does.

Row duals apply to few columns and a leaf penalty: no box of rows may have a dual sum above its loss by more than the
penalty. Boxes that violate this most are found by maximum-box pricing (``kernels/pricing``) and added to the
constraints that duals are projected onto, first on tables of merged codes and then on the whole table.
"""
