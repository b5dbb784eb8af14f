"""The values of rules, on the training rows and held out, and the verdict.

benchmark_covariates.py  nuisances without some covariates: the effect of their omission, as a measure for omitted ones
black_box.py       a policy forest as a rival: what a black box would reach on held-out rows
confounding.py     how far a verdict's estimate moves when a covariate that was seen is hidden
cross_val.py       the honest value of a policy learner: nuisances and tree are refitted without the rows they are
                   judged on
fixed_rules.py     the values of fixed rules on rows that did not influence them, side by side
further.py         values of further outcomes, and by groups of people
gate.py            a gate: a condition that a verdict rests on
gates.py           the gates of a verdict: one function decides
given_effects.py   effects where a learnt rule gives each treatment, on people who had no part in learning it
optimism.py        optimism: the value of a rule on the rows that chose it, less its value on held-out rows
refits.py          refitting a learner without some rows, and its predictions for them; refits in parallel
rule_names.py      names of the rules of a table
sample_split.py    sample splitting: held-out rewards, and predictions for them by models fitted to the other rows
tables.py          the table that :func:`policytree.cross_val_policy_value` returns
trial_plan.py      planning a trial that compares a rule with one treatment for all
validation.py      which rows train and which evaluate: repeated cross-fitting, sequential validation, a single split
values.py          the value of a policy on given rewards, and paired differences
verdict.py         the verdict: which rule to use, from held-out comparisons, and whether these rows can decide it
"""
