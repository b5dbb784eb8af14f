"""Reports that several tests look at, made once."""

from __future__ import annotations

import pytest

from tests.report.studies import hostile_report


@pytest.fixture(scope="session")
def hostile():
    return hostile_report()


@pytest.fixture(scope="session")
def page(hostile) -> str:
    return hostile[0].to_html()
