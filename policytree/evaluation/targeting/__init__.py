"""Whom to treat first, and the gain of a budget.

budget_path.py          budget_path: every tree that is optimal at some price of money, and its value on other people
cost_paths.py           in which order a growing budget buys treatments: hulls of all people at once, then one sort
least_budget.py         the least budget that reaches a gain: the inverse of a cost curve, with its confidence set
pareto_path.py          pareto_path: every tree on the Pareto front of two outcomes, and its value on other people
qini.py                 Qini curves: for every budget, the gain of treating the right people with the right treatment
rate.py                 whom first: how much more the people gain whom a priority ranks first (TOC curve, AUTOC, QINI)
reward_provenance.py    the rewards of an evaluation, and whether they are held out
toc.py                  the targeting operator characteristic (TOC), its areas, and their derivatives by the rows'
                        weights
"""
