"""How strong must an omitted variable be to undo the conclusion? Bounds, with covariates to compare it with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy.optimize import brentq

from policytree.common.docstrings import shares_documentation
from policytree.common.row_labels import aligns_rows
from policytree.common.shared_arguments import SENSITIVITY
from policytree.common.typing import Column, PerTreatment, Seed, Table
from policytree.common.validation import as_numbers, check_level, is_real
from policytree.data.views import Shown, as_text
from policytree.evaluation.estimates import Estimate, repeated_estimate
from policytree.evaluation.formatting import BOUNDS, INTERVAL, decimals, interval_text, size_text, text_frame
from policytree.evaluation.inference.cluster_bootstrap import N_BOOTSTRAP, ClusterBootstrap
from policytree.evaluation.inference.partial_identification import Bounds
from policytree.evaluation.leaves.summary import HELD_OUT
from policytree.evaluation.sensitivity.contrasts import Contrast
from policytree.evaluation.sensitivity.judged_contrasts import held_out_note, judged_contrasts
from policytree.evaluation.sensitivity.repeated_bounds import Repetitions
from policytree.exceptions import InputError, quoted

if TYPE_CHECKING:
    from policytree.plotting.sensitivity import OmittedVariableDisplay

MULTIPLES = (1.0, 2.0, 3.0)
LARGEST_SHARE = 1.0 - 1e-9  # an omitted variable cannot explain more


@dataclass(frozen=True, slots=True, eq=False)
class OmittedPart:
    """The part of one repetition of a cross-fitting.

    In a single repetition a rule may differ from the baseline for few people, whose mean squared weight is hardly known
    and may come out negative. So the scale is that of the mean over all repetitions (``centre``), and each one's own is
    the linear expansion around it: their mean is the scale, and they differ as the repetitions do.

    Attributes
    ----------
    contrast : Contrast
    scores : ndarray of shape (n, 3)
        Every row's score of the estimate, of sigma^2 and of nu^2.
    means : ndarray of shape (3,)
    centre : ndarray of shape (3,)
        Mean of the means over all repetitions.
    draws : ndarray of shape (n_draws, 3)
        Bootstrapped means.
    """

    contrast: Contrast
    scores: np.ndarray
    means: np.ndarray
    centre: np.ndarray
    draws: np.ndarray

    @property
    def scale(self) -> float:
        """``sigma nu`` of all repetitions."""
        return float(_scale(self.centre[None])[0])

    @property
    def _slope(self) -> np.ndarray:
        """Derivative of the scale with respect to sigma^2 and nu^2."""
        _, variance, square = self.centre
        return np.array([square, variance]) / (2 * self.scale) if self.scale else np.zeros(2)

    @property
    def own_scale(self) -> float:
        """``sigma nu`` of this repetition, to first order."""
        return self.scale + float((self.means - self.centre)[1:] @ self._slope)

    def end(self, strength: float, level: float) -> Estimate:
        """The lower end of the bounds for a negative strength, the upper one for a positive."""
        moved = self.scores[:, 0] + strength * (self.scores[:, 1:] - self.centre[1:]) @ self._slope
        return self.contrast.estimate(moved + strength * self.scale, level)

    def drawn_end(self, strength: float) -> np.ndarray:
        """The same end of the bounds in every bootstrap draw."""
        around = self.draws - self.means + self.centre
        return self.draws[:, 0] + strength * (_scale(around) + self.own_scale - self.scale)


def omitted_parts(contrasts: Sequence[Contrast], bootstrap: ClusterBootstrap) -> tuple[OmittedPart, ...]:
    """Return the parts of all repetitions.

    Raises
    ------
    InputError
        If propensities contradict the data.
    """
    scores = [_scores(contrast) for contrast in contrasts]
    centre = mean_parts(contrasts)
    return tuple(
        OmittedPart(c, s, np.average(s, axis=0, weights=c.weight), centre, bootstrap.means(s))
        for c, s in zip(contrasts, scores, strict=True)
    )


def mean_parts(contrasts: Sequence[Contrast]) -> np.ndarray:
    """Estimate, sigma^2 and nu^2 on all rows, mean over the repetitions; (3,)."""
    means = np.mean([np.average(_scores(c), axis=0, weights=c.weight) for c in contrasts], axis=0)
    if means[2] <= 0:
        raise InputError(
            f"propensity is far from the shares that were treated: the mean square of the representer comes out at "
            f"{means[2]:.3g}, not above 0; estimate it anew or check it with overlap_table."
        )
    return means


def interval_robustness(parts: Sequence[OmittedPart], repetitions: Repetitions, rho: float, guess: float) -> float:
    """The smallest share of both at which the interval holds zero; likely less than ``guess``, the bounds' own."""
    values, scales = np.array([p.means[0] for p in parts]), np.array([p.own_scale for p in parts])
    upper = bool(values.mean() < 0)  # the end that faces zero
    sign = -1.0 if upper else 1.0

    def left(share: float) -> float:
        strength = -sign * rho * strength_of(share, share)
        draws = [part.drawn_end(strength) for part in parts]
        return sign * repetitions.interval_end(values + strength * scales, draws, upper=upper)

    if left(0.0) <= 0:
        return 0.0
    end = min(guess, LARGEST_SHARE)
    end = end if left(end) <= 0 else LARGEST_SHARE
    return 1.0 if left(end) > 0 else float(brentq(left, 0.0, end, xtol=1e-12))


