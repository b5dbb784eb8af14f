"""Can the data carry the question? Overlap, balance and calibration.

calibration.py        calibration of nuisance models: propensities and outcome models against out-of-fold
                      observations
overlap_balance.py    can the data carry the question? Overlap, trimming and balance, as tables with warnings
target_overlap.py     can a study speak of another population? Overlap of study and target, and who is outside
"""
