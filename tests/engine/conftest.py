"""What several tests of the engine look at it with."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from holdfast.adapters.local import reading_process
from holdfast.adapters.local.reading_process import ReadingProcess
from holdfast.engine.scan import aided_walk
from tests.support.aided_saves import read_all
from tests.support.memory_stores import use_memory_stores


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A module with the mark `both_stores` runs twice, but for tests with `store_on_disk`."""
    marker = metafunc.definition.get_closest_marker
    if marker("both_stores") and not marker("store_on_disk"):
        metafunc.fixturenames.append("store_kind")
        metafunc.parametrize("store_kind", ["disk", "memory"], indirect=True)


@pytest.fixture
def store_kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "memory":
        use_memory_stores(monkeypatch)


@pytest.fixture
def aided_from_the_first_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aided_walk, "_WORTH_AID_FILES", 1)
    monkeypatch.setattr(reading_process, "_processors", lambda: 2)


@pytest.fixture
def ahead(monkeypatch: pytest.MonkeyPatch) -> list[Callable[[], None]]:
    """Lets the second process read everything before the first goes on, and then does what the
    test has put into this list."""
    then: list[Callable[[], None]] = []
    begin = ReadingProcess.begin

    def begin_and_wait(self: ReadingProcess, root_fd: int, started_ns: int) -> None:
        begin(self, root_fd, started_ns)
        read_all(self)
        while then:
            then.pop()()

    monkeypatch.setattr(ReadingProcess, "begin", begin_and_wait)
    return then


@pytest.fixture
def adopted(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The directories of which the second process had spoken when the first came to them."""
    seen: list[bytes] = []
    directory = ReadingProcess.directory

    def noted(self: ReadingProcess, path: bytes) -> bytes | None:
        told = directory(self, path)
        if told is not None:
            seen.append(path)
        return told

    monkeypatch.setattr(ReadingProcess, "directory", noted)
    return seen
