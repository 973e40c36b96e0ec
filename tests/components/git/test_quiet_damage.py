"""Damage that git itself says nothing about, or not enough: it is named, with the way out."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from holdfast import SessionCheckpointer
from tests.components.git.repositories import git, with_history, write


def missing_git_parts(place: Path) -> tuple[str, ...]:
    """What a checkpoint is without, of git."""
    with SessionCheckpointer(place, "s") as session:
        outcome = session.save_checkpoint("why")
    assert outcome.checkpoint.files > 0
    return outcome.degraded


@pytest.mark.requirement("GT-6")
@pytest.mark.parametrize("kind", ["sha1", "sha256"])
def test_an_index_that_git_does_not_know_to_be_damaged_is_named(tmp_path: Path, kind: str) -> None:
    place = tmp_path / "project"
    place.mkdir()
    git(place, "init", "-q", f"--object-format={kind}")
    index = place / ".git/index"
    write(place / "code.txt", "one\n")
    git(place, "read-tree", "--empty")
    assert missing_git_parts(place) == ()
    git(place, "add", "-A")
    assert missing_git_parts(place) == ()
    git(place, "commit", "-qm", "one")
    assert missing_git_parts(place) == ()
    whole = index.read_bytes()
    index.write_bytes(whole[:27] + bytes([whole[27] ^ 1]) + whole[28:])  # a time
    (degraded,) = missing_git_parts(place)
    assert degraded == f"git: its index is damaged: remove {index} and run: git reset"
    length = len(git(place, "rev-parse", "HEAD").strip()) // 2
    index.write_bytes(whole[:-length] + bytes(length))  # as `index.skipHash` leaves it
    assert missing_git_parts(place) == ()


@pytest.mark.requirement("GT-6")
def test_a_damaged_commit_is_named_with_the_way_out(tmp_path: Path) -> None:
    place = with_history(tmp_path / "project")
    head = git(place, "rev-parse", "HEAD").strip()
    broken = place / ".git/objects" / head[:2] / head[2:]
    broken.chmod(0o644)
    broken.write_bytes(b"garbage")
    degraded = missing_git_parts(place)
    assert degraded
    assert [text for text in degraded if "git fsck --full" not in text] == []


@pytest.mark.requirement("GT-6")
def test_a_lock_that_was_left_behind_is_reported_however_little_has_changed(tmp_path: Path) -> None:
    place = with_history(tmp_path / "project")
    lock = place / ".git/index.lock"
    lock.write_bytes(b"")
    os.utime(lock, (1_600_000_000, 1_600_000_000))
    for _ in range(3):
        (degraded,) = missing_git_parts(place)
        assert f"remove {lock}" in degraded
    lock.unlink()
    assert missing_git_parts(place) == ()
    lock.write_bytes(b"")
    os.utime(lock, (1_600_000_000, 1_600_000_000))
    assert len(missing_git_parts(place)) == 1
