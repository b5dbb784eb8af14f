"""Can the data carry the question? Overlap, balance and calibration.

baseline.py           Table 1: who was studied, by treatment
calibration.py        calibration of nuisance models: propensities and outcome models against out-of-fold
                      observations
overlap_balance.py    can the data carry the question? Overlap, trimming and balance, as tables with warnings
population_overlap.py can a study speak of another population? Overlap of study and target, and who is outside

Names are imported on first use; they are listed in ``__init__.pyi``.
"""

from policytree.common.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
