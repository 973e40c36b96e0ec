"""A person works on during a restore that crashes, or after it: nothing of theirs is lost."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast import SessionCheckpointer
from holdfast.domain.trees.entries import FileEntry
from holdfast.engine.retention.deletion import delete
from holdfast.engine.stored_objects import list_files, read_content
from tests.support.composition import SESSION, composed
from tests.support.crash_server import BY_SOMEBODY_ELSE, CrashServer, Request
from tests.support.hostile_trees import fill
from tests.support.tree_hash import debris, describe, differences
from tests.support.wrecked_workspace import Story

pytestmark = pytest.mark.requirement("RB-3")


@pytest.fixture(scope="module")
def server() -> Iterator[CrashServer]:
    with CrashServer() as server:
        yield server


@pytest.fixture
def story(tmp_path: Path) -> Story:
    return Story(tmp_path / "project")


def _calls(server: CrashServer, story: Story) -> int:
    answer = server.ask(Request(str(story.workspace), "restore", story.good))
    assert answer.error is None
    return answer.calls


def _kept_somewhere(story: Story) -> set[bytes]:
    """All content of small files on disk and in any checkpoint, records included."""
    found = {path.read_bytes() for path in story.workspace.rglob("*") if path.is_file()}
    with composed(story.workspace) as opened:
        vault = opened.engine.vault
        for checkpoint in vault.catalog.history(SESSION, records=True):
            for _, entry in list_files(vault.load_tree, checkpoint.tree):
                assert isinstance(entry, FileEntry)
                found.add(b"".join(read_content(vault.objects, entry)))
    return found


@pytest.mark.requirement("RB-4")
def test_work_done_between_a_crash_and_the_next_opening_is_not_lost(
    server: CrashServer, story: Story
) -> None:
    lost: list[str] = []
    for at in range(1, _calls(server, story) + 1, 6):
        story.go_to(story.bad)
        story.ask(server, "restore", at=at, argument=story.good)
        edit, new = f"edited after crash {at}".encode(), f"new after crash {at}".encode()
        fill(story.workspace / "edited", edit)
        fill(story.workspace / "made/by/person", new)
        story.recover()
        kept = _kept_somewhere(story)
        lost += [f"call {at}: {content!r}" for content in (edit, new) if content not in kept]
    assert not lost, "\n".join(lost)


@pytest.mark.requirement("RB-4", "RB-6")
def test_what_another_process_wrote_during_a_restore_survives_its_crash(
    server: CrashServer, story: Story
) -> None:
    calls = _calls(server, story)
    lost: list[str] = []
    for name in ("edited", "deleted", "made/by/agent", "locked/file"):
        for write_at in range(calls // 3, calls, 23):
            story.go_to(story.bad)
            request = Request(
                str(story.workspace),
                "restore",
                story.good,
                at=write_at + 9,
                write_at=write_at,
                write=name,
            )
            answer = server.ask(request)
            story.recover()
            if answer.wrote and BY_SOMEBODY_ELSE not in _kept_somewhere(story):
                lost.append(f"{name} written before call {write_at}")
            with composed(story.workspace) as opened:
                for checkpoint in opened.engine.vault.catalog.history(SESSION, records=True):
                    if checkpoint.id not in (story.good, story.bad):
                        delete(opened.engine, checkpoint)
    assert not lost, "\n".join(lost)


@pytest.mark.requirement("RB-2")
def test_a_restore_that_recovery_finished_can_be_undone(server: CrashServer, story: Story) -> None:
    finished = 0
    for at in range(1, _calls(server, story) + 1, 6):
        story.go_to(story.bad)
        story.ask(server, "restore", at=at, argument=story.good)
        if story.recover() != story.old:
            continue
        finished += 1
        with SessionCheckpointer(story.workspace, SESSION) as session:
            assert session.head_id == story.good, at
            session.undo()
            assert differences(describe(story.workspace), story.new) == [], at
            assert session.head_id == story.bad, at
    assert finished > 3


@pytest.mark.requirement("ST-3")
def test_a_crashed_restore_is_repaired_although_the_budget_is_used_up(
    server: CrashServer, story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    for at in range(1, _calls(server, story) + 1, 9):
        story.go_to(story.bad)
        story.ask(server, "restore", at=at, argument=story.good)
        monkeypatch.setenv("HOLDFAST_BUDGET", "1000")
        with SessionCheckpointer(story.workspace, SESSION) as session:
            assert describe(story.workspace) in (story.old, story.new), at
            assert session.checkpoint_count == 2
        monkeypatch.delenv("HOLDFAST_BUDGET")
        assert debris(story.workspace) == []


def test_a_workspace_that_moved_after_a_crash_is_repaired_where_it_is(
    server: CrashServer, story: Story, tmp_path: Path
) -> None:
    calls = _calls(server, story)
    story.go_to(story.bad)
    story.ask(server, "restore", at=calls * 2 // 3, argument=story.good)
    story.workspace.rename(tmp_path / "moved")
    with SessionCheckpointer(tmp_path / "moved", SESSION):
        assert describe(tmp_path / "moved") in (story.old, story.new)
    assert debris(tmp_path / "moved") == []
