"""Searches under a clock: in a thread of their own, so that signals never reach a kernel's call."""

from __future__ import annotations

import _thread
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from policytree.common import own_thread
from policytree.problem.types import Problem, SearchLimits, Status
from policytree.solvers import solve_direct
from policytree.solvers.core import limits as clock_module
from policytree.solvers.core.binning import bin_matrix
from policytree.solvers.core.limits import Clock
from policytree.solvers.exact import direct, shared_state
from policytree.trees.text import to_rules
from tests.cli.running import ROOT
from tests.support import interrupting


def test_searches_run_in_a_thread_that_handles_no_signals():
    found: list[bool] = []
    clock = Clock(None)
    clock.watch(lambda: found.append(threading.current_thread() is threading.main_thread()))
    assert found == [False] and clock.status == Status.OPTIMAL and not clock.stopped


def test_a_limit_ends_a_search(monkeypatch):
    monkeypatch.setattr(clock_module, "time", time)  # of the wall, as users have it
    clock = Clock(0.01)

    def search():
        while not clock.stopped:
            pass

    clock.watch(search)
    assert clock.status == Status.TIME_LIMIT


def test_no_limit_ends_what_does_not_count(monkeypatch):
    """Such as compiling in the midst of a search, however long it takes; the time before and after does."""
    monkeypatch.setattr(clock_module, "time", time)
    clock = Clock(0.2)

    def search():
        with clock.paused():
            time.sleep(0.5)
        stopped_early = clock.stopped
        while not clock.stopped:
            pass
        return stopped_early

    assert clock.watch(search) is False
    assert clock.status == Status.TIME_LIMIT and 0.2 <= clock.seconds() < 0.5


def test_errors_are_raised_where_the_search_was_started():
    def fail():
        raise ValueError("no such cut")

    with pytest.raises(ValueError, match="no such cut"):
        Clock(None).watch(fail)


def test_ctrl_c_while_looking_waits_for_the_search_to_end():
    clock, begun, ended = Clock(None), [], []

    def search():
        begun.append(True)
        while not clock.stopped:
            pass
        ended.append(True)

    def look():
        if begun:
            raise KeyboardInterrupt

    clock.watch(search, look)
    assert clock.status == Status.INTERRUPTED and ended == [True]


def test_what_a_search_returns_is_returned():
    assert Clock(None).watch(lambda: 3) == 3


@pytest.mark.usefixtures("ctrl_c")
@pytest.mark.parametrize(("file", "part"), [(direct, "prepare"), (shared_state, "expand")])
def test_ctrl_c_before_and_after_the_search_itself_leaves_a_tree(file, part, rng, monkeypatch):
    """All kernels run in the search's thread, so that a signal finds none of them in the main one."""
    original = getattr(file, part)

    def interrupt(*given, **named):
        _thread.interrupt_main()
        time.sleep(0.3)
        return original(*given, **named)

    X, losses = rng.random((300, 4)), rng.integers(0, 2, (300, 2)).astype(float)
    problem = Problem(bin_matrix(X), losses, 0.0, 3)
    optimum = solve_direct(problem)
    with monkeypatch.context() as patch:
        patch.setattr(file, part, interrupt)
        found = solve_direct(problem)
    if part == "prepare":
        assert found.status == Status.INTERRUPTED and found.objective - found.gap <= optimum.objective
    else:
        assert found.status == Status.OPTIMAL and to_rules(found.tree).equals(to_rules(optimum.tree))


# --- Ctrl-C at any bytecode ---

WAITING = interrupting.files(clock_module.__file__, own_thread.__file__)


@pytest.fixture
def short_looks(monkeypatch):
    for module in (clock_module, own_thread):
        monkeypatch.setattr(module, "LOOK_EVERY", 0.001)


def _watch(at: list[int]) -> tuple[int | None, interrupting.CtrlC]:
    """A search that ends at the second look, or when it is told to; None where Ctrl-C was raised."""
    threads, looks, clock, over = _thread._count(), [], Clock(None), threading.Event()

    def search() -> int:
        while not (clock.stopped or over.is_set()):
            time.sleep(0.0005)
        return 3

    def look() -> None:
        looks.append(1)
        if len(looks) == 2:
            over.set()

    found = None
    with interrupting.CtrlC(WAITING, at) as pressed:
        try:
            found = clock.watch(search, look)
        except KeyboardInterrupt:
            assert pressed.raised
    assert interrupting.ended(threads), f"a search goes on after Ctrl-C in {pressed.raised}"
    assert found in (3, None) and clock.status in (Status.OPTIMAL, Status.INTERRUPTED)
    return found, pressed


def test_ctrl_c_at_any_bytecode_leaves_no_search_behind(short_looks):
    """Between taking a lock and storing that it is taken, Ctrl-C used to wait for good."""

    def every() -> set[int | None]:
        total, found = _watch([])[1].passed, set()
        assert total > 100
        for k in range(total):
            found.add(interrupting.guarded(lambda k=k: _watch([k])[0]))
        return found

    assert every() == {3, None}


