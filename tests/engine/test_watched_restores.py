"""A restore of a watched workspace looks for itself, and leaves out what rules leave out."""

from __future__ import annotations

import mmap
from pathlib import Path

import pytest

from tests.support.hostile_trees import fill
from tests.support.watched_workspaces import watched

pytestmark = [pytest.mark.requirement("AU-6"), pytest.mark.linux]


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    for directory in ("one", "two/deep", "two/deep/deeper", "three"):
        for name in ("plain", "other.log"):
            fill(root / directory / name, f"{directory}/{name}\n".encode())
    fill(root / ".gitignore", b"*.log\nbuild/\n")
    fill(root / "build/artefact", b"not captured\n")
    (root / "empty").mkdir()
    return root


@pytest.mark.requirement("RB-4")
@pytest.mark.parametrize(
    ("path", "rule"),
    [("two/deep/plain", b"plain\n"), ("two/deep/plain", b"deep/\n"), ("one/plain", b"/one/\n")],
    ids=["a file", "in a directory", "in an uppermost directory"],
)
@pytest.mark.parametrize("ignored", ["before", "afterwards"])
def test_what_rules_leave_out_by_now_is_saved_before_a_restore_overwrites_it(
    workspace: Path, path: str, rule: bytes, ignored: str
) -> None:
    """In an ignored directory nothing is watched; and what appears again makes an event."""
    with watched(workspace) as one:
        one.settle()
        kept = one.save()
        if ignored == "afterwards":
            (workspace / path).unlink()
        fill(workspace / ".gitignore", rule)
        one.save()
        one.settle()
        fill(workspace / path, b"written while it was ignored")
        one.opened.restore(kept.id)
        assert (workspace / path).read_bytes() == f"{path}\n".encode()
        assert one.seen() == one.from_nothing()
        one.opened.undo()
        assert (workspace / path).read_bytes() == b"written while it was ignored"
        assert one.seen() == one.from_nothing()
        one.settle()
        fill(workspace / "later", b"a change like any other")
        assert one.seen() == one.from_nothing()


def test_what_a_restore_finds_although_it_is_ignored_is_left_out_again_by_the_next_scan(
    workspace: Path,
) -> None:
    with watched(workspace) as one:
        one.settle()
        kept = one.save()
        (workspace / "two/deep/plain").unlink()
        fill(workspace / "two/.gitignore", b"/deep/plain\n")
        one.save()
        one.settle()
        fill(workspace / "two/deep/plain", b"two/deep/plain\n")
        fill(workspace / "one/plain", b"changed")
        one.opened.restore(kept.id, b"one")  # which makes no event beside the file
        assert one.seen() == one.from_nothing()


@pytest.mark.requirement("RB-3")
def test_a_restore_relies_on_no_watch(workspace: Path) -> None:
    """Writes through a mapping make no event: a save may learn of them late, a restore may not."""
    path = workspace / "two/deep/plain"
    with watched(workspace) as one:
        one.settle()
        kept = one.save()
        with path.open("r+b") as file:
            mapping = mmap.mmap(file.fileno(), 0)
        one.save()
        one.watch.places(workspace.stat().st_dev, workspace.stat().st_ino)
        mapping[:3] = b"TWO"
        mapping.flush()
        one.opened.restore(kept.id)
        mapping.close()
        assert path.read_bytes() == b"two/deep/plain\n"
        one.opened.undo()
        assert path.read_bytes() == b"TWO/deep/plain\n"
