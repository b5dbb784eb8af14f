"""Whom to treat first, and what a budget buys.

budget_path.py          budget_path: every tree that is the best one at some price of money, and what it is worth on
                        other people
cost_paths.py           in which order a growing budget buys treatments: hulls of all people at once, then one sort
least_budget.py         the least budget that reaches a gain: the inverse of a cost curve, with its confidence set
qini.py                 what a budget buys: the gain of treating the right people with the right treatment, for
                        every budget (Qini curve)
rate.py                 whom first: how much more those gain whom a priority puts first (TOC curve, AUTOC, QINI)
reward_provenance.py    rewards that judge, and what is known of where they come from
spend.py                what a policy spends, and to how many it gives what, on people who did not choose it
toc.py                  the targeting operator characteristic (TOC), its areas, and their derivatives by the rows'
                        weights
"""
