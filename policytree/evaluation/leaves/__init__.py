"""What is known of each leaf.

estimates.py        what every treatment is worth in every leaf: estimates, their covariance, and the table that is made
                    of them
factor_effects.py   factorial trials: the effect of each treatment in every leaf, averaged over the other treatments
honest.py           sample splitting: some rows choose the tree, others say what is in its leaves
summary.py          who is in each leaf of a tree, what each treatment is worth there, and on whose rows that was
                    computed
"""