def test_further_ctrl_c_while_the_search_is_being_stopped(short_looks, rng):
    """Two to four, the later ones while the earlier ones are answered."""
    total, found = _watch([])[1].passed, set()
    for _ in range(1_500):
        first = rng.integers(total)
        steps = np.where(rng.random(3) < 0.5, rng.integers(1, 9, 3), rng.integers(1, 81, 3))[: rng.integers(1, 4)]
        at = [first, *(first + np.cumsum(steps))]
        result, pressed = interrupting.guarded(lambda at=at: _watch(at))
        found.add((result, len(pressed.raised)))
    assert found >= {(result, n) for result in (3, None) for n in (2, 3, 4)}


def test_other_exceptions_stop_the_search_and_are_raised_once_it_has_ended(short_looks):
    clock, begun, ended = Clock(None), [], []

    def search():
        begun.append(True)
        while not clock.stopped:
            time.sleep(0.001)
        ended.append(True)

    def look():
        if begun:
            raise ValueError("no room for a display")

    with pytest.raises(ValueError, match="no room for a display"):
        clock.watch(search, look)
    assert ended == [True]


def test_a_thread_that_cannot_be_started_is_not_waited_for(monkeypatch):
    def refuse(*_):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(own_thread._thread, "start_new_thread", refuse)
    with pytest.raises(RuntimeError, match="can't start new thread"):
        Clock(None).watch(lambda: 3)


def test_a_search_that_was_called_off_never_begins(monkeypatch):
    """Its thread may come late: after Ctrl-C has been raised."""
    late, ran = [], []

    def start(work, arguments):
        late.append(lambda: work(*arguments))
        raise KeyboardInterrupt

    monkeypatch.setattr(own_thread._thread, "start_new_thread", start)
    with pytest.raises(KeyboardInterrupt):
        Clock(None).watch(lambda: ran.append(True))
    late[0]()
    assert ran == []


def test_a_fit_that_ctrl_c_hits_at_any_bytecode_of_the_clock(rng, short_looks):
    """Gives a tree and a bound that holds, or KeyboardInterrupt; and the next one is as if nothing had been."""
    X, losses = rng.integers(0, 5, (60, 3)).astype(float), rng.normal(size=(60, 2))
    problem = Problem(bin_matrix(X), losses, 0.0, 3)
    best = solve_direct(problem)

    def fit(at: list[int]):
        threads = _thread._count()
        with interrupting.CtrlC(WAITING, at) as pressed:
            try:
                found = solve_direct(problem, SearchLimits(time_limit=60.0))
            except KeyboardInterrupt:
                found = None
        assert interrupting.ended(threads), pressed.raised
        if found is not None:
            assert found.lower_bound <= best.objective + best.resolution
            assert found.objective >= best.objective - best.resolution
            assert found.status in (Status.OPTIMAL, Status.INTERRUPTED)
        return pressed.passed

    for k in range(interrupting.guarded(lambda: fit([]))):
        interrupting.guarded(lambda k=k: fit([k]))
    again = solve_direct(problem)
    assert again.status is Status.OPTIMAL and again.objective == best.objective


# Ctrl-C while a lock is being taken; and again and again, every few thousandths of a second, for hundreds of fits.
PRESS = """
import os, random, signal, threading, warnings
import numpy as np
from policytree import PolicyTree
import policytree.common.own_thread as own_thread

warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
X, rewards = rng.integers(0, 5, (100, 3)).astype(float), rng.normal(size=(100, 2))
best, fitting = PolicyTree(max_depth=3).fit(X, rewards).objective_value_, [False]


def fit():
    fitting[0] = True
    try:
        tree = PolicyTree(max_depth=3).fit(X, rewards)
    except KeyboardInterrupt:
        return "raised"
    finally:
        fitting[0] = False
    assert tree.objective_bound_ >= best - 1e-9, "a bound that does not hold"
    return tree.status_.value


class Lock:
    # Ctrl-C comes after the lock was taken, and before the caller knows.
    def __init__(self):
        self.lock = allocate()

    def acquire(self, *given, **named):
        taken = self.lock.acquire(*given, **named)
        if taken and named:
            raise KeyboardInterrupt
        return taken

    def release(self):
        self.lock.release()


allocate, own_thread._thread.allocate_lock = own_thread._thread.allocate_lock, Lock
fit()
own_thread._thread.allocate_lock = allocate


def handle(_, frame):
    if fitting[0] and frame.f_code.co_filename != fit.__code__.co_filename:
        raise KeyboardInterrupt


def press():
    while not over.wait(random.choice([0.0, 0.0005, 0.005])):
        os.kill(os.getpid(), signal.SIGINT)


signal.signal(signal.SIGINT, handle)
over = threading.Event()
thread = threading.Thread(target=press)
thread.start()
outcomes = [fit() for _ in range(300)]
over.set()
thread.join()
print(threading.active_count(), "raised" in outcomes, fit())
"""