def robustness(distance: float, scale: float) -> float:
    """The share ``r`` with ``scale r / sqrt(1 - r) = distance``: 0 where zero is held already."""
    if distance <= 0.0:
        return 0.0
    if scale == 0.0:
        return 1.0
    square = (distance / scale) ** 2
    return float(2.0 / (1.0 + np.sqrt(1.0 + 4.0 / square)))  # (sqrt(s^2 + 4 s) - s) / 2, without cancellation


def strength_of(cf_y: float, cf_d: float) -> float:
    """The factor of the scale in the bounds."""
    for name, value, end in (("cf_y", cf_y, "1]"), ("cf_d", cf_d, "1)")):
        if not is_real(value) or not (0.0 <= value < 1.0 or (value == 1.0 and end == "1]")):
            raise InputError(f"{name} must lie in [0, {end}; got {quoted(value)}.")
    return float(np.sqrt(cf_y * cf_d / (1.0 - cf_d)))


def _scores(contrast: Contrast) -> np.ndarray:
    """Every row's score of the estimate, of sigma^2 and of nu^2; (n, 3)."""
    seen, change, p = contrast.observed, contrast.change, contrast.propensity
    assert contrast.regression is not None
    if (p[change != 0] <= 0).any():
        raise InputError("propensity is zero for a treatment that is to be given; use a positive min_propensity.")
    rows = np.arange(seen.n)
    safe = np.where(change != 0, p, 1.0)
    alpha = change[rows, seen.arm] / safe[rows, seen.arm]
    residual = seen.y - contrast.regression[rows, seen.arm]
    return np.column_stack([contrast.scores(), residual**2, 2 * (change**2 / safe).sum(axis=1) - alpha**2])


def _scale(means: np.ndarray) -> np.ndarray:
    """``sigma nu`` of rows of (estimate, sigma^2, nu^2)."""
    return np.sqrt(np.clip(means[:, 1] * means[:, 2], 0.0, None))


