"""From outcomes and treatments to rewards: one scheme per file, one line per scheme here."""

from policytree.weighting.doubly_robust import DoublyRobust

# Schemes by name; a new one is its file and its line. RewardEstimator also takes instances.
SCHEMES = {
    "doubly_robust": DoublyRobust(),
}

from policytree.weighting.reward_estimator import RewardEstimator  # noqa: E402  (it looks schemes up above)

__all__ = ["SCHEMES", "DoublyRobust", "RewardEstimator"]
