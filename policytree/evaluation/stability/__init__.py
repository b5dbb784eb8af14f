"""How much a tree depends on its sample: resamples, and the Rashomon set.

rashomon.py              which other trees are as good? All trees near the best one, what they decide, and what
                         columns are worth
rashomon_decisions.py    the listed near-ties as trees, and what each of them gives to every row: equal rules are
                         found exactly
rashomon_tables.py       common parts of near-ties: decisions, people, columns, the simplest of them; as tables and
                         in words
resamples.py             resamples of a study, and what a learner makes of one
resampling.py            would another sample give another tree? The whole pipeline on resamples of the study
surest.py                which rule is surest to gain? The largest lower bound among near-ties, on rows that chose
                         none of them
tables.py                recurrence over resamples: splits, thresholds, each person's treatment; as tables and in words
"""
