"""The lock that pauses a live database, as each system wants it encoded."""

from __future__ import annotations

import fcntl
import sys

import pytest

from holdfast.adapters.local import live_database
from holdfast.adapters.local.live_database import lock_request
from holdfast.adapters.local.local_filesystem import LocalFilesystem
from holdfast.ports.live_database import LiveDatabases
from holdfast.testing.live_database_contract import LiveDatabasesContract

RESERVED_BYTE = 0x40000001  # of SQLite's file format


def fields(*pairs: tuple[int, int]) -> bytes:
    """Each number in so many bytes."""
    return b"".join(number.to_bytes(size, sys.byteorder) for number, size in pairs)


@pytest.mark.requirement("DB-1")
def test_the_lock_is_encoded_as_linux_wants_it() -> None:
    kind, whence, padding = (1, 2), (0, 2), (0, 4)
    wanted = fields(kind, whence, padding, (RESERVED_BYTE, 8), (1, 8), (0, 4), padding)
    assert lock_request("linux", 1) == wanted


@pytest.mark.requirement("DB-1")
def test_the_lock_is_encoded_as_macos_wants_it() -> None:
    kind, whence = (3, 2), (0, 2)
    wanted = fields((RESERVED_BYTE, 8), (1, 8), (0, 4), kind, whence)
    assert lock_request("darwin", 3) == wanted


def test_this_system_is_one_whose_layout_is_known() -> None:
    assert lock_request(sys.platform, fcntl.F_WRLCK) is not None


@pytest.mark.requirement("DB-1")
class TestUnknownLayout(LiveDatabasesContract):
    """A system whose layout is unknown: Python encodes the lock."""

    @pytest.fixture(autouse=True)
    def unknown(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(live_database, "lock_request", lambda system, write_lock: None)

    def databases(self) -> LiveDatabases:
        return LocalFilesystem()
