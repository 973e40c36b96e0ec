"""Under a watch, what is included below ignored directories is what a scan from nothing finds."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.composition import configure
from tests.support.hostile_trees import fill
from tests.support.watched_workspaces import watched

pytestmark = [pytest.mark.requirement("AU-6", "CP-12"), pytest.mark.linux]


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    fill(tmp_path / "project/plain/file")
    return tmp_path / "project"


def test_included_files_that_come_and_go_in_a_cache_are_seen(workspace: Path) -> None:
    tag = b"Signature: 8a477f597d28d172789f06886806bc55\n"
    fill(workspace / "target/CACHEDIR.TAG", tag)
    fill(workspace / "target/deep/object")
    configure(workspace, include=["**/.env"])
    with watched(workspace) as one:
        one.settle()
        assert (b"target", "ignored (default: holds CACHEDIR.TAG)") in one.seen()[1]
        for place in ("target/.env", "target/deep/.env"):
            assert one.seen() == one.from_nothing()
            fill(workspace / place, b"included")
            assert one.seen() == one.from_nothing()
            one.save()
            assert b"target" not in dict(one.seen()[1])
            (workspace / place).unlink()
            assert one.seen() == one.from_nothing()
            one.save()
            assert one.seen() == one.from_nothing()


@pytest.mark.parametrize("include", [["notes/"], [".env"], ["pkg/"]])
def test_changes_below_included_and_ignored_directories_are_judged_as_from_nothing(
    workspace: Path, include: list[str]
) -> None:
    fill(workspace / ".gitignore", b"notes/\ntarget/\n*.log\n")
    for path in ("notes/a.log", "notes/sub/b.log", "target/.env", "target/sub/x", "pkg/sub/c.log"):
        fill(workspace / path)
    configure(workspace, include=include)
    with watched(workspace) as one:
        one.settle()
        for place in ("notes/sub", "notes", "target/sub", "target", "pkg/sub", "pkg"):
            for name in ("new.log", "new", ".env"):
                fill(workspace / place / name)
                assert one.seen() == one.from_nothing()
            one.save()
            (workspace / place / "new").unlink()
            assert one.seen() == one.from_nothing()
            one.save()
