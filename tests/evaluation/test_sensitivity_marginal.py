"""Bounds by the marginal sensitivity model: published numbers, linear programmes, closed forms, coverage."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.stats import binom, norm

from policytree import RewardEstimator, load_dataset, policy_value
from policytree.evaluation import marginal_sensitivity
from policytree.evaluation.inference.cluster_bootstrap import ClusterBootstrap
from policytree.evaluation.sensitivity.contrasts import make_contrast
from policytree.evaluation.sensitivity.sharp_bounds import SharpBounds, Tails, quantile_loss, sharp_scores
from policytree.evaluation.sensitivity.simple_bounds import SimpleBounds
from policytree.exceptions import InputError
from policytree.weighting.doubly_robust import DoublyRobust
from policytree.weighting.scheme import Nuisances
from tests.support.simulations import benchmark_script, three_arms


@pytest.fixture(scope="module")
def men():
    return load_dataset("nsw").study()


@pytest.fixture
def study(rng):
    """400 rows in 80 clusters, three arms, propensities that vary, expected outcomes, weights."""
    return three_arms(rng, 400, 5)


def analyse(study, **options):
    taken = {k: v for k, v in study.items() if k not in ("policy", "x")}
    options = {"held_out": True, "random_state": 0, "n_bootstrap": 200, **taken, **options}
    return marginal_sensitivity(options.pop("policy", study["policy"]), options.pop("Y"), options.pop("T"), **options)


# --- published numbers ---

CHANCES = {"control": 260 / 445, "training": 185 / 445}


@pytest.mark.parametrize(
    ("policy", "gamma", "bounds"),
    [
        ("training", 1.5, (5110.4629, 7722.7554)),
        ("training", 2.0, (4326.0175, 8769.3377)),
        ("control", 1.5, (3862.5832, 5292.9473)),
        ("control", 2.0, (3393.9322, 5852.2244)),
    ],
)
def test_bounds_of_the_job_training_experiment(men, policy, gamma, bounds):
    found = marginal_sensitivity(policy, men.Y, men.T, propensity=CHANCES, gammas=[gamma], random_state=0)
    assert (round(found.simple[0].lower, 4), round(found.simple[0].upper, 4)) == bounds
    assert found.tipping == {} and found.sharp is None and found.rows == "held out"


def test_the_effect_of_training_may_vanish_at_this_gamma(men):
    found = marginal_sensitivity("training", men.Y, men.T, propensity=CHANCES, baseline="control")
    assert round(found.tipping["simple"].bounds, 6) == 1.443571
    assert 1 < found.tipping["simple"].interval < found.tipping["simple"].bounds
    assert "shifts the odds of treatment 1.44-fold could explain the difference" in str(found)


# --- oracles ---


def extreme_mean(y, a, odds, gamma, sign):
    """Largest (sign 1) or smallest self-normalised mean by a linear programme (Charnes and Cooper 1962)."""
    n = len(y)
    low, high = 1 + odds / gamma, 1 + odds * gamma
    # variables u = t v and t, where v are the weights: sum a u = 1, low t <= u <= high t
    bounds = np.vstack([np.column_stack([np.eye(n), -high]), np.column_stack([-np.eye(n), low])])
    done = linprog(
        -sign * np.append(a * y, 0.0), A_ub=bounds, b_ub=np.zeros(2 * n), A_eq=[np.append(a, 0.0)], b_eq=[1.0],
        bounds=[(0, None)] * (n + 1), method="highs",
    )  # fmt: skip
    assert done.status == 0
    return -sign * done.fun


@settings(max_examples=30)
@given(st.integers(0, 10_000), st.floats(1.0, 8.0), st.booleans(), st.booleans())
def test_simple_bounds_are_linear_programmes(seed, gamma, weighted, random_policy):
    rng = np.random.default_rng(seed)
    n, arms = 24, 3
    T = np.append(np.arange(3).repeat(4), rng.integers(0, arms, n - 12))
    y = rng.choice([rng.normal(size=n), rng.integers(0, 3, n).astype(float)])  # ties too
    p = rng.dirichlet(np.full(arms, 4.0), size=n)
    w = rng.uniform(0.2, 3, n) if weighted else np.ones(n)
    policy = np.eye(arms)[rng.integers(0, arms, n)] if not random_policy else rng.dirichlet(np.ones(arms), size=n)
    baseline = np.eye(arms)[rng.integers(0, arms, n)]
    for base in (None, baseline):
        change = policy - (0 if base is None else base)
        if any(((s * change[:, k] > 0).any() and not ((s * change[:, k] > 0) & (k == T)).any())
               for k in range(arms) for s in (1, -1)) or not change.any():  # fmt: skip
            continue
        contrast = make_contrast(policy, y, T, p, baseline=base, sample_weight=w)
        expected = {-1.0: 0.0, 1.0: 0.0}
        for end in expected:
            for k in range(arms):
                for sign in (1.0, -1.0):
                    mass = np.clip(sign * change[:, k], 0, None)
                    rows = (k == T) & (mass > 0)
                    if rows.any():
                        odds = 1 / p[rows, k] - 1
                        mean = extreme_mean(y[rows], w[rows] * mass[rows], odds, gamma, end * sign)
                        expected[end] += sign * np.average(mass, weights=w) * mean
        np.testing.assert_allclose(SimpleBounds(contrast).ends(gamma), [expected[-1.0], expected[1.0]], atol=1e-7)


@settings(max_examples=30)
@given(st.integers(0, 10_000), st.floats(1.05, 6.0))
def test_sharp_bounds_are_linear_programmes_where_covariates_are_few(seed, gamma):
    """In cells of one covariate, with shares, means and quantiles of the cells: weights balanced in every cell."""
    rng = np.random.default_rng(seed)
    cell = np.repeat(np.arange(3), 12)
    T = np.concatenate([np.append([0, 0, 1, 1], rng.integers(0, 2, 8)) for _ in range(3)])
    y = rng.normal(size=36) + cell * T
    e, m, quantile, loss = np.zeros((36, 2)), np.zeros((36, 2)), {}, {}
    tau = {True: gamma / (1 + gamma), False: 1 / (1 + gamma)}
    bound = {True: 0.0, False: 0.0}
    for c in range(3):
        for k in (0, 1):
            own, here = y[(cell == c) & (k == T)], cell == c
            e[here, k], m[here, k] = len(own) / 12, own.mean()
            for up in (True, False):
                q = np.quantile(own, tau[up], method="inverted_cdf")
                quantile.setdefault(up, np.zeros((36, 2)))[here, k] = q
                loss.setdefault(up, np.zeros((36, 2)))[here, k] = quantile_loss(own - q, tau[up]).mean()
                if k == 1:
                    r = linprog(
                        (-1 if up else 1) * own / len(own), A_eq=[np.full(len(own), 1 / len(own))], b_eq=[1.0],
                        bounds=[(1 / gamma, gamma)] * len(own), method="highs",
                    )  # fmt: skip
                    bound[up] += (len(own) * own.mean() + (12 - len(own)) * (-1 if up else 1) * r.fun) / 36
    contrast = make_contrast(1, y, T, pd.DataFrame(e, columns=[0, 1]), regression=m)
    for up in (True, False):
        tails = Tails(quantile[up][np.arange(36), T], loss[up])
        scores = sharp_scores(contrast, tails, gamma, up)[:, 1]
        assert contrast.scores().mean() + scores.mean() == pytest.approx(bound[up], abs=1e-9)


def test_gaussian_noise_has_a_closed_form(rng):
    """Noise of variance one, right nuisances: phi(Phi^-1(1 / (1 + Gamma))) (Gamma - 1 / Gamma) for an advantage."""
    n, gamma = 40_000, 2.0
    x = rng.normal(size=n)
    e = 1 / (1 + np.exp(-x))
    T = (rng.random(n) < e).astype(int)
    mean = np.column_stack([x, x + 1])
    y = mean[np.arange(n), T] + rng.normal(size=n)
    shift = norm.pdf(norm.ppf(1 / (1 + gamma))) * (gamma - 1 / gamma)
    options = {"propensity": e, "regression": mean, "gammas": [gamma], "n_bootstrap": 20, "random_state": 0}
    advantage = marginal_sensitivity(1, y, T, baseline=0, **options).sharp[0]
    value = marginal_sensitivity(1, y, T, **options).sharp[0]
    for end, truth, part in (("lower", 1 - shift, advantage), ("upper", 1 + shift, advantage),
                             ("lower", 1 - shift / 2, value), ("upper", 1 + shift / 2, value)):  # fmt: skip
        assert abs(getattr(part, end) - truth) < 3.5 * getattr(part, f"{end}_standard_error")
        assert getattr(part, f"{end}_standard_error") < 0.04


def test_outcomes_of_zero_and_one_have_a_closed_form(rng):
    """Among the others a probability p may be anything from max(p / Gamma, 1 - Gamma (1 - p)) to its mirror image."""
    n, gamma = 30_000, 3.0
    p = rng.uniform(0.02, 0.98, n)
    T = rng.integers(0, 2, n)
    y = (rng.random(n) < p).astype(float)
    found = marginal_sensitivity(
        1, y, T, propensity=0.5, regression=np.column_stack([p, p]), gammas=[gamma], n_bootstrap=20, random_state=0
    ).sharp[0]
    low, high = np.maximum(p / gamma, 1 - gamma * (1 - p)), np.minimum(gamma * p, 1 - (1 - p) / gamma)
    assert found.lower == pytest.approx((p.mean() + low.mean()) / 2, abs=4 * found.lower_standard_error)
    assert found.upper == pytest.approx((p.mean() + high.mean()) / 2, abs=4 * found.upper_standard_error)


# --- what must hold ---


def test_without_a_confounder_the_sharp_bounds_are_the_doubly_robust_value(study):
    found = analyse(study, gammas=[1.0]).sharp[0]
    contrast = make_contrast(study["policy"], study["Y"], study["T"], study["propensity"])
    nuisances = Nuisances(study["regression"].to_numpy(), study["propensity"].to_numpy())
    rewards = pd.DataFrame(DoublyRobust().rewards(contrast.observed, nuisances), columns=list("abc"))
    value = policy_value(study["policy"], rewards, groups=study["groups"], sample_weight=study["sample_weight"])
    assert found.lower == found.upper == pytest.approx(value.value, rel=1e-12)
    assert found.lower_standard_error == pytest.approx(value.standard_error, rel=1e-12)


def test_without_a_confounder_the_simple_bounds_are_the_self_normalised_mean(study):
    """Another estimate than the doubly robust one that the sharp bounds are then."""
    found = analyse(study, gammas=[1.0])
    weight, value = study["sample_weight"], 0.0
    for arm in np.unique(study["policy"]):
        given = study["policy"] == arm
        got = given & (study["T"] == arm)
        inverse = weight[got] / study["propensity"][arm].to_numpy()[got]
        value += np.average(given, weights=weight) * np.average(study["Y"][got], weights=inverse)
    assert found.simple[0].lower == found.simple[0].upper == pytest.approx(value, rel=1e-12)
    assert found.sharp[0].lower != pytest.approx(value, rel=1e-6)


@pytest.mark.parametrize("largest", [False, True])
@pytest.mark.parametrize("baseline", [None, "a"])
def test_influences_are_derivatives(study, baseline, largest):
    """Of the bound by a row's weight."""

    def ends(weight):
        given = (study["policy"], study["Y"], study["T"], study["propensity"])
        return SimpleBounds(make_contrast(*given, baseline=baseline, sample_weight=weight))

    weight, n, step = study["sample_weight"], 400, 1e-6
    influence = ends(weight).influence(2.0, largest)
    assert influence.sum() == pytest.approx(0.0, abs=1e-8)
    for row in (0, 7, 100, 251):
        more, less = weight.copy(), weight.copy()
        more[row], less[row] = weight[row] + step, weight[row] - step
        slope = (ends(more).ends(2.0)[largest] - ends(less).ends(2.0)[largest]) / (2 * step)
        assert influence[row] / n == pytest.approx(slope * weight[row], abs=2e-6)


