"""Which paths outside the workspace belong to the system, and which to the user."""

from __future__ import annotations

import pytest

from holdfast.domain.external_paths import UnresolvedPath, resolve_path

pytestmark = pytest.mark.requirement("CP-13")


@pytest.mark.parametrize("path", ["/dev/shm/a", "/dev/shm/a/b", "/tmp/a", "/srv/a"])
def test_the_memory_disk_is_the_users_like_other_directories(path: str) -> None:
    assert resolve_path(path, None) == path


@pytest.mark.parametrize(
    "path",
    "/dev /dev/null /dev/sda1 /dev/shm /dev/shm/* /dev/shmem /proc/1 /sys /run/a /boot/a".split(),
)
def test_the_system_keeps_its_own_places(path: str) -> None:
    with pytest.raises(UnresolvedPath, match="belongs to the system"):
        resolve_path(path, None)
