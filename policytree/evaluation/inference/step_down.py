"""Which rules are shown better: closed tests of several treatments and one learnt rule, by estimated correlations.

Symbols: ``c`` the reference, ``a_i`` the value of treatment ``i``, ``t`` that of the learnt rule, ``Z_xy`` the
estimated difference ``x - y`` over its standard error as a normal quantile (of Student's t), signs turned so that
larger is better; ``alpha`` one minus the level of the intervals, ``u`` the normal quantile ``1 - alpha / 2``.
Correlations come from the standard errors of differences: ``cov(x - c, y - c) = (V(x - c) + V(y - c) - V(x - y)) / 2``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations

import numpy as np
from scipy.special import ndtr, ndtri, stdtr
from scipy.stats import qmc

from policytree.evaluation.estimates import Estimate

Difference = Callable[[str, str], Estimate]
TREE_SHARE = 0.2  # of alpha / 2: for a rule that beats the reference, but not every treatment
SHIFTS = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0)  # how far below the reference treatments lie, in standard errors
MOST_SUBSETS = 4  # treatments whose subsets are all looked at
_DRAWS = 14  # powers of two


@dataclass(frozen=True, slots=True)
class AgainstReference:
    """Treatments and rule shown better than the reference, by :func:`against_reference`.

    Attributes
    ----------
    shown : tuple of str
        Treatments that are better than the reference.
    tree, tree_best : bool
        Whether the learnt rule is better than the reference; than the reference and every treatment.
    critical : mapping of str to float
        The normal quantile that decided about each treatment, and about the learnt rule.
    """

    shown: tuple[str, ...]
    tree: bool
    tree_best: bool
    critical: dict[str, float]


@dataclass(frozen=True, slots=True)
class Ranking:
    """The best treatment, and those it is shown better than, by :func:`rank_treatments`.

    Attributes
    ----------
    best : str
        The treatment of the best estimate.
    rival : str
        The other one that comes closest to it, in standard errors.
    is_best : bool
        Whether ``best`` is shown better than every other treatment.
    better_than, not_told_apart : tuple of str
        Treatments that ``best`` is shown better than, and the others.
    critical : float
        The normal quantile that decided whether ``best`` is the best.
    tree_best : bool
        Whether the learnt rule is shown better than every treatment.
    """

    best: str
    rival: str
    is_best: bool
    better_than: tuple[str, ...]
    not_told_apart: tuple[str, ...]
    critical: float
    tree_best: bool


def normal_score(estimate: Estimate, sign: float = 1.0) -> float:
    """The estimate over its standard error, as the normal quantile of its quantile of Student's t."""
    if not estimate.standard_error > 0:
        return float(np.sign(estimate.value) * sign * np.inf) if abs(estimate.value) > 1e-12 else 0.0
    size = abs(estimate.value) / estimate.standard_error
    score = -ndtri(stdtr(max(estimate.degrees_of_freedom, 1), -size))
    return float(np.sign(estimate.value) * sign * score)


