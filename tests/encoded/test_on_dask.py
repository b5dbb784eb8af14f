"""Trees on dask: those of one machine, for any partitions, and for workers that die."""

from __future__ import annotations

import functools
import itertools
import json
import math
import os
import subprocess
import sys
import types

import numpy as np
import pandas as pd
import pytest

from policytree import OptimalTreeClassifier, PolicyTree, Study
from policytree.common import executors
from policytree.constraints import Budget
from policytree.encoded import encode, solve
from policytree.exceptions import InputError, SearchWarning
from policytree.on_dask import DaskOptimalTreeClassifier, DaskPolicyTree
from policytree.problem.types import Status
from tests.support.dask_cluster import local_client
from tests.support.encoded_problems import assert_same, damage_row_group, outcome, random_case
from tests.support.streamed import to_learn

dask = pytest.importorskip("dask")
dd = pytest.importorskip("dask.dataframe")


@pytest.fixture(autouse=True)
def one_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


def spread(frame: pd.DataFrame, partitions: int):
    """A dask frame of so many partitions, the second of which is empty if there are more than two."""
    if partitions == 1:
        return dd.from_pandas(frame, npartitions=1, sort=False)
    ends = np.linspace(0, len(frame), partitions).astype(int)
    pieces = [frame.iloc[a:b] for a, b in itertools.pairwise(ends)]
    pieces.insert(1, frame.iloc[:0])
    return dd.from_delayed([dask.delayed(piece) for piece in pieces], meta=frame.iloc[:0], verify_meta=False)


def fit_on_dask(case, partitions: int):
    cls = DaskPolicyTree if case.y is None else DaskOptimalTreeClassifier
    study = to_learn(spread(case.frame, partitions), case.X, **case.roles)
    return cls(**case.arguments, max_bins=case.max_bins).fit(study)


def test_true_and_false_in_some_files_and_numbers_in_others_are_said_once(tmp_path):
    frames = [pd.DataFrame({"x": [0, 1, 0, 1], "no": 0.0, "yes": [1.0, -1, 1, -1]})]
    frames.append(frames[0].assign(x=frames[0]["x"] == 1))
    for k, frame in enumerate(frames):
        frame.to_parquet(tmp_path / f"{k}.parquet")
    both = dd.from_delayed([dask.delayed(frame) for frame in frames], meta=frames[0][:0], verify_meta=False)
    sources = {
        "in '1.parquet' and numbers in '0.parquet'": tmp_path,
        "in partition 1 and numbers in partition 0": both,
    }
    for where, source in sources.items():
        with pytest.warns(UserWarning, match=f"Column 'x' holds true and false {where}") as said:
            tree = DaskPolicyTree(1).fit(to_learn(source, ["x"], rewards=["no", "yes"]))
        assert len(said) == 1
        assert tree.to_local().predict(pd.DataFrame({"x": [0, 1]})).tolist() == ["yes", "no"]


@pytest.mark.parametrize("partitions", [1, 2, 7])
def test_fits_are_those_in_memory(partitions):
    for seed in range(100 * partitions, 100 * partitions + 12):
        case = random_case(seed)
        if case.arguments["max_leaf_nodes"] is not None:
            case.arguments["max_leaf_nodes"] = None
        found = outcome(lambda: fit_on_dask(case, partitions))  # noqa: B023
        local = None if found[0] is None else found[0].to_local()
        assert_same(case, outcome(case.in_memory), (local, *found[1:]))


@pytest.fixture
def rows(rng):
    """200 rows of several kinds of columns."""
    frame = pd.DataFrame({f"x{j}": rng.normal(size=200).round(2) for j in range(3)})
    frame["town"] = rng.choice(["Bonn", "Oslo", "Rom"], 200)
    return frame.assign(a=rng.normal(size=200), b=rng.normal(size=200), w=rng.lognormal(size=200))


