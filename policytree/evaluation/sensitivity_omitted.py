"""How strong must an omitted variable be to undo the conclusion? Bounds, with covariates to compare it with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from policytree.annotations import Column, PerTreatment, Seed, Table
from policytree.checks import as_numbers, check_level, is_real
from policytree.evaluation.bounds import Bounds
from policytree.evaluation.cluster_bootstrap import N_BOOTSTRAP, ClusterBootstrap, percentile
from policytree.evaluation.contrasts import Contrast, make_contrast
from policytree.evaluation.estimates import Estimate
from policytree.evaluation.leaves import HELD_OUT
from policytree.evaluation.numbers import bounds_text, decimals, interval_text
from policytree.exceptions import InputError

MULTIPLES = (1.0, 2.0, 3.0)


@dataclass(frozen=True, slots=True)
class Benchmark:
    """What a covariate would do if it were the omitted variable.

    Attributes
    ----------
    name : str
    outcome_gain : float
        What it explains of the outcome, as a share of what is left unexplained with it: the rise in R2 over one minus
        R2. At least 0.
    treatment_gain : float
        By how much it raises the mean square of the weights (the Riesz representer), as a share of that without it. At
        least 0.
    correlation : float
        Of its effect on the outcome regression and on the weights, -1 to 1; NaN where it has none on one of them.
    change : float
        The estimate without it less the estimate with it, in the outcome's unit.
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


@dataclass(frozen=True, slots=True, eq=False)
class OmittedVariableBounds:
    """Bounds of a policy's value, or of its advantage over a baseline rule, for an omitted variable of any strength.

    Attributes
    ----------
    estimate : Estimate
        The value or advantage if nothing is omitted: the doubly robust one.
    scale : float
        ``S``, in the outcome's unit: the root of the outcome's residual variance times the mean square of the weights.
    rho : float
        How far the omitted variable's effects on outcome and weights are aligned; 1 is the worst.
    benchmarks : tuple of Benchmark
    multiples : tuple of float
        How many times as strong as each benchmark.
    robustness_value, interval_robustness_value : float
        The smallest ``cf_y = cf_d`` at which the bounds (the interval) hold zero, 0 to 1; for an advantage, else NaN.
        The second is NaN on the rows that chose the policy.
    what, rows : str
        As in :class:`MarginalSensitivity`.
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
    _parts: np.ndarray = field(repr=False)  # (n, 3) scores of the estimate, residual variance, squared weights
    _draws: np.ndarray = field(repr=False)  # (n_draws, 3) their bootstrapped means
    _contrast: Contrast = field(repr=False)

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
        strength = abs(self.rho) * _strength(cf_y, cf_d)
        _, variance, square = _means(self._parts, self._contrast)
        slope = strength / (2 * self.scale) * np.array([square, variance]) if self.scale else np.zeros(2)
        ends = []
        for sign in (-1.0, 1.0):
            value = self.estimate.value + sign * strength * self.scale
            scores = self._parts[:, 0] + sign * (self._parts[:, 1:] - [variance, square]) @ slope
            ends.append(self._contrast.estimate(scores - self.estimate.value + value, self.estimate.level))
        half = strength * _scale(self._draws)
        drawn = (self._draws[:, 0] - half, self._draws[:, 0] + half)
        return Bounds.of(ends[0], ends[1], drawn, shown=self.rows == HELD_OUT)

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

    def to_text(self) -> str:
        """Show the table and say what it means."""
        e, held_out = self.estimate, self.rows == HELD_OUT
        digits = decimals([e.standard_error])
        size = f"{e.n:,} rows" + (f" in {e.n_clusters:,} clusters" if e.n_clusters != e.n else "")
        size += ", held out" if held_out else ", those that chose the policy: flattered, so without intervals"
        interval = f"{100 * e.level:g}% interval"
        known = f" ({interval} {interval_text(e, digits)})" if held_out else ""
        lines = [f"{self.what[0].upper()}{self.what[1:]} with an omitted variable, {size}."]
        lines.append(f"If nothing is omitted: {e.value:,.{digits}f}{known}.")
        frame = self.to_frame()
        if len(frame):
            shown = pd.DataFrame({"an omitted variable": [f"{m:g} x {b}" for b, m in frame.index]})
            shown[["cf_y", "cf_d"]] = frame[["cf_y", "cf_d"]].map("{:.3f}".format).to_numpy()
            shown["bounds"] = [bounds_text(r.lower, r.upper, digits) for r in frame.itertuples()]
            if held_out:
                ends = [bounds_text(r.interval_lower, r.interval_upper, digits) for r in frame.itertuples()]
                shown[interval] = ends
            lines.append(shown.to_string(index=False))
            lines.append(
                "cf_y: share of the outcome's unexplained variance that the omitted variable explains; cf_d: share of\n"
                "the mean squared weight that is due to it. '2 x age': twice what age adds to both."
            )
        return "\n".join([*lines, *self.statements()])

    def statements(self) -> tuple[str, ...]:
        """What an omitted variable would have to explain, in sentences; none for a value."""
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

    def __str__(self) -> str:
        return self.to_text()


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
    policy, Y, T, baseline, groups, sample_weight, held_out, level, n_bootstrap, random_state
        As in :func:`policytree.marginal_sensitivity`.
    propensity, regression : frames of shape (n, K), or other forms
        Out of fold, as ``RewardEstimator.propensity_`` and ``regression_``.
    benchmarks : mapping of str to (propensity, regression), optional
        Nuisances without a covariate, or several, from :func:`policytree.nuisances_without`: how strong that covariate
        is, is the measure for what is omitted.
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
        As :func:`policytree.marginal_sensitivity`, and if a propensity is zero where a treatment is given.

    References
    ----------
    Chernozhukov, Cinelli, Newey, Sharma and Syrgkanis (2022), Long story short: omitted variable bias in causal machine
    learning, NBER working paper 30302, theorems 2 and 4. Cinelli and Hazlett (2020), Journal of the Royal Statistical
    Society B 82(1), 39-67 (robustness values, benchmarks).
    """
    check_level(level)
    if not is_real(rho) or not -1.0 <= rho <= 1.0:
        raise InputError(f"rho must lie between -1 and 1; got {rho!r}.")
    if regression is None:
        raise InputError("regression is None; pass expected outcomes, such as regression_ of a RewardEstimator.")
    given: dict[str, Any] = {
        "baseline": baseline, "groups": groups, "sample_weight": sample_weight, "held_out": held_out,
    }  # fmt: skip
    contrast = make_contrast(policy, Y, T, propensity, regression=regression, **given)
    bootstrap = ClusterBootstrap.draw(contrast.clusters, contrast.weight, n_bootstrap, random_state)
    parts = _parts(contrast)
    estimate, means, draws = contrast.estimate(parts[:, 0], level), _means(parts, contrast), bootstrap.means(parts)
    scale = float(_scale(means[None])[0])
    found = []
    for name, (less_p, less_m) in _checked(benchmarks).items():
        short = _parts(make_contrast(policy, Y, T, less_p, regression=less_m, **given))
        found.append(_benchmark(str(name), contrast, means, _means(short, contrast)))
    value = np.nan if baseline is None else _robustness(abs(estimate.value), abs(rho) * scale)
    of_interval = np.nan
    if baseline is not None and contrast.held_out:
        sign = 1.0 if estimate.value >= 0 else -1.0
        each = [_robustness(sign * t, abs(rho) * s) for t, s in zip(draws[:, 0], _scale(draws), strict=True)]
        of_interval = percentile(np.array(each), (1 - level) / 2)
    return OmittedVariableBounds(
        estimate, scale, float(rho), tuple(found), _multiples(multiples), value, of_interval, contrast.what,
        contrast.rows, parts, draws, contrast,
    )  # fmt: skip


