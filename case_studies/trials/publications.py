"""Eleven of the trials beside their own reports: the published result, ours, and where they differ.

Public interface used: none; reads results/trials.csv, which `study.py` made.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pandas as pd

KEPT = Path(__file__).parent / "results" / "trials.csv"


@dataclass(frozen=True)
class Publication:
    """Result in a trial's own report.

    Attributes
    ----------
    trial : str
        As in `study.py`.
    source : str
    result : str
        The effect and its interval or p value, in the report's own terms.
    unit : str
        Of the effect here.
    agrees : str
        Why both say the same, or where they differ.
    """

    trial: str
    source: str
    result: str
    unit: str
    agrees: str


PUBLICATIONS = (
    Publication(
        "indomethacin", "Elmunzer and others (2012), N Engl J Med 366, 1414", "27 of 295 against 52 of 307, p = .005",
        "share", "The same: a difference of 7.7 points.",
    ),
    Publication(
        "periodontal", "Michalowicz and others (2006), N Engl J Med 355, 1885",
        "12.0 % against 12.8 %, hazard ratio .93 (.63 to 1.37), p = .70", "share", "The same: no effect is shown.",
    ),
    Publication(
        "streptomycin", "Medical Research Council (1948), BMJ 2, 769", "improved: 38 of 55 against 17 of 52", "share",
        "Raw, the shares differ by .364; the treated had more in poor condition, for which our estimate accounts.",
    ),
    Publication(
        "laryngoscope", "Abdallah and others (2011), Anesth Analg 113, 1082", "medians of 38 against 26 seconds",
        "seconds", "The same; a few long attempts make means differ by more than medians.",
    ),
    Publication(
        "ursodiol", "Lindor and others (1994), Gastroenterology 106, 1284", "treatment failure later, p = .0003",
        "days of 1,096", "The same.",
    ),
    Publication(
        "penicillamine", "Dickson and others (1985), N Engl J Med 312, 1011", "no improvement in survival",
        "days of 1,826", "The same; the file adds people with early disease to the 227 of the report.",
    ),
    Publication(
        "interferon", "Chronic Granulomatous Disease Study Group (1991), N Engl J Med 324, 509",
        "first infection later, p = .0006; infected 14 of 63 against 30 of 65", "days of 270", "The same.",
    ),
    Publication(
        "dornase", "Fuchs and others (1994), N Engl J Med 331, 637", "once a day: 28 % less risk, p = .04",
        "days of 160",
        "The same, and clearer: the file counts all antibiotics by vein, of which two thirds are flares in the report.",
    ),
    Publication(
        "auranofin", "Bombardier and others (1986), Am J Med 81, 565", "global composite better, p = .007", "points",
        "The same; ours is one of the measures in that composite.",
    ),
    Publication(
        "smoking", "Steinberg and others (2009), Ann Intern Med 150, 447",
        "abstinent 35 % against 19 %; medians of 65 against 23 days", "days of 182",
        "The same; means up to half a year differ by less than medians, since many relapse at once in both arms.",
    ),
    Publication(
        "black_politicians", "Broockman (2013), Am J Pol Sci 57, 521",
        "28.6 % against 56.1 %; Black legislators 41.4 % against 46.4 %", "share",
        "The same on average. The report is about the difference between both: it changes nobody's best letter.",
    ),
)  # fmt: skip


def main(study) -> None:
    """Print all of them."""
    kept = pd.read_csv(KEPT).set_index("trial")
    study.show("Less is better in indomethacin, periodontal, laryngoscope; everywhere else more is.")
    for each in PUBLICATIONS:
        ours = kept.loc[each.trial]
        digits = 3 if each.unit in ("share", "points") else 1
        effect, low, high = (f"{ours[name]:.{digits}f}" for name in ("effect", "from", "to"))
        study.heading(f"{each.trial}: {each.source}")
        study.show(f"published  {each.result}")
        study.show(f"here       {effect} [{low}, {high}] {each.unit}; use: {ours['use']}")
        study.show(f"           {each.agrees}")