def test_bounds_widen_with_gamma_and_move_with_the_outcome(study):
    gammas = (1.0, 1.2, 2.0, 5.0)
    found = analyse(study, gammas=gammas, baseline="a")
    for parts in found.kinds.values():
        lower, upper = (np.array([getattr(b, end) for b in parts]) for end in ("lower", "upper"))
        assert (np.diff(lower) < 0).all() and (np.diff(upper) > 0).all()
        assert lower[0] == pytest.approx(upper[0], rel=1e-9)
    for scale in (3.0, -3.0):
        moved = {"Y": 100 + scale * study["Y"], "regression": 100 + scale * study["regression"]}
        other = analyse(study, gammas=gammas, baseline="a", **moved)
        for kind, parts in found.kinds.items():
            # which of two neighbouring residuals is the quantile changes with the sign
            near = {"rel": 5e-3} if scale < 0 and kind == "sharp" else {"rel": 1e-9}
            for before, after in zip(parts, other.kinds[kind], strict=True):
                ends = sorted((scale * before.lower, scale * before.upper))
                assert (after.lower, after.upper) == pytest.approx(ends, **near)


def test_people_whom_both_rules_treat_alike_add_nothing(study):
    baseline = np.where(study["x"] > 0.5, study["policy"], "a")
    same = baseline == study["policy"]
    before = analyse(study, baseline=baseline, regression=None)
    moved = analyse(study, baseline=baseline, regression=None, Y=np.where(same, 1e3, study["Y"]))
    for a, b in zip(before.simple, moved.simple, strict=True):
        assert (a.lower, a.upper) == pytest.approx((b.lower, b.upper), abs=1e-9)


