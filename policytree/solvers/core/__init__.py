"""From a problem to integer rows and back to a tree: fixed point, merging, limits, compilation. No search."""
