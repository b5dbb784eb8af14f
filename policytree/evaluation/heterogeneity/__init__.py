"""Whether treatment effects differ between people, and with what.

global_tests.py         do effects differ between people at all? One test to look at before any tree
linear_projection.py    regressions of effects: on predicted effects (are they calibrated?) and on covariates (a
                        linear summary)
"""
