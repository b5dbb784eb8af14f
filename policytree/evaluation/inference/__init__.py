"""Standard errors and intervals.

best_arm.py                  comparisons with the best of several alternatives when the best is not known beforehand
binary_intervals.py          intervals of shares in leaves: outcomes of two values, few rows, and shares near none
                             or all of them
cluster_bootstrap.py         bootstrap over clusters: how often each one is drawn, and percentile intervals of
                             bounds
half_samples.py              half-sample bootstrap: standard errors of estimates that are no plain means, with
                             clusters and weights
partial_identification.py    bounds of a quantity that the data do not pin down, with their standard errors and an
                             interval
simultaneous.py              intervals that hold together: critical values and medians of the largest of several
                             correlated estimates
step_down.py                 which rules are shown better: closed tests of several treatments and one learnt rule
"""
