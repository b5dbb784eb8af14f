"""Sections of the report of a treatment regime.

question.py   the data, stage by stage; how the regime was learnt; how to do it again
rule.py       the trees of all stages, the rule as a checklist over time, an example
evidence.py   verdict, held-out values, who followed which sequence
proof.py      proved and unproved claims; limits
"""