@dataclass(frozen=True, slots=True, repr=False)
class Benchmark(Shown):
    """The strength that a covariate would have if it were the omitted variable.

    Attributes
    ----------
    name : str
    outcome_gain : float
        Explained share of the outcome, relative to what is left unexplained with it: the rise in R2 over one minus
        R2. At least 0.
    treatment_gain : float
        By how much it raises the mean square of the weights (the Riesz representer), as a share of that without it. At
        least 0, and 0 where it says nothing about who is treated, as in a trial: propensities estimated out of fold
        then predict no better with it, and a fall of the mean square counts as 0.
    correlation : float
        Of its effect on the outcome regression and on the weights, -1 to 1; NaN where it has none on one of them.
    change : float
        The estimate without it less the estimate with it, in the outcome's unit.

    Examples
    --------
    >>> import numpy as np
    >>> from policytree import RewardEstimator
    >>> from policytree.evaluation import nuisances_without, omitted_variable_bounds
    >>> rng = np.random.default_rng(0)
    >>> age = rng.normal(size=(400, 1))
    >>> T = np.where(age[:, 0] + rng.normal(size=400) > 0, "drug", "none")
    >>> Y = age[:, 0] + (T == "drug") + rng.normal(size=400)
    >>> model = RewardEstimator(cv=2, random_state=0).fit(Y, T, X=age)
    >>> without = nuisances_without(model, Y, T, X=age, covariates=[0])
    >>> known = {"propensity": model.propensity_, "regression": model.regression_, "benchmarks": without}
    >>> [benchmark] = omitted_variable_bounds("drug", Y, T, **known, baseline="none", random_state=0).benchmarks
    >>> benchmark.name, benchmark.outcome_gain > 0.5, benchmark.change > 0.0  # without age, the drug looks too good
    ('0', True, True)
    """

    name: str
    outcome_gain: float
    treatment_gain: float
    correlation: float
    change: float

    def strength(self, multiple: float) -> tuple[float, float]:
        """``(cf_y, cf_d)`` of an omitted variable so many times as strong."""
        gain = multiple * self.treatment_gain
        return min(1.0, multiple * self.outcome_gain), gain / (1.0 + gain)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class OmittedVariableBounds(Shown):
    """Bounds of a policy's value, or of its advantage over a baseline rule, for an omitted variable of any strength.

    Attributes
    ----------
    estimate : Estimate
        The value or advantage if nothing is omitted: the doubly robust one.
    scale : float
        ``S``, in the outcome's unit: the root of the outcome's residual variance times the mean square of the weights
        (of a held-out table, its mean over the repetitions).
    rho : float
        How far the omitted variable's effects on outcome and weights are aligned; 1 is the worst.
    benchmarks : tuple of Benchmark
    multiples : tuple of float
        How many times as strong as each benchmark.
    robustness_value, interval_robustness_value : float
        The smallest ``cf_y = cf_d`` at which the bounds (the interval) hold zero, 0 to 1; for an advantage, else NaN.
        The second is NaN on the rows that chose the policy.
    what : str
        The bounded quantity.
    rows : str
        "held out", or "training rows": then numbers flatter the policy, and there are no intervals.
    held_out_by : str
        How the rules of a held-out table were kept from the rows that judge them; empty for a fixed rule.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from policytree.evaluation import omitted_variable_bounds
    >>> rng = np.random.default_rng(0)
    >>> T = rng.permutation(np.repeat(["drug", "none"], 100))
    >>> Y = 1.0 * (T == "drug") + rng.normal(size=200)
    >>> regression = pd.DataFrame({"drug": np.ones(200), "none": np.zeros(200)})
    >>> known = {"propensity": 0.5, "regression": regression}
    >>> found = omitted_variable_bounds("drug", Y, T, **known, baseline="none", random_state=0)
    >>> bounds = found.bounds(0.1, 0.1)  # an omitted variable that explains a tenth of what is left of both
    >>> 0.0 < bounds.lower < found.estimate.value < bounds.upper
    True
    """

    estimate: Estimate
    scale: float
    rho: float
    benchmarks: tuple[Benchmark, ...]
    multiples: tuple[float, ...]
    robustness_value: float
    interval_robustness_value: float
    what: str
    rows: str
    held_out_by: str
    _repetitions: Repetitions = field(repr=False)
    _parts: tuple[OmittedPart, ...] = field(repr=False)  # one per repetition

    def bounds(self, cf_y: float, cf_d: float) -> Bounds:
        """Bounds for an omitted variable of this strength.

        Parameters
        ----------
        cf_y : float in [0, 1]
            Share of the outcome's residual variance that it explains (a partial R2).
        cf_d : float in [0, 1)
            Share of the mean square of the true weights that is due to it: one minus the R2 of the true weights on
            those without it.

        Returns
        -------
        Bounds

        Raises
        ------
        InputError
            If a share is none.
        """
        strength = abs(self.rho) * strength_of(cf_y, cf_d)
        ends = [(p.end(-strength, self.estimate.level), p.end(strength, self.estimate.level)) for p in self._parts]
        drawn = [np.column_stack([p.drawn_end(-strength), p.drawn_end(strength)]) for p in self._parts]
        return self._repetitions.bounds(ends, drawn if self.rows == HELD_OUT else None)

    def multiple_needed(self, name: str) -> float:
        """How many times as strong as this benchmark an omitted variable must be for the bounds to hold zero.

        inf if the benchmark moves outcome or weights by nothing.

        Raises
        ------
        InputError
            If there is no such benchmark.
        """
        found = [b for b in self.benchmarks if b.name == name]
        if not found:
            raise InputError(f"There is no benchmark {name!r}; there are {[b.name for b in self.benchmarks]}.")
        y, d = found[0].outcome_gain, found[0].treatment_gain
        reach = self.estimate.value**2 / (abs(self.rho) * self.scale) ** 2 if self.scale and self.rho else np.inf
        if reach == 0.0:
            return 0.0
        if y == 0.0 or d == 0.0:
            return np.inf
        multiple = np.sqrt(reach / (y * d))
        return float(multiple if multiple * y <= 1.0 else reach / d)  # cf_y cannot exceed one

    def to_frame(self) -> pd.DataFrame:
        """One row per benchmark and multiple: strength, bounds, standard errors, interval, and on which rows."""
        records = []
        for benchmark in self.benchmarks:
            for multiple in self.multiples:
                cf_y, cf_d = benchmark.strength(multiple)
                record = {"benchmark": benchmark.name, "multiple": multiple, "cf_y": cf_y, "cf_d": cf_d}
                records.append(record | self.bounds(cf_y, cf_d).to_dict() | {"rows": self.rows})
        columns = ["benchmark", "multiple", "cf_y", "cf_d", *self.bounds(0.0, 0.0).to_dict(), "rows"]
        return pd.DataFrame(records, columns=columns).set_index(["benchmark", "multiple"])

    def plot(self, **options: Any) -> OmittedVariableDisplay:
        """Draw how far an omitted variable of any strength moves the estimate, with covariates to compare.

        Options are ``ax``, ``kind``, ``largest`` and ``title``, as in
        :meth:`policytree.plotting.sensitivity.OmittedVariableDisplay.plot`.
        """
        from policytree.plotting.sensitivity import OmittedVariableDisplay

        return OmittedVariableDisplay(self).plot(**options)

    def to_text(self) -> str:
        """Show the table and say what it means."""
        return as_text(self._shown())

    def _shown(self) -> list[Any]:
        e, held_out = self.estimate, self.rows == HELD_OUT
        digits = decimals([e.standard_error])
        size = size_text(e)
        size += ", held out" if held_out else ", those that chose the policy: flattered, so without intervals"
        interval = f"{100 * e.level:g}% interval"
        known = f" ({interval} {interval_text(e, digits)})" if held_out else ""
        lines: list[Any] = [f"{self.what[0].upper()}{self.what[1:]} with an omitted variable, {size}."]
        lines.append(f"If nothing is omitted: {e.value:,.{digits}f}{known}.")
        frame = self.to_frame()
        if len(frame):
            columns = {"an omitted variable": "{multiple:g} x {benchmark}", "cf_y": "{cf_y:.3f}", "cf_d": "{cf_d:.3f}"}
            columns |= {"bounds": BOUNDS, interval: INTERVAL} if held_out else {"bounds": BOUNDS}
            lines.append(text_frame(frame.reset_index(), columns, digits=digits))
            lines.append(
                "cf_y: share of the outcome's unexplained variance that the omitted variable explains; cf_d: share of\n"
                "the mean squared weight that is due to it. '2 x age': twice what age adds to both."
            )
        return [*lines, *held_out_note(self.held_out_by), *self.statements()]

    def statements(self) -> tuple[str, ...]:
        """State how much an omitted variable would have to explain, in sentences; none for a value."""
        if np.isnan(self.robustness_value):
            return ()
        text = f"To bring the difference to zero it must explain {self.robustness_value:.1%} of both"
        if self.interval_robustness_value == 0.0:
            text += "; the interval holds zero without any"
        elif not np.isnan(self.interval_robustness_value):
            text += f", to bring zero into the interval {self.interval_robustness_value:.1%}"
        lines = [f"{text} (robustness values)."]
        for benchmark in self.benchmarks:
            multiple = self.multiple_needed(benchmark.name)
            if np.isinf(multiple):
                lines.append(f"By {benchmark.name} it cannot be measured: that explains too little of one of both.")
            else:
                lines.append(f"That is {multiple:.3g} times as strong as {benchmark.name}.")
        return tuple(lines)


