"""Estimates for each leaf.

estimates.py        the value of every treatment in every leaf: estimates, their covariance, and their table
factor_effects.py   factorial trials: the effect of each treatment in every leaf, averaged over the other treatments
honest.py           sample splitting: some rows choose the tree, others estimate its leaves
summary.py          the people in each leaf, the value of each treatment there, and the rows that it was computed on
"""
