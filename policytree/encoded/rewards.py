"""stream_rewards: cross-fitted rewards of rows of any number, written a batch at a time."""

from __future__ import annotations

import os
import pickle
import secrets
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import joblib
from sklearn.base import clone

from policytree.common.executors import check_executor
from policytree.common.validation import check_count, check_verbose, is_real
from policytree.encoded.reward_job import Ask, RewardJob
from policytree.encoded.study_rows import check_scored
from policytree.exceptions import InputError, quoted
from policytree.study.outcomes import Rewards, TimeToEvent
from policytree.study.study import Study
from policytree.weighting.registry import SCHEMES
from policytree.weighting.reward_arguments import is_instrumental, is_matched, scores_by_row
from policytree.weighting.time_to_event.outcome import resolve_target

VERSION = 2  # 1: columns by their roles, without kinds


@dataclass(frozen=True)
class StreamedRewards:
    """Rewards on the disk, made by :func:`policytree.encoded.stream_rewards`.

    Attributes
    ----------
    directory : Path
    rewards : list of str
        Columns of the files, one a treatment.
    treatments : list
        The treatments, in the same order.
    learning_files, held_out_files : list of Path
        Parquet files of the rows that learn, and of those that are held out: covariates, treatment, weights, clusters,
        ``fold`` (-1 where held out), and the rewards.
    n_learning, n_held_out : int
        Rows.
    n_clipped : int
        Rows with a propensity raised to ``min_propensity``.
    n_raised : int
        Rows whose probability of being observed was raised to ``min_observed``.
    horizon, target : float and str, or None
        Of times to an event.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np, pandas as pd
    >>> from sklearn.linear_model import LinearRegression
    >>> from policytree import RewardEstimator, Study
    >>> from policytree.encoded import stream_rewards
    >>> rng = np.random.default_rng(0)
    >>> rows = pd.DataFrame({"age": rng.integers(20, 80, 400), "drug": rng.choice(["no", "yes"], 400)})
    >>> rows["gain"] = (rows.drug == "yes") * 1.0
    >>> study = Study(rows, treatment="drug", outcome="gain", covariates=["age"], propensity=0.5)
    >>> estimator = RewardEstimator(LinearRegression(), cv=2, random_state=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     scores = stream_rewards(estimator, study, directory=folder)
    ...     scores.learning.outcome
    ...
    Rewards(of=('no', 'yes'))
    """

    directory: Path
    rewards: list[str]
    treatments: list
    learning_files: list[Path]
    held_out_files: list[Path]
    n_learning: int
    n_held_out: int
    n_clipped: int
    n_raised: int = 0
    horizon: float | None = None
    target: str | None = None
    study: Study | None = field(default=None, compare=False, repr=False)

    @property
    def learning(self) -> Study:
        """The rows that learn, with their rewards as outcomes: what :func:`policytree.encoded.encode` takes."""
        return self._of(self.learning_files)

    @property
    def held_out(self) -> Study:
        """The rows held out, likewise: what :meth:`policytree.PolicyTree.streamed_values` takes.

        Raises
        ------
        InputError
            If no rows were held out.
        """
        if not self.held_out_files:
            raise InputError("No rows were held out; score them with held_out= above 0.")
        return self._of(self.held_out_files)

    def _of(self, files: list[Path]) -> Study:
        study = self.study
        assert study is not None, "of which these are the rewards"
        return Study(
            files, treatment=study.treatment, outcome=Rewards(self.rewards), direction=study.direction,
            covariates=study.covariates, control=study.control, cluster=study.cluster, weights=study.weights,
            randomized=study.randomized, unit=study.unit, name=study.name,
        )  # fmt: skip

    def __repr__(self) -> str:
        return (
            f"StreamedRewards({str(self.directory)!r}: {', '.join(self.rewards)}; {self.n_learning:,} rows that learn, "
            f"{self.n_held_out:,} held out)"
        )


