"""How a scenario becomes two tests: a slice for `make test`, a campaign for `make torture`."""

from __future__ import annotations

import os

import pytest

from tests.conftest import torture_seed
from tests.torture.campaign import RESULTS, Campaign


@pytest.fixture(params=["slice", pytest.param("campaign", marks=pytest.mark.torture)])
def campaign(request: pytest.FixtureRequest) -> Campaign:
    """A scenario is a test function that asks for this and calls `run` once."""
    only = os.environ.get("TORTURE_CASE")
    test: str = request.function.__name__
    if request.param == "slice":
        return Campaign(torture_seed(), test)
    seconds: float = request.getfixturevalue("torture_seconds")
    number = int(only) if only else None
    return Campaign(torture_seed(), test, seconds, number, RESULTS)
