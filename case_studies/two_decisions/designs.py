"""A simulated sequential trial (SMART) whose truth is known: first line, and a second line for who does not respond."""

from __future__ import annotations

import numpy as np
import pandas as pd

from policytree.regimes import Stage, TreatmentRegime

FIRST, SECOND = ("drug", "talk"), ("more", "stop", "switch")
CHANCES = {"more": 0.45, "stop": 0.1, "switch": 0.45}  # of the second line; that of the first is a half
NEW_PEOPLE = 100_000


class People:
    """People of the design, treated step by step.

    The first line makes some respond: the drug where severity is above zero, talking where it is not. Who does not
    respond is worse or better some weeks later, and gets a second line: switching helps the severe, more of the same
    those who took the drug and are not severe; stopping helps nobody.

    Parameters
    ----------
    n : int
    seed : int
    """

    def __init__(self, n: int, seed: int):
        self.rng = np.random.default_rng(seed)
        self.severity = self.rng.normal(size=n).round(2)
        self.age = self.rng.integers(18, 80, n)
        self.site = self.rng.choice(["north", "south", "island"], n, p=[0.6, 0.37, 0.03])
        self.first = pd.DataFrame({"severity": self.severity, "age": self.age, "site": self.site})

    def chance_of_response(self, drug: np.ndarray) -> np.ndarray:
        """After the first line, (n,)."""
        fits = drug == (self.severity > 0)
        return 1.0 / (1.0 + np.exp(-np.where(fits, 0.3, -1.2)))

    def respond(self, drug: np.ndarray) -> tuple[np.ndarray, pd.DataFrame]:
        """Who responds to the first line, and what is known then."""
        responds = self.rng.random(len(drug)) < self.chance_of_response(drug)
        self.later = (0.7 * self.severity + 0.7 * self.rng.normal(size=len(drug))).round(2)
        return responds, pd.DataFrame({"severity": self.later})

    def means(self, drug: np.ndarray) -> np.ndarray:
        """Return the mean outcomes of the second line without a response, (n, 3) in the order of ``SECOND``."""
        severe = self.later > 0
        more = np.where(severe, -0.5, np.where(drug, 1.2, 0.2))
        switch = np.where(severe, 1.0, 0.0)
        return np.column_stack([more, np.full(len(drug), -0.3), switch])

    def end(self, drug: np.ndarray, second: np.ndarray, responds: np.ndarray) -> np.ndarray:
        """Return the outcome of the second line; zero for those who had responded."""
        own = self.means(drug)[np.arange(len(drug)), second] + self.rng.normal(size=len(drug))
        return np.where(responds, 0.0, own)


def trial(n: int, seed: int) -> list[Stage]:
    """A trial of the design: its people are randomised at both decisions."""
    people = People(n, seed)
    drug = people.rng.random(n) < 0.5
    responds, known = people.respond(drug)
    second = people.rng.choice(3, n, p=list(CHANCES.values()))
    given = pd.Series(np.array(SECOND)[second], name="second line").where(~responds)
    return [
        Stage(
            pd.Series(np.where(drug, *FIRST), name="first line"), X=people.first, name="first line", propensity=0.5,
            Y=pd.Series(responds * 2.0, name="relief"),
        ),
        Stage(
            given, X=known, Y=pd.Series(people.end(drug, second, responds), name="relief"), propensity=CHANCES,
            name="second line",
        ),
    ]  # fmt: skip


def true_value(rule, seed: int = 1_000_000) -> float:
    """Mean relief of new people who are treated by a rule.

    Parameters
    ----------
    rule : TreatmentRegime, or (first, second)
        A fitted regime; or names of treatments for everybody; or two functions of the people, and of what they took,
        that return whether they get the drug, and the position of the second line.
    """
    people = People(NEW_PEOPLE, seed)
    if isinstance(rule, TreatmentRegime):
        drug = rule.predict([Stage(X=people.first)]) == "drug"
        responds, known = people.respond(drug)
        before = Stage(np.where(drug, *FIRST), X=people.first, Y=responds * 2.0)
        given = rule.predict([before, Stage(X=known, eligible=~responds)])
        second = np.array([SECOND.index(label) if label is not None else 0 for label in given])
    else:
        drug = np.full(NEW_PEOPLE, rule[0] == "drug") if isinstance(rule[0], str) else rule[0](people)
        responds, _ = people.respond(drug)
        second = np.full(NEW_PEOPLE, SECOND.index(rule[1])) if isinstance(rule[1], str) else rule[1](people, drug)
    return float((responds * 2.0 + people.end(drug, second, responds)).mean())


def best_second(people: People, drug: np.ndarray) -> np.ndarray:
    """The best second line, by the true means."""
    return people.means(drug).argmax(axis=1)


def best_first(people: People) -> np.ndarray:
    """The best first line, given that the second one will be best; what comes later is averaged over 400 draws."""
    worth = np.zeros((2, len(people.severity)))
    noise = np.random.default_rng(7).normal(size=400)
    for k, drug in enumerate((True, False)):
        arm = np.full(len(people.severity), drug)
        for shock in noise:
            people.later = 0.7 * people.severity + 0.7 * shock
            worth[k] += people.means(arm).max(axis=1) / len(noise)
        chance = people.chance_of_response(arm)
        worth[k] = chance * 2.0 + (1 - chance) * worth[k]
    return worth[0] > worth[1]
