"""The file of a story: when it is made, who it waits for, and what damage does to it."""

from __future__ import annotations

import contextlib
import errno
import os
import random
import stat
import subprocess
import sys
from pathlib import Path

import apsw
import pytest

from holdfast.adapters.local.catalog.migrations import Migration, migrate
from holdfast.adapters.local.layout import StoreLayout
from holdfast.adapters.local.local_filesystem import LocalFilesystem
from holdfast.adapters.local.sqlite_connection import connect
from holdfast.adapters.local.store_lock import StoreLock
from holdfast.adapters.local.story.migrations import STORY_MIGRATIONS
from holdfast.adapters.local.story.repair import LOST, StoryRepairer
from holdfast.adapters.local.story.sqlite import SqliteStory, open_story
from holdfast.adapters.local.system import SystemClock
from holdfast.domain.errors import Busy, NewerStore, StoreDamaged, StoreSuspect
from holdfast.domain.ids import SessionId
from holdfast.domain.story import Role
from holdfast.ports.story import NewMessage, Story
from holdfast.testing.samples import checkpoint_id
from holdfast.testing.story_contract import edit

ONE = SessionId("one")


def opened(place: Path, timeout_s: float = 5.0) -> Story:
    return open_story(LocalFilesystem(), StoreLayout(place), SystemClock(), lambda: timeout_s)


def say(story: Story, *texts: str) -> None:
    for text in texts:
        story.add_messages(ONE, [NewMessage(Role.USER, text, 0)])


def texts(story: Story) -> list[str]:
    return [message.content for message in story.messages(ONE)]


@pytest.mark.requirement("SE-2")
def test_asking_makes_no_file_and_the_first_message_makes_a_private_one(tmp_path: Path) -> None:
    with contextlib.closing(opened(tmp_path)) as story:
        assert texts(story) == []
        assert list(story.annotations(ONE)) == []
        assert story.generation() == ""
        assert list(story.check()) == []
        assert list(tmp_path.iterdir()) == []
        say(story, "hello")
        modes = {p.name: stat.S_IMODE(p.stat().st_mode) for p in tmp_path.iterdir()}
        assert "story.db" in modes
        assert set(modes.values()) == {0o600}


@pytest.mark.requirement("SE-2", "ST-8")
def test_one_that_a_later_version_migrates_takes_nothing_more_of_who_has_it_open(
    tmp_path: Path,
) -> None:
    with contextlib.closing(opened(tmp_path)) as story:
        say(story, "before")
        with contextlib.closing(connect(tmp_path / "story.db", synchronous="FULL")) as later:
            step = Migration("9999-later", "CREATE TABLE later (x)")
            migrate(later, (*STORY_MIGRATIONS, step))
            with pytest.raises(NewerStore, match="9999-later"):
                say(story, "after")
            assert later.execute("SELECT count(*) FROM messages").fetchall() == [(1,)]


@pytest.mark.requirement("SE-2", "RL-3")
def test_after_a_failed_sync_the_same_process_reads_it_back_and_goes_on(tmp_path: Path) -> None:
    with contextlib.closing(opened(tmp_path)) as story:
        say(story, "before")
        assert isinstance(story, SqliteStory)
        story._file._sync_failures.note(tmp_path / "story.db")
        say(story, "after")
        assert texts(story) == ["before", "after"]
        assert not (tmp_path / "story.suspect").exists()


@pytest.mark.requirement("SE-2", "RL-3")
def test_a_story_that_cannot_be_read_back_stays_closed_and_says_why(tmp_path: Path) -> None:
    class Failing(LocalFilesystem):
        def fsync(self, fd: object) -> None:
            raise OSError(errno.EIO, "the disk is gone")

    with contextlib.closing(opened(tmp_path)) as story:
        say(story, "before")
    (tmp_path / "story.suspect").write_text('["story.db"]')
    failing = open_story(Failing(), StoreLayout(tmp_path), SystemClock(), lambda: 5.0)
    with contextlib.closing(failing), pytest.raises(StoreSuspect, match=r"story\.db"):
        say(failing, "after")
    assert (tmp_path / "story.suspect").exists()


@pytest.mark.requirement("RL-4")
def test_a_text_whose_bytes_are_none_is_reported_as_damage(tmp_path: Path) -> None:
    with contextlib.closing(opened(tmp_path)) as story:
        say(story, "as it was")
        story.erase_traces()
    path = tmp_path / "story.db"
    path.write_bytes(path.read_bytes().replace(b"as it was", b"as it \xff\xfes"))
    with contextlib.closing(opened(tmp_path)) as story:
        with pytest.raises(StoreDamaged, match=r"text in the store's story\.db"):
            story.messages(ONE)
        assert list(story.check())