@aligns_rows
@shares_documentation(SENSITIVITY)
def omitted_variable_bounds(
    policy: Column | Table | Any,
    Y: Column,
    T: Column,
    *,
    propensity: PerTreatment,
    regression: PerTreatment,
    baseline: Column | Table | Any = None,
    benchmarks: Mapping[str, tuple[PerTreatment, PerTreatment]] | None = None,
    multiples: Sequence[float] = MULTIPLES,
    rho: float = 1.0,
    groups: Column | None = None,
    sample_weight: Column | None = None,
    held_out: bool = False,
    level: float = 0.95,
    n_bootstrap: int = N_BOOTSTRAP,
    random_state: Seed = None,
) -> OmittedVariableBounds:
    """Bounds of a policy's value, or of its advantage over a baseline rule, if a variable is omitted.

    With ``change_k`` the policy's probability of treatment k less the baseline's, the weights are ``alpha = change_T /
    e_T``, ``sigma^2 = E[(Y - g_T)^2]`` and ``nu^2 = E[2 sum_k change_k^2 / e_k - alpha^2]``. An omitted variable that
    explains the share ``cf_y`` of the outcome's residual variance, and to which the share ``cf_d`` of the mean squared
    true weights is due, moves the estimate by at most ``|rho| sigma nu sqrt(cf_y cf_d / (1 - cf_d))``.

    Parameters
    ----------
    propensity, regression : frames of shape (n, K), or other forms
        Out of fold, as ``RewardEstimator.propensity_`` and ``regression_``.
    benchmarks : mapping of str to (propensity, regression), optional
        Nuisances without a covariate, or several, from :func:`policytree.evaluation.nuisances_without`: how strong that
        covariate is, is the measure for what is omitted.
    multiples : sequence of float > 0
        How many times as strong as each benchmark.
    rho : float in [-1, 1]
        How far the omitted variable's effects on outcome and weights are aligned; 1 is the worst.

    Returns
    -------
    OmittedVariableBounds

    Raises
    ------
    InputError
        If shapes differ, values are missing or infinite, a treatment or baseline is unknown, or a propensity is zero
        where a treatment is given.

    References
    ----------
    Chernozhukov, Cinelli, Newey, Sharma and Syrgkanis (2022), Long story short: omitted variable bias in causal machine
    learning, NBER working paper 30302, theorems 2 and 4. Cinelli and Hazlett (2020), Journal of the Royal Statistical
    Society B 82(1), 39-67 (robustness values, benchmarks).

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from policytree.evaluation import omitted_variable_bounds
    >>> rng = np.random.default_rng(0)
    >>> T = rng.permutation(np.repeat(["drug", "none"], 100))
    >>> Y = 1.0 * (T == "drug") + rng.normal(size=200)
    >>> regression = pd.DataFrame({"drug": np.ones(200), "none": np.zeros(200)})
    >>> known = {"propensity": 0.5, "regression": regression}
    >>> bounds = omitted_variable_bounds("drug", Y, T, **known, baseline="none", random_state=0)
    >>> round(bounds.robustness_value, 2)
    0.47
    """
    check_level(level)
    if not is_real(rho) or not -1.0 <= rho <= 1.0:
        raise InputError(f"rho must lie between -1 and 1; got {quoted(rho)}.")
    if regression is None:
        raise InputError("regression is None; pass expected outcomes, such as regression_ of a RewardEstimator.")
    given: dict[str, Any] = {
        "baseline": baseline, "groups": groups, "sample_weight": sample_weight, "held_out": held_out,
    }  # fmt: skip
    judged = judged_contrasts(policy, Y, T, propensity, regression=regression, **given)
    first, repetitions = judged.first, judged.repetitions(level)
    bootstrap = ClusterBootstrap.draw(first.clusters, first.weight, n_bootstrap, random_state)
    parts = omitted_parts(judged.contrasts, bootstrap)
    estimate = repeated_estimate([part.end(0.0, level) for part in parts], judged.n_folds)
    means, scale = parts[0].centre, parts[0].scale
    found = []
    for name, (less_p, less_m) in _checked(benchmarks).items():
        without = judged_contrasts(policy, Y, T, less_p, regression=less_m, **given).contrasts
        found.append(_benchmark(str(name), means, mean_parts(without)))
    value = np.nan if baseline is None else robustness(abs(estimate.value), abs(rho) * scale)
    of_interval = np.nan
    if baseline is not None and first.held_out:
        of_interval = interval_robustness(parts, repetitions, abs(rho), value)
    return OmittedVariableBounds(
        estimate, scale, float(rho), tuple(found), _multiples(multiples), value, of_interval, first.what,
        first.rows, judged.held_out_by, repetitions, parts,
    )  # fmt: skip