def test_bit_identical_to_encoded_rows_whatever_the_partitions(monkeypatch, tmp_path, rows):
    monkeypatch.setattr(solve, "FEW_ROWS", 0)
    X = ["x0", "x1", "x2", "town"]
    data = encode(to_learn(rows, X, rewards=["a", "b"], weights="w"), max_bins=16, directory=tmp_path / "e")
    found = {json.dumps(PolicyTree(max_depth=3).fit(data).to_dict())}
    for k, partitions in enumerate([1, 2, 7]):
        frame = spread(rows.sample(frac=1, random_state=k), partitions)
        tree = DaskPolicyTree(max_depth=3, max_bins=16).fit(to_learn(frame, X, rewards=["a", "b"], weights="w"))
        found.add(json.dumps(tree.to_local().to_dict()))
    assert len(found) == 1


def test_local_estimators_and_predictions(rows):
    frame = spread(rows, 7)
    tree = DaskPolicyTree(2, max_bins=16).fit(to_learn(frame, ["x0", "town"], rewards=["a", "b"]))
    local = tree.to_local()
    assert type(local) is PolicyTree and local.get_params()["max_depth"] == 2
    expected = local.predict(rows[["x0", "town"]]).tolist()
    assert tree.predict(rows[["x0", "town"]]).tolist() == expected
    assert tree.predict(frame[["x0", "town"]]).compute().tolist() == expected
    labels = rows.assign(y=rows.x0 > 0)
    frame = spread(labels, 2)
    classifier = DaskOptimalTreeClassifier(max_bins=64).fit(to_learn(frame, ["x0"], y="y"))
    assert type(classifier.to_local()) is OptimalTreeClassifier
    assert (
        classifier.predict(frame[["x0"]]).compute().tolist() == classifier.to_local().predict(labels[["x0"]]).tolist()
    )


def test_parquet_files_by_their_names(rows, tmp_path):
    X = ["x0", "town"]
    expected = fitted_on(rows, X)
    for k in range(3):
        part = rows.iloc[k::3]
        part[[*X, "a", "b", "w"]].to_parquet(tmp_path / f"{k}.parquet", row_group_size=30)
    files = sorted(tmp_path.glob("*.parquet"))
    for paths in (files, str(tmp_path / "*.parquet"), tmp_path):
        tree = DaskPolicyTree(2, max_bins=16).fit(to_learn(paths, X, rewards=["a", "b"], weights="w"))
        assert json.dumps(tree.to_local().to_dict()) == json.dumps(expected.to_local().to_dict())
    tree = DaskOptimalTreeClassifier(max_depth=1).fit(to_learn(files, ["x0", "a"], y="town"))
    assert tree.classes_.tolist() == ["Bonn", "Oslo", "Rom"]
    rows.to_csv(tmp_path / "rows.csv")
    for source, match in [
        (tmp_path / "rows.csv", "no Parquet file"),
        (tmp_path / "none.parquet", "no file"),
        (rows, "are in memory; fit PolicyTree"),
    ]:
        with pytest.raises(InputError, match=match):
            DaskPolicyTree().fit(to_learn(source, ["x0"], rewards=["a"]))


def fitted_on(rows, X):
    frame = spread(rows, 2)
    return DaskPolicyTree(2, max_bins=16).fit(to_learn(frame, X, rewards=["a", "b"], weights="w"))


def test_a_damaged_row_group_is_named(rows, tmp_path):
    path = tmp_path / "bad.parquet"
    rows[["x0", "a", "b"]].to_parquet(path, row_group_size=50)
    damage_row_group(path, 2)
    with pytest.raises(InputError, match=r"Row group 2 of '.*bad.parquet' cannot be read"):
        DaskPolicyTree(1).fit(to_learn(path, ["x0"], rewards=["a", "b"]))