def test_signals_again_and_again_never_hang_a_process():
    done = subprocess.run([sys.executable, "-c", PRESS], capture_output=True, text=True, timeout=300)
    assert (done.stdout, done.stderr) == ("1 True optimal\n", "")


# Ctrl-C at every bytecode while kernels are called that return an array, or a NamedTuple in a tuple.
CALL = """
import numpy as np
from policytree.solvers.core.compilation import MERGING, load_kernels
from policytree.solvers.kernels.base.merging import group_hashes
from policytree.solvers.kernels.enumeration.layout import Points
from policytree.solvers.kernels.enumeration.lists import thin
from tests.support.interrupting import CtrlC


def elsewhere(name):
    return not name.endswith("interrupting.py")


def group():
    first, group = group_hashes(np.array([3, 1, 3], dtype=np.uint64))
    return first.tolist(), group.tolist()


def thinned():
    points = Points(np.array([[0, 2, 1], [0, 1, 2], [0, 3, 3]]), np.zeros((3, 2), np.int32))
    kept, count = thin(points, 3, np.zeros(1, np.int64))
    return kept.values[:count].tolist()


load_kernels([((*MERGING, thin), "")])
for call in (group, thinned):
    with CtrlC(elsewhere) as pressed:
        expected = call()
    for k in range(pressed.passed):
        try:
            with CtrlC(elsewhere, [k]):
                found = call()
        except KeyboardInterrupt:
            continue
        assert found == expected, (found, expected)
print("alive")
"""


def test_ctrl_c_while_a_kernels_result_is_made_crashes_nothing():
    """Making it runs Python code of numba's, and goes on with what it failed to make."""
    done = subprocess.run([sys.executable, "-c", CALL], capture_output=True, text=True, timeout=300, cwd=ROOT)
    assert (done.stdout, done.stderr, done.returncode) == ("alive\n", "", 0)


IGNORED = """
import signal
signal.signal(signal.SIGINT, signal.SIG_IGN)  # as a shell's background job begins
import numpy as np
from policytree import PolicyTree
rng = np.random.default_rng(0)
X, rewards = rng.normal(size=(120, 3)), rng.normal(size=(120, 2))
expected = PolicyTree(max_depth=2).fit(X, rewards).objective_value_
signal.raise_signal(signal.SIGINT)
print(PolicyTree(max_depth=2).fit(X, rewards).objective_value_ == expected)
print(signal.getsignal(signal.SIGINT) is signal.SIG_IGN)
"""


def test_where_ctrl_c_is_ignored_searches_end_and_leave_it_so():
    done = subprocess.run([sys.executable, "-c", IGNORED], capture_output=True, text=True, timeout=300, cwd=ROOT)
    assert (done.stdout, done.stderr, done.returncode) == ("True\nTrue\n", "", 0)


INTERRUPTED = """
import signal, sys, threading, time, warnings
import numpy as np
from sklearn.base import clone
from policytree import OptimalTreeClassifier
from policytree.problem.types import Status

signal.signal(signal.SIGINT, signal.default_int_handler)
warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
n = 60 if sys.argv[1] == "auc" else 160  # a search that can be interrupted, and 26 of which are soon over
X, y = rng.integers(0, 12, (n, 4)).astype(float), rng.integers(0, 2, n)
model = OptimalTreeClassifier(3, 0.004, objective=sys.argv[1], time_limit=None).fit(X, y)
optimum, main, seen, tried, least = model.objective_value_, threading.main_thread().ident, 0, 0, np.inf
for _ in range(5):
    start = time.perf_counter()
    model.fit(X, y)
    least = min(least, time.perf_counter() - start)
while tried < 20 or (seen == 0 and tried < 500):  # other processes may take the core at the wrong moments
    tried += 1
    moment = rng.uniform(0.0, least)
    found, timer = clone(model), threading.Timer(moment, signal.pthread_kill, (main, signal.SIGINT))
    try:
        timer.start()
        found.fit(X, y)
        timer.join()
        time.sleep(0.001)  # what was sent is handled here at the latest
    except KeyboardInterrupt:  # before the search began, or after it ended
        timer.join()
        continue
    seen += 1
    lost = 1.0 - found.score(X, y) + 0.004 * found.get_n_leaves()
    if found.status_ not in (Status.INTERRUPTED, Status.OPTIMAL):
        print(found.status_)
    if not found.objective_bound_ <= optimum + 1e-12 <= found.objective_value_ + 2e-12:
        print(found.objective_bound_, optimum, found.objective_value_)
    if abs(found.objective_value_ - lost) > 1e-9:
        print(found.objective_value_, lost)
print("some" if seen else "none")
"""


@pytest.mark.parametrize("objective", ["accuracy", "balanced_accuracy", "auc"])
def test_bounds_hold_at_whatever_moment_ctrl_c_comes(objective):
    """Of searches that are interrupted after a random part of their time: the bound, the tree, and its value."""
    command = [sys.executable, "-c", INTERRUPTED, objective]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=ROOT)
    assert (done.stdout, done.stderr, done.returncode) == ("some\n", "", 0)
