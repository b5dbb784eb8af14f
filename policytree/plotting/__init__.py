"""Pictures of trees, of their partitions and of values, drawn with matplotlib; and what all pictures share."""

from policytree.plotting.common import LINE_COLORS, PALETTE, new_axes, room_for_names, short_name
from policytree.plotting.partition import PartitionDisplay, partition
from policytree.plotting.svg import to_svg
from policytree.plotting.trees import PolicyTreeDisplay, tree_html
from policytree.plotting.values import PolicyValueDisplay

__all__ = [
    "LINE_COLORS",
    "PALETTE",
    "PartitionDisplay",
    "PolicyTreeDisplay",
    "PolicyValueDisplay",
    "new_axes",
    "partition",
    "room_for_names",
    "short_name",
    "to_svg",
    "tree_html",
]
