"""Held-out values of treatment regimes over several stages.

rules.py        the rules that a regime is judged beside, and how they are learnt
gates.py        the gates of a regime's verdict, without fitting anything
sequential.py   values of any sequence of rules on held-out people: sequentially doubly robust scores
cross_val.py    refits of a whole regime without the people who judge it
tables.py       values of the regime and of its rivals, and what they say
"""
