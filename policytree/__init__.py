"""policytree: from data to the provably best small policy tree, and an honest value for it.

Names are loaded on first use, so that importing the package (and ``policytree --help``) stays quick.
"""

from importlib import import_module as _import_module

__version__ = "0.1.0"

_ROOMS = {
    "estimators": (
        "CostSensitiveTreeClassifier",
        "DRPolicyTree",
        "OptimalTreeClassifier",
        "PolicyTree",
        "TreePath",
        "tree_path",
    ),
    "weighting": ("MatchingRewards", "RewardEstimator", "cate_effects", "from_cate", "weighted_labels"),
    "calibration": ("calibration_table", "outcome_calibration_table", "outcome_fit_table"),
    "diagnostics": ("balance_table", "crump_trimming", "overlap_table"),
    "diagnostic_displays": ("CalibrationDisplay", "CovariateBalanceDisplay", "OutcomeFitDisplay", "OverlapDisplay"),
    "cross_validation": ("cross_val_policy_value",),
    "effect_regressions": ("best_linear_projection", "calibration_test"),
    "effects": ("average_effect",),
    "heterogeneity": ("heterogeneity_test",),
    "evaluation": ("leaf_summary", "policy_difference", "policy_value"),
    "study_check": ("check_rewards", "check_study"),
    "plotting": ("PolicyTreeDisplay", "PolicyValueDisplay", "plot_tree"),
    "datasets": ("load_dataset", "load_rand_hie"),
    "guesses": ("Guesses", "ReferenceGuesses"),
    "exceptions": ("BalanceWarning", "InputError", "OverlapWarning", "SearchWarning"),
    "types": ("Status",),
    "tree": ("Tree",),
}
_HOME = {name: room for room, names in _ROOMS.items() for name in names}

__all__ = ["__version__", *sorted(_HOME)]


def __getattr__(name):
    """Import a public name from its room on first use."""
    if name not in _HOME:
        raise AttributeError(f"module 'policytree' has no attribute {name!r}")
    return getattr(_import_module(f"policytree.{_HOME[name]}"), name)


def __dir__():
    return __all__
