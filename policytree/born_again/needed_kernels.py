"""The kernels that searches for born-again trees call."""

from __future__ import annotations

from policytree.born_again.kernels import blocks, cells, layers, trees, values

BORN_AGAIN = (
    cells.classify_cells, cells.cut_matters, blocks.find_blocks, blocks.rehash,
    values.least_depths, values.least_leaves, layers.fill_layers, trees.read_tree,
)  # fmt: skip
