"""A cluster of dask workers on this machine, for tests that run side by side."""

from __future__ import annotations

import contextlib

import pytest


@contextlib.contextmanager
def local_client(workers: int = 2):
    """A client of so many single-threaded workers.

    The scheduler serves HTTP even without a dashboard. On its usual port, two tests at a time would be in each
    other's way (a warning, which is an error here), so that it takes whichever port is free.
    """
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            dashboard_address=None,
            scheduler_kwargs={"dashboard_address": ":0"},
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client
