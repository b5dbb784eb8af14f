"""The Rashomon set: all trees whose objective is within a slack of the optimum. Users read "near-ties".

enumerate.py      the Rashomon set: all trees of depth three or less within a slack of the optimum (near-ties)
root_splits.py    first cuts of trees near the optimum, and lower bounds of both sides of each
value_lists.py    trees near the optimum as lists by value: kept, counted and paired

optimum -> root_splits (bounds of both sides) -> side lists within what the other side leaves -> value_lists
"""