def test_what_dask_cannot_do_is_refused(rows):
    frame = spread(rows, 2)
    for arguments, match in [
        ({"max_depth": 4}, "max_depth of 3 at most"),
        ({"max_leaf_nodes": 3}, "max_depth of 3 at most"),
        ({"constraints": [Budget(1.0)]}, "subtract costs"),
        ({"guesses": "all"}, "guesses is not available"),
        ({"direction": "up"}, "direction must be"),
    ]:
        with pytest.raises(InputError, match=match):
            DaskPolicyTree(**arguments).fit(to_learn(frame, ["x0"], rewards=["a", "b"]))
    for study, match in [
        (rows[["x0"]], r"come from a Study\(table, outcome=Rewards"),
        (
            Study(frame, treatment="town", outcome="a", covariates=["x0"]),
            r"outcome of this study is Number\('a'\); score",
        ),
        (
            to_learn(frame.assign(a=frame.a.where(frame.a > 0)), ["x0"], rewards=["a", "b"]),
            "'a' of rewards contains NaN",
        ),
        (to_learn(frame.assign(x0=pd.Timestamp("2020-01-01")), ["x0"], rewards=["a", "b"]), "type timestamp"),
        (to_learn(frame[frame.x0 > 100], ["x0"], rewards=["a", "b"]), "no rows"),
        (
            to_learn(frame, ["x0"], rewards=["a", "b"]).replace(direction="minimize"),
            "has direction='minimize', but the estimator direction='maximize'",
        ),
    ]:
        with pytest.raises(InputError, match=match):
            DaskPolicyTree().fit(study)


def test_a_time_limit_keeps_the_best_tree_so_far(rows):
    frame = spread(rows, 2)
    with pytest.warns(SearchWarning, match="time limit"):
        tree = DaskPolicyTree(max_depth=3, time_limit=0.0).fit(to_learn(frame, ["x0", "x1"], rewards=["a", "b"]))
    assert tree.status_ is Status.TIME_LIMIT and tree.optimality_gap_ > 0


@pytest.mark.slow
def test_a_worker_that_dies_costs_time_only(rows, tmp_path):
    """A worker process kills itself in the midst of the tables; the others make its rows anew."""
    flag = tmp_path / "died"

    def die_once(part: pd.DataFrame) -> pd.DataFrame:
        import os
        import signal

        if not flag.exists() and len(part):
            flag.write_text("once")
            os.kill(os.getpid(), signal.SIGKILL)
        return part

    expected = DaskPolicyTree(max_depth=3, max_bins=8).fit(to_learn(spread(rows, 7), ["x0", "x1"], rewards=["a", "b"]))
    with dask.config.set(scheduler=None), local_client() as client:
        frame = spread(rows, 7)
        dying = frame.map_partitions(die_once, meta=frame._meta)
        tree = DaskPolicyTree(max_depth=3, max_bins=8, client=client).fit(
            to_learn(dying, ["x0", "x1"], rewards=["a", "b"])
        )
    assert flag.exists()
    assert json.dumps(tree.to_local().to_dict()) == json.dumps(expected.to_local().to_dict())


# --- nobody is left to compute ---


class Cluster:
    """Client with the attributes that a fit needs, and given numbers of workers; None: no answer of the scheduler."""

    def __init__(self, counts):
        self.counts = iter(counts)
        self.scheduler = types.SimpleNamespace(address="tcp://here:1")

    def nthreads(self, callback_timeout):
        count = next(self.counts)
        if count is None:
            raise TimeoutError
        return dict.fromkeys(range(count), 1)


@pytest.mark.parametrize(
    ("counts", "said"),
    [
        ([2, 1, 0, 0, 0, 0], "All workers of the dask cluster at tcp://here:1 have left or died, and none .* 40 s"),
        ([0, 0, 0, 0], "The dask cluster at tcp://here:1 has no worker; start some"),
        ([2, *[None] * 30], "The dask scheduler at tcp://here:1 does not answer"),
        ([2, *[None] * 20, 2, 0, None, 0, 1, 0, None, 0, 2, 2], None),  # some came back in time
    ],
)
def test_waiting_ends_where_nobody_is_left(monkeypatch, counts, said):
    """Looks are ten seconds apart, on a clock of the test's own; after forty without a worker the fit is given up."""
    clock = itertools.count(0, 10)
    now = next(clock)
    monkeypatch.setattr(executors.time, "monotonic", lambda: now)
    watch = executors.WorkerWatch(Cluster(counts), 40.0)
    for k in range(len(counts)):
        now = next(clock)
        if k == len(counts) - 1 and said:
            with pytest.raises(InputError, match=said):
                watch.look()
        else:
            watch.look()


