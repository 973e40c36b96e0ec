"""A restore of a watched workspace goes by the hint, and loses nothing the hint cannot know."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.hostile_trees import fill
from tests.support.watched_filesystem import Call, WatchedFilesystem
from tests.support.watched_workspaces import watched

pytestmark = pytest.mark.requirement("AU-6")


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


@pytest.mark.requirement("PF-3")
def test_a_watched_restore_looks_at_nothing_but_what_changed(workspace: Path) -> None:
    opened: list[bytes] = []

    def note(call: Call) -> None:
        if call.member == "open":
            opened.extend(name for name in call.names() if not name.startswith(b"/"))

    fs = WatchedFilesystem(before=note)
    with watched(workspace, fs=fs) as one:
        one.settle()
        kept = one.save()
        (workspace / "two/deep/plain").write_bytes(b"changed")
        one.settle()
        opened.clear()
        one.engine.plan(one.engine.restore_request(kept.session_id, kept.id))
        one.opened.restore(kept.id)
        one.save()
        assert b"plain" in opened
        assert {b"one", b"three", b"empty", b"deeper"}.isdisjoint(opened)
