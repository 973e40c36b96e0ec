"""What a restore changed is on the disk when it returns, and when a recovery has finished it."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import pytest

from holdfast.domain.checkpoints import Kind
from holdfast.domain.component_states import EXACT
from holdfast.domain.errors import HoldfastError
from holdfast.engine.restore.journal import decode_journal, encode_journal
from holdfast.engine.retention.deletion import delete
from holdfast.values.classes import replace
from tests.support.composition import SESSION, composed
from tests.support.crash_server import CrashServer, Request
from tests.support.hostile_trees import fill
from tests.support.watched_filesystem import Call, WatchedFilesystem
from tests.support.wrecked_workspace import Story

pytestmark = [pytest.mark.requirement("RL-2"), pytest.mark.on_disk]


@pytest.mark.linux
def test_a_mode_that_a_restore_set_is_synced(tmp_path: Path) -> None:
    workspace = tmp_path / "project"
    script = fill(workspace / "bin/run", b"#!/bin/sh\n", 0o755)
    synced: list[str] = []

    def note(call: Call) -> None:
        if call.member == "fsync":
            synced.append(os.readlink(f"/proc/self/fd/{call.arguments[0]}"))

    fs = WatchedFilesystem(before=note)
    with composed(workspace, fs=fs.as_port()) as opened:
        saved = opened.save()
        script.chmod(0o644)
        synced.clear()
        opened.restore(saved.id)
    assert script.stat().st_mode & 0o777 == 0o755
    assert str(script) in synced


def _leave_unfinished(story: Story) -> None:
    """Kill a restore at the first call, from the middle on, at which its journal exists."""
    with CrashServer() as server:
        calls = server.ask(Request(str(story.workspace), "restore", story.good)).calls
        for at in range(calls // 2, calls, 3):
            story.go_to(story.bad)
            story.ask(server, "restore", at=at, argument=story.good)
            with composed(story.workspace) as opened:
                if opened.store.journal.read() is not None:
                    return
    raise AssertionError("no call leaves a journal")


def test_a_recovery_syncs_what_the_dead_process_had_changed(tmp_path: Path) -> None:
    story = Story(tmp_path / "project")
    _leave_unfinished(story)
    order: list[str] = []
    fs = WatchedFilesystem(before=lambda call: order.append(call.member))
    with composed(story.workspace, fs=fs.as_port()) as opened:
        opened.engine.recover()
    assert "sync_all" in order
    assert order.index("sync_all") < order.index("unlink"), "before anything of it goes"


def test_a_recovery_with_components_syncs_other_disks_too(tmp_path: Path) -> None:
    """A worktree, for example, may be on another one."""
    story = Story(tmp_path / "project")
    _leave_unfinished(story)
    order: list[str] = []
    fs = WatchedFilesystem(before=lambda call: order.append(call.member))
    with composed(story.workspace, fs=fs.as_port()) as opened:
        journal = decode_journal(opened.store.journal.read() or b"")
        components = (("worktrees", EXACT),)
        opened.store.journal.write(encode_journal(replace(journal, components=components)))
        order.clear()
        with suppress(HoldfastError):  # there is no such component here
            opened.engine.recover()
    assert "sync_everything" in order
    assert order.index("sync_everything") < order.index("unlink"), "before anything of it goes"


def test_a_recovery_whose_sync_fails_is_not_taken_for_done(tmp_path: Path) -> None:
    story = Story(tmp_path / "project")
    _leave_unfinished(story)

    def fail(call: Call) -> None:
        if call.member == "sync_all":
            raise OSError(5, "Input/output error")

    with composed(story.workspace, fs=WatchedFilesystem(before=fail).as_port()) as opened:
        assert opened.store.journal.read() is not None
        with pytest.raises(HoldfastError):
            opened.engine.recover()
        assert opened.store.journal.read() is not None
    assert story.recover() in (story.old, story.new)


def test_a_journal_that_a_power_cut_brought_back_is_tidied_away(tmp_path: Path) -> None:
    """Its restore was recorded, and its target deleted since."""
    workspace = tmp_path / "project"
    fill(workspace / "file", b"one")
    journals: list[bytes] = []
    with composed(workspace) as opened:
        first = opened.save()
        fill(workspace / "file", b"two")
        opened.save()
        write = opened.store.journal.write

        def keep(data: bytes) -> None:
            journals.append(data)
            write(data)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(opened.store.journal, "write", keep)
            opened.restore(first.id)
        for checkpoint in opened.store.catalog.history(SESSION, records=True):
            if checkpoint.kind is not Kind.SAFETY:
                delete(opened.engine, checkpoint)
        opened.store.journal.write(journals[-1])
    with composed(workspace) as opened:
        opened.engine.recover()
        assert opened.store.journal.read() is None
        assert (workspace / "file").read_bytes() == b"one"
        opened.save()
