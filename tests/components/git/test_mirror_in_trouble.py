"""Whatever happens to a mirror, what was saved is saved, and what is not its own is left alone."""

from __future__ import annotations

import os
import random
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from holdfast import SessionCheckpointer
from holdfast.domain.intent import make_intent
from holdfast.engine.retention.cleanup import cleanup
from holdfast.ports.progress import NoProgress
from tests.behind_the_api import engine_of
from tests.components.git.mirrored_work import BRANCH, ids, trailer
from tests.components.git.repositories import (
    commit,
    git,
    picture,
    write,
)
from tests.support.composition import configure


@pytest.mark.requirement("GT-4", "GT-6")
def test_without_git_or_a_repository_files_are_saved_and_it_is_said(
    tmp_path: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = tmp_path / "plain"
    write(plain / "a.txt", "a\n")
    configure(plain, mirror=True)
    with SessionCheckpointer(plain, "s") as session:
        outcome = session.save_checkpoint("a")
    assert outcome.warnings == ("mirror: the workspace is not in a git repository",)
    configure(place, mirror=True)
    monkeypatch.setenv("PATH", str(tmp_path))
    with SessionCheckpointer(place, "s") as session:
        outcome = session.save_checkpoint("a")
    assert any("git is not installed" in warning for warning in outcome.warnings)


@pytest.mark.requirement("GT-4")
def test_damaged_content_is_left_out_and_the_mirror_goes_on(
    place: Path, rng: random.Random
) -> None:
    with SessionCheckpointer(place, "s") as session:
        (place / "big.bin").write_bytes(rng.randbytes(3_000_000))
        session.checkpoint("soon damaged")
        write(place / "big.bin", "y" * 3_000_000)
        session.checkpoint("sound")
        packs = (session.save() / "objects" / "packs").glob("*.pack")
        pack = max(packs, key=lambda path: path.stat().st_size)
    data = bytearray(pack.read_bytes())
    data[len(data) // 2] ^= 255
    pack.write_bytes(data)
    configure(place, mirror=True)
    with SessionCheckpointer(place, "s") as session:
        outcome = session.save_checkpoint("after")
    assert any("damaged and skipped" in warning for warning in outcome.warnings)
    assert git(place, "show", f"{BRANCH}:big.bin") == "y" * 3_000_000
    assert git(place, "fsck", "--strict") == ""


@pytest.mark.requirement("GT-4")
def test_many_at_once_make_one_mirror(place: Path) -> None:
    configure(place, mirror=True)

    def work(number: int) -> tuple[str, ...]:
        with SessionCheckpointer(place, f"s{number}") as session:
            said: tuple[str, ...] = ()
            for step in range(4):
                write(place / f"of-{number}.txt", f"{step}\n")
                said += session.save_checkpoint(f"step {step}").warnings
            return said

    with ThreadPoolExecutor(4) as pool:
        told = list(pool.map(work, range(4)))
    with SessionCheckpointer(place, "last") as session:
        assert session.save_checkpoint("the end").warnings == (), told
    assert len(ids(place)) == len(set(ids(place))) == 17
    assert git(place, "fsck", "--strict") == ""


@pytest.mark.requirement("GT-4")
def test_a_save_does_not_wait_for_more_than_its_share(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with SessionCheckpointer(place, "s") as session:
        for number in range(6):
            write(place / "code.txt", f"{number}\n")
            session.checkpoint(f"state {number}")
    configure(place, mirror=True)
    monkeypatch.setattr("holdfast.engine.git_mirror._PATIENCE_NS", 0)
    with SessionCheckpointer(place, "s") as session:
        for expected in range(1, 8):
            outcome = engine_of(session).save(
                session.opened.sessions.all()[0].id, make_intent("more")
            )
            assert len(ids(place)) == expected, "one more each time"
            assert "not complete yet" in outcome.warnings[0]
        cleanup(engine_of(session), NoProgress())
    assert len(ids(place)) == 13


@pytest.mark.requirement("GT-4", "GT-6")
def test_hostile_reasons_and_names_stay_text(place: Path, tmp_path: Path) -> None:
    configure(place, mirror=True)
    evil = (
        "x\n\nHoldfast-Id: forged\nHoldfast-Store: forged\n\x00\x1b[2J\ndone\ncommit refs/heads/x\n"
    )
    paths = [
        b'q"uote',
        b"new\nline",
        b"\xff\xfe",
        b"-D",
        b"M 100644 inline x",
        b"back\\slash",
        b"a b",
    ]
    with SessionCheckpointer(place, "../../heads/main") as session:
        session.checkpoint("first")
        for path in paths:
            with open(os.path.join(os.fsencode(place), path), "wb") as file:
                file.write(path)
        made = session.checkpoint(evil, goal_id="g\nTask: forged", tool_calls=["t\nTool: forged"])
        write(place / ".GIT/config", "evil")
        write(place / "git~1", "evil")
        (place / ".gitmodules").symlink_to("code.txt")
        session.checkpoint("names that git does not accept")
        session.checkpoint("and on it goes")
    main = git(place, "rev-parse", "main")
    listed = git(place, "ls-tree", "-r", "-z", "--name-only", BRANCH).split("\0")
    assert {os.fsencode(name) for name in listed} >= set(paths)
    assert not {".GIT/config", "git~1", ".gitmodules"} & set(listed)
    assert trailer(place, f"{BRANCH}~2", "Holdfast-Id") == [made]
    assert trailer(place, f"{BRANCH}~2", "Task") == [""]
    assert trailer(place, f"{BRANCH}~2", "Tool") == ["t Tool: forged"]
    assert trailer(place, f"{BRANCH}~1", "Holdfast-Left-Out") == ["3"]
    message = git(place, "log", "-1", "--format=%B", f"{BRANCH}~2")
    assert "\x1b" not in message
    assert git(place, "rev-parse", "main") == main
    assert git(place, "fsck", "--strict") == ""
    assert len(ids(place)) == 4
    assert any("%2E%2E%2F" in ref for ref in git(place, "for-each-ref").split())


@pytest.mark.requirement("GT-4")
@pytest.mark.parametrize(
    "obstacle", ["somebody's branch", "a commit on top", "checked out", "none"]
)
def test_whatever_is_not_of_the_mirror_is_left_alone(place: Path, obstacle: str) -> None:
    if obstacle == "somebody's branch":
        git(place, "branch", BRANCH)
    configure(place, mirror=True)
    with SessionCheckpointer(place, "s") as session:
        if obstacle != "somebody's branch":
            assert session.save_checkpoint("first").warnings == ()
        if obstacle == "a commit on top":
            there = place.parent / "there"
            git(place, "worktree", "add", "-q", str(there), BRANCH)
            commit(there, "mine.txt", "mine\n")
            git(place, "worktree", "remove", "--force", str(there))
        elif obstacle == "checked out":
            git(place, "worktree", "add", "-q", str(place.parent / "there"), BRANCH)
        elif obstacle == "none":
            git(place, "branch", "-q", "-D", BRANCH)
            git(place, "symbolic-ref", "HEAD", f"refs/heads/{BRANCH}")
        before = picture(place).refs
        outcome = session.save_checkpoint("second")
        assert len(outcome.warnings) == 1
        assert outcome.warnings[0].startswith(f"mirror: the branch {BRANCH} is ")
        assert picture(place).refs == before
        assert session.checkpoint_count == (1 if obstacle == "somebody's branch" else 2)
