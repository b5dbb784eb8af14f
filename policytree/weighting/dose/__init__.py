"""Continuous treatments: rewards of doses.

outcome.py     expected outcomes as a smooth function of covariates and dose, cross-fitted
density.py     the conditional density of doses given covariates: location, scale and residuals
rewards.py     rewards of the doses of a grid, and of a little more for everybody
merging.py     doses of a grid that do not differ become one
"""
