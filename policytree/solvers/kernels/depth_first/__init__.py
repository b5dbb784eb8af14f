"""Branch and bound above depth three.

    cache               what is known of sets of rows
    stack               the search stack, and the steps that change one level
    inherited_bounds    what one cut's sides hand on to the next cut's
    node_bounds         a node is solved outright, or its features are put in order
    search              depth three and more: depth first through features and cuts

A kernel calls kernels of its own file and of files before it, and of packages before this one.
"""

#: The files, each after those that it imports.
ORDER = ("cache", "stack", "inherited_bounds", "node_bounds", "search")