@pytest.mark.requirement("SE-2")
@pytest.mark.requirement("RL-1")
def test_notes_and_edits_of_a_checkpoint_that_goes_go_together_or_not_at_all(
    tmp_path: Path,
) -> None:
    with contextlib.closing(opened(tmp_path)) as story:
        story.annotate(ONE, checkpoint_id(1), "text", author=None, at_ns=1)
        story.begin(edit(1))
        with contextlib.closing(apsw.Connection(str(StoreLayout(tmp_path).story))) as db:
            db.execute(
                "CREATE TRIGGER no BEFORE DELETE ON activities BEGIN SELECT RAISE(ABORT, 'no'); END"
            )
        with pytest.raises(apsw.ConstraintError):
            story.forget_checkpoints([checkpoint_id(1)])
        assert len(story.annotations(ONE)) == len(story.activities(ONE)) == 1


def test_two_writers_take_turns_and_a_third_sees_who_it_waits_for(tmp_path: Path) -> None:
    with contextlib.closing(opened(tmp_path, timeout_s=0.01)) as story:
        lock = StoreLock(StoreLayout(tmp_path).story_lock, SystemClock(), purpose="somebody")
        with lock.hold(1.0), pytest.raises(Busy, match="somebody"):
            say(story, "not now")
        say(story, "now")
        assert texts(story) == ["now"]


@pytest.mark.requirement("CP-8")
def test_messages_of_many_processes_are_all_there_in_one_order(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path;"
        "from tests.adapters.local.story.test_story_file import opened, say;"
        "story = opened(Path(sys.argv[1]), 60.0);"
        "[say(story, f'{sys.argv[2]}-{n}') for n in range(20)]"
    )
    children = [
        subprocess.Popen([sys.executable, "-c", program, str(tmp_path), str(number)])
        for number in range(4)
    ]
    assert [child.wait(120) for child in children] == [0] * 4
    with contextlib.closing(opened(tmp_path)) as story:
        assert sorted(texts(story)) == sorted(f"{c}-{n}" for c in range(4) for n in range(20))
        assert [m.index for m in story.messages(ONE)] == list(range(80))
        assert list(story.check()) == []


@pytest.mark.requirement("RL-4")
def test_a_log_that_lost_acknowledged_messages_is_found_out(tmp_path: Path) -> None:
    with contextlib.closing(opened(tmp_path)) as story:
        say(story, "first")
    log = tmp_path / "story.db-wal"
    size = log.stat().st_size
    with contextlib.closing(opened(tmp_path)) as story:
        say(story, "second")
    os.truncate(log, size)
    (tmp_path / "story.db-shm").unlink(missing_ok=True)
    with contextlib.closing(opened(tmp_path)) as story:
        assert texts(story) == ["first"]
        assert any("acknowledged" in problem for problem in story.check())
        with pytest.raises(StoreDamaged, match="acknowledged"):
            say(story, "third")


@pytest.mark.requirement("RL-4")
def test_a_changed_row_is_damage_and_not_another_message(tmp_path: Path) -> None:
    with contextlib.closing(opened(tmp_path)) as story:
        say(story, "the truth", "something else")
    db = apsw.Connection(str(tmp_path / "story.db"))
    db.execute("UPDATE messages SET content='a lie' WHERE position=0")
    db.close()
    with contextlib.closing(opened(tmp_path)) as story:
        assert any("checksum" in problem for problem in story.check())
        with pytest.raises(StoreDamaged, match="checksum"):
            story.messages(ONE)
        assert [m.content for m in story.messages(ONE, first=1)] == ["something else"]


