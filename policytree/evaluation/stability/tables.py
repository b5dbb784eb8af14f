"""Recurrence over resamples: splits, thresholds, each person's treatment; as tables and in words."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from policytree.common.validation import check_count
from policytree.data.views import Shown, as_text
from policytree.evaluation.formatting import share_columns, text_frame
from policytree.evaluation.stability.resamples import BOOTSTRAP, Split
from policytree.exceptions import InputError, quoted
from policytree.trees.text import format_threshold

if TYPE_CHECKING:
    from policytree.plotting.stability import PolicyStabilityDisplay

SETTLED = 0.9
N_RANGES = 10
N_DRAWS = 200  # of all policies anew, for a standard error


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PolicyStability(Shown):
    """Policies learnt from resamples of one study, each applied to all its people.

    Shares of resamples have a Monte-Carlo error of ``sqrt(p (1 - p) / n_resamples)``.

    Attributes
    ----------
    treatments : ndarray of shape (K,)
    index : Index
        Row labels of the study.
    policies : ndarray of shape (n_resamples, n), int16
        Positions of the treatments.
    splits : tuple (one per resample) of tuples of Split
    n_leaves : tuple of int
    shown : ndarray of shape (n,) or None
        Treatments by the rule learnt from all rows, if the estimator was fitted beforehand.
    shown_splits : tuple of Split
    covariates : dict of str to ndarray
        Known values of every numeric column; an empty array for categories.
    sample_weight : ndarray of shape (n,) or None
    method : {"bootstrap", "subsample"}
    share : float
        Of the rows in a subsample.
    n_requested : int
        More than ``n_resamples`` after Ctrl-C, and where resamples failed.
    failures : tuple of str
        Why nothing was learnt from the resamples that are left out.

    Examples
    --------
    >>> import numpy as np
    >>> from policytree import DRPolicyTree
    >>> from policytree.evaluation import policy_stability
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(20, 80, size=(200, 1))
    >>> T = rng.permutation(np.repeat(["drug", "none"], 100))
    >>> Y = (T == "drug") * np.where(X[:, 0] > 50, 1.0, -1.0) + rng.normal(size=200)
    >>> model = DRPolicyTree(max_depth=1, cv=2, random_state=0)
    >>> found = policy_stability(model, Y, T, X=X, propensity=0.5, n_resamples=5, random_state=0)
    >>> found.policies.shape, found.n_leaves  # five trees, each applied to all people
    ((5, 200), (2, 2, 2, 2, 2))
    >>> found.feature_shares()["root"].to_dict()
    {'x0': 1.0}
    """

    treatments: np.ndarray
    index: pd.Index = field(repr=False)
    policies: np.ndarray = field(repr=False)
    splits: tuple[tuple[Split, ...], ...] = field(repr=False)
    n_leaves: tuple[int, ...] = field(repr=False)
    shown: np.ndarray | None = field(repr=False)
    shown_splits: tuple[Split, ...] = field(repr=False)
    covariates: dict[str, np.ndarray] = field(repr=False)
    sample_weight: np.ndarray | None = field(repr=False)
    method: str
    share: float
    n_requested: int
    failures: tuple[str, ...] = field(default=(), repr=False)

    @property
    def n_resamples(self) -> int:
        """Resamples that were done."""
        return len(self.policies)

    # --- people ---

    def arm_shares(self) -> pd.DataFrame:
        """Share of resamples whose policy gives each person each treatment, (n, K)."""
        return pd.DataFrame(self._counts() / self.n_resamples, index=self.index, columns=self.treatments)

    def settled_share(self, at: float = SETTLED) -> float:
        """Share (of weight) of people who get one and the same treatment in at least this share of resamples.

        It depends on ``n_resamples``, for among few policies more people agree by chance: compare studies by the same
        number. :meth:`settled_error` is how far chance moves it at this number.

        Raises
        ------
        InputError
            If ``at`` is not above one half.
        """
        if not 0.5 < at <= 1.0:
            raise InputError(f"at must be above 0.5 and at most 1; got {quoted(at)}.")
        return self._mean(self.arm_shares().to_numpy().max(axis=1) >= at - 1e-12)

    def settled_error(self, at: float = SETTLED) -> float:
        """Monte-Carlo standard error of :meth:`settled_share`: policies drawn anew from those at hand, with repeats."""
        n, rng = self.n_resamples, np.random.default_rng(0)
        drawn = rng.multinomial(n, np.full(n, 1 / n), size=N_DRAWS)
        most = np.zeros((N_DRAWS, self.policies.shape[1]), np.int64)
        for k in range(len(self.treatments)):
            np.maximum(most, drawn @ (self.policies == k), out=most)
        return float(np.std([self._mean(row >= at * n - 1e-9) for row in most], ddof=1))

    @property
    def agreement(self) -> float:
        """Share of people to whom two resamples' policies give the same treatment, on average over all pairs."""
        return self._mean(self._alike()) / (self.n_resamples * (self.n_resamples - 1))

    @property
    def agreement_error(self) -> float:
        """Monte-Carlo standard error of ``agreement``: a jackknife over resamples."""
        b = self.n_resamples
        if b < 3:
            return np.nan
        alike, counts = self._alike(), self._counts()
        rows = np.arange(counts.shape[0])
        # without one policy a person loses the pairs, counted both ways, that it agrees with
        left = [self._mean(alike - 2 * (counts[rows, policy] - 1)) / ((b - 1) * (b - 2)) for policy in self.policies]
        return float(np.sqrt((b - 1) * np.var(left)))

    @property
    def agreement_with_shown(self) -> float:
        """Share of people whom a resample's policy treats as the rule to show does, on average; NaN without one."""
        return np.nan if self.shown is None else self._mean((self.policies == self.shown).mean(axis=0))

    def pairwise_agreement(self) -> pd.DataFrame:
        """The same for every pair of resamples, (n_resamples, n_resamples)."""
        return pd.DataFrame([[self._mean(a == b) for b in self.policies] for a in self.policies])

    def _counts(self) -> np.ndarray:
        """Resamples that give each person each treatment, (n, K)."""
        return np.column_stack([(self.policies == k).sum(axis=0) for k in range(len(self.treatments))])

    def _alike(self) -> np.ndarray:
        """Ordered pairs of resamples that treat each person alike, (n,)."""
        counts = self._counts()
        return (counts * (counts - 1)).sum(axis=1)

    def _mean(self, values: np.ndarray) -> float:
        return float(np.average(values, weights=self.sample_weight))

    def leaf_shares(self, leaves: np.ndarray, given: np.ndarray) -> dict[int, float]:
        """Share of resamples in which each leaf of a rule comes again: most of its people get what it gives them.

        Parameters
        ----------
        leaves : ndarray of shape (n,)
            The leaf of every person of the study.
        given : ndarray of shape (n,)
            The treatment that the rule gives them.

        Raises
        ------
        InputError
            If they are of other people.
        """
        n = self.policies.shape[1]
        if len(leaves) != n or len(given) != n:
            raise InputError(f"leaves and given must have a value for each of the {n:,} people of the study.")
        same = self.policies == pd.Index(self.treatments).get_indexer(pd.Index(given))
        weight = np.ones(n) if self.sample_weight is None else self.sample_weight
        out = {}
        for leaf in np.unique(leaves):
            own = weight * (leaves == leaf)
            out[int(leaf)] = float((same @ own > 0.5 * own.sum()).mean())
        return out

    # --- splits ---

    def feature_shares(self) -> pd.DataFrame:
        """Share of resamples whose tree asks about each covariate: at the root, at deeper levels, anywhere.

        One row per covariate, the most frequent first. Columns ``anywhere``, its Monte-Carlo ``standard_error``,
        ``root``, ``level 2``, ...
        """
        depth = max((s.depth for tree in self.splits for s in tree), default=0)
        names = ["root", *(f"level {d + 1}" for d in range(1, depth + 1))]
        rows = {}
        for feature in self.covariates:
            own = [[s for s in tree if s.feature == feature] for tree in self.splits]
            p = float(np.mean([bool(tree) for tree in own]))
            rows[feature] = {"anywhere": p, "standard_error": np.sqrt(p * (1 - p) / self.n_resamples)}
            rows[feature] |= {
                name: float(np.mean([any(s.depth == d for s in tree) for tree in own])) for d, name in enumerate(names)
            }
        frame = pd.DataFrame.from_dict(rows, orient="index").rename_axis("covariate")
        return frame.sort_values("anywhere", ascending=False, kind="stable")

    def threshold_shares(self, n_ranges: int = N_RANGES) -> pd.DataFrame:
        """Share of resamples with a threshold in each range of each covariate.

        Ranges hold equal numbers of people, fewer ranges where values tie; categories stand for themselves.

        Returns
        -------
        DataFrame
            Index ``covariate`` and ``range`` (text), only those that occur; columns ``lower`` and ``upper`` (a
            threshold t is in the range if lower <= t < upper; NaN for categories), ``part`` (number of the range, from
            0), ``parts`` (how many the covariate has), ``share``, ``standard_error`` and ``median`` (of the thresholds
            there).

        Raises
        ------
        InputError
            If ``n_ranges`` is no whole number of at least 1.
        """
        check_count(n_ranges, "n_ranges", 1)
        records = []
        for feature, values in self.covariates.items():
            found = [(b, s) for b, tree in enumerate(self.splits) for s in tree if s.feature == feature]
            categories = {s.category for _, s in found if s.category is not None}
            for part, category in enumerate(sorted(categories)):
                here = [(b, s) for b, s in found if s.category == category]
                records.append(self._record(feature, f"= {category}", here, (np.nan, np.nan, part, len(categories))))
            edges = _edges(values, n_ranges)
            for part, (low, high) in enumerate(pairwise(edges)):
                here = [(b, s) for b, s in found if s.category is None and low <= s.threshold < high]
                text = f"{format_threshold(low)} to {format_threshold(high)}"
                if here:
                    records.append(self._record(feature, text, here, (low, high, part, len(edges) - 1)))
            known = [(b, s) for b, s in found if np.isposinf(s.threshold)]
            if known:
                records.append(self._record(feature, "is known", known, (np.inf, np.inf, len(edges) - 1, len(edges))))
        columns = ["covariate", "range", "lower", "upper", "part", "parts", "share", "standard_error", "median"]
        frame = pd.DataFrame(records, columns=columns).set_index(["covariate", "range"])
        return frame.sort_values("share", ascending=False, kind="stable")

    def _record(self, feature: str, text: str, here: list, place: tuple) -> dict:
        p = len({b for b, _ in here}) / self.n_resamples
        record = dict(zip(("lower", "upper", "part", "parts"), place, strict=True))
        record |= {"share": p, "standard_error": np.sqrt(p * (1 - p) / self.n_resamples)}
        return {
            "covariate": feature,
            "range": text,
            **record,
            "median": float(np.median([s.threshold for _, s in here])),
        }

    def shown_split_shares(self) -> pd.DataFrame:
        """How often each split of the rule to show recurs.

        One row per split: ``split`` (in words), ``level`` (1 is the root), and the shares of resamples that ask about
        the ``covariate`` anywhere, at the ``same level``, and about it with a threshold in the same tenth of the
        people (the same category) anywhere, ``same range``.
        """
        records = []
        for split in self.shown_splits:
            own = [[s for s in tree if s.feature == split.feature] for tree in self.splits]
            words = f"= {split.category}" if split.category is not None else f"≤ {format_threshold(split.threshold)}"
            near = [[s for s in tree if self._same_range(s, split)] for tree in own]
            level = [[s for s in tree if s.depth == split.depth] for tree in own]
            shares = {
                name: float(np.mean([bool(tree) for tree in trees]))
                for name, trees in (("covariate", own), ("same level", level), ("same range", near))
            }
            records.append({"split": f"{split.feature} {words}", "level": split.depth + 1, **shares})
        return pd.DataFrame(records, columns=["split", "level", "covariate", "same level", "same range"])

    def _same_range(self, a: Split, b: Split) -> bool:
        if a.category is not None or b.category is not None:
            return a.category == b.category
        edges = _edges(self.covariates[a.feature], N_RANGES)
        return bool(np.searchsorted(edges, a.threshold, "right") == np.searchsorted(edges, b.threshold, "right"))

    # --- words ---

    def plot(self, **options: Any) -> PolicyStabilityDisplay:
        """Draw where trees of resamples split, and which treatment each person gets.

        Options are ``title``, ``n_covariates`` and ``unit``, as in
        :meth:`policytree.plotting.stability.PolicyStabilityDisplay.plot`.
        """
        from policytree.plotting.stability import PolicyStabilityDisplay

        return PolicyStabilityDisplay(self).plot(**options)

    def to_text(self, n_features: int = 8, *, unit: str = "people") -> str:
        """Show what recurred, and say it; ``unit`` is what the rows are, in the plural."""
        return as_text(self._shown(n_features, unit))

    def _shown(self, n_features: int = 8, unit: str = "people") -> list[Any]:
        how = "bootstrap samples" if self.method == BOOTSTRAP else f"samples of {self.share:.0%} of the rows"
        n = f"{self.policies.shape[1]:,} {unit}"
        tried = self.n_resamples + len(self.failures)
        early = f" (interrupted: {self.n_requested} were asked for)" if tried < self.n_requested else ""
        lines: list[Any] = [f"The whole pipeline on {self.n_resamples} {how}{early}; each policy applied to all {n}."]
        if self.failures:
            why = f"nothing could be learnt from them: {self.failures[0]}"
            lines.append(f"{len(self.failures)} more are left out, for {why}")
        lines += self.statements(unit=unit)
        if self.shown_splits:
            splits = self.shown_split_shares()
            lines += ["How often the splits of the rule to show recur:", text_frame(splits, share_columns(splits))]
        features = self.feature_shares()
        features = features[features["anywhere"] > 0].head(n_features).drop(columns="standard_error").reset_index()
        if len(features):
            lines += ["Covariates that trees ask about:", text_frame(features, share_columns(features))]
        return lines

    def statements(self, *, unit: str = "people") -> tuple[str, ...]:
        """Settled people and agreement, in sentences."""
        error = (
            "" if np.isnan(self.agreement_error) else f" (Monte-Carlo error {100 * self.agreement_error:.1f} points)"
        )
        lines = [
            f"{self.settled_share():.0%} of {unit} get the same treatment in at least {SETTLED:.0%} of them "
            f"(Monte-Carlo error {100 * self.settled_error():.1f} points).",
            f"Two of these policies treat {self.agreement:.0%} of {unit} alike{error}.",
        ]
        if self.shown is not None:
            lines.append(
                f"The rule learnt from all rows treats {self.agreement_with_shown:.0%} as they do, on average."
            )
        return tuple(lines)


def _edges(values: np.ndarray, n_ranges: int) -> np.ndarray:
    """Edges of ranges with equal numbers of values, the last one just above them; none without values."""
    if not len(values):
        return np.empty(0)
    edges = np.unique(np.quantile(values, np.linspace(0, 1, n_ranges + 1)))
    above = np.nextafter(edges[-1], np.inf)
    return np.append(edges[:-1], above) if len(edges) > 1 else np.append(edges, above)


def fragile_text(share: float, given: str) -> str:
    """Describe a leaf whose treatment most of its people get in so small a share of the resamples."""
    return f"unsure: learnt again, {given} only {100 * share:.0f} times in 100"