def stream_rewards(
    estimator: Any,
    study: Study,
    *,
    directory: str | os.PathLike,
    held_out: float = 0.2,
    fit_rows: int = 1_000_000,
    overwrite: bool = False,
    n_jobs: int = 1,
    verbose: int = 0,
) -> StreamedRewards:
    """Estimate every treatment's reward for every row, for more rows than memory holds, as Parquet files.

    Rows that learn are scored as by :meth:`policytree.RewardEstimator.fit`: each by models that saw neither its fold
    nor its cluster. Rows held out are scored as by :meth:`policytree.RewardEstimator.predict_rewards`, by the average
    of all fold models; no model has seen them, so that a tree fitted to the rows that learn has an honest value there.

    Parameters
    ----------
    estimator : RewardEstimator
        Learners, folds (``cv``, a number), ``min_propensity``, ``min_observed``, ``random_state``, ``executor`` and
        ``method`` ("dr", "ipw" or "regression"). It is not changed.
    study : Study
        Rows in memory or larger than it; they are read three times, once more if a learner streams. Outcomes are
        numbers, an :class:`policytree.study.Event`, times to an event, or any of these but times with gaps
        (:class:`policytree.study.MayBeMissing`). The default horizon of times is that of the rows that models are
        fitted to. Clusters stay together in folds and in what is held out; the time of entry may be a covariate, too.
    directory : path
        Folder for the rewards, which is made if it does not exist.
    held_out : float in [0, 1), default 0.2
        Share of the rows (or clusters) that is held out.
    fit_rows : int, default 1,000,000
        Most rows that one model without ``partial_fit`` is fitted to: a random sample of the rows it may see. All
        models together keep at most some ``fit_rows * (K + 1) * cv / (cv - 1)`` rows in memory. Models of hazards learn
        from rows of person-time, of which every row has up to 24: they are fitted to ``fit_rows / 24`` rows, equally
        many of every treatment.
    overwrite : bool, default False
        Whether to replace other rewards in ``directory``.
    n_jobs : int, default 1
        Threads.
    verbose : int, default 0
        1 shows progress.

    Returns
    -------
    StreamedRewards

    Raises
    ------
    InputError
        If a column or an argument cannot be used, or the folder cannot be written to.

    Warns
    -----
    OverlapWarning
        If many estimated propensities fall below ``min_propensity``, or probabilities of being observed below
        ``min_observed``.

    Notes
    -----
    Learners with ``partial_fit`` (also as the last step of a pipeline; its earlier steps are fitted to the sample) see
    all rows, once, in batches. Others, and the default ones, see the sample. Doubly robust scores of 20,000,000 rows
    lose little by that: errors of the two nuisance models enter as their product, and a model of 1,000,000
    rows is far more precise than one row's noise. Folds and samples depend on the row's place in the source (or its
    cluster) and on the seed only.

    Times to an event are completed before outcome models see them: each row's by hazards that saw neither its fold nor
    its cluster, as in memory. Here, outcome models learn from completed outcomes alone, and do not mix in what the
    models of events expect. Of missing outcomes, ``model_observation="auto"`` is a logistic regression.

    Once is too seldom for some learners: stochastic gradient descent on splines left an interval off the truth at
    1,000,000 rows (``benchmarks/results/larger_than_memory_rewards_streaming.csv``), and not at 5,000,000. If in doubt,
    leave the default.

    A job that was stopped goes on where it was if the same call is made again and the files did not change: its models
    are fitted again, with the same folds, samples and seed, and files that were written stay. Of a job that has ended,
    files that were damaged since are written again. (Learners that draw take a ``random_state`` of their own if files
    are to hold what they would have held without a stop.)

    Nothing in ``directory`` can run code: it holds Parquet and JSON with checksums, and no models. Who may write to it
    can change rewards, though.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np, pandas as pd
    >>> from policytree import PolicyTree, RewardEstimator, Study
    >>> from policytree.encoded import encode, stream_rewards
    >>> rng = np.random.default_rng(0)
    >>> rows = pd.DataFrame({"age": rng.integers(20, 80, 4000), "drug": rng.choice(["no", "yes"], 4000)})
    >>> rows["gain"] = (rows.drug == "yes") * (rows.age - 50) / 10 + rng.normal(size=4000)
    >>> study = Study(rows, treatment="drug", outcome="gain", covariates=["age"], propensity=0.5)
    >>> estimator = RewardEstimator(cv=3, random_state=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     scores = stream_rewards(estimator, study, held_out=0.5, directory=f"{folder}/scores")
    ...     tree = PolicyTree(max_depth=1).fit(encode(scores.learning, directory=f"{folder}/codes"))
    ...     values = tree.streamed_values(scores.held_out)
    ...
    >>> tree.predict(pd.DataFrame({"age": [30, 70]})).tolist()
    ['no', 'yes']
    """
    ask = _ask(estimator, study, held_out, fit_rows)
    check_count(n_jobs, "n_jobs", 1)
    check_verbose(verbose)
    job = RewardJob(ask, Path(directory), _asked(ask))
    found, directory = job.carry_out(overwrite, n_jobs, verbose), job.directory
    treatments, outcome = found["treatments"], study.outcome
    return StreamedRewards(
        directory,
        [str(label) for label in treatments],
        treatments,
        [directory / name for name in found["learning"]],
        [directory / name for name in found["held_out"]],
        found["n_learning"],
        found["n_held_out"],
        found["n_clipped"],
        found["n_raised"],
        found["horizon"],
        resolve_target(outcome.measure, outcome.cause).name if isinstance(outcome, TimeToEvent) else None,
        study,
    )


