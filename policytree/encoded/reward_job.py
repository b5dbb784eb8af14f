"""The readings behind :func:`policytree.encoded.stream_rewards`: sizes, the sample, the models, scores.

Who is held out, every row's fold and the sample depend on the row's number (or its cluster) and the seed only, so not
on the size of batches. Every file is written whole under another name and renamed.
"""

from __future__ import annotations

import io
import zlib
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from sklearn.utils import check_random_state

from policytree.common.validation import is_real, position_of, sorted_labels
from policytree.data.sources import arrow
from policytree.encoded.draws import SAMPLE, Smallest, folds_of, held_out_of, random_bits
from policytree.encoded.hazards import Completion, fit_completion, hazard_rows
from policytree.encoded.jobs import NOTE, FolderJob
from policytree.encoded.nuisance_models import Batch, Model, ObservationModel, fit_models
from policytree.encoded.plan import CRC
from policytree.encoded.reading import MOST_CLASSES, check_weights, kinds_of, value_counts
from policytree.encoded.store import MANIFEST, STATE, crc_of
from policytree.encoded.study_rows import (
    columns_of_study,
    columns_to_score,
    covariate_frame,
    draw_keys,
    horizon_of,
    known_propensities,
    observed_rows,
    outcome_frame,
    outcomes,
    times_of,
    times_of_sample,
    treatment_positions,
    weights_of,
)
from policytree.exceptions import InputError
from policytree.model_selection.crossfit import MAX_CLASSES, predict_new
from policytree.serialization.files import save_bytes
from policytree.serialization.labels import label_to_json
from policytree.serialization.schema import (
    any_label,
    anything,
    many,
    mapping,
    matching,
    optional,
    real,
    record,
    refuse_repeated,
    whole,
)  # fmt: skip
from policytree.study.outcomes import TimeToEvent
from policytree.study.study import Study
from policytree.weighting.completion import complete_missing
from policytree.weighting.covariates import Covariates
from policytree.weighting.learners import one_thread
from policytree.weighting.nuisances import (
    learners_by_treatment,
    resolve_hazards,
    resolve_propensity,
    resolve_regression,
)
from policytree.weighting.propensities import propensity_matrix, warn_if_clipped, warn_if_unobserved, warn_of_small
from policytree.weighting.reward_arguments import check_parameters, refuse_infinite_rewards, resolve_scheme
from policytree.weighting.scheme import Nuisances, Scheme
from policytree.weighting.study_data import refuse_unseen_arms
from policytree.weighting.time_to_event.outcome import refuse_late_entries

FILE_ROWS = 1 << 18  # rows of the source to a file
FOLD = "fold"
LEARNING, HELD_OUT = "learning-", "held-out-"


@dataclass
class Sizes:
    """Results of the first reading.

    Attributes
    ----------
    counts : dict of label to ndarray of shape (n_folds,)
        Rows that learn, by treatment and fold.
    outcomes, propensity : Smallest
        The samples for outcome models, by label and fold, and for propensity models, by fold.
    values : set of float
        Different outcomes, while they are few.
    n_missing : int
        Rows without an outcome.
    met : DataFrame or None
        Columns of the outcome, a row for every value of those that hold labels.
    """

    outcomes: Smallest
    propensity: Smallest
    counts: dict[Any, np.ndarray] = field(default_factory=dict)
    values: set[float] = field(default_factory=set)
    rows: int = 0
    largest_weight: float = 0.0
    n_missing: int = 0
    met: pd.DataFrame | None = None

    @property
    def treatments(self) -> np.ndarray:
        """Labels, sorted."""
        return sorted_labels(np.array([*self.counts]))

    def few_values(self) -> np.ndarray:
        """The different outcomes, sorted; where there are many, some of them."""
        return np.array(sorted(self.values))

    def meet(self, frame: pd.DataFrame, labelled: list[str]) -> None:
        """Note which labels there are: what they mean depends on those of all rows."""
        if labelled:
            known = frame if self.met is None else pd.concat([self.met, frame])
            self.met = known.drop_duplicates(labelled)

    def add_outcomes(self, y: np.ndarray) -> None:
        """Note which outcomes there are, as long as there are few."""
        if len(self.values) <= MAX_CLASSES:
            self.values |= {*np.unique(y)[: MAX_CLASSES + 1].tolist()}


@dataclass(frozen=True)
class Ask:
    """Arguments of a job: see :func:`policytree.encoded.stream_rewards`."""

    estimator: Any
    study: Study
    held_out: float
    fit_rows: int