def test_the_interval_reaches_zero_at_its_gamma(study):
    study["Y"] = study["Y"] + 0.8 * (study["T"] == study["policy"])
    study["regression"] = study["regression"] + 0.4
    first = analyse(study, baseline="a")
    for kind, point in first.tipping.items():
        assert 1 < point.interval < point.bounds < np.inf
        at = analyse(study, baseline="a", gammas=[point.interval, point.bounds]).kinds[kind]
        assert at[0].interval_lower == pytest.approx(0.0, abs=1e-4)
        assert at[1].lower == pytest.approx(0.0, abs=1e-6)
    turned = analyse(study, policy="a", baseline=study["policy"])  # now the upper end faces zero
    assert turned.tipping["sharp"].bounds == pytest.approx(first.tipping["sharp"].bounds, rel=1e-6)
    assert turned.tipping["simple"].bounds == pytest.approx(first.tipping["simple"].bounds, rel=1e-6)


def test_nothing_can_vanish_where_every_outcome_speaks_for_it():
    y = np.concatenate([np.full(20, 5.0), np.full(20, 1.0)])
    found = marginal_sensitivity("b", y, ["b"] * 20 + ["a"] * 20, propensity=0.5, baseline="a", random_state=0)
    assert found.tipping["simple"].bounds == found.tipping["simple"].interval == np.inf
    assert "infinity-fold is enough for its interval to contain zero" in str(found)


