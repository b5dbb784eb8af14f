"""What rules are worth, on the training rows and held out, and the verdict.

cross_val.py       the honest value of a policy learner: nuisances and tree are refitted without the rows they are
                   judged on
effects.py         average effects of treatments in the population that rewards are about, with influence-function
                   standard errors
fixed_rules.py     what rules that are settled are worth on rows that had no part in them, side by side
optimism.py        optimism: what a rule is worth on the rows that chose it, less what it is worth on rows that had
                   no say
refits.py          refitting a learner without some rows, and what it then says about them; many refits side by side
sample_split.py    some rows learn, the others judge: held-out rewards, and what was predicted for them by who never
                   saw them
tables.py          the table that :func:`policytree.cross_val_policy_value` returns
validation.py      who learns and who judges: repeated cross-fitting, sequential validation, a single split
values.py          what a policy is worth on given rewards: values and paired differences
verdict.py         the verdict: which rule to use, computed from held-out comparisons; and whether these rows can
                   say it at all
"""