_SEED, _TIME = whole(0, 2**31), optional(real(0.0))
_FILE = matching(rf"({LEARNING}|{HELD_OUT})\d{{6,12}}\.parquet", "the name of a file of rewards")
_NOTE = record(
    {
        "rows": whole(), "files": mapping(_FILE, CRC), "low": many(whole()), "n_low": whole(), "least": many(real()),
        "n_raised": whole(), "horizon": _TIME, LEARNING: whole(), HELD_OUT: whole(),
    }
)  # fmt: skip
_MANIFEST = record(
    {
        "asked": anything, "seed": _SEED, "notes": many(_NOTE, 1), "treatments": many(any_label, 2),
        "learning": many(_FILE), "held_out": many(_FILE), "n_learning": whole(), "n_held_out": whole(),
        "n_raised": whole(), "horizon": _TIME, "n_clipped": whole(),
    }
)  # fmt: skip


def _manifest_fields(value: Any, name: str) -> dict[str, Any]:
    """The manifest, of which the sums are those of its notes."""
    found = _MANIFEST(value, name)
    notes, K = found["notes"], len(found["treatments"])
    refuse_repeated(found["treatments"], "The manifest has two treatments")
    refuse_repeated((file for note in notes for file in note["files"]), "The manifest has two files")
    sums = _sums(notes) | {"n_clipped": found["n_clipped"] and sum(note["n_low"] for note in notes)}
    rows_fit = all(note["rows"] == note[LEARNING] + note[HELD_OUT] for note in notes)
    if not rows_fit or any(found[key] != value for key, value in sums.items()):
        raise InputError("The sums do not agree with the notes of the files.")
    if any(len(note["low"]) != K or len(note["least"]) != K for note in notes):
        raise InputError("The notes of the files do not have one number for each treatment.")
    return found


def _sums(notes: list[dict]) -> dict[str, Any]:
    """Add up the notes of all files."""
    files = [name for note in notes for name in note["files"]]
    return {
        "learning": [name for name in files if name.startswith(LEARNING)],
        "held_out": [name for name in files if name.startswith(HELD_OUT)],
        "n_learning": sum(note[LEARNING] for note in notes),
        "n_held_out": sum(note[HELD_OUT] for note in notes),
        "n_raised": sum(note["n_raised"] for note in notes),
        "horizon": notes[0]["horizon"],
    }


