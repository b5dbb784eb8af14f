"""Who takes what they are offered: uptake by offer, and the compliance of people with different covariates."""

from __future__ import annotations

from typing import Any

import numpy as np

from policytree.common.typing import Column
from policytree.evaluation.instruments.summary import SMALL_COMPLIANCE, InstrumentSummary
from policytree.plotting.common import PALETTE, open_frame, room_for_names, short_name

N_BINS = 30
SAME = 1e-9  # compliances that differ by less are the same
WIDTH = 4.6  # inches beside the names of offers: a telephone shows as much without scrolling


class ComplianceDisplay:
    """Uptake under every offer with its interval, and a histogram of what offers change about uptake, by person.

    Parameters
    ----------
    summary : InstrumentSummary
        From :func:`policytree.evaluation.instrument_summary`.
    compliance : column of n numbers
        ``RewardEstimator.compliance_``.

    Attributes
    ----------
    figure_, axes_ : matplotlib Figure and array of two Axes, after :meth:`plot`

    Examples
    --------
    >>> import numpy as np
    >>> import numpy as np, pandas as pd
    >>> from policytree import RewardEstimator, Study
    >>> from policytree.evaluation import instrument_summary
    >>> from policytree.study import Offered
    >>> rng = np.random.default_rng(0)
    >>> table = pd.DataFrame({"risk": rng.normal(size=500), "offer": rng.choice(["none", "voucher"], size=500)})
    >>> table["took"] = ((table["offer"] == "voucher") & (rng.normal(size=500) > table["risk"])).astype(int)
    >>> table["score"] = table["took"] + rng.normal(size=500)
    >>> study = Study(table, treatment=Offered("took", by="offer"), outcome="score")
    >>> model = RewardEstimator(method="instrument", estimand="compliers", cv=2, random_state=0)
    >>> display = instrument_summary(model.fit(study)).plot()
    >>> [label.get_text() for label in display.axes_[0].get_yticklabels()]
    ['none', 'voucher']
    """

    def __init__(self, summary: InstrumentSummary, compliance: Column):
        self.summary, self.compliance = summary, np.asarray(compliance, dtype=np.float64)

    def plot(self, *, bins: int = N_BINS) -> ComplianceDisplay:
        """Draw both panels on a new figure; a line where everybody has the same compliance."""
        self.figure_ = draw_compliance(compliance_data(self.summary, self.compliance, bins))
        self.axes_ = np.array(self.figure_.axes)
        return self


def compliance_data(summary: InstrumentSummary, compliance: np.ndarray, bins: int = N_BINS) -> dict[str, Any]:
    """Return the content of :func:`draw_compliance` as plain values: no row of the data.

    Parameters
    ----------
    summary : InstrumentSummary
    compliance : ndarray of shape (n,)
    bins : int
    """
    offers = [
        {"name": str(label), **{end: _known(row, f"uptake{end}") for end in ("", "_lower", "_upper")}}
        for label, row in summary.offers.iterrows()
    ]
    constant = float(compliance[0]) if np.ptp(compliance) < SAME else None
    edges = np.linspace(min(0.0, float(compliance.min())), max(SAME, float(compliance.max())), bins + 1)
    return {
        "offers": offers, "treatment": str(summary.treatment), "edges": edges.tolist(), "constant": constant,
        "counts": np.histogram(compliance, edges)[0].tolist(), "small": SMALL_COMPLIANCE,
    }  # fmt: skip


def _known(row: Any, name: str) -> float:
    """A number of the table of offers; nobody took the treatment under an offer without one."""
    value = float(row[name])
    return value if np.isfinite(value) else 0.0


def draw_compliance(data: dict[str, Any]) -> Any:
    """A new figure with both panels of :func:`compliance_data`."""
    import matplotlib.pyplot as plt

    offers = data["offers"]
    names = [short_name(offer["name"]) for offer in offers]
    upper = 0.9 + 0.28 * len(offers)
    figure, (above, below) = plt.subplots(
        2, 1, figsize=(WIDTH + room_for_names(names), upper + 2.2), layout="constrained", height_ratios=[upper, 2.0]
    )
    at = np.arange(len(offers))
    uptake = np.array([[offer[end] for end in ("", "_lower", "_upper")] for offer in offers])
    above.hlines(at, uptake[:, 1], uptake[:, 2], color=PALETTE[4], linewidth=1.8)
    above.plot(uptake[:, 0], at, "o", color=PALETTE[4], markersize=6)
    above.set_yticks(at, names, parse_math=False)
    above.set_ylim(-0.6, len(offers) - 0.4)
    above.invert_yaxis()
    above.set_xlim(min(0.0, float(uptake.min())) - 0.02, max(1.0, float(uptake.max())) + 0.02)
    above.set_xlabel(f"share that takes {short_name(data['treatment'])}", parse_math=False)
    if data["constant"] is not None:
        below.axvline(data["constant"], color=PALETTE[4], linewidth=2.5)
        below.set_xlim(0.0, 1.0)
    else:
        below.stairs(data["counts"], data["edges"], fill=True, color=PALETTE[1])
        if data["edges"][0] <= data["small"] <= data["edges"][-1]:
            below.axvline(data["small"], color=PALETTE[5], linewidth=1, linestyle="--")
    below.set_xlabel("compliance: what offers change about that, by person")
    below.set_ylabel("rows")
    for ax in (above, below):
        open_frame(ax)
    return figure
