"""Treatment regimes: a rule for every one of several decisions, each learnt with what was known by then.

stages.py            one decision, as the user says it
checking.py          stages checked and aligned: one course of decisions
course.py            all decisions on the same people, and the histories that they accumulate
long_tables.py       a row for every person and decision: long tables to stages
induction.py         backward induction: the later stages' scores are what an earlier stage is learnt from
joint.py             both stumps of two stages at once
sequences.py         fixed sequences of treatments, and who followed them
eligibility.py       who is eligible at a decision, in words
treatment_regime.py  TreatmentRegime, the estimator
export.py            a regime as text, rules, SQL and Python

Names are imported on first use; they are listed in ``__init__.pyi``.
"""

from policytree.common.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
