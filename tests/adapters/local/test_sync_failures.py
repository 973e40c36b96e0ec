"""After a failed sync nothing is assumed: the store is closed until it has been read back."""

from __future__ import annotations

import errno
import json
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from holdfast.adapters.local.local_store import LocalStore
from holdfast.bootstrap.workspace import open_workspace
from holdfast.domain.errors import HoldfastError, NoSpace, StoreSuspect
from holdfast.engine.repair.check import run_checks
from holdfast.ports.catalog import all_checkpoints
from holdfast.ports.progress import NoProgress
from tests.support.composition import composed
from tests.support.hostile_trees import fill, noise
from tests.support.tree_hash import describe
from tests.support.watched_filesystem import Call, WatchedFilesystem

pytestmark = pytest.mark.requirement("RL-3")


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    directory = tmp_path / "project"
    fill(directory / "file", b"first")
    return directory


def _failing_syncs(error: int = errno.EIO) -> Callable[[Call], None]:
    def fail(call: Call) -> None:
        if call.member == "fsync":
            raise OSError(error, "injected")

    return fail


def _nothing(call: Call) -> None:
    return None


def _note(store: LocalStore) -> Path:
    return store.directory / "suspect"


def test_a_save_whose_sync_fails_is_refused_and_the_store_noted_as_suspect(workspace: Path) -> None:
    fs = WatchedFilesystem()
    with composed(workspace, fs=fs.as_port()) as opened:
        opened.save()
        fill(workspace / "file", b"second")

        def fail_pack(call: Call) -> None:
            if call.member == "fsync":
                fs.before = _nothing  # the disk recovers at once, and reports nothing from then on
                raise OSError(errno.EIO, "injected")

        fs.before = fail_pack
        with pytest.raises(StoreSuspect, match="fsync failed") as failed:
            opened.save()
        assert failed.value.exit_status == 6
        assert json.loads(_note(opened.local_store).read_bytes()) == ["objects/packs/00000001.pack"]


def test_nothing_is_written_again_in_the_operation_whose_sync_failed(workspace: Path) -> None:
    fs = WatchedFilesystem()
    with composed(workspace, fs=fs.as_port()) as opened:
        opened.save()
        with opened.store.hold():
            writer = opened.store.objects.writer()
            writer.add(b"d" * 32, b"data")  # type: ignore[arg-type]
            fs.before = _failing_syncs()
            with pytest.raises(StoreSuspect):
                writer.commit()
            fs.before = _nothing
            with pytest.raises(StoreSuspect, match="blocked until it is verified"):
                opened.store.objects.writer()
            with pytest.raises(StoreSuspect), opened.store.catalog.transaction():
                pass
            with pytest.raises(StoreSuspect):
                opened.store.objects.retain_only(set())


def _make_suspect(workspace: Path) -> str:
    """A store with a checkpoint, whose next save met a failed sync; the checkpoint's id."""
    fs = WatchedFilesystem()
    with composed(workspace, fs=fs.as_port()) as opened:
        first = opened.save().id
        fill(workspace / "file", b"second")
        fs.before = _failing_syncs()
        with pytest.raises(HoldfastError):
            opened.save()
    return first


def test_the_next_operation_reads_back_and_goes_on(workspace: Path) -> None:
    first = _make_suspect(workspace)
    with composed(workspace, fs=WatchedFilesystem(before=_failing_syncs()).as_port()) as opened:
        assert json.loads(_note(opened.local_store).read_bytes()) == ["objects/packs/00000001.pack"]
    read: list[str] = []
    fs = WatchedFilesystem(before=lambda call: read.append(call.member))
    fill(workspace / "file", b"third")
    with composed(workspace, fs=fs.as_port()) as opened:
        second = opened.save()
        assert read.index("pread") < read.index("write"), "read back before anything is added"
        assert not _note(opened.local_store).exists()
        state = describe(workspace)
        opened.restore(first)
        opened.restore(second.id)
        assert describe(workspace) == state


def test_the_same_process_is_not_stuck_after_a_failed_sync(workspace: Path) -> None:
    fs = WatchedFilesystem()
    with composed(workspace, fs=fs.as_port()) as opened:
        opened.save()
        fill(workspace / "file", b"second")
        fs.before = _failing_syncs()
        for _ in range(3):
            with pytest.raises(StoreSuspect):
                opened.save()
        fs.before = _nothing
        assert opened.save().changed.modified == 1
        assert not _note(opened.local_store).exists()


