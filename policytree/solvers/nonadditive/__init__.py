"""Objectives of classification that are no sum over rows.

    fractional.py           fractional programming for the F-score: a short sequence of exact searches with a loss
                            matrix (Dinkelbach)
    fractional_binary.py    the F-score for columns of two values: depth three at one ratio after another, on the same
                            rows
    ranking.py              ranking objectives: the area under the ROC curve, and the F-score labelled by omega
    ranking_bounds.py       boxes of strips of codes, for tables of few columns: their number, and the least cost of
                            each
    ranking_search.py       the search over trees whose leaf costs add up to little: its rows, its arrays, its steps
    registry.py             the search of each objective that is no sum over rows

The problem's losses are the weights of rows that are labelled wrongly; ``core/leaf_sums.py`` makes integers of them.
The F-score is a ratio of sums: fractional programming. The area under the ROC curve and the F-score by omega depend on
all leaves at once: a reference curve bounds them by leaf costs that add up (``objectives/references.py``), and the
trees whose costs are within the bound are enumerated and scored.
"""