def against_reference(
    tree: str, arms: Sequence[str], reference: str, difference: Difference, direction: str
) -> AgainstReference:
    """Which treatments, and whether the learnt rule, are better than a reference: a closed test.

    Hypotheses: ``H_i: a_i <= c`` for every treatment, ``H_t: t <= c``, ``H_b: t <= max(c, a_1, ..., a_m)``. A set
    ``S`` of treatments and ``H_t`` together are rejected if one of these holds:

    (a) ``max_S Z_ic > k(S)``;
    (b) the learnt rule beats all at once: ``Z_tc > u`` and ``Z_ti > u`` for all ``i`` in ``S``;
    (c) ``Z_tc > w`` with ``P(Z_tc > w) = TREE_SHARE alpha / 2`` where ``t = c``.

    ``S`` without ``H_t`` is rejected if ``max_S Z_ic`` exceeds its own quantile (Dunnett), ``H_t`` alone if ``Z_tc >
    u``. ``H_b`` is rejected if the rule beats the reference and every treatment at ``u`` (intersection-union).

    **Why (a) costs so little.** Where nothing differs, a rule that helps some by ``i`` and leaves the others at ``c``
    differs from ``c`` on the first and from ``i`` on the second: disjoint people, so ``Z_tc`` and ``Z_ti`` are nearly
    independent and (b) has a probability near ``(alpha / 2)^2``. Only where treatments of ``S`` are much worse than
    ``c`` does it approach ``alpha / 2``, and there (a) has none. So both (a) and (b) have almost all of ``alpha / 2``.
    ``k(S)`` is the least number for which the union has probability at most ``alpha / 2`` where ``t = c`` and the
    treatments of ``S`` lie any of ``SHIFTS`` standard errors below ``c``, under the normal distribution with the
    estimated correlations, and it is no less than ``k`` of a smaller set.

    **Familywise error.** Let ``S`` be the true ``H_i``.

    - ``H_t`` true: any false claim, of ``H_b`` as well (which implies ``Z_tc > u`` and (b)), rejects ``S`` and ``H_t``
      together, since ``k``, (b) and (c) only get easier for smaller sets: at most ``alpha / 2``.
    - ``H_t`` false, ``S`` empty or ``H_b`` false: false claims are of ``S`` (Dunnett's step-down) or of ``H_b`` alone,
      never of both: at most ``alpha / 2``. For one treatment these are all cases: where ``H_1`` and ``H_b`` are true,
      so is ``H_t``.
    - ``H_t`` false, ``S`` not empty, ``H_b`` true (two treatments and more: one is better than ``c``, another is not,
      and the rule is better than ``c`` but than no other): the two claims have ``alpha / 2`` each, ``alpha`` together;
      a verdict names one rule, and the probability that its claim is false is ``alpha / 2`` to three decimals
      (``benchmarks/power.py``).

    So a rule that is no better than the reference is recommended with a probability of at most ``alpha / 2``: one
    side of a two-sided test at ``alpha``. All is for large samples: correlations count as known, and the shifts are a
    grid.

    References
    ----------
    Marcus, Peritz and Gabriel (1976), Biometrika 63(3), 655-660 (closed tests). Bretz, Maurer, Brannath and Posch
    (2009), Statistics in Medicine 28(4), 586-604 (sharing alpha along a graph). Dunnett and Tamhane (1991), Statistics
    in Medicine 10(6), 939-947 (step-down). Berger (1982), Technometrics 24(4), 295-300 (intersection-union).
    """
    sign = 1.0 if direction == "maximize" else -1.0
    alpha = (1 - difference(tree, reference).level) / 2
    u, w = float(-ndtri(alpha)), float(-ndtri(TREE_SHARE * alpha))
    z = {name: normal_score(difference(name, reference), sign) for name in arms}
    own = normal_score(difference(tree, reference), sign)
    over = {name: normal_score(difference(tree, name), sign) for name in arms}
    law = _Law(tree, arms, reference, difference)

    def tree_shown(left: Sequence[str]) -> bool:
        return own > w or (own > u and all(over[name] > u for name in left))

    left, shown = sorted(arms, key=lambda name: -z[name]), []
    critical: dict[str, float] = {}
    while left:
        alone = law.dunnett(left, alpha)
        needed = alone if tree_shown(left) else law.with_tree(left, alpha, u, w)
        critical |= dict.fromkeys(left, needed)
        if not z[left[0]] > needed:
            break
        shown.append(left.pop(0))
    critical[tree] = u if all(over[name] > u for name in left) else w
    tree_best = own > u and all(value > u for value in over.values())
    return AgainstReference(tuple(shown), own > critical[tree], tree_best, critical)


