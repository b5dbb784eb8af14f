from __future__ import annotations

import io
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from rich.console import Console
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, LogisticRegression

from policytree import DRPolicyTree, PolicyTree, RewardEstimator
from policytree.born_again.needed_kernels import BORN_AGAIN
from policytree.common.model_count import expect_models, models_counted, more_models_follow
from policytree.common.progress import (
    TimeLeft,
    clock_text,
    count_text,
    model_progress,
    search_line,
    search_progress,
    stage_progress,
    waiting_line,
)
from policytree.problem.types import Progress
from policytree.solvers.core import compilation

RUNNING = Progress(seconds=12.4, objective=-1930.024252, lower_bound=-1952.4, share_closed=0.25, subproblems=12_345)


def terminal(width: int = 80) -> Console:
    return Console(file=io.StringIO(), force_terminal=True, width=width, color_system=None)


def plain() -> Console:
    return Console(file=io.StringIO(), force_terminal=False, width=80)


def written(console: Console) -> str:
    return console.file.getvalue()


@pytest.mark.parametrize(("seconds", "text"), [(0, "0:00"), (59.9, "0:59"), (61, "1:01"), (3_723, "1:02:03")])
def test_clock(seconds, text):
    assert clock_text(seconds) == text


@pytest.mark.parametrize(("count", "text"), [(0, "0"), (999, "999"), (12_345, "12.3k"), (4_570_000, "4.57M")])
def test_count(count, text):
    assert count_text(count) == text


def test_time_left_is_what_the_present_speed_leaves():
    left = TimeLeft()
    assert left.update(0.5, 0.3) is None  # too early to tell
    assert left.update(10.0, 0.25 + 0.15) == pytest.approx(15.0)
    assert left.update(20.0, 0.8) == pytest.approx(5.0)


def test_time_left_starts_anew_with_a_deeper_pass():
    left = TimeLeft()
    left.update(10.0, 1.0)
    assert left.update(11.0, 0.0) is None
    assert left.update(21.0, 0.5) == pytest.approx(10.0)


def test_search_line_says_everything_in_one_terminal_line():
    line = search_line(RUNNING, left=37.0)
    for part in ("0:12", "-1930.02", "-1952.4", "gap 22", "25% closed", "12.3k subproblems", "~0:37 left"):
        assert part in line
    assert "left" not in search_line(RUNNING, left=None)


def test_scale_turns_losses_into_mean_rewards():
    line = search_line(RUNNING, None, scale=-1 / 1_000)
    assert "objective 1.93002" in line
    assert "bound 1.9524" in line
    assert "gap 0.022" in line


def test_search_on_a_terminal_shows_the_line():
    console = terminal(width=110)
    with search_progress(console=console) as callback:
        callback(RUNNING)
        deadline = time.monotonic() + 10.0
        while "25% closed" not in written(console) and time.monotonic() < deadline:
            time.sleep(0.05)  # the display refreshes itself a few times a second
    assert "25% closed" in written(console)


def test_search_elsewhere_prints_nothing():
    console = plain()
    with search_progress(console=console) as callback:
        callback(RUNNING)
    assert written(console) == ""


def test_search_inside_a_stage_becomes_its_detail():
    console = terminal(width=110)
    with stage_progress(console) as display, display.stage("Grow"):
        with search_progress() as callback:
            callback(RUNNING)
            assert display._stages[-1].detail == search_line(RUNNING, left=37.2)
        assert display._stages[-1].detail == ""
    assert "Grow" in written(console)


def test_stages_elsewhere_are_plain_lines():
    console = plain()
    with stage_progress(console) as display, display.stage("Folds", total=2) as advance:
        advance(1, 2)
        advance(2, 2)
    lines = written(console).splitlines()
    assert [line.split(" after")[0] for line in lines[:3]] == ["Folds ...", "  1 of 2", "  2 of 2"]
    assert lines[3].startswith("Folds: done in")


def test_a_failed_stage_is_not_called_done():
    console = plain()
    with pytest.raises(RuntimeError), stage_progress(console) as display, display.stage("Folds"):
        raise RuntimeError
    assert "done" not in written(console)


def test_display_is_forgotten_after_an_error():
    with pytest.raises(RuntimeError), stage_progress(plain()):
        raise RuntimeError
    console = plain()
    with search_progress(console=console) as callback:  # not the failed display's detail any more
        callback(RUNNING)
    assert written(console) == ""


