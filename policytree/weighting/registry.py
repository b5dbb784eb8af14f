"""Schemes by name; a new one is its file and its line here. ``RewardEstimator(method=)`` also takes instances."""

from __future__ import annotations

from policytree.weighting.direct_method import DirectMethod
from policytree.weighting.doubly_robust import DoublyRobust
from policytree.weighting.inverse_propensity import InversePropensity
from policytree.weighting.scheme import Scheme

SCHEMES: dict[str, Scheme] = {
    "dr": DoublyRobust(),
    "dr_normalized": DoublyRobust(normalized=True),
    "ipw": InversePropensity(),
    "ipw_normalized": InversePropensity(normalized=True),
    "regression": DirectMethod(),
}
