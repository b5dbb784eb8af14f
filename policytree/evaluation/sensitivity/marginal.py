"""Would the conclusion survive a hidden confounder? Bounds by the marginal sensitivity model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from policytree.common.docstrings import shares_documentation
from policytree.common.row_labels import aligns_rows
from policytree.common.shared_arguments import SENSITIVITY
from policytree.common.typing import Column, PerTreatment, Seed, Table
from policytree.common.validation import as_numbers, check_level
from policytree.data.views import Shown, as_text
from policytree.evaluation.formatting import bounds_text, decimals, size_text
from policytree.evaluation.inference.cluster_bootstrap import N_BOOTSTRAP, ClusterBootstrap
from policytree.evaluation.inference.partial_identification import Bounds
from policytree.evaluation.leaves.summary import HELD_OUT
from policytree.evaluation.sensitivity.judged_contrasts import held_out_note, judged_contrasts
from policytree.evaluation.sensitivity.repeated_bounds import RepeatedBounds
from policytree.evaluation.sensitivity.sharp_bounds import SharpBounds
from policytree.evaluation.sensitivity.simple_bounds import SimpleBounds
from policytree.exceptions import InputError, quoted

if TYPE_CHECKING:
    from policytree.plotting.sensitivity import MarginalSensitivityDisplay

GAMMAS = (1.0, 1.25, 1.5, 2.0, 3.0)
SHARP, SIMPLE = "sharp", "simple"


@dataclass(frozen=True, slots=True, repr=False)
class TippingGamma(Shown):
    """The smallest Gamma at which an advantage may be zero.

    Attributes
    ----------
    bounds : float
        The smallest Gamma at which the bounds hold zero; 1 if the estimate is zero, inf if no Gamma does.
    interval : float
        The smallest Gamma at which the interval holds zero; 1 if it does without any hidden confounder, NaN on the rows
        that chose the policy.

    Examples
    --------
    >>> import numpy as np
    >>> from policytree.evaluation import marginal_sensitivity
    >>> rng = np.random.default_rng(0)
    >>> T = rng.permutation(np.repeat(["drug", "none"], 300))
    >>> Y = 0.5 * (T == "drug") + rng.normal(size=600)
    >>> found = marginal_sensitivity("drug", Y, T, propensity=0.5, baseline="none", random_state=0)
    >>> tipping = found.tipping["simple"]
    >>> 1.0 < tipping.interval < tipping.bounds  # the interval holds zero before the bounds do
    True
    """

    bounds: float
    interval: float


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class MarginalSensitivity(Shown):
    """Bounds of a policy's value, or of its advantage over a baseline rule, for every strength of hidden confounding.

    Attributes
    ----------
    gammas : tuple of float
    sharp, simple : tuple of Bounds, one per Gamma
        ``sharp`` is None without a regression.
    tipping : mapping of {"sharp", "simple"} to TippingGamma
        Of an advantage; empty for a value.
    what : str
        "value of the policy" or "policy - baseline".
    rows : str
        "held out", or "training rows": then numbers flatter the policy, and there are no intervals.
    level : float
    n, n_clusters : int
        With positive weight.
    held_out_by : str
        How the rules of a held-out table were kept from the rows that judge them; empty for a fixed rule.

    Examples
    --------
    >>> import numpy as np
    >>> from policytree.evaluation import marginal_sensitivity
    >>> rng = np.random.default_rng(0)
    >>> T = rng.permutation(np.repeat(["drug", "none"], 300))
    >>> Y = 0.5 * (T == "drug") + rng.normal(size=600)
    >>> found = marginal_sensitivity("drug", Y, T, propensity=0.5, baseline="none", random_state=0)
    >>> found.what, found.rows
    ('policy - baseline', 'held out')
    >>> found.to_frame()["lower"].round(2).tolist()  # at Gamma 1, 1.25, 1.5, 2 and 3
    [0.51, 0.34, 0.21, -0.01, -0.31]
    """

    gammas: tuple[float, ...]
    sharp: tuple[Bounds, ...] | None = field(repr=False)
    simple: tuple[Bounds, ...] = field(repr=False)
    tipping: dict[str, TippingGamma]
    what: str
    rows: str
    level: float
    n: int
    n_clusters: int
    held_out_by: str = ""

    @property
    def kinds(self) -> dict[str, tuple[Bounds, ...]]:
        """The bounds there are by name, the sharp ones first."""
        found = {} if self.sharp is None else {SHARP: self.sharp}
        return found | {SIMPLE: self.simple}

    def to_frame(self) -> pd.DataFrame:
        """One row per kind of bounds and Gamma: ends, their standard errors, the interval, and on which rows."""
        records = [
            {"bounds": kind, "gamma": gamma, **bounds.to_dict(), "rows": self.rows}
            for kind, parts in self.kinds.items()
            for gamma, bounds in zip(self.gammas, parts, strict=True)
        ]
        return pd.DataFrame(records).set_index(["bounds", "gamma"])

    def plot(self, **options: Any) -> MarginalSensitivityDisplay:
        """Draw the bounds against Gamma; enough ``gammas`` make smooth curves.

        Options are ``ax``, ``title`` and ``ylabel``, as in
        :meth:`policytree.plotting.sensitivity.MarginalSensitivityDisplay.plot`.
        """
        from policytree.plotting.sensitivity import MarginalSensitivityDisplay

        return MarginalSensitivityDisplay(self).plot(**options)

    def to_text(self) -> str:
        """Show the table and say what it means."""
        return as_text(self._shown())

    def texts(self) -> pd.DataFrame:
        """Bounds as texts, and intervals where rows were held out: a row per Gamma."""
        every = [b for parts in self.kinds.values() for b in parts]
        digits = decimals(e for b in every for e in (b.lower_standard_error, b.upper_standard_error))
        shown = {"gamma": [f"{gamma:g}" for gamma in self.gammas]}
        for kind, parts in self.kinds.items():
            shown[f"{kind} bounds"] = [bounds_text(b.lower, b.upper, digits) for b in parts]
            if self.rows == HELD_OUT:
                interval = f"{100 * self.level:g}% interval" + " " * (kind == SIMPLE)
                shown[interval] = [bounds_text(b.interval_lower, b.interval_upper, digits) for b in parts]
        return pd.DataFrame(shown)

    def _shown(self) -> list[Any]:
        size = size_text(self)
        head = f"{self.what[0].upper()}{self.what[1:]} under hidden confounding (marginal sensitivity model), {size}, "
        head += (
            "held out." if self.rows == HELD_OUT else "those that chose the policy: flattered, so without intervals."
        )
        meaning = (
            "Gamma: given everything that matters, the odds of the treatment that a person got may differ from the\n"
            "estimated odds by up to this factor, either way. Intervals are of the truth, not only of its bounds."
        )
        return [head, self.texts(), *held_out_note(self.held_out_by), meaning, *self.statements()]

    def statements(self) -> tuple[str, ...]:
        """Sentences that state the Gamma at which an advantage may vanish."""
        lines = []
        for kind, point in self.tipping.items():
            if point.bounds == 1.0:
                lines.append("No difference is estimated, so there is none to lose.")
                continue
            text = (
                f"By the {kind} bounds, a hidden confounder that shifts the odds of treatment "
                f"{_gamma_text(point.bounds)}-fold could explain the difference"
            )
            if point.interval == 1.0:
                text += "; its interval contains zero without one"
            elif not np.isnan(point.interval):
                text += f"; {_gamma_text(point.interval)}-fold is enough for its interval to contain zero"
            lines.append(text + ".")
        return tuple(dict.fromkeys(lines))


def _gamma_text(gamma: float) -> str:
    return f"{gamma:.2f}" if gamma < 1e5 else "infinity"


@aligns_rows
@shares_documentation(SENSITIVITY)
def marginal_sensitivity(
    policy: Column | Table | Any,
    Y: Column,
    T: Column,
    *,
    propensity: PerTreatment,
    regression: PerTreatment | None = None,
    baseline: Column | Table | Any = None,
    gammas: Sequence[float] = GAMMAS,
    groups: Column | None = None,
    sample_weight: Column | None = None,
    held_out: bool = False,
    level: float = 0.95,
    n_bootstrap: int = N_BOOTSTRAP,
    random_state: Seed = None,
) -> MarginalSensitivity:
    """Bounds of a policy's value, or of its advantage over a baseline rule, if there is a hidden confounder.

    The marginal sensitivity model (Tan 2006): given covariates and what is hidden, the odds of each treatment differ
    from the odds given covariates alone by a factor within ``[1 / Gamma, Gamma]``. So a row's inverse weight lies
    between ``1 + (1 / e - 1) / Gamma`` and ``1 + (1 / e - 1) Gamma``. Gamma = 1 is no hidden confounder.

    Two kinds of bounds. The *simple* ones (Zhao, Small and Bhattacharya 2019) move the weights of a self-normalised
    mean to their extremes; they need no regression and hold propensities as given. The *sharp* ones (Dorn and Guo 2023)
    also use that the weights must balance at every value of the covariates; they are narrower where covariates predict
    outcomes. Quantiles come from residuals of rows with similar predictions (exactly, for outcomes of 0 and 1); wrong
    ones make the bounds wider, not wrong.

    At Gamma = 1 both kinds are a point, and not the same one: the simple bounds are the self-normalised inverse
    propensity estimate, the sharp ones the doubly robust value. Two estimators of one number differ by chance, and by
    what either nuisance model gets wrong; so at small Gamma sharp bounds need not lie within the simple ones.

    An advantage is bounded as a whole: people whom policy and baseline treat alike add nothing.

    Parameters
    ----------
    propensity : frame of shape (n, K), or any form that ``RewardEstimator.fit`` takes
        Out of fold, as ``RewardEstimator.propensity_``; or known.
    regression : frame of shape (n, K), or array, or mapping, optional
        Expected outcomes out of fold, as ``RewardEstimator.regression_``. Without it there are no sharp bounds.
    gammas : sequence of float >= 1

    Returns
    -------
    MarginalSensitivity

    Raises
    ------
    InputError
        If an argument cannot be used, nobody got what the policy (or the baseline) would give, or the rows are not
        those of the table.

    References
    ----------
    Tan (2006), Journal of the American Statistical Association 101(476), 1619-1637. Zhao, Small and Bhattacharya
    (2019), Journal of the Royal Statistical Society B 81(4), 735-761 (percentile bootstrap). Kallus and Zhou (2021),
    Management Science 67(5), 2870-2890 (policies against a baseline). Dorn and Guo (2023), Journal of the American
    Statistical Association 118(544), 2645-2657.

    Examples
    --------
    >>> import numpy as np
    >>> from policytree.evaluation import marginal_sensitivity
    >>> rng = np.random.default_rng(0)
    >>> T = rng.permutation(np.repeat(["drug", "none"], 300))
    >>> Y = 0.5 * (T == "drug") + rng.normal(size=600)
    >>> result = marginal_sensitivity("drug", Y, T, propensity=0.5, baseline="none", random_state=0)
    >>> 1.0 < result.tipping["simple"].interval < result.tipping["simple"].bounds < 2.0
    True
    """
    check_level(level)
    checked = _gammas(gammas)
    judged = judged_contrasts(
        policy, Y, T, propensity, regression=regression, baseline=baseline, groups=groups,
        sample_weight=sample_weight, held_out=held_out,
    )  # fmt: skip
    first, repetitions = judged.first, judged.repetitions(level)
    bootstrap = ClusterBootstrap.draw(first.clusters, first.weight, n_bootstrap, random_state)
    shown = bootstrap if first.held_out else None
    kinds = {SIMPLE: RepeatedBounds([SimpleBounds(c) for c in judged.contrasts], repetitions, shown)}
    if regression is not None:
        sharp = [SharpBounds(c, random_state) for c in judged.contrasts]
        kinds = {SHARP: RepeatedBounds(sharp, repetitions, shown), **kinds}
    found = {kind: bounds.at(checked) for kind, bounds in kinds.items()}
    tipping = {}
    if first.against_baseline:
        tipping = {kind: TippingGamma(*bounds.tipping()) for kind, bounds in kinds.items()}
    size = first.estimate(np.zeros(first.observed.n), level)
    return MarginalSensitivity(
        tuple(checked.tolist()), found.get(SHARP), found[SIMPLE], tipping, what=first.what, rows=first.rows,
        level=level, n=size.n, n_clusters=size.n_clusters, held_out_by=judged.held_out_by,
    )  # fmt: skip


def _gammas(gammas) -> np.ndarray:
    """The strengths of confounding, checked and ascending."""
    values = np.unique(as_numbers(gammas, "gammas"))
    if values.ndim != 1 or not len(values) or not (np.isfinite(values) & (values >= 1.0)).all():
        raise InputError(f"gammas must be finite numbers of at least 1, such as (1, 1.5, 2); got {quoted(gammas)}.")
    return values