def _multiples(multiples) -> tuple[float, ...]:
    values = np.unique(as_numbers(multiples, "multiples"))
    if not (np.isfinite(values) & (values > 0)).all():
        raise InputError(f"multiples must be finite numbers above 0, such as (1, 2, 3); got {quoted(multiples)}.")
    return tuple(values.tolist())


def _benchmark(name: str, long: np.ndarray, short: np.ndarray) -> Benchmark:
    """Make a benchmark from the means of (estimate, sigma^2, nu^2) with and without a covariate."""
    variance = max(0.0, short[1] - long[1])
    square = max(0.0, long[2] - short[2])
    change = short[0] - long[0]
    both = np.sqrt(variance * square)
    return Benchmark(
        name,
        float(variance / long[1]) if long[1] > 0 else 0.0,
        float(square / short[2]) if short[2] > 0 else 0.0,
        float(np.clip(change / both, -1.0, 1.0)) if both > 0 else np.nan,
        float(change),
    )


def _checked(benchmarks) -> Mapping:
    """Check the benchmarks, and return them by name."""
    given = benchmarks or {}
    pairs = given.values() if isinstance(given, Mapping) else [None]
    if not all(isinstance(pair, (tuple, list)) and len(pair) == 2 for pair in pairs):
        raise InputError(
            "benchmarks must be a mapping from names to pairs (propensity, regression), as nuisances_without gives it."
        )
    return given
