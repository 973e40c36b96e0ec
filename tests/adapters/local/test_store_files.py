"""Files and directories with Holdfast's names that another user may have put there."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from holdfast.adapters.local.store_files import read_own_file, require_own_place
from holdfast.domain.errors import WorkspaceRefused

pytestmark = pytest.mark.requirement("ST-6")
SOMEBODY = 12345


def give_away(path: Path, patch: pytest.MonkeyPatch) -> None:
    """Root can give a file to another user; other users can only change their own identity."""
    if os.geteuid() == 0:
        os.chown(path, SOMEBODY, -1, follow_symlinks=False)
    else:
        patch.setattr(os, "geteuid", lambda: SOMEBODY)


@pytest.mark.linux
def test_only_a_regular_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"content" * 1000)
    assert read_own_file(tmp_path / "file") == b"content" * 1000
    (tmp_path / "link").symlink_to("file")
    (tmp_path / "directory").mkdir()
    os.mkfifo(tmp_path / "pipe")
    open_files = len(os.listdir("/proc/self/fd"))
    for name in ("link", "directory", "pipe", "missing"):
        with pytest.raises(OSError, match=name):
            read_own_file(tmp_path / name)
    assert len(os.listdir("/proc/self/fd")) == open_files


def test_a_place_of_our_own_is_taken_as_it_is(tmp_path: Path) -> None:
    for mode in (0o700, 0o755, 0o1777):
        home = tmp_path / f"{mode:o}"
        home.mkdir()
        home.chmod(mode)
        require_own_place(home)
        assert stat.S_IMODE(home.stat().st_mode) == mode
    require_own_place(tmp_path / "missing")
    require_own_place(tmp_path / "700" / "missing")


@pytest.mark.parametrize("name", ["home", "home/stores", "home/by-path", "link"])
def test_a_place_of_another_user_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    for part in ("stores", "by-path"):
        (tmp_path / "home" / part).mkdir(parents=True)
    (tmp_path / "link").symlink_to("home")
    give_away(tmp_path / name, monkeypatch)
    with pytest.raises(WorkspaceRefused, match=r"another user \(uid \d+\)") as refused:
        require_own_place(tmp_path / ("link" if name == "link" else "home"))
    assert "HOLDFAST_HOME" in (refused.value.hint or "")


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o772])
def test_a_place_of_our_own_that_others_can_change_is_closed_to_them(
    tmp_path: Path, mode: int
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    home.chmod(mode)
    require_own_place(home)
    assert stat.S_IMODE(home.stat().st_mode) == mode & ~0o022


def test_a_place_that_cannot_be_looked_at_is_named(
    tmp_path: Path, ordinary_permissions: None
) -> None:
    (tmp_path / "closed").mkdir(mode=0)
    with pytest.raises(WorkspaceRefused, match="cannot access the store's directory"):
        require_own_place(tmp_path / "closed" / "home")
    (tmp_path / "closed").chmod(0o700)
