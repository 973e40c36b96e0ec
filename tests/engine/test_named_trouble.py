"""Trouble with the disk on the way into a workspace: it has a name, and changes nothing."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

import holdfast.bootstrap.stores
import holdfast.bootstrap.workspace
from holdfast.bootstrap.stores import nearest_workspace
from holdfast.bootstrap.workspace import open_workspace
from holdfast.domain.errors import HoldfastError, NoSpace, StoreDamaged, WorkspaceTrouble
from holdfast.domain.ids import SessionId
from holdfast.domain.intent import make_intent
from tests.support.composition import composed
from tests.support.hostile_trees import fill
from tests.support.tree_hash import describe
from tests.support.watched_filesystem import Call, WatchedFilesystem
from tests.support.wrecked_workspace import Story

pytestmark = pytest.mark.requirement("RL-3")


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    directory = tmp_path / "project"
    fill(directory / "file", b"content")
    with open_workspace(directory, create=True) as opened:
        opened.engine.save(SessionId("s"), make_intent("why"))
    return directory


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, bytes, int], None]:
    """Let a call on a name fail, for every workspace that is opened from now on."""

    def arrange(member: str, name: bytes, number: int) -> None:
        def fail(call: Call) -> None:
            if call.member == member and any(n.endswith(name) for n in call.names()):
                raise OSError(number, os.strerror(number))

        made = WatchedFilesystem(before=fail).as_port
        for module in (holdfast.bootstrap.stores, holdfast.bootstrap.workspace):
            monkeypatch.setattr(module, "LocalFilesystem", made)

    return arrange


@pytest.mark.parametrize("number", [errno.EMFILE, errno.EIO, errno.ENFILE, errno.EINTR])
def test_a_marker_that_cannot_be_read_just_now_does_not_make_a_second_store(
    workspace: Path,
    holdfast_home: Path,
    failing: Callable[[str, bytes, int], None],
    number: int,
) -> None:
    stores = sorted((holdfast_home / "stores").iterdir())
    failing("open", b"workspace.json", number)
    with pytest.raises(StoreDamaged, match="looking for it"):
        open_workspace(workspace, create=True)
    with pytest.raises(StoreDamaged, match="looking for it"):
        nearest_workspace(workspace)
    assert sorted((holdfast_home / "stores").iterdir()) == stores


def test_a_path_record_that_cannot_be_read_just_now_does_not_make_a_second_store(
    workspace: Path, holdfast_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (workspace / ".holdfast/workspace.json").unlink()

    def read_own_file(path: Path) -> bytes:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr("holdfast.adapters.local.identity.read_own_file", read_own_file)
    with pytest.raises(StoreDamaged, match="looking for it"):
        open_workspace(workspace, create=True)
    assert len(list((holdfast_home / "stores").iterdir())) == 1


@pytest.mark.parametrize(
    ("member", "name", "number", "kind"),
    [
        ("rename", b"store.json", errno.ENOSPC, NoSpace),
        ("mkdir", b"stores", errno.EDQUOT, NoSpace),
        ("mkdir", b"home", errno.ENOSPC, NoSpace),
        ("open", b"by-path", errno.EMFILE, StoreDamaged),
    ],
)
def test_a_store_that_cannot_be_made_is_reported_by_its_cause(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    failing: Callable[[str, bytes, int], None],
    member: str,
    name: bytes,
    number: int,
    kind: type[HoldfastError],
) -> None:
    fill(tmp_path / "new/file", b"x")
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "not/yet/home"))
    failing(member, name, number)
    with pytest.raises(kind):
        open_workspace(tmp_path / "new", create=True)


def test_a_workspace_that_cannot_be_listed_is_reported_on_opening(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(call: Call) -> None:
        if call.member == "list_names":
            raise OSError(errno.EIO, "Input/output error")

    made = WatchedFilesystem(before=fail).as_port
    monkeypatch.setattr(holdfast.bootstrap.workspace, "LocalFilesystem", made)
    with pytest.raises(WorkspaceTrouble):
        open_workspace(workspace, create=False)


@pytest.mark.linux
@pytest.mark.parametrize("at_the_end", [False, True])
def test_a_restore_without_room_says_so_wherever_it_ran_out(
    tmp_path: Path, at_the_end: bool
) -> None:
    story = Story(tmp_path / "project")
    seen = 0

    def fail(call: Call) -> None:
        nonlocal seen
        if call.member == "fsync" and os.fsencode(story.workspace) in _path(call.arguments[0]):
            seen += 1
            if seen == (_workspace_syncs if at_the_end else 1):
                raise OSError(errno.ENOSPC, "No space left on device")

    _workspace_syncs = _count_syncs(story)
    story.go_to(story.bad)
    fs = WatchedFilesystem(before=fail)
    with composed(story.workspace, fs=fs.as_port()) as opened, pytest.raises(NoSpace):
        opened.restore(story.good)
    assert describe(story.workspace) == story.new


def _path(fd: int) -> bytes:
    return os.readlink(f"/proc/self/fd/{fd}".encode())


def _count_syncs(story: Story) -> int:
    """How many syncs below the workspace a restore makes."""
    count = 0

    def note(call: Call) -> None:
        nonlocal count
        if call.member == "fsync":
            count += os.fsencode(story.workspace) in _path(call.arguments[0])

    with composed(story.workspace, fs=WatchedFilesystem(before=note).as_port()) as opened:
        opened.restore(story.good)
    return count


@pytest.mark.requirement("RB-3")
def test_a_restore_whose_journal_cannot_be_made_durable_never_happens(tmp_path: Path) -> None:
    story = Story(tmp_path / "project")
    synced_journal = False

    def fail(call: Call) -> None:
        nonlocal synced_journal
        if call.member == "rename" and call.arguments[1] == b"journal":
            synced_journal = True
        elif call.member == "fsync" and synced_journal:
            synced_journal = False
            raise OSError(errno.EIO, "Input/output error")

    fs = WatchedFilesystem(before=fail)
    with composed(story.workspace, fs=fs.as_port()) as opened:
        with pytest.raises(HoldfastError):
            opened.restore(story.good)
        assert opened.store.journal.read() is None
    assert story.recover() == story.new
