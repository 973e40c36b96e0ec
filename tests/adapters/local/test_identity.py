"""Which store belongs to which directory: moved, copied, stripped of its marker, or lied to."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.adapters.local.identity import MARKER_NAME, WorkspaceIdentity
from holdfast.adapters.local.layout import StoreLayout
from holdfast.adapters.local.local_filesystem import LocalFilesystem
from holdfast.adapters.local.system import RandomIds
from holdfast.domain.errors import NewerStore, StoreMissing, WorkspaceRefused
from tests.adapters.local.tree_pictures import picture


@pytest.fixture
def home(tmp_path: Path) -> Path:
    path = tmp_path / "home"
    path.mkdir(mode=0o700)
    return path


@pytest.fixture
def identity(home: Path) -> WorkspaceIdentity:
    return WorkspaceIdentity(LocalFilesystem(), home, RandomIds())


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    path = tmp_path / "project"
    path.mkdir()
    return path


def marker_of(workspace: Path) -> Path:
    return workspace / ".holdfast" / MARKER_NAME


def test_looking_for_a_store_changes_nothing(
    identity: WorkspaceIdentity, workspace: Path, tmp_path: Path
) -> None:
    before = picture(tmp_path)
    assert identity.find(workspace) is None
    assert picture(tmp_path) == before
    layout = identity.find_or_create(workspace)
    before = picture(tmp_path)
    assert identity.find(workspace) == layout
    assert picture(tmp_path) == before


def test_a_workspace_gets_one_store_and_keeps_it(
    identity: WorkspaceIdentity, workspace: Path, home: Path
) -> None:
    layout = identity.find_or_create(workspace)
    before = picture(workspace)
    for _ in range(3):
        assert identity.find_or_create(workspace) == layout
    assert picture(workspace) == before
    assert len(list((home / "stores").iterdir())) == 1


def test_the_marker_keeps_itself_out_of_version_control(
    identity: WorkspaceIdentity, workspace: Path
) -> None:
    identity.find_or_create(workspace)
    subprocess.run(["git", "init", "-q"], cwd=workspace, check=True)
    status = subprocess.run(
        ["git", "status", "--porcelain", "--untracked-files=all"],
        cwd=workspace,
        check=True,
        capture_output=True,
    )
    assert status.stdout == b""


def test_a_moved_workspace_is_found_again(
    identity: WorkspaceIdentity, workspace: Path, tmp_path: Path
) -> None:
    layout = identity.find_or_create(workspace)
    moved = tmp_path / "elsewhere" / "renamed"
    moved.parent.mkdir()
    workspace.rename(moved)
    assert identity.find(moved) == layout
    assert identity.find_or_create(moved) == layout
    assert layout.read_description()["workspace"] == moved


def test_a_copied_workspace_gets_a_store_of_its_own(
    identity: WorkspaceIdentity, workspace: Path, tmp_path: Path
) -> None:
    layout = identity.find_or_create(workspace)
    copy = tmp_path / "copy"
    shutil.copytree(workspace, copy)
    assert identity.find(copy) is None
    own = identity.find_or_create(copy)
    assert own != layout
    assert identity.find(copy) == own
    assert identity.find(workspace) == layout


def test_a_workspace_reached_by_another_path_is_no_copy(
    identity: WorkspaceIdentity, workspace: Path, tmp_path: Path
) -> None:
    layout = identity.find_or_create(workspace)
    (tmp_path / "link").symlink_to(workspace)
    assert identity.find(tmp_path / "link") == layout


def test_a_workspace_whose_marker_was_deleted_is_found_by_its_path(
    identity: WorkspaceIdentity, workspace: Path
) -> None:
    layout = identity.find_or_create(workspace)
    shutil.rmtree(workspace / ".holdfast")
    assert identity.find(workspace) == layout
    assert identity.find_or_create(workspace) == layout
    assert marker_of(workspace).exists(), "and marked again"


def test_a_new_directory_at_the_old_path_of_a_moved_workspace_gets_its_own_store(
    identity: WorkspaceIdentity, workspace: Path, tmp_path: Path
) -> None:
    layout = identity.find_or_create(workspace)
    moved = tmp_path / "moved"
    workspace.rename(moved)
    identity.find_or_create(moved)
    workspace.mkdir()
    assert identity.find(workspace) is None
    assert identity.find_or_create(workspace) != layout
    assert identity.find(moved) == layout, "which keeps its history"


def test_a_store_that_is_gone_is_reported_and_replaced_only_when_asked(
    identity: WorkspaceIdentity, workspace: Path, tmp_path: Path
) -> None:
    layout = identity.find_or_create(workspace)
    shutil.rmtree(layout.directory)
    before = picture(tmp_path)
    for ask in (identity.find, identity.find_or_create):
        with pytest.raises(StoreMissing, match="is missing") as missing:
            ask(workspace)
        assert "init --new-store" in (missing.value.hint or "")
    assert picture(tmp_path) == before
    assert identity.find(workspace, or_missing=True) is None
    new = identity.find_or_create(workspace, or_missing=True)
    assert new != layout
    assert identity.find(workspace) == new == identity.find_or_create(workspace, or_missing=True)


def test_a_marker_from_another_machine_is_reported_as_one(
    identity: WorkspaceIdentity, workspace: Path, tmp_path: Path
) -> None:
    identity.find_or_create(workspace)
    elsewhere = WorkspaceIdentity(LocalFilesystem(), tmp_path / "other", RandomIds())
    with pytest.raises(StoreMissing, match="names does not exist") as missing:
        elsewhere.find(workspace)
    assert "HOLDFAST_HOME" in (missing.value.hint or "")
    assert "another machine" in (missing.value.hint or "")
    assert not (tmp_path / "other").exists()


def test_two_homes_that_share_a_workspace_each_keep_their_store(
    identity: WorkspaceIdentity, workspace: Path, tmp_path: Path
) -> None:
    here = identity.find_or_create(workspace)
    container = WorkspaceIdentity(LocalFilesystem(), tmp_path / "container", RandomIds())
    there = container.find_or_create(workspace, or_missing=True)
    assert identity.find_or_create(workspace) == here
    assert container.find_or_create(workspace) == there


@pytest.mark.usefixtures("ordinary_permissions")
def test_a_workspace_that_cannot_be_written_to_is_found_by_its_path(
    identity: WorkspaceIdentity, workspace: Path
) -> None:
    workspace.chmod(0o555)
    layout = identity.find_or_create(workspace)
    assert list(workspace.iterdir()) == []
    assert identity.find(workspace) == layout


HOSTILE = {
    "empty": b"",
    "not JSON": b"{",
    "not text": b"\xff\xfe\x00",
    "another shape": b'["id"]',
    "no id": b"{}",
    "a number": b'{"id": 5}',
    "a list": b'{"id": ["0123456789abcdef0123"]}',
    "a way out": b'{"id": "../../../../etc"}',
    "an absolute path": b'{"id": "/etc"}',
    "too short": b'{"id": "0123"}',
    "a line too much": b'{"id": "0123456789abcdef0123\\n"}',
    "upper case": b'{"id": "0123456789ABCDEF0123"}',
    "deeply nested": b"[" * 200_000,
    "huge": b" " * (4 << 20) + b'{"id": "0123456789abcdef0123"}',
}


@pytest.mark.requirement("RL-7")
@pytest.mark.parametrize("content", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_marker_is_no_marker(
    identity: WorkspaceIdentity, workspace: Path, home: Path, content: bytes
) -> None:
    marker_of(workspace).parent.mkdir()
    marker_of(workspace).write_bytes(content)
    assert identity.find(workspace) is None
    layout = identity.find_or_create(workspace)
    assert layout.directory.parent == home / "stores"
    assert identity.find(workspace) == layout
    assert json.loads(marker_of(workspace).read_bytes())["id"] == layout.directory.name


FIND = """
import sys
from pathlib import Path
from holdfast.adapters.local.identity import WorkspaceIdentity
from holdfast.adapters.local.local_filesystem import LocalFilesystem
from holdfast.adapters.local.system import RandomIds
identity = WorkspaceIdentity(LocalFilesystem(), Path(sys.argv[1]), RandomIds())
print(identity.find_or_create(Path(sys.argv[2])).directory.name)
"""


@pytest.mark.requirement("CP-8")
def test_processes_that_open_a_new_workspace_at_once_agree_on_one_store(
    home: Path, workspace: Path
) -> None:
    waiting = "import sys; sys.stdin.readline()\n"
    children = [
        subprocess.Popen(
            [sys.executable, "-c", waiting + FIND, str(home), str(workspace)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(6)
    ]
    for child in children:
        assert child.stdin is not None
        child.stdin.write("go\n")
        child.stdin.flush()
    found = {child.communicate()[0] for child in children}
    assert len(found) == 1
    assert len(list((home / "stores").iterdir())) == 1


@pytest.mark.requirement("RL-7")
@pytest.mark.parametrize("name", [MARKER_NAME, f".{MARKER_NAME}.new", ".gitignore"])
def test_a_pipe_in_the_place_of_a_holdfast_file_is_not_waited_for(
    home: Path, workspace: Path, name: str
) -> None:
    (workspace / ".holdfast").mkdir()
    os.mkfifo(workspace / ".holdfast" / name)
    done = subprocess.run(
        [sys.executable, "-c", FIND, str(home), str(workspace)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert (home / "stores" / done.stdout.strip() / "store.json").exists()


@pytest.mark.requirement("RL-7")
@pytest.mark.parametrize("name", [".holdfast", f".holdfast/{MARKER_NAME}", ".holdfast/.gitignore"])
def test_nothing_is_written_through_a_link_out_of_the_workspace(
    identity: WorkspaceIdentity, workspace: Path, tmp_path: Path, name: str
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_bytes(b"precious")
    link = workspace / name
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(outside if name == ".holdfast" else outside / "file")
    before = picture(outside)
    layout = identity.find_or_create(workspace)
    assert picture(outside) == before
    assert identity.find(workspace) == layout


@pytest.mark.requirement("RL-7")
@pytest.mark.parametrize(
    "content", [b"", b"x" * 20, b"../../../etc", b"\xff", b"0123456789abcdef0123\n"]
)
def test_a_hostile_record_of_a_path_is_no_record(
    identity: WorkspaceIdentity, workspace: Path, home: Path, content: bytes
) -> None:
    identity.find_or_create(workspace)
    shutil.rmtree(workspace / ".holdfast")
    (record,) = (home / "by-path").iterdir()
    record.write_bytes(content)
    assert identity.find(workspace) is None


@pytest.mark.requirement("ST-8")
@pytest.mark.parametrize("found_by", ["marker", "path"])
def test_a_newer_store_is_not_touched_by_finding_it(
    identity: WorkspaceIdentity, workspace: Path, tmp_path: Path, found_by: str
) -> None:
    layout: StoreLayout = identity.find_or_create(workspace)
    described = json.loads(layout.description.read_bytes())
    layout.description.write_text(json.dumps(described | {"format": 3}))
    if found_by == "path":
        shutil.rmtree(workspace / ".holdfast")
    before = picture(tmp_path)
    with pytest.raises(NewerStore):
        identity.find_or_create(workspace)
    assert picture(tmp_path) == before


@pytest.mark.requirement("ST-6")
def test_the_workspaces_own_directory_is_not_open_to_everybody(
    identity: WorkspaceIdentity, workspace: Path
) -> None:
    previous = os.umask(0)
    try:
        identity.find_or_create(workspace)
    finally:
        os.umask(previous)
    assert (workspace / ".holdfast").stat().st_mode & 0o7777 == 0o775


def test_a_directory_that_root_makes_in_a_workspace_belongs_to_its_owner(
    identity: WorkspaceIdentity, workspace: Path
) -> None:
    owner = 12345 if os.geteuid() == 0 else os.geteuid()
    os.chown(workspace, owner, -1)
    identity.find_or_create(workspace)
    assert (workspace / ".holdfast").stat().st_uid == owner


@pytest.mark.parametrize("name", ["stores", "by-path"])
def test_a_file_in_the_place_of_a_holdfast_directory_is_named(
    identity: WorkspaceIdentity, workspace: Path, home: Path, name: str
) -> None:
    (home / name).write_bytes(b"in the way")
    with pytest.raises(WorkspaceRefused, match=name) as refused:
        identity.find_or_create(workspace)
    assert refused.value.hint
    assert (home / name).read_bytes() == b"in the way"


def test_a_directory_in_the_place_of_a_workspaces_record_is_named(
    identity: WorkspaceIdentity, workspace: Path, home: Path
) -> None:
    identity.find_or_create(workspace)
    (record,) = (home / "by-path").iterdir()
    record.unlink()
    record.mkdir()
    with pytest.raises(WorkspaceRefused, match=record.name):
        identity.find_or_create(workspace)
