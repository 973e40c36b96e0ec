"""Some hunks of a file are restored, with all the safety of a restore (RB-7)."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast import SessionCheckpointer
from holdfast.domain.errors import HoldfastError, NotFound, Refused, RestoreConflict, UsageError
from holdfast.engine.restore.hunks import choose_hunks
from tests.support.composition import SESSION, composed
from tests.support.crash_server import BY_SOMEBODY_ELSE, CrashServer, Request
from tests.support.hostile_trees import fill
from tests.support.hunk_model import apply_hunks
from tests.support.session_states import line_end
from tests.support.strides import strides
from tests.support.tree_hash import debris, describe
from tests.support.watched_filesystem import WatchedFilesystem, once

pytestmark = [pytest.mark.requirement("RB-7"), pytest.mark.both_stores]

OLD = b"".join(b"line %d\n" % number for number in range(40))
NEW = OLD
for number in (3, 20, 37):
    NEW = NEW.replace(b"line %d\n" % number, b"LINE %d\n" % number)
WITHOUT_SECOND = NEW.replace(b"LINE 20", b"line 20")


@pytest.fixture
def session(tmp_path: Path) -> Iterator[SessionCheckpointer]:
    (tmp_path / "project").mkdir()
    with SessionCheckpointer(tmp_path / "project", "s") as session:
        yield session


def _saved(session: SessionCheckpointer, old: bytes, new: bytes, name: str = "file") -> Path:
    """A file that was `old` at the first checkpoint and is `new` now."""
    file = fill(session.workspace / name, old)
    session.checkpoint("before")
    return fill(file, new)


def test_one_hunk_is_restored_and_the_rest_of_the_file_stays(session: SessionCheckpointer) -> None:
    file = _saved(session, OLD, NEW)
    outcome = session.restore_checkpoint("initial", ["file"], hunks=[2])
    assert file.read_bytes() == WITHOUT_SECOND
    assert outcome.files_changed == 1
    assert outcome.verified
    assert [hunk.number for hunk in session.hunks("initial", "file")] == [1, 2]


def test_several_hunks_are_restored_at_once_in_whatever_order_they_are_named(
    session: SessionCheckpointer,
) -> None:
    file = _saved(session, OLD, NEW)
    session.restore_checkpoint("initial", ["file"], hunks=[3, 1, 3])
    assert file.read_bytes() == OLD.replace(b"line 20", b"LINE 20")


def test_what_is_left_can_be_restored_from_head_again(session: SessionCheckpointer) -> None:
    """HEAD keeps what it says of the file: what is left still shows as a difference."""
    file = _saved(session, OLD, NEW)
    for _ in range(3):
        session.restore_checkpoint("HEAD", ["file"], hunks=[1])
    assert file.read_bytes() == OLD
    assert session.hunks("HEAD", "file") == []


def test_undo_and_redo_bring_back_exactly_what_was_there(session: SessionCheckpointer) -> None:
    file = _saved(session, OLD, NEW)
    fill(session.workspace / "unsaved", b"nobody saved this")
    before = describe(session.workspace, mtimes=True)
    session.restore_checkpoint("initial", ["file"], hunks=[2])
    session.undo()
    assert describe(session.workspace, mtimes=True) == before
    session.redo()
    assert file.read_bytes() == WITHOUT_SECOND


def test_mode_and_every_other_file_stay_and_the_new_content_has_a_new_time(
    session: SessionCheckpointer,
) -> None:
    file = _saved(session, OLD, NEW)
    file.chmod(0o751)
    os.utime(file, ns=(10**18, 10**18))
    other = fill(session.workspace / "other", b"changed since")
    others = other.stat()
    session.restore_checkpoint("initial", ["file"], hunks=[2])
    assert file.stat().st_mode & 0o7777 == 0o751
    assert file.stat().st_mtime_ns > 10**18
    assert other.stat().st_mtime_ns == others.st_mtime_ns
    assert other.stat().st_ino == others.st_ino


_LONG = b"".join(b"long line number %06d\n" % number for number in range(120_000))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param(OLD.replace(b"\n", b"\r\n"), NEW.replace(b"\n", b"\r\n"), id="crlf"),
        pytest.param(OLD, NEW.replace(b"\n", b"\r\n"), id="line ends changed"),
        pytest.param(OLD[:-1], NEW[:-1], id="no newline at the end"),
        pytest.param(OLD, NEW[:-1], id="newline at the end lost"),
        pytest.param(OLD[:-1], NEW, id="newline at the end added"),
        pytest.param(b"\xff\xfe\n" * 3 + OLD, b"\xff\x80\n" * 3 + NEW, id="not utf-8"),
        pytest.param(OLD.replace(b"line", b"\t \x1b[31m"), NEW, id="control characters"),
        pytest.param(b"", NEW, id="was empty"),
        pytest.param(OLD, b"", id="is empty"),
        pytest.param(b"a\n", b"b", id="one line"),
        pytest.param(
            _LONG, b"new\n" + _LONG.replace(b"60000\n", b"sixty\n") + b"last\n", id="large"
        ),
        pytest.param(b"x" * 3_000_000 + b"\na\n", b"x" * 3_000_000 + b"\nb\n", id="long line"),
    ],
)
def test_each_hunk_alone_is_exact(session: SessionCheckpointer, old: bytes, new: bytes) -> None:
    file = _saved(session, old, new)
    hunks = session.hunks("initial", "file")
    assert hunks
    for chosen in hunks:
        session.restore_checkpoint("initial", ["file"], hunks=[chosen.name])
        others = [hunk.hunk for hunk in hunks if hunk is not chosen]
        assert file.read_bytes() == apply_hunks(old, others)
        session.undo()
        assert file.read_bytes() == new


@pytest.mark.parametrize("seed", range(6))
def test_random_edits_are_rolled_back_one_by_one(session: SessionCheckpointer, seed: int) -> None:
    print(f"seed {seed}")
    dice = random.Random(seed)
    lines = [b"%d\n" % dice.randrange(30) for _ in range(dice.randrange(200))]
    file = fill(session.workspace / "file", b"".join(lines))
    session.checkpoint("before")
    for _ in range(dice.randrange(1, 12)):
        place = dice.randrange(len(lines) + 1)
        lines[place : place + dice.randrange(4)] = [b"new %d\n" % dice.randrange(9)]
    was = file.read_bytes()
    fill(file, b"".join(lines)[: -1 if dice.random() < 0.3 else None])
    while hunks := session.hunks("initial", "file"):
        chosen = dice.choice(hunks)
        others = [hunk.hunk for hunk in hunks if hunk is not chosen]
        session.restore_checkpoint("initial", ["file"], hunks=[chosen.number])
        assert file.read_bytes() == apply_hunks(was, others)
    assert file.read_bytes() == was


def test_a_plan_tells_what_happens_and_writes_nothing(session: SessionCheckpointer) -> None:
    _saved(session, OLD, NEW)
    before, held = describe(session.workspace, mtimes=True), session.stats
    plan = session.plan_restore("initial", ["file"], hunks=[2])
    assert [(step.type.value, step.path) for step in plan.steps] == [("restore", b"file")]
    assert plan.bytes_to_write == len(WITHOUT_SECOND)
    assert describe(session.workspace, mtimes=True) == before
    assert session.stats == held


def test_a_hard_link_is_reported_and_its_other_name_keeps_its_content(
    session: SessionCheckpointer,
) -> None:
    file = _saved(session, OLD, NEW)
    os.link(file, session.workspace / "second")
    outcome = session.restore_checkpoint("initial", ["file"], hunks=[2])
    assert any("hard links" in warning for warning in outcome.warnings)
    assert file.read_bytes() == WITHOUT_SECOND
    assert (session.workspace / "second").read_bytes() == NEW


def _write(file: Path, content: bytes) -> None:
    file.write_bytes(content)


def _directory(session: SessionCheckpointer) -> None:
    (session.workspace / "file").unlink()
    fill(session.workspace / "file/below", b"x")


def _link(session: SessionCheckpointer) -> None:
    (session.workspace / "file").unlink()
    (session.workspace / "file").symlink_to("elsewhere")


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        (lambda s: fill(s.workspace / "file", b"a\0b"), Refused, "is binary"),
        (lambda s: (s.workspace / "file").unlink(), Refused, "was removed since"),
        (_link, Refused, "symbolic link"),
        (_directory, UsageError, "is a directory"),
        (lambda s: fill(s.workspace / "file", OLD), NotFound, "no line of file differs"),
    ],
)
def test_where_there_are_no_hunks_the_way_out_is_named(
    session: SessionCheckpointer, change: object, error: type[HoldfastError], words: str
) -> None:
    assert callable(change)
    _saved(session, OLD, NEW)
    change(session)
    before = describe(session.workspace)
    with pytest.raises(error, match=words) as refused:
        session.restore_checkpoint("initial", ["file"], hunks=[1])
    if error is Refused:
        assert "holdfast restore" in (refused.value.hint or "")
    assert describe(session.workspace) == before


def test_a_file_that_came_later_can_only_be_restored_as_a_whole(
    session: SessionCheckpointer,
) -> None:
    _saved(session, OLD, NEW)
    fill(session.workspace / "later", OLD)
    with pytest.raises(Refused, match="was added since"):
        session.restore_checkpoint("initial", ["later"], hunks=[1])
    with pytest.raises(NotFound, match="neither in that checkpoint"):
        session.restore_checkpoint("initial", ["nowhere"], hunks=[1])


def test_what_is_not_captured_says_why(session: SessionCheckpointer) -> None:
    file = _saved(session, OLD, NEW)
    file.unlink()
    os.mkfifo(file)
    with pytest.raises(Refused, match="its current version is not saved: special file"):
        session.restore_checkpoint("initial", ["file"], hunks=[1])
    assert file.is_fifo()


def test_an_ignored_file_that_the_checkpoint_has_can_be_restored_by_hunk(
    session: SessionCheckpointer,
) -> None:
    file = _saved(session, OLD, NEW)
    fill(session.workspace / ".gitignore", b"file\n")
    session.restore_checkpoint("initial", ["file"], hunks=[2])
    assert file.read_bytes() == WITHOUT_SECOND
    session.undo()
    assert file.read_bytes() == NEW


@pytest.mark.parametrize("hunk", [0, 4, -1, "0123456789ab"])
def test_a_hunk_that_does_not_exist_is_named_with_those_that_do(
    session: SessionCheckpointer, hunk: int | str
) -> None:
    file = _saved(session, OLD, NEW)
    with pytest.raises(NotFound, match=f"no hunk {hunk}: file has 3 hunks"):
        session.restore_checkpoint("initial", ["file"], hunks=[1, hunk])
    assert file.read_bytes() == NEW
    assert session.summaries(records=True)[0].id == line_end(session)


@pytest.mark.parametrize("paths", [None, [], ["file", "other"]])
def test_hunks_need_one_file(session: SessionCheckpointer, paths: list[str] | None) -> None:
    _saved(session, OLD, NEW)
    with pytest.raises(UsageError, match="one file"):
        session.restore_checkpoint("initial", paths, hunks=[1])
    with pytest.raises(UsageError, match="no hunk was given"):
        session.plan_restore("initial", ["file"], hunks=[])


def test_a_hunk_that_changed_after_it_was_chosen_refuses_the_restore(tmp_path: Path) -> None:
    file = fill(tmp_path / "project/file", OLD)
    with composed(tmp_path / "project") as opened:
        first = opened.save()
        fill(file, NEW)
        request = opened.engine.restore_request(SESSION, first.id, paths=[b"file"])
        chosen = choose_hunks(opened.engine.vault, opened.engine.scan(), request, [2])
        # Another hunk came before it: the number is another by now, what was meant is not.
        fill(file, b"zero\n" + NEW)
        opened.engine.restore(chosen)
        assert file.read_bytes() == b"zero\n" + WITHOUT_SECOND
        fill(file, NEW.replace(b"LINE 20", b"line twenty"))
        for act in (opened.engine.plan, opened.engine.restore):
            with pytest.raises(RestoreConflict, match="gone"):
                act(chosen)
        assert b"line twenty" in file.read_bytes()


@pytest.mark.requirement("RB-6")
def test_a_file_that_changes_before_it_is_replaced_is_a_conflict_and_undoable(
    tmp_path: Path,
) -> None:
    file = fill(tmp_path / "project/file", OLD)
    fs = WatchedFilesystem()
    with composed(tmp_path / "project", fs=fs.as_port()) as opened:
        first = opened.save()
        fill(file, NEW)
        at_the_swap = once(
            lambda call: call.member in ("exchange", "rename_new"),
            lambda: _write(file, b"by a person"),
        )
        request = opened.engine.restore_request(SESSION, first.id, paths=[b"file"])
        chosen = choose_hunks(opened.engine.vault, opened.engine.scan(), request, [2])
        fs.before = at_the_swap
        outcome = opened.engine.restore(chosen)
        assert [conflict.path for conflict in outcome.conflicts] == [b"file"]
        assert file.read_bytes() == WITHOUT_SECOND
        opened.undo()
    assert file.read_bytes() == b"by a person"
    assert debris(tmp_path / "project") == []


@pytest.fixture(scope="module")
def server() -> Iterator[CrashServer]:
    with CrashServer() as server:
        yield server


@pytest.mark.requirement("RB-3", "RL-2")
@strides(5)
def test_killed_at_any_call_the_file_is_as_before_or_restored_and_undo_is_exact(
    server: CrashServer, tmp_path: Path, stride: int
) -> None:
    workspace = tmp_path / "project"
    file = fill(workspace / "file", OLD)
    with composed(workspace) as opened:
        first = opened.save().id
        fill(file, NEW)
        restored = opened.restore(first, b"file", hunks=[2])
        opened.undo()
    assert restored.verified

    def ask(at: int | None) -> int:
        wanted = Request(str(workspace), "restore", first, ("file",), (2,), at=at)
        return server.ask(wanted).calls

    calls = ask(None)
    assert 0 < calls < 2_000
    seen = set()
    for at in range(1, calls + 1, stride):
        fill(file, NEW)
        ask(at)
        with composed(workspace) as opened:
            opened.engine.recover()
            found = file.read_bytes()
            assert found in (NEW, WITHOUT_SECOND), at
            if found == WITHOUT_SECOND:
                opened.undo()
                assert file.read_bytes() == NEW, at
        assert debris(workspace) == []
        seen.add(found)
    assert seen == {NEW, WITHOUT_SECOND}
    with composed(workspace) as opened:
        assert list(opened.engine.vault.objects.check(data=True)) == []
        assert list(opened.engine.vault.catalog.check()) == []


@pytest.mark.requirement("RB-3", "RB-6")
@strides(3)
def test_killed_while_another_process_writes_the_file_nothing_of_theirs_is_lost(
    server: CrashServer, tmp_path: Path, stride: int
) -> None:
    workspace = tmp_path / "project"
    file = fill(workspace / "file", OLD)
    with composed(workspace) as opened:
        first = opened.save().id
    fill(file, NEW)
    request = Request(str(workspace), "restore", first, ("file",), (2,))
    calls = server.ask(request).calls
    wrote = 0
    for at in range(calls // 2, calls, stride):
        fill(file, NEW)
        answer = server.ask(
            Request(
                str(workspace), "restore", first, ("file",), (2,), at + 1, write_at=at, write="file"
            )
        )
        with composed(workspace) as opened:
            opened.engine.recover()
            kept = {file.read_bytes()}
            for checkpoint in opened.engine.vault.catalog.history(SESSION, limit=3, records=True):
                fill(file, b"")
                opened.restore(checkpoint.id)
                kept.add(file.read_bytes())
        if answer.wrote:
            wrote += 1
            assert BY_SOMEBODY_ELSE in kept, at
    assert wrote