def test_verbose_estimator_reports_valid_bounds_and_the_same_tree(rng):
    X, rewards = rng.normal(size=(150, 4)), rng.normal(size=(150, 2))
    console = terminal(width=110)
    with stage_progress(console) as display, display.stage("Grow"):
        lines = []
        display.detail = lines.append
        loud = PolicyTree(max_depth=3, verbose=1).fit(X, rewards)
    quiet = PolicyTree(max_depth=3).fit(X, rewards)
    assert loud.objective_value_ == quiet.objective_value_
    np.testing.assert_array_equal(loud.tree_.threshold, quiet.tree_.threshold)
    assert any("subproblems" in line for line in lines)


def test_nuisance_models_are_counted_in_the_stage_that_counts_them(rng):
    X, T = rng.normal(size=(120, 2)), rng.integers(0, 2, 120)
    Y = X[:, 0] * T + rng.normal(size=120)
    model = DRPolicyTree(LinearRegression(), LogisticRegression(), max_depth=1, cv=3, random_state=0, verbose=1)
    counted = []
    with stage_progress(plain()) as display, display.stage("Models", counts_models=True):
        stage, show = display._stages[-1], display.models
        display.models = lambda count, kind: counted.append((count.done, count.total, kind)) or show(count, kind)
        loud = model.fit(Y, T, X=X)
        assert stage.summary() == "9 of 9 models"
    assert [done for done, _, _ in counted] == list(range(1, 10))  # two arms' outcomes and the propensity, three folds
    assert {total for _, total, _ in counted} == {9}
    assert [kind for _, _, kind in counted] == [(1, 0), (1, 1), (1, 2)] * 3
    quiet = clone(model).set_params(verbose=0).fit(Y, T, X=X)
    np.testing.assert_array_equal(loud.rewards_, quiet.rewards_)


def test_nuisance_models_elsewhere_are_a_detail_and_workers_count_too(rng):
    X, T = rng.normal(size=(120, 2)), rng.integers(0, 2, 120)
    Y = X[:, 0] * T + rng.normal(size=120)
    with stage_progress(plain()) as display, display.stage("Refits", total=2) as advance, ThreadPoolExecutor(2) as pool:
        rewards = RewardEstimator(LinearRegression(), cv=3, random_state=0, executor=pool)
        with model_progress():
            rewards.fit(Y, T, X=X, propensity=0.5)
        assert display._stages[-1].detail == "6 of 6 models"
        advance(1, 2)
        assert display._stages[-1].summary().startswith("2 of 2")


def test_models_that_others_follow_have_no_time_left():
    seen = []
    with models_counted(lambda count, kind: seen.append((count.done, count.total, count.more, dict(+count.left)))):
        with more_models_follow():
            expect_models([0])(0)
        fitted = expect_models([0, 1])
        fitted(1)
        fitted(0)
    assert seen == [(1, 1, True, {}), (2, 3, False, {(2, 0): 1}), (3, 3, False, {})]
    expect_models([0])(0)  # nobody counts
    assert len(seen) == 3


def test_lines_about_parts_are_few():
    console = plain()
    with stage_progress(console) as display, display.stage("Resamples") as advance:
        for k in range(1, 201):
            advance(k, 200)
    lines = [line for line in written(console).splitlines() if " of 200" in line]
    assert len(lines) == 20 and lines[-1].startswith("  200 of 200")


@pytest.mark.parametrize("others", ["", "12 on host"])
def test_waiting_says_for_whom_for_what_and_how_long_at_most(others):
    console = plain()
    with stage_progress(console), waiting_line(others, "trees of depth two", 900.0):
        pass
    first = written(console).splitlines()[0]
    assert first.startswith(f"Waiting for another process{' (12 on host)' if others else ''} that compiles the search")
    assert "for trees of depth two; if it makes nothing for 15:00, this one compiles instead" in first


def test_kernels_are_told_apart_by_the_problems_that_need_them(monkeypatch):
    always, two_levels = compilation.ALWAYS, compilation.ALWAYS + compilation.TWO_LEVELS
    monkeypatch.setattr(compilation, "are_ready", lambda needed: False)
    for needed, words in (
        ([(always, "")], "trees of every kind"),
        ([(two_levels, "plain")], "trees of depth two"),
        ([(two_levels + compilation.DEEPER, "plain")], "trees of depth three and more"),
        ([(always + compilation.RANKING, "")], "trees that rank"),
        ([(always, ""), *compilation.SUBSET_KERNELS], "deep trees"),
        ([(compilation.RASHOMON, "")], "trees that do as well"),
        ([(BORN_AGAIN, "")], "born-again trees"),
    ):
        assert compilation.kind_of_problem(needed) == words
    monkeypatch.setattr(compilation, "are_ready", lambda needed: all(kernel in always for kernel, _ in needed))
    assert compilation.kind_of_problem([(always + compilation.LOW_COST, "")]) == "trees of cheap tests"