@pytest.mark.requirement("RL-4", "ST-4")
@pytest.mark.parametrize("seed", range(12))
def test_a_repair_keeps_every_row_that_can_be_proven_and_every_place(
    tmp_path: Path, seed: int
) -> None:
    rng = random.Random(seed)
    said = [f"message {number} " + "x" * rng.randrange(3000) for number in range(120)]
    with contextlib.closing(opened(tmp_path)) as story:
        say(story, *said)
        story.annotate(ONE, checkpoint_id(1), "a note", author=None, at_ns=1)
        before = story.generation()
    victim = tmp_path / rng.choice(["story.db", "story.db-wal"])
    data = bytearray(victim.read_bytes())
    for _ in range(rng.randrange(1, 6)):
        start, length = rng.randrange(len(data) - 300), rng.randrange(1, 300)
        data[start : start + length] = rng.randbytes(length)
    victim.write_bytes(data)
    (tmp_path / "story.db-shm").unlink(missing_ok=True)
    layout, scratch = StoreLayout(tmp_path), tmp_path / "scratch"
    mender = StoryRepairer(LocalFilesystem(), layout, SystemClock())
    with mender.exclusive():
        scratch.mkdir()
        found = mender.examine(scratch)
        assert found is not None, "the damage was not found"
        mender.mend(found, "occasion")
    assert list((tmp_path / "set-aside").rglob("story.db")) != []
    with contextlib.closing(opened(tmp_path)) as story:
        assert list(story.check()) == []
        assert story.generation() != before
        left = texts(story)
        assert all(text in (said[place], LOST) for place, text in enumerate(left))
        assert sum(text == LOST for text in left) == found.lost_messages
        assert sum(text != LOST for text in left) > len(said) // 2
        say(story, "and on")
        assert texts(story)[-1] == "and on"


@pytest.mark.requirement("ST-4")
def test_a_repair_that_was_cut_off_in_the_middle_is_finished_by_the_next_use(
    tmp_path: Path,
) -> None:
    with contextlib.closing(opened(tmp_path)) as story:
        say(story, "kept")
    # As if the old file had been set aside, and its log not yet.
    (tmp_path / "story.db").rename(tmp_path / "story.rebuilt.db")
    (tmp_path / "story.db-wal").rename(tmp_path / "story.rebuilt.db-wal")
    db = apsw.Connection(str(tmp_path / "story.rebuilt.db"))
    db.execute("SELECT * FROM messages").fetchall()
    db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    db.close()
    (tmp_path / "story.db-wal").write_bytes(b"the log of another file")
    with contextlib.closing(opened(tmp_path)) as story:
        assert texts(story) == ["kept"]
        assert list(story.check()) == []
    assert not (tmp_path / "story.rebuilt.db").exists()


@pytest.mark.requirement("SE-2")
def test_a_story_that_is_gone_is_an_empty_one_and_check_tells(tmp_path: Path) -> None:
    with contextlib.closing(opened(tmp_path)) as story:
        say(story, "hello")
    for path in tmp_path.glob("story.db*"):
        path.unlink()
    with contextlib.closing(opened(tmp_path)) as story:
        assert texts(story) == []
        assert list(story.check()) == ["the store's story.db is missing"]
        say(story, "a new beginning")
        assert texts(story) == ["a new beginning"]
        assert list(story.check()) == []


@pytest.mark.requirement("ST-4", "RL-4")
@pytest.mark.parametrize("victims", ["story.db", "story.db*"])
def test_a_repair_recreates_a_story_that_is_gone(tmp_path: Path, victims: str) -> None:
    with contextlib.closing(opened(tmp_path)) as story:
        say(story, "hello")
        before = story.generation()
    for path in tmp_path.glob(victims):
        path.unlink()
    mender = StoryRepairer(LocalFilesystem(), StoreLayout(tmp_path), SystemClock())
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    with mender.exclusive():
        found = mender.examine(scratch)
        assert found is not None
        assert found.problem == "the file is missing"
        mender.mend(found, "occasion")
        assert mender.examine(scratch) is None
    with contextlib.closing(opened(tmp_path)) as story:
        assert list(story.check()) == []
        assert story.generation() not in ("", before)
        say(story, "a new beginning")
        assert texts(story)[-1] == "a new beginning"


@pytest.mark.requirement("ST-4")
def test_a_repair_makes_nothing_of_a_story_that_never_was(tmp_path: Path) -> None:
    mender = StoryRepairer(LocalFilesystem(), StoreLayout(tmp_path), SystemClock())
    with mender.exclusive():
        assert mender.examine(tmp_path) is None
    assert list(tmp_path.iterdir()) == []


@pytest.mark.requirement("ST-4")
def test_a_process_that_has_it_open_goes_on_with_the_repaired_one(tmp_path: Path) -> None:
    with (
        contextlib.closing(opened(tmp_path)) as story,
        contextlib.closing(opened(tmp_path)) as other,
    ):
        say(story, "old")
        assert texts(other) == ["old"]
        for path in tmp_path.glob("story.db*"):
            path.rename(tmp_path / f"aside-{path.name}")
        assert texts(other) == []
        say(story, "new")
        assert texts(other) == ["new"]
