"""Guarded edits: files kept first, put back when the edit fails, recorded when it does not."""

from __future__ import annotations

import asyncio
import os
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast import SessionCheckpointer
from holdfast.domain.errors import HoldfastError, NotFound, Refused, UsageError
from holdfast.domain.story import ActivityStatus
from holdfast.engine.scan.scanner import Scanner
from tests.behind_the_api import engine_of
from tests.support.composition import configure
from tests.support.session_states import get_snapshot
from tests.support.tree_hash import describe

pytestmark = pytest.mark.requirement("SE-6")


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    workspace = tmp_path / "project"
    (workspace / "src").mkdir(parents=True)
    (workspace / "src" / "a.py").write_text("one\ntwo\nthree\n")
    (workspace / "src" / "b.py").write_text("b\n")
    (workspace / "other.txt").write_text("not of the edit")
    return workspace


class Broken(Exception):
    pass


def edit(
    session: SessionCheckpointer,
    written: dict[str, str | bytes | None],
    error: BaseException,
    *,
    paths: list[str] | None = None,
    then: Callable[[], None] = lambda: None,
) -> None:
    """An edit that writes (or removes) some files, and then fails."""
    with session.editing(paths or list(written)):
        for path, content in written.items():
            place = session.workspace / path
            if content is None:
                place.unlink()
            else:
                place.write_bytes(content if isinstance(content, bytes) else content.encode())
        then()
        raise error


def test_a_finished_edit_is_recorded_with_its_diff_and_its_place(workspace: Path) -> None:
    with SessionCheckpointer(workspace, "s") as session:
        session.checkpoint("why")
        session.add_message("user", "change two")
        with session.editing(["src/a.py", workspace / "src" / "new.py"], "change two") as block:
            (workspace / "src" / "a.py").write_text("one\n2\nthree\n")
            (workspace / "src" / "new.py").write_text("new\n")
        (done,) = session.activities()
        assert (done.status, done.reason, done.message_index) == (
            ActivityStatus.KEPT,
            "change two",
            0,
        )
        assert done.paths == (b"src/a.py", b"src/new.py")
        assert session.edit_diff(block.number) == (
            "--- a/src/a.py\n+++ b/src/a.py\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n"
            "--- /dev/null\n+++ b/src/new.py\n@@ -0,0 +1 @@\n+new\n"
        )
        assert session.open_edits() == []


@pytest.mark.parametrize("error", [Broken, KeyboardInterrupt, SystemExit, GeneratorExit])
def test_a_failed_edit_is_rolled_back_to_the_byte_and_nothing_else_is(
    workspace: Path, error: type[BaseException]
) -> None:
    a = workspace / "src" / "a.py"
    a.chmod(0o750)
    with SessionCheckpointer(workspace, "s") as session:
        session.checkpoint("why")
        a.write_text("changed since the checkpoint\n")
        (workspace / "src" / "b.py").unlink()
        (workspace / "src" / "b.py").symlink_to("a.py")
        before = describe(workspace)
        written = {"src/a.py": b"\0half", "src/b.py": None, "src/new.py": "new"}

        def meanwhile() -> None:
            a.chmod(0o600)
            (workspace / "other.txt").write_text("by somebody else")

        with pytest.raises(error):
            edit(session, written, error(), then=meanwhile)
        assert (workspace / "other.txt").read_text() == "by somebody else"
        (workspace / "other.txt").write_text("not of the edit")
        assert describe(workspace) == before
        assert stat.S_IMODE(a.stat().st_mode) == 0o750
        (done,) = session.activities()
        assert done.status is ActivityStatus.PUT_BACK
        assert error.__name__ in str(done.outcome)
        # What the edit left was saved first.
        session.undo()
        assert a.read_bytes() == b"\0half"


