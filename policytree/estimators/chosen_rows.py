"""Which rows chose which tree, by digests, so that a value on the same rows is recognised as flattered."""

from __future__ import annotations

import hashlib
import warnings
from collections import OrderedDict

import numpy as np

from policytree.common.callers import stacklevel_outside

MOST_REMEMBERED = 1_000  # fits of this process; a digest has 32 bytes
_chosen: OrderedDict[bytes, None] = OrderedDict()


def _digest(rewards: np.ndarray, received: np.ndarray) -> bytes | None:
    """Hash possible gains of rows and a rule's gains, where rewards differ; None if there is no such row.

    Rewards, their weighted labels and their losses have the same digest, to the last bit.
    """
    low = rewards.min(axis=1)
    span = rewards.max(axis=1) - low
    differs = span > 0
    if not differs.any():
        return None
    gains = np.stack([span, received - low])[:, differs]
    return hashlib.sha256(gains.tobytes()).digest()


def remember(rewards: np.ndarray, action: np.ndarray) -> None:
    """Keep in mind that these rows, with rewards (n, K), chose the rule that gives them these columns of theirs.

    A rule that gives all the same is not flattered to speak of, and is not remembered.
    """
    if (action == action[0]).all():
        return
    made = _digest(rewards, rewards[np.arange(len(rewards)), action])
    if made is not None:
        _chosen[made] = None
        _chosen.move_to_end(made)
        while len(_chosen) > MOST_REMEMBERED:
            _chosen.popitem(last=False)


def warn_if_chosen(rewards: np.ndarray, received: np.ndarray) -> None:
    """Warn if rows with these rewards chose the rule by which they receive these (n,)."""
    if _chosen and _digest(rewards, received) in _chosen:
        warnings.warn(
            "These rows chose the rule, so its value on them is flattered; pass rewards of rows that had no part in "
            "it, or use cross_val_policy_value.",
            stacklevel=stacklevel_outside(),
        )
