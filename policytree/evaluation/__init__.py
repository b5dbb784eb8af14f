"""The value of rules and the evidence for it; every estimate has an influence function, clusters and weights.

estimates.py      means with standard errors from influence functions, of blocks and of repeated cross-fittings too
formatting.py     numbers with their errors as text
inputs.py         checks of rewards, policies, clusters and weights
inference/        intervals: half-samples, cluster bootstrap, simultaneous intervals, partial identification
policy_value/     the values of rules, on the training rows and held out; the verdict
regimes/          the values of treatment regimes over several stages, held out
leaves/           the people in each leaf, and the value of every treatment there
heterogeneity/    tests of whether effects differ between people, and regressions of effects on covariates
targeting/        whom to treat first, and the gain of a budget
instruments/      effects of offers, and the effect on those who follow them
sensitivity/      bounds under hidden confounding
stability/        recurrence over resamples, and the Rashomon set
streaming/        the same estimates from batches of rows

Names are imported on first use; they are listed in ``__init__.pyi``.
"""

from policytree.common.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