def test_history_can_be_read_while_the_store_is_suspect(workspace: Path) -> None:
    first = _make_suspect(workspace)
    with composed(workspace, fs=WatchedFilesystem(before=_failing_syncs()).as_port()) as opened:
        assert [c.id for c in all_checkpoints(opened.store.catalog)] == [first]
        with pytest.raises(StoreSuspect):
            opened.restore(first)


def test_what_cannot_be_read_back_is_forgotten_and_stored_again(workspace: Path) -> None:
    content = noise(5_000)
    fill(workspace / "lost", content)
    with composed(workspace) as opened:
        first = opened.save().id
        pack = opened.store.directory / "objects/packs/00000001.pack"
        data = pack.read_bytes()
        at = data.index(content[100:200])
        pack.write_bytes(data[:at] + bytes(100) + data[at + 100 :])
        _note(opened.local_store).write_text('["objects/packs/00000001.pack"]')
    with open_workspace(workspace, create=False) as opened:
        problems = list(run_checks(opened.engine.vault, data=True, progress=NoProgress()))
        assert problems, "the checkpoint that needs it is named"
    with composed(workspace) as opened:
        again = opened.save()
        (workspace / "lost").unlink()
        opened.restore(again.id)
        assert (workspace / "lost").read_bytes() == content
        assert opened.store.catalog.checkpoint(again.session_id, first) is not None


@pytest.mark.parametrize("name", ["catalog.db", "objects/index.db", "."])
def test_databases_are_read_back_too(workspace: Path, name: str) -> None:
    with composed(workspace) as opened:
        first = opened.save()
        _note(opened.local_store).write_text(json.dumps([name]))
    with composed(workspace) as opened:
        fill(workspace / "file", b"second")
        opened.save()
        assert not _note(opened.local_store).exists()
        opened.restore(first.id)
        assert (workspace / "file").read_bytes() == b"first"


def test_a_note_that_cannot_be_read_means_everything(workspace: Path) -> None:
    with composed(workspace) as opened:
        opened.save()
        _note(opened.local_store).write_bytes(b"\xff{torn")
        fill(workspace / "file", b"second")
        opened.save()
        assert not _note(opened.local_store).exists()


def test_a_full_disk_at_the_sync_is_reported_as_a_full_disk(workspace: Path) -> None:
    fs = WatchedFilesystem()
    with composed(workspace, fs=fs.as_port()) as opened:
        opened.save()
        fill(workspace / "file", b"second")
        fs.before = _failing_syncs(errno.ENOSPC)
        with pytest.raises(NoSpace, match="no space left on the store's disk"):
            opened.save()
        fs.before = _nothing
        opened.save()


class _FailingLog(apsw.VFS):
    """SQLite's log cannot be synced."""

    def __init__(self) -> None:
        self.below = apsw.vfs_names()[0]
        super().__init__("holdfast-failing-log", self.below, makedefault=True)
        self.failing = False

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:  # noqa: N802
        return _FailingFile(self, name, flags)


class _FailingFile(apsw.VFSFile):
    def __init__(
        self, vfs: _FailingLog, name: str | apsw.URIFilename | None, flags: list[int]
    ) -> None:
        self._vfs = vfs
        super().__init__(vfs.below, name, flags)

    def xSync(self, flags: int) -> None:  # noqa: N802
        if self._vfs.failing:
            error = apsw.IOError("injected")
            setattr(error, "extendedresult", apsw.SQLITE_IOERR_FSYNC)  # noqa: B010
            raise error
        super().xSync(flags)


def test_a_row_whose_sync_fails_is_not_acknowledged_and_the_catalog_is_read_back(
    workspace: Path,
) -> None:
    vfs = _FailingLog()
    try:
        with composed(workspace) as opened:
            first = opened.save()
            fill(workspace / "file", b"second")
            vfs.failing = True
            with pytest.raises(StoreSuspect, match="catalog"):
                opened.save()
            assert json.loads(_note(opened.local_store).read_bytes()) == ["catalog.db"]
            vfs.failing = False
            second = opened.save()
            assert second.parent == first.id
            assert not _note(opened.local_store).exists()
            assert list(opened.store.catalog.check()) == []
    finally:
        vfs.unregister()