def rank_treatments(tree: str, arms: Sequence[str], difference: Difference, direction: str) -> Ranking:
    """Which treatment is best where none is the reference; whether the learnt rule is better than all.

    Three kinds of claim, of which a verdict makes one:

    - the learnt rule is better than every treatment: ``Z_ti > u`` for all ``i`` (intersection-union, ``alpha / 2``);
    - the treatment of the best estimate is better than every other one: each difference at the two-sided level
      ``alpha``. No correction for the choice is needed: it is hardest to keep the level where two treatments tie and
      the others lie far below (Gutmann and Maymin 1987, for independent normal estimates; Hung and Fithian 2019). The
      quantile is raised a little, so that ``alpha`` holds for both claims where these two and the rule tie;
    - it is better than some: a step-down test of all ordered pairs with the quantiles of their maximum by the
      estimated correlations (Romano and Wolf 2005). Ordered pairs are one-sided hypotheses: a step-down test of them
      bounds false directions as well. Its quantile at the first step leaves ``alpha`` for all three kinds together
      where everything ties.

    References
    ----------
    Gutmann and Maymin (1987), Is the selected population the best?, Annals of Statistics 15(1), 456-461. Hung and
    Fithian (2019), Rank verification for exponential families, Annals of Statistics 47(2), 758-782. Romano and Wolf
    (2005), Exact and approximate stepdown methods for multiple hypothesis testing, JASA 100(469), 94-108.
    """
    sign = 1.0 if direction == "maximize" else -1.0
    first = arms[0]
    level = difference(tree, first).level
    alpha, u = 1 - level, float(-ndtri((1 - level) / 2))
    gains = {name: 0.0 if name == first else sign * difference(name, first).value for name in arms}
    best = max(arms, key=lambda name: gains[name])
    z = {name: normal_score(difference(best, name), sign) for name in arms if name != best}
    rival = min(z, key=lambda name: z[name])
    tree_best = all(normal_score(difference(tree, name), sign) > u for name in arms)
    law = _Law(tree, [name for name in arms if name != first], first, difference)
    critical = law.two_or_tree(best, rival, alpha, u)
    is_best = min(z.values()) > critical
    better = law.better_pairs(
        {(a, b): normal_score(difference(a, b), sign) for a in arms for b in arms if a != b}, alpha, critical, u
    )
    than = tuple(name for name in arms if name != best and (is_best or (best, name) in better))
    rest = tuple(name for name in arms if name != best and name not in than)
    return Ranking(best, rival, is_best, than, rest, critical, tree_best)


