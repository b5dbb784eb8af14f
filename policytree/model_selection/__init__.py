"""Folds that never split a cluster, and out-of-fold predictions."""