def test_starting_an_edit_reads_its_files_and_does_not_scan(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with SessionCheckpointer(workspace, "s") as session:
        session.checkpoint("why")

        def no_scan(*_: object, **__: object) -> None:
            raise AssertionError("the workspace was scanned")

        monkeypatch.setattr(Scanner, "scan", no_scan)
        with session.editing(["src/a.py"]):
            (workspace / "src" / "a.py").write_text("changed\n")


def test_an_ignored_file_that_is_named_is_put_back_and_one_that_was_made_stays(
    workspace: Path,
) -> None:
    (workspace / ".gitignore").write_text("*.log\n")
    (workspace / "known.log").write_text("precious")
    with SessionCheckpointer(workspace, "s") as session:
        session.checkpoint("why")
        with pytest.raises(Broken):
            edit(session, {"known.log": "lost", "made.log": "nobody has this"}, Broken())
        assert (workspace / "known.log").read_text() == "precious"
        # Not in the store, so not removed.
        assert (workspace / "made.log").read_text() == "nobody has this"


def test_the_first_edit_of_a_session_saves_everything(workspace: Path) -> None:
    with SessionCheckpointer(workspace, "s") as session:
        with pytest.raises(Broken):
            edit(session, {"src/a.py": "x"}, Broken())
        assert session.checkpoint_count == 1
        assert (workspace / "src" / "a.py").read_text() == "one\ntwo\nthree\n"


def test_edits_nest(workspace: Path) -> None:
    a, b = workspace / "src" / "a.py", workspace / "src" / "b.py"
    with SessionCheckpointer(workspace, "s") as session:
        session.checkpoint("why")

        def inside() -> None:
            with session.editing(["src/b.py"]):
                b.write_text("inner, kept")
            with pytest.raises(KeyError):
                edit(session, {"src/a.py": "inner, failed"}, KeyError())
            assert a.read_text() == "outer"

        with pytest.raises(Broken):
            edit(session, {"src/a.py": "outer"}, Broken(), then=inside)
        assert a.read_text() == "one\ntwo\nthree\n"
        assert b.read_text() == "inner, kept"


def test_start_finalize_and_abort_work_without_a_block(workspace: Path) -> None:
    a = workspace / "src" / "a.py"
    with SessionCheckpointer(workspace, "s") as session:
        with pytest.raises(NotFound, match="no edit is open"):
            session.finalize_edit()
        outer = session.start_edit(["src/a.py"])
        session.start_edit(["src/b.py"])
        a.write_text("changed")
        assert session.finalize_edit().paths == (b"src/b.py",)
        assert session.abort_edit().number == outer
        assert a.read_text() == "one\ntwo\nthree\n"
        with pytest.raises(Refused, match="already ended"):
            session.abort_edit(outer)


def test_an_edit_in_a_coroutine_is_put_back_also_when_it_is_cancelled(workspace: Path) -> None:
    a = workspace / "src" / "a.py"

    async def edit_slowly(session: SessionCheckpointer, reached: asyncio.Event) -> None:
        async with session.editing(["src/a.py"]):
            a.write_text("half")
            reached.set()
            await asyncio.Event().wait()

    async def story(session: SessionCheckpointer) -> None:
        reached = asyncio.Event()
        task = asyncio.create_task(edit_slowly(session, reached))
        await reached.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert a.read_text() == "one\ntwo\nthree\n"
        async with session.editing(["src/a.py"]):
            a.write_text("kept")

    with SessionCheckpointer(workspace, "s") as session:
        session.checkpoint("why")
        asyncio.run(story(session))
        assert [done.status.value for done in session.activities()] == ["put back", "kept"]


DYING = """
import os, signal, sys
from pathlib import Path
from holdfast import SessionCheckpointer
project = Path(sys.argv[1])
session = SessionCheckpointer(project, "s")
with session.editing(["src/a.py", "src/new.py"], "a big change"):
    (project / "src" / "a.py").write_text("half")
    (project / "src" / "new.py").write_text("new")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def die_in_an_edit(workspace: Path) -> None:
    child = subprocess.run([sys.executable, "-c", DYING, str(workspace)], check=False)
    assert child.returncode == -signal.SIGKILL


@pytest.mark.requirement("SE-6", "RL-1")
def test_an_edit_whose_process_died_is_offered_back(workspace: Path) -> None:
    with SessionCheckpointer(workspace, "s") as session:
        session.checkpoint("why")
    die_in_an_edit(workspace)
    with SessionCheckpointer(workspace, "s") as session:
        (left,) = session.open_edits()
        assert left.reason == "a big change"
        session.abort_edit(left.number)
        assert (workspace / "src" / "a.py").read_text() == "one\ntwo\nthree\n"
        assert not (workspace / "src" / "new.py").exists()
        assert session.open_edits() == []


def test_restoring_its_checkpoint_settles_an_edit_that_was_cut_off(workspace: Path) -> None:
    with SessionCheckpointer(workspace, "s") as session:
        session.checkpoint("why")
    die_in_an_edit(workspace)
    with SessionCheckpointer(workspace, "s") as session:
        (left,) = session.open_edits()
        session.restore_checkpoint(left.checkpoint, ["src/a.py", "src/new.py"])
        assert (workspace / "src" / "a.py").read_text() == "one\ntwo\nthree\n"
        assert session.open_edits() == []
        assert session.activities()[0].status is ActivityStatus.PUT_BACK


@pytest.mark.requirement("SE-6")
def test_restoring_one_file_of_it_does_not_settle_an_edit_that_was_cut_off(workspace: Path) -> None:
    with SessionCheckpointer(workspace, "s") as session:
        session.checkpoint("why")
    die_in_an_edit(workspace)
    with SessionCheckpointer(workspace, "s") as session:
        (left,) = session.open_edits()
        session.restore_checkpoint(left.checkpoint, ["src/a.py"])
        assert session.open_edits() == [left]
        session.restore_checkpoint(left.checkpoint, ["src"])
        assert session.open_edits() == []
        assert not (workspace / "src" / "new.py").exists()


@pytest.mark.requirement("CP-9")
def test_restoring_some_paths_does_not_settle_an_attempt_that_was_cut_off(workspace: Path) -> None:
    dying = DYING.replace('editing(["src/a.py", "src/new.py"], ', "attempt(")
    assert "attempt(" in dying
    child = subprocess.run([sys.executable, "-c", dying, str(workspace)], check=False)
    assert child.returncode == -signal.SIGKILL
    with SessionCheckpointer(workspace, "s") as session:
        (left,) = session.open_attempts()
        session.restore_checkpoint(left.checkpoint, ["src/new.py"])
        assert session.open_attempts() == [left]
        session.restore(left.checkpoint)
        assert session.open_attempts() == []
        assert (workspace / "src" / "a.py").read_text() == "one\ntwo\nthree\n"


@pytest.mark.parametrize(
    ("paths", "error", "words"),
    [
        ([], UsageError, "at least one path"),
        ("src/a.py", UsageError, "must be a list"),
        (["/etc/passwd"], UsageError, "outside the workspace"),
        (["../elsewhere"], UsageError, "not a path inside"),
        ([".git/config"], UsageError, "not a path inside"),
        ([".holdfast/config.toml"], UsageError, "own data"),
        (["src"], Refused, "is a directory"),
        (["pipe"], Refused, "not a regular file"),
        (["link/secret"], Refused, "cannot save"),
        (["file-link"], Refused, "outside the workspace"),
        (["round"], Refused, "circular link"),
        (["git-link"], UsageError, "not a path inside"),
    ],
)
def test_what_cannot_be_put_back_is_refused_before_anything_is_begun(
    workspace: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    paths: list[str],
    error: type[HoldfastError],
    words: str,
) -> None:
    os.mkfifo(workspace / "pipe")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "secret").write_text("outside")
    (workspace / "link").symlink_to(tmp_path / "elsewhere")
    (workspace / "file-link").symlink_to(tmp_path / "elsewhere" / "secret")
    (workspace / "round").symlink_to("round")
    (workspace / "git-link").symlink_to(".git/config")
    (tmp_path / "here" / ".git").mkdir(parents=True)
    (tmp_path / "here" / ".git" / "config").write_text("of another repository")
    monkeypatch.chdir(tmp_path / "here")
    with SessionCheckpointer(workspace, "s") as session:
        session.checkpoint("why")
        with pytest.raises(error, match=words):
            session.start_edit(paths)
        assert session.activities() == []


@pytest.mark.requirement("RB-4")
@pytest.mark.parametrize("link", ["CLAUDE.md", "linked/a.py"])
def test_an_edit_through_a_link_puts_back_what_the_link_leads_to(
    workspace: Path, link: str
) -> None:
    (workspace / "CLAUDE.md").symlink_to("src/a.py")
    (workspace / "linked").symlink_to("src")
    with SessionCheckpointer(workspace, "s") as session:
        session.checkpoint("why")
        (workspace / "src/a.py").write_text("not in any checkpoint")
        before = describe(workspace)
        with pytest.raises(Broken):
            edit(session, {link: "overwritten"}, Broken())
        assert describe(workspace) == before
        with session.editing([link]):
            (workspace / link).write_text("meant")
    assert (workspace / "src/a.py").read_text() == "meant"


@pytest.mark.requirement("RB-4")
def test_links_on_the_way_that_the_edit_replaces_are_put_back(workspace: Path) -> None:
    (workspace / "linked").symlink_to("src")
    (workspace / "second").symlink_to("src/a.py")
    (workspace / "first").symlink_to("second")
    with SessionCheckpointer(workspace, "s") as session:
        session.checkpoint("before the links changed")
        (workspace / "second").unlink()
        (workspace / "second").symlink_to("linked/a.py")
        before = describe(workspace)

        def replace_the_links() -> None:
            (workspace / "second").unlink()
            (workspace / "second").write_text("a file")
            (workspace / "linked").unlink()
            (workspace / "linked").mkdir()
            (workspace / "linked" / "a.py").write_text("of another directory")

        with pytest.raises(Broken):
            edit(session, {"first": "overwritten"}, Broken(), then=replace_the_links)
        assert describe(workspace) == before


@pytest.mark.requirement("RB-4")
@pytest.mark.parametrize("named", ["src/a.py", "again.py", "link.py"])
@pytest.mark.parametrize("in_place", [True, False])
def test_a_file_with_several_names_is_put_back_under_each(
    workspace: Path, named: str, in_place: bool
) -> None:
    with SessionCheckpointer(workspace, "s") as session:
        session.checkpoint("one name each")
        (workspace / "src" / "a.py").write_text("saved nowhere else\n")
        (workspace / "again.py").hardlink_to(workspace / "src" / "a.py")
        (workspace / "link.py").symlink_to("again.py")
        before = describe(workspace)

        def edited() -> None:
            if not in_place:
                (workspace / "src" / "a.py").unlink()
            (workspace / "src" / "a.py").write_text("through another name\n")

        with pytest.raises(Broken):
            edit(session, {named: "overwritten\n"}, Broken(), then=edited)
        assert describe(workspace) == before


def test_a_link_that_the_edit_replaces_by_a_file_is_put_back(workspace: Path) -> None:
    (workspace / "CLAUDE.md").symlink_to("src/a.py")
    (workspace / "nowhere").symlink_to("made.txt")
    with SessionCheckpointer(workspace, "s") as session:
        session.checkpoint("why")
        before = describe(workspace)

        def replace_the_link() -> None:
            (workspace / "CLAUDE.md").unlink()
            (workspace / "CLAUDE.md").write_text("a file now")

        written: dict[str, str | bytes | None] = {"nowhere": "made through the link"}
        with pytest.raises(Broken):
            edit(
                session,
                written,
                Broken(),
                paths=["CLAUDE.md", "nowhere"],
                then=replace_the_link,
            )
        assert describe(workspace) == before


@pytest.mark.requirement("RB-4")
def test_files_that_cannot_be_put_back_leave_the_edit_open_and_both_errors_reported(
    workspace: Path,
) -> None:
    with SessionCheckpointer(workspace, "s") as session:
        session.checkpoint("why")

        def purge_the_way_back() -> None:
            (open_edit,) = session.activities()
            session.purge(open_edit.checkpoint, force=True)

        with pytest.raises(NotFound) as told:
            edit(session, {"src/a.py": "x"}, Broken(), then=purge_the_way_back)
        assert isinstance(told.value.__cause__, Broken)


@pytest.mark.requirement("SE-12")
def test_a_checkpoint_waits_for_the_edit_of_another_process(workspace: Path) -> None:
    with (
        SessionCheckpointer(workspace, "s") as session,
        SessionCheckpointer(workspace, "t") as other,
    ):
        session.checkpoint("why")
        saved: list[str] = []
        waiting = threading.Thread(target=lambda: saved.append(other.checkpoint("meanwhile")))
        with session.editing(["src/a.py"]):
            (workspace / "src" / "a.py").write_text("half")
            waiting.start()
            own = session.save_checkpoint("inside the edit").checkpoint
            assert not own.partial
            (workspace / "src" / "a.py").write_text("whole")
        waiting.join(60)
        (made,) = saved
        found = engine_of(other).resolve(other._id, made)
        assert not found.partial
        assert get_snapshot(other, made).artifact("src/a.py").read_bytes() == b"whole"


@pytest.mark.requirement("SE-12")
def test_a_checkpoint_that_waited_long_enough_is_made_and_marked_partial(workspace: Path) -> None:
    configure(workspace, wait_for_edits=0.05)
    with SessionCheckpointer(workspace, "s") as session:
        session.checkpoint("why")
        with session.editing(["src/a.py"], "a long edit"):
            outcomes = []

            def save() -> None:
                with SessionCheckpointer(workspace, "t") as other:
                    outcomes.append(other.save_checkpoint("cannot wait"))

            thread = threading.Thread(target=save)
            thread.start()
            thread.join(60)
        (outcome,) = outcomes
        assert outcome.checkpoint.partial
        (failure,) = outcome.failures
        assert failure.path == b"src/a.py"
        assert "a long edit" in failure.detail
        assert not session.save_checkpoint("afterwards").checkpoint.partial


@pytest.mark.requirement("SE-12")
def test_no_save_waits_for_an_edit_of_the_same_thread_or_of_the_dead(workspace: Path) -> None:
    with SessionCheckpointer(workspace, "s") as session:
        session.checkpoint("why")

        async def two_tasks() -> bool:
            begun, done = asyncio.Event(), asyncio.Event()

            async def edit_slowly() -> None:
                async with session.editing(["src/a.py"]):
                    begun.set()
                    await done.wait()

            task = asyncio.create_task(edit_slowly())
            await begun.wait()
            # Blocks the loop, so that the edit could not end: it is not waited for.
            partial = session.save_checkpoint("while it cannot go on").checkpoint.partial
            done.set()
            await task
            return partial

        configure(workspace, wait_for_edits=3600)
        assert asyncio.run(two_tasks())
    die_in_an_edit(workspace)
    with SessionCheckpointer(workspace, "s") as session:
        assert not session.save_checkpoint("the dead do not count").checkpoint.partial


@pytest.mark.requirement("SE-6", "CP-13")
@pytest.mark.parametrize("way", ["kept", "failed"])
def test_an_ignored_file_of_an_edit_is_captured_from_then_on(workspace: Path, way: str) -> None:
    (workspace / ".gitignore").write_text("*.env\n")
    (workspace / "a.env").write_text("A=1\n")
    (workspace / "b.env").write_text("B=1\n")
    with SessionCheckpointer(workspace, "edits") as session:
        session.checkpoint("begin")
        try:
            with session.editing(["a.env", "made.env"]):
                (workspace / "a.env").write_text("A=2\n")
                (workspace / "made.env").write_text("M=1\n")
                if way == "failed":
                    raise RuntimeError("the tool failed")
        except RuntimeError:
            assert (workspace / "a.env").read_text() == "A=1\n"
        kept = (workspace / "a.env").read_text()
        after = session.checkpoint("after")
        for name in ("a.env", "b.env", "made.env"):
            (workspace / name).unlink()
        session.restore(after)
        assert (workspace / "a.env").read_text() == kept
        assert (workspace / "made.env").exists() == (way == "kept")
        assert not (workspace / "b.env").exists()


@pytest.mark.requirement("SE-6", "CP-13")
def test_with_the_setting_off_an_edit_names_no_ignored_file(workspace: Path) -> None:
    (workspace / ".gitignore").write_text("*.env\n")
    (workspace / "a.env").write_text("A=1\n")
    configure(workspace, capture_named_ignored="off")
    with SessionCheckpointer(workspace, "edits") as session:
        with session.editing(["a.env"]):
            (workspace / "a.env").write_text("A=2\n")
        after = session.checkpoint("after")
        (workspace / "a.env").unlink()
        session.restore(after)
        assert not (workspace / "a.env").exists()


@pytest.mark.parametrize(
    ("directory", "path", "opened"),
    [
        ("project/src", "a.py", "project/src/a.py"),
        ("project/src", "b.py", "project/src/b.py"),
        ("project/src", "new.py", "project/src/new.py"),
        (".", "project/other.txt", "project/other.txt"),
        ("elsewhere", "notes.txt", "elsewhere/notes.txt"),
    ],
    ids=["there", "in both", "new", "above", "outside"],
)
def test_a_relative_path_that_the_current_directory_gives_another_meaning_is_refused(
    directory: str,
    path: str,
    opened: str,
    workspace: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What the program then opens would not be the file that is guarded."""
    (workspace / "b.py").write_text("another\n")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "notes.txt").write_text("outside\n")
    monkeypatch.chdir(tmp_path / directory)
    with SessionCheckpointer(workspace, "s") as session:
        with pytest.raises(UsageError) as refused:
            session.start_edit([path])
        with pytest.raises(UsageError), session.editing([path]):
            raise AssertionError("the block must not begin")
    assert str(workspace / path) in refused.value.message
    assert str(tmp_path / opened) in refused.value.message
    assert refused.value.hint == "use the absolute path of the file"


@pytest.mark.parametrize(
    ("directory", "path"),
    [("project/src", "src/a.py"), ("project", "src/a.py"), ("elsewhere", "other.txt")],
)
def test_a_relative_path_begins_at_the_workspace_wherever_the_program_runs(
    directory: str, path: str, workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "other.txt").write_text("of another project\n")
    before = (workspace / path).read_bytes()
    monkeypatch.chdir(tmp_path / directory)
    with SessionCheckpointer(workspace, "s") as session:
        edit_number = session.start_edit([path])
        (workspace / path).write_bytes(b"changed\n")
        session.abort_edit(edit_number)
    assert (workspace / path).read_bytes() == before
