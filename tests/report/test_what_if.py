"""Prices in the page: moments say what the rows would, and break-even prices are where they are."""

from __future__ import annotations

import numpy as np
import pytest

from policytree.report.content import Prices
from policytree.report.sections.prices import break_even, price_data
from tests.report.browser import measure

SLIDE = """
const place = document.querySelector(".prices"), sliders = [...place.querySelectorAll("input[type=range]")];
for (const [slider, price] of sliders.map((s, k) => [s, PRICES[k]])) {
  slider.min = 0; slider.max = 1000; slider.step = "any";
  slider.value = price; slider.dispatchEvent(new Event("input"));
}
return {
  rows: [...place.querySelectorAll("tbody tr")].map((row) => [...row.children].map((cell) => cell.textContent)),
  note: place.querySelector("[role=status]").textContent,
};
"""


def _priced(values, prices):
    """Return values of the tree and of the first treatment for all, and their difference, net of prices: row by row."""
    arms = list(values.observed.treatments)
    scores = []
    for repetition in values.repetitions:
        given = np.array([prices[arms.index(label)] for label in repetition.policy])
        tree = repetition.scores["policy tree"] - given
        scores.append((tree, repetition.scores[f"always {arms[0]}"] - prices[0]))
    return [
        values.validation.estimate([each(*pair) for pair in scores], values.observed, 0.95)
        for each in (lambda tree, _: tree, lambda tree, single: tree - single)
    ]


@pytest.mark.parametrize("prices", [(0.0, 0.0, 0.0, 0.0), (0.5, 0.25, 2.0, 0.125)])
def test_values_and_intervals_at_prices_are_those_of_the_rows(hostile, prices):
    values = hostile[1][1]
    data = price_data(values)
    weight = np.array([1.0, *(data["sign"] * np.array(prices))])
    first = f"always {values.observed.treatments[0]}"
    for moments, said in zip(
        (data["rules"]["policy tree"], data["differences"][first]), _priced(values, prices), strict=True
    ):
        value = weight @ moments["mean"]
        half = moments["t"] * np.sqrt(weight @ np.array(moments["covariance"]) @ weight)
        assert data["own"] == "policy tree"
        assert (value, value - half, value + half) == pytest.approx((said.value, said.lower, said.upper))


def test_the_interval_of_a_break_even_price_holds_the_prices_at_which_the_difference_may_be_zero():
    moments = {"mean": [2.0, 0.5], "covariance": [[0.04, 0.001], [0.001, 0.0025]], "t": 2.0}
    price, low, high = break_even(moments, 0, -1.0)
    assert price == pytest.approx(4.0) and low < price < high
    for end in (low, high):
        variance = 0.04 - 2 * end * 0.001 + end**2 * 0.0025
        assert abs(2.0 - 0.5 * end) == pytest.approx(2.0 * np.sqrt(variance))
    assert break_even({**moments, "mean": [2.0, 0.05]}, 0, -1.0)[1:] == (-np.inf, np.inf), "the shares may be equal"
    assert break_even({**moments, "mean": [2.0, 0.0]}, 0, -1.0) is None


@pytest.mark.slow
def test_sliders_show_the_values_at_their_prices(hostile, page, tmp_path):
    prices = (0.5, 0.25, 2.0, 0.125)
    found = measure(page, tmp_path, SLIDE.replace("PRICES", str(list(prices))), 1280)
    data = next(b for b in hostile[0].content.section("prices").blocks if isinstance(b, Prices)).data
    own = next(row for row in found["rows"] if row[0] == "policy tree")
    said = _priced(hostile[1][1], prices)[0]
    assert float(own[1].replace("−", "-")) == pytest.approx(said.value, abs=0.51 * 10.0 ** -data["digits"])
    assert found["note"].startswith("The policy tree was learnt at another price")
    assert len(found["rows"]) == len(data["rules"])
