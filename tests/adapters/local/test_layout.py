"""The directory of a store: private, of a known format, of its owner, or refused untouched."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from holdfast.adapters.local.layout import FORMAT, StoreLayout, make_private_directory
from holdfast.adapters.local.local_filesystem import LocalFilesystem
from holdfast.adapters.local.local_store import LocalStore
from holdfast.adapters.local.system import SystemClock
from holdfast.domain.errors import NewerStore, StoreDamaged, WorkspaceRefused
from holdfast.domain.trees.objects import digest_of
from holdfast.testing.intercepted_filesystem import RecordingFilesystem
from tests.adapters.local.tree_pictures import picture


@pytest.fixture
def layout(tmp_path: Path) -> StoreLayout:
    layout = StoreLayout(tmp_path / "home" / "stores" / "0123456789abcdef0123")
    layout.create(LocalFilesystem(), tmp_path / "workspace")
    return layout


def use(layout: StoreLayout, workspace: Path) -> None:
    """Open the store, write to every part of it, and close it."""
    store = LocalStore(LocalFilesystem(), layout, workspace, SystemClock(), purpose="test")
    try:
        with store.hold():
            writer = store.objects.writer()
            writer.add(digest_of(b"content"), b"content")
            writer.commit()
            with store.catalog.transaction() as transaction:
                transaction.set_setting("key", "1")
            store.stat_cache.update("generation", [(b"", b"entry")])
            store.journal.write(b"journal")
    finally:
        store.close()


@pytest.mark.requirement("ST-6")
@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077])
def test_everything_in_a_store_is_private_to_its_owner(tmp_path: Path, mask: int) -> None:
    previous = os.umask(mask)
    try:
        layout = StoreLayout(tmp_path / "home" / "stores" / "0123456789abcdef0123")
        layout.create(LocalFilesystem(), tmp_path / "workspace")
        use(layout, tmp_path)
    finally:
        os.umask(previous)
    seen = [tmp_path / "home", *(tmp_path / "home").rglob("*")]
    assert {path.name for path in seen} >= {
        "home", "stores", "store.json", "lock", "catalog.db", "catalog.db-wal", "index.db",
        "objects", "packs", "00000001.pack", "stat-cache.db", "journal",
    }  # fmt: skip
    for path in seen:
        expected = 0o700 if path.is_dir() else 0o600
        assert stat.S_IMODE(path.stat().st_mode) == expected, path


@pytest.mark.requirement("ST-6")
def test_a_store_that_was_opened_to_others_is_closed_again(
    layout: StoreLayout, tmp_path: Path
) -> None:
    layout.directory.chmod(0o755)
    layout.read_description()
    assert stat.S_IMODE(layout.directory.stat().st_mode) == 0o700


def test_a_store_exists_only_once_its_description_does(tmp_path: Path) -> None:
    """So that a creation that was interrupted is begun again rather than taken for a store."""
    fs = RecordingFilesystem(LocalFilesystem())
    layout = StoreLayout(tmp_path / "store")
    assert not layout.exists()
    layout.create(fs, tmp_path / "workspace")
    assert layout.exists()
    made = [call.name for call in fs.calls if call.name in ("mkdir", "rename")]
    assert made == ["mkdir", "mkdir", "mkdir", "rename"]


@pytest.mark.parametrize("name", ["plain", "späce d", "new\nline", "\udcff\udcfe"])
def test_the_description_remembers_any_path(tmp_path: Path, name: str) -> None:
    layout = StoreLayout(tmp_path / "store")
    layout.create(LocalFilesystem(), tmp_path / name)
    assert layout.read_description()["workspace"] == tmp_path / name
    assert layout.read_description()["format"] == 1, "as long as it is not encrypted"
    assert not layout.read_description()["encrypted"]


@pytest.mark.requirement("ST-8")
@pytest.mark.parametrize("described", [{"format": FORMAT + 1}, {"format": 99, "workspace": ["?"]}])
def test_a_store_of_a_later_format_is_refused_untouched(
    layout: StoreLayout, tmp_path: Path, described: dict[str, object]
) -> None:
    use(layout, tmp_path)
    layout.description.write_text(json.dumps(described))
    layout.directory.chmod(0o755)
    before = picture(tmp_path / "home")
    with pytest.raises(NewerStore):
        LocalStore(LocalFilesystem(), layout, tmp_path, SystemClock(), purpose="test")
    assert picture(tmp_path / "home") == before


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'"format"',
        b"\xff\xfe",
        b'{"format": 1}',
        b'{"format": "2", "workspace": "2f"}',
        b'{"format": true, "workspace": "2f"}',
        b'{"format": 0, "workspace": "2f"}',
        b'{"format": 1.5, "workspace": "2f"}',
        b'{"format": 1, "workspace": 5}',
        b'{"format": 1, "workspace": "xyz"}',
        b'{"format": 1, "workspace": "2f", "encrypted": true}',
        b'{"format": 2, "workspace": "2f"}',
        b'{"format": 2, "workspace": "2f", "encrypted": 1}',
        b'{"format": 1, "workspace": "00"}',
        b"[" * 100_000,
    ],
    ids=lambda content: repr(content[:30]),
)
def test_a_description_that_cannot_be_read_is_named_as_damage(
    layout: StoreLayout, content: bytes
) -> None:
    layout.description.write_bytes(content)
    with pytest.raises(StoreDamaged, match=r"store\.json"):
        layout.read_description()


def test_a_description_that_is_no_file_is_named_as_damage(layout: StoreLayout) -> None:
    layout.description.unlink()
    layout.description.mkdir()
    with pytest.raises(StoreDamaged, match=r"store\.json"):
        layout.read_description()


@pytest.mark.requirement("ST-6")
def test_a_store_of_another_user_is_refused(layout: StoreLayout) -> None:
    if os.geteuid() == 0:
        os.chown(layout.directory, 12345, -1)
        foreign = layout
    else:
        foreign = StoreLayout(Path("/"))
    before = picture(layout.directory)
    with pytest.raises(WorkspaceRefused, match="another user"):
        foreign.read_description()
    assert picture(layout.directory) == before


def test_a_private_directory_is_made_with_its_parents_each_name_durable(tmp_path: Path) -> None:
    fs = RecordingFilesystem(LocalFilesystem())
    make_private_directory(fs, tmp_path / "a" / "b" / "c")
    assert [call.name for call in fs.calls if call.name in ("mkdir", "fsync")] == [
        "mkdir",
        "fsync",
    ] * 3
    make_private_directory(fs, tmp_path / "a" / "b" / "c")
    assert fs.count("mkdir") == 3


def test_a_file_in_the_place_of_a_directory_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(OSError, match=r".+"):
        make_private_directory(LocalFilesystem(), tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == b""