@pytest.mark.parametrize(("timeout", "waited"), [(0.5, 0.5), (None, math.inf)])
def test_a_first_worker_is_waited_for_as_long_as_was_asked(timeout, waited):
    """Data are sent to a first worker, for which dask itself waits as long as for a connection: half a minute."""
    cluster = Cluster([])

    def scatter(data, timeout, **_):
        assert timeout == waited
        raise TimeoutError

    cluster.scatter, cluster.status = scatter, "running"
    with pytest.raises(InputError, match="has no worker; start some"):
        executors.WorkerWatch(cluster, timeout).sent("data")


def test_waiting_without_end_can_be_asked_for(monkeypatch):
    now = 0.0
    monkeypatch.setattr(executors.time, "monotonic", lambda: now)
    watch = executors.WorkerWatch(Cluster([]), None)
    now = 1e9
    watch.look()
    with pytest.raises(InputError, match="no_workers_timeout must be a finite number >= 0 or None"):
        DaskPolicyTree(no_workers_timeout=-1.0).fit(None)


@pytest.fixture
def processes(tmp_path):
    """A client, the process of its scheduler, and that of its only worker, which nobody starts again."""
    distributed = pytest.importorskip("distributed")
    file = str(tmp_path / "scheduler.json")
    places = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}

    def started(what: str, *more: str):
        command = [sys.executable, "-m", f"distributed.cli.dask_{what}", "--scheduler-file", file, "--no-dashboard"]
        return subprocess.Popen([*command, *more], env=places, stderr=subprocess.DEVNULL)

    with started("scheduler", "--port", "0") as scheduler, started("worker", "--no-nanny", "--nthreads", "1") as worker:
        try:
            with dask.config.set(scheduler=None), distributed.Client(scheduler_file=file) as client:
                client.wait_for_workers(1, timeout=120)
                yield client, scheduler, worker
        finally:
            worker.kill()
            scheduler.kill()


def killing(pid: int, part=None, *_):
    """End a process, in the midst of a task."""
    import os
    import signal

    os.kill(pid, signal.SIGKILL)
    return part


@pytest.mark.slow
def test_a_fit_whose_workers_all_die_says_so(processes, rows):
    """The only worker kills itself in the midst of the fit: dask would wait for another one without end."""
    client, _, worker = processes
    frame = spread(rows, 7)
    dying = frame.map_partitions(functools.partial(killing, worker.pid), meta=frame._meta)
    tree = DaskPolicyTree(max_depth=2, max_bins=8, client=client, no_workers_timeout=0.5)
    with pytest.raises(InputError, match=r"dask cluster at tcp://.* (has no worker; start some|have left or died)"):
        tree.fit(to_learn(dying, ["x0", "x1"], rewards=["a", "b"]))
    with pytest.raises(InputError, match="has no worker; start some"):
        tree.fit(to_learn(frame, ["x0", "x1"], rewards=["a", "b"]))


@pytest.mark.slow
def test_an_executor_whose_workers_all_die_says_so(processes):
    client, _, worker = processes
    task = functools.partial(killing, worker.pid)
    said = r"dask cluster at tcp://.* (has no worker|have left or died|died with data)"
    with pytest.raises(InputError, match=said):
        list(executors.submitted(client.get_executor(), task, range(3), no_workers_timeout=0.5))


@pytest.mark.slow
def test_a_fit_whose_scheduler_dies_says_so(processes, rows):
    client, scheduler, _ = processes
    frame = spread(rows, 7)
    dying = frame.map_partitions(functools.partial(killing, scheduler.pid), meta=frame._meta)
    with pytest.raises(InputError, match=r"dask scheduler at tcp://.* does not answer"):
        DaskPolicyTree(max_depth=2, client=client, no_workers_timeout=0.5).fit(
            to_learn(dying, ["x0", "x1"], rewards=["a", "b"])
        )