def _asked(ask: Ask) -> dict:
    """Identify a job by its arguments, as JSON."""
    study = ask.study
    settings = {name: value for name, value in clone(ask.estimator).get_params().items() if name != "executor"}
    roles = (study.treatment, study.outcome, study.covariates, study.confounders, study.weights, study.cluster)
    return {
        "version": VERSION,
        "roles": repr(roles),
        "settings": _fingerprint([settings, study.propensity]),
        "held_out": ask.held_out,
        "fit_rows": ask.fit_rows,
    }


def _fingerprint(settings: list) -> str:
    """The same for the same settings; new every time for learners that cannot be pickled, whose jobs begin anew."""
    try:
        return joblib.hash(settings)
    except (pickle.PicklingError, TypeError, AttributeError):  # raised by pickle for functions and local classes
        return secrets.token_hex(16)


def _ask(estimator: Any, study: Study, held_out: float, fit_rows: int) -> Ask:
    """Everything that can be checked before the rows are read."""
    check_scored(study)
    _check_estimator(estimator)
    check_executor(estimator.executor)
    if not is_real(held_out) or not 0.0 <= held_out < 1.0:
        raise InputError(f"held_out must lie in [0, 1); got {quoted(held_out)}.")
    check_count(fit_rows, "fit_rows", 1)
    return Ask(estimator, study, float(held_out), int(fit_rows))


def _check_estimator(estimator: Any) -> None:
    """Refuse what cannot be done a batch at a time."""
    settings = (
        "model_regression",
        "model_propensity",
        "method",
        "min_propensity",
        "cv",
        "n_repeats",
        "estimand",
        "executor",
        "model_event",
        "model_censoring",
        "model_observation",
        "min_observed",
    )
    if isinstance(estimator, type) or not all(hasattr(estimator, name) for name in settings):
        raise InputError(f"estimator must be a RewardEstimator; got {type(estimator).__name__}.")
    if is_instrumental(estimator):
        raise InputError("Rewards in batches know no instrument; pass the offers as treatment, or score in memory.")
    if estimator.estimand != "all":
        raise InputError("Rewards in batches are about all rows; leave estimand at 'all', or score a table in memory.")
    if estimator.n_repeats != 1:
        raise InputError("Rewards in batches are cross-fitted once; leave n_repeats at 1, or score a table in memory.")
    if getattr(estimator, "model_effects", None) is not None:
        raise InputError("Rewards in batches come without a model of effects; leave model_effects at None.")
    cv = estimator.cv
    if isinstance(cv, bool) or not isinstance(cv, int) or cv < 2:
        raise InputError(f"Rewards in batches take a number of folds of at least 2 as cv; got {quoted(cv)}.")
    method = estimator.method
    method = SCHEMES.get(method, method) if isinstance(method, str) else method
    if is_matched(estimator) or not (isinstance(method, str) or scores_by_row(method)):
        known = ", ".join(repr(name) for name, scheme in SCHEMES.items() if scores_by_row(scheme))
        raise InputError(
            f"Rewards in batches are scored row by row; set method to one of {known}, or score a table in memory."
        )
