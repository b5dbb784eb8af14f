"""Tests of policytree; a package, so that tests share ``tests.support.oracles`` and ``tests.support.strategies``."""
