"""Tables of codes from rows that stream by.

    code_tables    rows that stream by, added up by codes of two or three features

A kernel calls kernels of its own file and of files before it, and of packages before this one.
"""

#: The files, each after those that it imports.
ORDER = ("code_tables",)