def _multiples(multiples) -> tuple[float, ...]:
    values = np.unique(as_numbers(multiples, "multiples"))
    if not (np.isfinite(values) & (values > 0)).all():
        raise InputError(f"multiples must be finite numbers above 0, such as (1, 2, 3); got {multiples!r}.")
    return tuple(values.tolist())


def _parts(contrast: Contrast) -> np.ndarray:
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


def _means(parts: np.ndarray, contrast: Contrast) -> np.ndarray:
    means = np.average(parts, axis=0, weights=contrast.weight)
    if means[2] <= 0:
        raise InputError(
            f"propensity is far from the shares that were treated: the mean square of the representer comes out at "
            f"{means[2]:.3g}, not above 0; estimate it anew or check it with overlap_table."
        )
    return means


def _scale(means: np.ndarray) -> np.ndarray:
    """``sigma nu`` of rows of (estimate, sigma^2, nu^2)."""
    return np.sqrt(np.clip(means[:, 1] * means[:, 2], 0.0, None))


def _strength(cf_y: float, cf_d: float) -> float:
    """What the scale is multiplied by."""
    for name, value, end in (("cf_y", cf_y, "1]"), ("cf_d", cf_d, "1)")):
        if not is_real(value) or not (0.0 <= value < 1.0 or (value == 1.0 and end == "1]")):
            raise InputError(f"{name} must lie in [0, {end}; got {value!r}.")
    return float(np.sqrt(cf_y * cf_d / (1.0 - cf_d)))


def _robustness(distance: float, scale: float) -> float:
    """The share ``r`` with ``scale r / sqrt(1 - r) = distance``: 0 where zero is held already."""
    if distance <= 0.0:
        return 0.0
    if scale == 0.0:
        return 1.0
    square = (distance / scale) ** 2
    return float(2.0 / (1.0 + np.sqrt(1.0 + 4.0 / square)))  # (sqrt(s^2 + 4 s) - s) / 2, without cancellation


def _benchmark(name: str, contrast: Contrast, long: np.ndarray, short: np.ndarray) -> Benchmark:
    """From the means of (estimate, sigma^2, nu^2) with and without a covariate."""
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
    """Benchmarks by name, or one sentence."""
    given = benchmarks or {}
    pairs = given.values() if isinstance(given, Mapping) else [None]
    if not all(isinstance(pair, (tuple, list)) and len(pair) == 2 for pair in pairs):
        raise InputError(
            "benchmarks must be a mapping from names to pairs (propensity, regression), as nuisances_without gives it."
        )
    return given
