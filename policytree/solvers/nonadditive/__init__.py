"""Objectives that are no sum over rows: fractional programming for the F-score, ranking for the AUC."""
