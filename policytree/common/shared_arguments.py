"""Arguments that many functions take, described once; ``docstrings.shares_documentation`` inserts the texts."""

STUDY = """
Parameters
----------
Y : array of shape (n,), or Study
    Outcome, in its unit; or a :class:`policytree.Study`, which says all that follows, and more.
T : array of shape (n,)
    Treatment that each row received, labels of any type.
X : DataFrame or array of shape (n, p)
    Covariates that the rule may look at.
W : DataFrame or array of shape (n, q), optional
    Further confounders, for adjustment only.
propensity : optional
    Known assignment probabilities: a number (two treatments: the probability of the second label in sorted order), a
    mapping from label to probability, or an array or frame of shape (K,), (n,) or (n, K).
groups : array of shape (n,), optional
    Clusters; never split between folds, and standard errors count them.
sample_weight : array of shape (n,), optional
    Weights >= 0 of the rows, in fitting and in averages.
"""

JUDGED = """
Parameters
----------
rewards : DataFrame or array of shape (n, K)
    Reward of every row under every treatment, in the outcome's unit, for example from
    :class:`policytree.RewardEstimator`. Columns are the treatment labels; those of an array are 0, ..., K - 1. Rows are
    matched by position.
groups : array of shape (n,), optional
    Clusters, such as persons with several rows.
sample_weight : array of shape (n,), optional
    Sampling weights, >= 0.
level : float
    Coverage of the interval.
"""

HALF_SAMPLES = """
Parameters
----------
groups : array of shape (n,), optional
    Clusters, such as persons with several rows; those of ``HeldOutRewards`` unless given.
sample_weight : array of shape (n,), optional
    Sampling weights, >= 0; those of ``HeldOutRewards`` unless given.
level : float
    Coverage of the intervals.
n_bootstrap : int
    Half-samples for the standard errors; clusters are drawn whole, and the ranking is not learnt again.
random_state : int, RandomState or None
    Draws the half-samples; fixed by default, so that intervals do not change from run to run.
"""

SENSITIVITY = """
Parameters
----------
policy : PolicyValueTable, or array of shape (n,), one label, or array of shape (n, K)
    The table of :func:`policytree.cross_val_policy_value` stands for its learnt rules: bounds are computed in every
    repetition, on the rows that were judged, and put together as its values are (mean; variance ``N + kappa b``), so
    that intervals know of the noise that rules of different folds share. Bounds are then of the mean value of the rules
    as trained. Everything else is a fixed rule: the treatment of every row, one for all, or each one's probability.
Y : array of shape (n,)
    Outcome in its unit; with a table, of all rows that it was made from, in their order.
T : array of shape (n,)
    Treatment received.
baseline : policy, optional
    The rule that the policy is to be better than, in any form of ``policy``.
groups : array of shape (n,), optional
    Clusters, such as persons with several rows; those of a table unless given.
sample_weight : array of shape (n,), optional
    Sampling weights, >= 0; those of a table unless given.
held_out : bool, default False
    Whether the policy was chosen without these rows' outcomes. If not, numbers flatter it, and no intervals are given.
    One treatment for everybody (against another) was not chosen by rows, and a table is held out, so they need no such
    word. The rule that one repetition of a cross-fitting recommends (``table.policy``) is not fixed: its intervals are
    too short; pass the table.
level : float
    Coverage of the intervals.
n_bootstrap : int
    Draws of the percentile bootstrap, clusters taken whole, nuisances and rules kept.
random_state : int, RandomState or None
    Of the bootstrap, and of folds where some are drawn.
"""
