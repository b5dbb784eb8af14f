"""Folds that never split a cluster, and out-of-fold predictions.

crossfit.py    out-of-fold predictions of any scikit-learn learner: no row is judged by a model that saw it
folds.py       fold plans: which rows are held out together, balanced over arms and never splitting a cluster
"""
