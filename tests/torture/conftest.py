"""How a scenario becomes two tests: a slice for `make test`, a campaign for `make torture`."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import torture_seed
from tests.torture.campaign import RESULTS, Campaign
from tests.torture.disks import memory_disk
from tests.torture.scenes import remove_tree


@pytest.fixture(params=["slice", pytest.param("campaign", marks=pytest.mark.torture)])
def campaign(request: pytest.FixtureRequest) -> Campaign:
    """A scenario is a test function that asks for this and calls `run` once."""
    if request.param == "slice":
        return Campaign(torture_seed(), request.function.__name__)
    found: Campaign = request.getfixturevalue("long_campaign")
    return found


@pytest.fixture
def long_campaign(request: pytest.FixtureRequest, torture_seconds: float) -> Campaign:
    """For a scenario without a slice; its test has to be marked `torture`."""
    only, enough = (os.environ.get(name) for name in ("TORTURE_CASE", "TORTURE_CASES"))
    return Campaign(
        torture_seed(),
        request.function.__name__,
        torture_seconds,
        int(only) if only else None,
        RESULTS,
        int(enough) if enough else None,
    )


@pytest.fixture
def quick_disk(tmp_path: Path) -> Iterator[Path]:
    """A directory in memory if there is such a place: for cases whose syncs are made to fail, or
    are part of a model, or do not matter because it is the process that dies and not the power."""
    memory = memory_disk()
    if memory is None:
        yield tmp_path
        return
    directory = Path(tempfile.mkdtemp(dir=memory, prefix="holdfast-torture-"))
    try:
        yield directory
    finally:
        remove_tree(directory)