def test_bootstrap_errors_are_those_of_the_influences(study):
    found = analyse(study, baseline="a", n_bootstrap=1_500, gammas=[1.5])
    bootstrap = ClusterBootstrap.draw(study["groups"], study["sample_weight"], 1_500, 0)
    contrast = make_contrast(study["policy"], study["Y"], study["T"], study["propensity"], baseline="a",
                             regression=study["regression"], groups=study["groups"],
                             sample_weight=study["sample_weight"])  # fmt: skip
    for bounds, part in ((SimpleBounds(contrast), found.simple[0]), (SharpBounds(contrast, 0), found.sharp[0])):
        spread = bounds.bootstrap(np.array([1.5]), bootstrap)[:, 0].std(axis=0)
        np.testing.assert_allclose(spread, [part.lower_standard_error, part.upper_standard_error], rtol=0.12)
    copies = {k: np.repeat(v, 4, axis=0) if k != "propensity" and k != "regression" else
              v.loc[np.repeat(v.index, 4)] for k, v in study.items()}  # fmt: skip
    again = analyse(copies, baseline="a", gammas=[1.5])  # the same 80 clusters, each four times as large
    assert again.simple[0].lower_standard_error == pytest.approx(found.simple[0].lower_standard_error, rel=1e-9)


def test_rows_without_weight_do_not_matter(study):
    weight = study["sample_weight"].copy()
    weight[350:] = 0.0
    whole = analyse(study, sample_weight=weight, baseline="a", groups=None)
    part = {k: v[:350] for k, v in study.items() if k != "sample_weight"}
    alone = analyse(part, sample_weight=weight[:350], baseline="a", groups=None)
    assert whole.n == alone.n == 350
    np.testing.assert_allclose(whole.to_frame().loc["simple"].iloc[:, :4].astype(float),
                               alone.to_frame().loc["simple"].iloc[:, :4].astype(float), rtol=1e-9)  # fmt: skip