class _Law:
    """Estimates of rules minus a reference under "all the same": normal, with the estimated covariance."""

    def __init__(self, tree: str, arms: Sequence[str], reference: str, difference: Difference):
        self._tree, self._reference = tree, reference
        self._index = {name: k for k, name in enumerate([tree, *arms])}
        names, d = list(self._index), len(arms) + 1
        own = np.array([difference(name, reference).standard_error ** 2 for name in names])
        cov = np.diag(own)
        for (i, a), (j, b) in combinations(enumerate(names), 2):
            cov[i, j] = cov[j, i] = (own[i] + own[j] - difference(a, b).standard_error ** 2) / 2
        # The rule less c and a treatment less c share people, so that they go together. Errors of repeated refits can
        # say the contrary: they are larger than those of fixed rules, by what the trees vary.
        cov[0, 1:] = cov[1:, 0] = np.clip(cov[0, 1:], 0.0, np.sqrt(own[0] * own[1:]))
        values, vectors = np.linalg.eigh(np.nan_to_num(cov))
        root = vectors * np.sqrt(np.clip(values, 0.0, None))
        self._cov = root @ root.T
        self._draws = _normal_draws(d) @ root.T
        self._cache: dict[frozenset[str], float] = {}
        self._scores: dict[tuple[str, str], tuple[np.ndarray, float]] = {}

    def scores(self, a: str, b: str) -> tuple[np.ndarray, float]:
        """Draws of the difference of two rules in standard errors, and the standard error."""
        if (a, b) not in self._scores:  # subsets of treatments, and shifts, ask for the same pairs
            self._scores[a, b] = self._drawn(a, b)
        return self._scores[a, b]

    def _drawn(self, a: str, b: str) -> tuple[np.ndarray, float]:
        i, j = self._index.get(a), self._index.get(b)
        drawn, contrast = np.zeros(len(self._draws)), np.zeros(len(self._cov))
        for k, side in ((i, 1.0), (j, -1.0)):
            if k is not None:
                drawn, contrast[k] = drawn + side * self._draws[:, k], contrast[k] + side
        error = float(np.sqrt(max(contrast @ self._cov @ contrast, 0.0)))
        return (drawn / error if error > 0 else np.zeros(len(drawn))), error

    def dunnett(self, arms: Sequence[str], alpha: float) -> float:
        """Return the quantile that the largest of the treatments exceeds with probability ``alpha``."""
        if len(arms) == 1:
            return float(-ndtri(alpha))
        return float(np.quantile(self._largest(arms), 1 - alpha))

    def _largest(self, arms: Sequence[str]) -> np.ndarray:
        return np.max([self.scores(name, self._reference)[0] for name in arms], axis=0)

    def with_tree(self, arms: Sequence[str], alpha: float, u: float, w: float) -> float:
        """``k`` of :func:`against_reference`."""
        key = frozenset(arms)
        if key not in self._cache:
            parts = [[a for a in arms if a != name] for name in arms] if 1 < len(arms) <= MOST_SUBSETS else []
            smaller = [self.with_tree(part, alpha, u, w) for part in parts]
            self._cache[key] = max([self._with_tree(arms, alpha, u, w), self.dunnett(arms, alpha), *smaller])
        return self._cache[key]

    def _with_tree(self, arms: Sequence[str], alpha: float, u: float, w: float) -> float:
        own, largest = self.scores(self._tree, self._reference)[0], self._largest(arms)
        n = len(own)
        most = max(alpha, float(np.mean(own > u))) * n  # the draws' own probability: at large shifts it is all of it
        found = -np.inf
        for shift in SHIFTS:
            beats = own > u
            for name in arms:
                ahead, error = self.scores(self._tree, name)
                moved = shift * self.scores(name, self._reference)[1] / error if error > 0 else 0.0
                beats = beats & (ahead + moved > u)
            rest = largest[~(beats | (own > w))]
            found = max(found, _exceeded(rest, most - (n - len(rest))) - shift)
        return found

    def _beats_all(self, rule: str, others: Sequence[str], at: float) -> np.ndarray:
        return np.all([self.scores(rule, name)[0] > at for name in others], axis=0)

    def two_or_tree(self, best: str, rival: str, alpha: float, u: float) -> float:
        """Return the critical value of two tied treatments at ``alpha`` less the chance that a tied rule beats both."""
        wins = self._beats_all(self._tree, (best, rival), u)
        rest = np.abs(self.scores(best, rival)[0][~wins])
        return max(u, _exceeded(rest, alpha * len(wins) - wins.sum()))

    def better_pairs(
        self, z: dict[tuple[str, str], float], alpha: float, critical: float, u: float
    ) -> set[tuple[str, str]]:
        """Ordered pairs of which the first is shown better, step by step."""
        arms = sorted({a for a, _ in z})
        taken = self._beats_all(self._tree, arms, u)
        for name in arms:
            taken = taken | self._beats_all(name, [other for other in arms if other != name], critical)
        drawn, left = {pair: self.scores(*pair)[0] for pair in z}, set(z)
        shown: set[tuple[str, str]] = set()
        allowed = alpha * len(taken) - taken.sum()
        while left:
            needed = _exceeded(np.max([drawn[pair] for pair in left], axis=0)[~taken], allowed)
            found = {pair for pair in left if z[pair] > max(needed, u)}
            if not found:
                break
            left, shown = left - found, shown | found
        return shown


def _exceeded(values: np.ndarray, by: float) -> float:
    """The value that so many of the values exceed; the largest one by none, and the least one at most."""
    at = len(values) - 1 - int(np.clip(by, 0, len(values) - 1))
    return float(np.partition(values, at)[at])


@lru_cache(maxsize=8)
def _normal_draws(d: int) -> np.ndarray:
    """Draws (n, d) of independent normals: scrambled Sobol points, the same every time."""
    return ndtri(np.clip(qmc.Sobol(d, seed=0).random_base2(_DRAWS), 1e-12, 1 - 1e-12))


def probability(score: float) -> float:
    """The normal distribution function: which quantile of Student's t has this normal score."""
    return float(ndtr(score))