class RewardJob(FolderJob):
    """One scoring of all rows of a source."""

    # Version 1 kept pickled models: they are never read, and go with what else stood in the folder.
    files, note = r"(learning|held-out)-\d{6,}\.parquet|notes-\d{6,}\.json|models\.joblib", "notes-{k:06d}.json"
    what, doing, again = "rewards", "call", "call stream_rewards again"
    fields: ClassVar = {MANIFEST: _manifest_fields, STATE: record({"asked": anything, "seed": _SEED}), NOTE: _NOTE}
    seed: int
    treatments: np.ndarray
    scheme: Scheme
    covariates: Covariates
    models: list[Model]
    some_missing: bool  # whether some row has no outcome
    completion: Completion | None = None  # where outcomes are times

    def __init__(self, ask: Ask, directory: Path, asked: dict):
        columns, source = columns_to_score(ask.study), ask.study.source
        super().__init__(source, columns, FILE_ROWS, directory, asked)
        self.ask, self.study, self.n_folds = ask, ask.study, int(ask.estimator.cv)
        self.kinds = kinds_of(ask.study, source, columns)

    def whole(self) -> dict[str, Any] | None:
        """The manifest that this very job has written before; None if files of it were damaged since."""
        manifest = self.read(MANIFEST)
        return manifest if all(self.is_intact(note) for note in manifest["notes"]) else None

    def run(self) -> dict[str, Any]:
        """Everything, from where an earlier run ended; or what was damaged since; the manifest."""
        notes, n_files, seed = {}, None, check_random_state(self.ask.estimator.random_state).randint(2**31 - 1)
        if (self.directory / MANIFEST).exists():
            manifest = self.read(MANIFEST)
            self.seed, n_files = manifest["seed"], len(manifest["notes"])
            notes = {k: note for k, note in enumerate(manifest["notes"]) if self.is_intact(note)}
        else:
            self.seed = self.begin(lambda: {"seed": seed})["seed"]
            notes = self.known_notes()
        self.total = self.source.count_rows()
        sizes = self._sizes()
        self.total, self.treatments = sizes.rows, sizes.treatments
        self._check(sizes)
        every = self._score(sizes, notes, n_files)
        self.end(self._manifest(every), len(every))
        self._warn(every)
        return self.read(MANIFEST)

    def is_intact(self, note: dict) -> bool:
        """Whether the files of a note hold what was written."""
        return all(crc_of(self.directory / file) == crc for file, crc in note["files"].items())

    # --- who learns, and in which fold ---

    def _keys(self, table: Any, first_row: int) -> np.ndarray:
        return draw_keys(table, self.study, self.kinds, first_row)

    def _places(self, keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Fold of every row, and whether it is held out."""
        return folds_of(keys, self.seed, self.n_folds), held_out_of(keys, self.seed, self.ask.held_out)

    def _row_bits(self, table: Any, first_row: int) -> np.ndarray:
        rows = np.arange(first_row, first_row + table.num_rows, dtype=np.uint64)
        return random_bits(rows, self.seed, SAMPLE)

    def _sizes(self) -> Sizes:
        per_fold = -(-self.ask.fit_rows // (self.n_folds - 1))
        sizes, study = Sizes(Smallest(per_fold), Smallest(per_fold)), self.study
        treatment = study.treatment.column
        for first_row, table in self.tables("Reading treatments", columns=columns_of_study(study)):
            y, seen = outcomes(table, study, self.kinds, first_row)
            sizes.meet(outcome_frame(table, study, self.kinds), study.outcome.labelled)
            sizes.add_outcomes(y[seen])
            sizes.n_missing += int((~seen).sum())
            if isinstance(study.outcome, TimeToEvent):
                self._check_times(horizon_of(study), table, first_row, weights_of(table, study, first_row))
            labels = [*value_counts(table.column(treatment))]
            if len(sizes.counts.keys() | {*labels}) > MOST_CLASSES:
                raise InputError(
                    f"Column {treatment!r} of treatment holds more than {MOST_CLASSES:,} values; is it the right "
                    "column?"
                )
            arm = treatment_positions(table, treatment, labels, first_row)
            weight = weights_of(table, study, first_row)
            fold, out = self._places(self._keys(table, first_row))
            bits = self._row_bits(table, first_row)
            for f in range(self.n_folds):
                learns = (fold == f) & ~out
                sizes.propensity.add(f, bits[learns])
                for k, label in enumerate(labels):
                    own = learns & (arm == k) & seen
                    sizes.outcomes.add((label, f), bits[own])
                    sizes.counts.setdefault(label, np.zeros(self.n_folds, np.int64))[f] += own.sum()
            sizes.rows += table.num_rows
            sizes.largest_weight = max(sizes.largest_weight, 0.0 if weight is None else float(weight.max()))
        return sizes

    def _check_times(self, horizon: float | None, table: Any, first_row: int, weight: np.ndarray | None) -> None:
        times = times_of(table, self.study, self.kinds, first_row, horizon=horizon or np.inf)
        if horizon is not None and times.entry is not None:
            late = times.entry >= horizon
            refuse_late_entries(int((late if weight is None else late & (weight > 0.0)).sum()), horizon)

    def _check(self, sizes: Sizes) -> None:
        if sizes.rows == 0:
            raise InputError("The source has no rows; there is nothing to score.")
        if sizes.met is not None:
            self.study.outcome.arguments(sizes.met)  # whether labels mean something is decided by all of them
        self.some_missing = sizes.n_missing > 0
        if self.some_missing:
            n_seen = np.array([sizes.counts[label].sum() for label in self.treatments.tolist()])
            refuse_unseen_arms(n_seen, self.treatments)
        if self.study.weights is not None:
            check_weights(sizes.largest_weight)
        if len(self.treatments) < 2:
            raise InputError(
                f"Column {self.study.treatment.column!r} of treatment holds {self.treatments[0]!s} only; rewards "
                "compare at least two."
            )
        if self.study.control is not None:
            position_of(self.study.control, self.treatments, "control")
        for label, count in sizes.counts.items():
            if (count == count.sum()).any():
                raise InputError(
                    f"All {count.sum()} rows of treatment {label} that learn fall into one fold, so no model could "
                    "learn it; use fewer folds, hold out less, or leave its rows out."
                )
        check_parameters(self.ask.estimator, len(self.treatments))
        if is_real(self.study.propensity):
            counts = np.array([sizes.counts[label].sum() for label in self.treatments.tolist()])
            propensity_matrix(self.study.propensity, 1, self.treatments, shares=counts / counts.sum())
        self.scheme = resolve_scheme(self.ask.estimator, self.treatments)
        twice = {str(t) for t in self.treatments} & {*self.copied, FOLD}
        if twice or FOLD in self.copied:
            name = min(twice or {FOLD})
            raise InputError(f"The rewards are written beside a column that is called {name!r}; rename that column.")

    @property
    def copied(self) -> list[str]:
        """Columns that stand beside the rewards."""
        study = self.study
        some = [*study.covariates, study.treatment.column, study.weights, study.cluster]
        return list(dict.fromkeys(name for name in some if name is not None))

    # --- models ---

    def _fit(self, sizes: Sizes) -> None:
        """Fit all models; a job that goes on fits them again, so that no folder is trusted with what can run code."""
        sample = self._sample(sizes)
        values = sizes.few_values()
        if sample.times is not None:
            sample = self._complete_sample(sample)
            values = np.unique(sample.y if sample.in_outcomes is None else sample.y[sample.in_outcomes])
            values = values[: MAX_CLASSES + 1]
        self.models = self._unfitted(values)
        with ExitStack() as stack:
            done, advance = 0, None
            if self.stage is not None and self.models:
                advance = stack.enter_context(self.stage("Fitting nuisance models", len(self.models)))

            def told() -> None:
                nonlocal done
                done += 1
                if advance is not None:
                    advance(done, len(self.models))

            executor = self.ask.estimator.executor
            self.models = fit_models(self.models, sample, self._batches, self.each, executor, told)

    def _complete_sample(self, sample: Batch) -> Batch:
        """Fit hazards to a part of the sample, and complete the outcomes of all of it by them."""
        estimator = self.ask.estimator
        entry = "entry" in self.study.outcome.columns()
        stacks = resolve_hazards(estimator.model_event, estimator.model_censoring, entry)
        with ExitStack() as stack:
            if self.stage is not None:
                stack.enter_context(self.stage("Fitting hazards", None))
            executor = self.pool if estimator.executor is None else estimator.executor
            floor = estimator.min_observed
            self.completion = fit_completion(sample, self.n_folds, self.treatments, stacks, floor, executor)
            return self._completed(sample, np.zeros(len(sample.y), dtype=bool))[0]

    def _completed(self, batch: Batch, out: np.ndarray) -> tuple[Batch, np.ndarray]:
        """Rows with what takes the place of censored outcomes, and whose probability to be followed was raised."""
        if self.completion is None:
            return batch, np.zeros(len(out), dtype=bool)
        with one_thread(None):
            y, raised = self.completion.outcomes(batch, out, self.each)
        return replace(batch, y=y), raised

    def _unfitted(self, values: np.ndarray) -> list[Model]:
        """All models; ``values``: the different outcomes that models of outcomes learn from, where they are few."""
        estimator, folds = self.ask.estimator, range(self.n_folds)
        models: list[Model] = []
        if self.scheme.needs_regression:
            learner = resolve_regression(estimator.model_regression, values, True, self.seed)
            learners = learners_by_treatment(learner, self.treatments)
            models += [Model(each, f, k, values) for f in folds for k, each in enumerate(learners)]
        if self.scheme.needs_propensity and self.study.propensity is None:
            learner = resolve_propensity(estimator.model_propensity, True)
            models += [Model(learner, f, None, np.arange(len(self.treatments))) for f in folds]
        if self.some_missing:
            learner = resolve_propensity(estimator.model_observation, True, "model_observation")
            models += [ObservationModel(learner, f, None, np.arange(2), n_arms=len(self.treatments)) for f in folds]
        return models

    def _sample(self, sizes: Sizes) -> Batch:
        """The rows that models are fitted to, and covariates as numbers, learnt from them."""
        study, kinds, pa = self.study, self.kinds, arrow()
        by_arm = [
            [sizes.outcomes.threshold((label, f)) for f in range(self.n_folds)] for label in self.treatments.tolist()
        ]
        most, most_of_all = np.array(by_arm), np.array([sizes.propensity.threshold(f) for f in range(self.n_folds)])
        kept = []
        for first_row, table in self.tables("Drawing the sample that models see"):
            keys = self._keys(table, first_row)
            fold, out = self._places(keys)
            bits = self._row_bits(table, first_row)
            arm = treatment_positions(table, study.treatment.column, self.treatments.tolist(), first_row)
            of_outcomes, of_propensity = bits <= most[arm, fold], bits <= most_of_all[fold]
            if self.some_missing:
                of_outcomes &= outcomes(table, study, kinds, first_row)[1]
            use = np.flatnonzero((of_outcomes | of_propensity) & ~out)
            arrays = (arm[use], fold[use], of_outcomes[use], of_propensity[use], keys[use], bits[use])
            kept.append((table.take(pa.array(use)), arrays))
        table = pa.concat_tables([t for t, _ in kept], promote_options="permissive")
        arm, fold, of_outcomes, of_propensity, key, bits = (
            np.concatenate(each) for each in zip(*(a for _, a in kept), strict=True)
        )
        del kept
        X, W = (covariate_frame(table, which, kinds) for which in (study.covariates, study.confounders))
        self.covariates = Covariates.fit(X, W)
        groups = None if study.cluster is None else np.unique(key, return_inverse=True)[1]
        Z, (y, seen) = self.covariates.matrix(X, W), outcomes(table, study, kinds, 0)
        sample = Batch(Z, y, arm, fold, weights_of(table, study, 0), groups, of_outcomes, of_propensity, seen)
        if not isinstance(study.outcome, TimeToEvent):
            return sample
        use, n_arms = np.flatnonzero(of_outcomes), len(self.treatments)
        horizon = times_of_sample(table.take(pa.array(use)), study, kinds, arm[use], self.treatments).horizon
        of_hazards = np.zeros(len(y), dtype=bool)
        of_hazards[use] = hazard_rows(bits[use], arm[use], fold[use], n_arms, self.n_folds, self.ask.fit_rows)
        return replace(sample, times=times_of(table, study, kinds, horizon=horizon), in_hazards=of_hazards)

    def _batch(self, table: Any, first_row: int, fold: np.ndarray) -> Batch:
        """Rows of a table; outcomes as they were observed."""
        study, kinds = self.study, self.kinds
        X, W = (covariate_frame(table, which, kinds) for which in (study.covariates, study.confounders))
        arm = treatment_positions(table, study.treatment.column, self.treatments.tolist(), first_row)
        y, seen = outcomes(table, study, kinds, first_row)
        weight, times = weights_of(table, study, first_row), None
        if self.completion is not None:
            times = times_of(table, study, kinds, first_row, horizon=self.completion.horizon)
        return Batch(self.covariates.matrix(X, W), y, arm, fold, weight, seen=seen, times=times)

    def _batches(self) -> Iterator[Batch]:
        """All rows that learn."""
        for first_row, table in self.tables("Fitting nuisance models to all rows"):
            fold, out = self._places(self._keys(table, first_row))
            batch = self._batch(table.filter(arrow().array(~out)), first_row, fold[~out])
            yield self._completed(batch, np.zeros(len(batch.y), dtype=bool))[0]

    # --- scores ---

    def _score(self, sizes: Sizes, notes: dict[int, dict], n_files: int | None) -> list[dict]:
        """Write all files that are not known; returns what is to be known of each."""
        if sum(note["rows"] for note in notes.values()) < sizes.rows:
            self._fit(sizes)
            for k, first_row, table in self.missing_tables("Writing rewards", notes, n_files):
                notes[k] = self._write(k, table, first_row)
                if n_files is None:
                    self.save_note(k, notes[k])
        if sum(note["rows"] for note in notes.values()) != sizes.rows:
            raise InputError("The source changed while it was read; score it again, with overwrite=True.")
        self.source.refuse_changed()
        return [notes[k] for k in range(len(notes))]

    def _write(self, k: int, table: Any, first_row: int) -> dict:
        fold, out = self._places(self._keys(table, first_row))
        batch, raised = self._completed(self._batch(table, first_row, fold), out)
        nuisances = self._nuisances(batch, out, table, first_row)
        observed = observed_rows(batch.y, batch.arm, self.treatments, batch.weight, batch.seen)
        if nuisances.observation is not None:
            assert batch.seen is not None, "outcomes are numbers"
            raised = (nuisances.observation < self.ask.estimator.min_observed) & batch.seen
            observed = complete_missing(observed, nuisances, self.ask.estimator.min_observed)
        rewards = self.scheme.rewards(observed, nuisances)
        refuse_infinite_rewards(rewards, self.treatments, first_row)
        pa = arrow()
        beside = table.select(self.copied).append_column(FOLD, pa.array(np.where(out, -1, fold)))
        for label, column in zip(self.treatments, rewards.T, strict=True):
            beside = beside.append_column(str(label), pa.array(column))
        note: dict[str, Any] = {"rows": table.num_rows, "files": {}, **self._small(nuisances.as_estimated)}
        note["n_raised"] = int(raised.sum())
        note["horizon"] = None if self.completion is None else self.completion.horizon
        for prefix, use in ((LEARNING, ~out), (HELD_OUT, out)):
            note[prefix] = int(use.sum())
            if use.any():
                name = f"{prefix}{k:06d}.parquet"
                note["files"][name] = _save_parquet(self.directory / name, beside.filter(pa.array(use)))
        return note

    def _small(self, propensity: np.ndarray | None) -> dict[str, Any]:
        """How many propensities (m, K) are below the floor, by treatment and in any; and the smallest."""
        if propensity is None:
            return {"low": [0] * len(self.treatments), "n_low": 0, "least": [1.0] * len(self.treatments)}
        low = propensity < self.ask.estimator.min_propensity
        counts = {"low": low.sum(axis=0).tolist(), "n_low": int(low.any(axis=1).sum())}
        return counts | {"least": propensity.min(axis=0).tolist()}

    def _nuisances(self, batch: Batch, out: np.ndarray, table: Any, first_row: int) -> Nuisances:
        """Predict the scheme's nuisances, estimated propensities raised to the floor; known ones are never changed."""
        regression = propensity = raw = observation = None
        if self.scheme.needs_regression:
            by_arm = [[m for m in self.models if m.arm == k] for k in range(len(self.treatments))]
            regression = np.column_stack(self.each(lambda models: self._predicted(models, batch, out), by_arm))
        if self.scheme.needs_propensity and self.study.propensity is not None:
            propensity = known_propensities(table, self.study.propensity, self.treatments, first_row)
        elif self.scheme.needs_propensity:
            models = [m for m in self.models if m.arm is None and not isinstance(m, ObservationModel)]
            raw = self._predicted(models, batch, out)
            propensity = np.maximum(raw, self.ask.estimator.min_propensity)
        if self.some_missing:
            models = [m for m in self.models if isinstance(m, ObservationModel)]
            observation = self._predicted(models, batch, out)[:, 1]
        return Nuisances(regression, propensity, raw, observation)

    def _predicted(self, models: list[Model], batch: Batch, out: np.ndarray) -> np.ndarray:
        """Predictions by the model that did not see a row's fold; of rows held out, the average of all.

        ``models``: of one nuisance, in the order of the folds.
        """
        first, fitted = models[0], tuple(m.fitted for m in models if m.fitted is not None)
        predicted = np.empty((len(out), len(first.values)) if first.arm is None else len(out))
        if out.any():
            predicted[out] = predict_new(fitted, first.columns(batch, np.flatnonzero(out)))
        for f, model in enumerate(fitted):
            rows = np.flatnonzero(~out & (batch.fold == f))
            if len(rows):
                predicted[rows] = model.predict(first.columns(batch, rows))
        if not np.isfinite(predicted).all():
            raise InputError(
                "A nuisance model predicts missing or infinite values; use another one, or rescale the data."
            )
        return predicted

    def _manifest(self, notes: list[dict]) -> dict[str, Any]:
        return {
            "seed": self.seed,
            "notes": notes,
            "treatments": [label_to_json(label) for label in self.treatments.tolist()],
            **_sums(notes),
            "n_clipped": 0 if self.study.propensity is not None else sum(note["n_low"] for note in notes),
        }

    def _warn(self, notes: list[dict]) -> None:
        counts = np.sum([note["low"] for note in notes], axis=0)
        n_low = sum(note["n_low"] for note in notes)
        n, floor = sum(note["rows"] for note in notes), self.ask.estimator.min_propensity
        if self.study.propensity is None:
            warn_if_clipped(counts, n_low, n, floor, self.treatments)
        else:
            least = np.min([note["least"] for note in notes], axis=0)
            warn_of_small(counts, least, n, floor, self.treatments)
        warn_if_unobserved(sum(note["n_raised"] for note in notes), n, self.ask.estimator.min_observed)


def _save_parquet(path: Path, table: Any) -> int:
    """Write a table whose pages have checksums, which readers test; returns the checksum of the file."""
    import pyarrow.parquet as parquet

    stream = io.BytesIO()
    parquet.write_table(table, stream, write_page_checksum=True)
    content = stream.getvalue()
    save_bytes(path, content)
    return zlib.crc32(content)
