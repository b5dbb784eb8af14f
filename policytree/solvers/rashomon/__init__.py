"""The Rashomon set: all trees whose objective is within a slack of the optimum. Users read "near-ties".

enumerate.py      the Rashomon set: all trees of depth three or less within a slack of the optimum (near-ties)
value_lists.py    trees near the optimum as lists by value: kept, counted and paired

optimum -> bounds of both sides of first cuts (core/side_bounds.py) -> side lists within what the other side leaves
-> value_lists
"""