def test_rows_that_chose_the_policy_have_no_intervals(study):
    found = analyse(study, held_out=False, baseline="a")
    frame = found.to_frame()
    assert frame[["interval_lower", "interval_upper"]].isna().all().all() and set(frame["rows"]) == {"training rows"}
    assert frame["lower_standard_error"].notna().all()
    assert np.isnan(found.tipping["sharp"].interval) and found.tipping["sharp"].bounds >= 1
    assert "those that chose the policy: flattered, so without intervals" in str(found)
    assert "interval holds" not in str(found)


def test_nuisances_of_a_reward_estimator_are_taken_as_they_are(men):
    fitted = RewardEstimator(method="dr", random_state=0).fit(men)
    found = marginal_sensitivity(
        "training", men.Y, men.T, propensity=fitted.propensity_, regression=fitted.regression_,
        baseline="control", random_state=0,
    )  # fmt: skip
    assert found.sharp[0].lower == pytest.approx((fitted.rewards_["training"] - fitted.rewards_["control"]).mean())
    assert found.sharp[-1].upper - found.sharp[-1].lower < found.simple[-1].upper - found.simple[-1].lower


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"gammas": [0.5, 2]}, "gammas must be finite numbers of at least 1"),
        ({"gammas": []}, "gammas must be"),
        ({"policy": "zzz"}, "policy recommends 'zzz', which has no propensity"),
        ({"policy": ["a"] * 3}, "policy has 3 rows, but propensity has 400"),
        ({"policy": "b", "baseline": "b"}, "treat everybody alike"),
        ({"n_bootstrap": 5}, "n_bootstrap must be a whole number of at least 20"),
        ({"held_out": "yes"}, "held_out must be True or False"),
        ({"level": 2}, "level must lie between 0 and 1"),
        ({"propensity": np.full((400, 3), 0.9)}, "sum to"),
        ({"regression": np.zeros((400, 2))}, "regression has shape"),
        ({"groups": np.arange(400) % 9}, r"A bootstrap of 9 clusters \(groups\) .* pass at least 10"),
    ],
)
def test_bad_arguments_are_one_sentence(study, change, words):
    with pytest.raises(InputError, match=words):
        analyse(study, **change)


def test_a_rule_that_nobody_followed_is_refused(study):
    policy = np.where(study["T"] == "a", "b", "a")
    with pytest.raises(InputError, match="Nobody to whom the policy would give a got it"):
        analyse(study, policy=policy)


# --- coverage ---


@pytest.mark.slow
def test_bounds_hold_the_truth_if_and_only_if_gamma_is_large_enough():
    """A hidden confounder of known strength, no effect; at the true Gamma the truth lies at the end of the bounds."""
    with benchmark_script("sensitivity_coverage") as script:
        cell = next(c for c in script.cells() if c.name.startswith("no effect, Gamma 1.5"))
        population = cell.draw(np.random.default_rng(1), 50_000)
        records = pd.DataFrame([script.one_run(cell, population, seed) for seed in range(35)])
    counts = records[["sharp", "simple", "gamma 1", "omitted", "omitted 0", "false claims"]].astype(float).sum()
    least = binom.ppf(0.001, 35, 0.975)  # nominal there
    assert min(counts["sharp"], counts["simple"], counts["omitted"]) >= least
    assert max(counts["gamma 1"], counts["omitted 0"]) <= 0.6 * 35
    assert 0.3 <= records["sharp bounds"].mean() <= 0.7, "the confounder is the worst that the bounds allow"
    assert counts["false claims"] <= 35 - least
