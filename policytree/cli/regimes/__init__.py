"""``policytree design --id --stage``: rules for several decisions, from a table with one row per person and decision.

visits.py      the table and its options: stages, weights, chances, costs
job.py         learn, judge, report
files.py       the files of a regime
predicting.py  what a saved regime gives every row of such a table
"""
