"""Faults that were found by trying to break the engine; each would return without its cure."""

from __future__ import annotations

import mmap
import os
import random
from pathlib import Path

import pytest

from holdfast import SessionCheckpointer
from holdfast.domain.errors import RestoreFailed
from holdfast.domain.ids import SessionId
from holdfast.engine.retention.deletion import delete
from tests.behind_the_api import engine_of
from tests.support.composition import composed, configure
from tests.support.hostile_trees import fill
from tests.support.session_states import get_snapshot
from tests.support.ticks import wait_a_tick
from tests.support.watched_filesystem import WatchedFilesystem, once


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    root.mkdir()
    return root


@pytest.mark.requirement("CP-7", "ST-3")
def test_content_whose_base_was_collected_is_stored_again(
    workspace: Path, rng: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.adapters.local.objects.writer.SEAL_AT_BYTES", 100_000)
    base = bytes(rng.choice(b"abcdefghij klm\n") for _ in range(3000))
    edited = base[:1500] + b"EDIT" + base[1500:]
    with SessionCheckpointer(workspace, "s") as session:
        fill(workspace / "a", base)
        fill(workspace / "bulk", rng.randbytes(200_000))
        first = session.checkpoint("fills a pack")
        fill(workspace / "a", edited)
        fill(workspace / "keep", rng.randbytes(60_000))
        second = session.checkpoint("a is stored against its first version")
        (workspace / "bulk").unlink()
        fill(workspace / "a", b"small")
        session.checkpoint("neither is needed any more")
        engine = engine_of(session)
        for gone in (first, second):
            delete(engine, engine.resolve(SessionId("s"), gone))
        fill(workspace / "a", edited)
        again = session.checkpoint("acknowledged")
        fill(workspace / "a", b"wrecked")
    with SessionCheckpointer(workspace, "s") as session:
        session.restore(again)
    assert (workspace / "a").read_bytes() == edited


@pytest.mark.requirement("CP-12")
def test_a_changed_ignore_setting_counts_for_directories_that_were_scanned_before(
    workspace: Path,
) -> None:
    fill(workspace / "dir/x.db", b"precious")
    configure(workspace, ignore=["*.db"])
    wait_a_tick(workspace)
    with SessionCheckpointer(workspace, "s") as session:
        assert session.save_checkpoint("left out").checkpoint.files == 0
    configure(workspace, ignore=[])
    with SessionCheckpointer(workspace, "s") as session:
        assert session.save_checkpoint("taken in").checkpoint.files == 1


@pytest.mark.requirement("CP-1", "RB-2")
def test_undo_keeps_to_the_filter_of_the_session(workspace: Path) -> None:
    fill(workspace / "a", b"1")
    fill(workspace / "sub/k.secret", b"key")
    wait_a_tick(workspace)
    keep = lambda path: path.suffix != ".secret"  # noqa: E731
    with SessionCheckpointer(workspace, "s", file_filter=keep) as session:
        first = session.checkpoint("first")
        fill(workspace / "a", b"2")
        session.checkpoint("second")
        session.restore(first)
        fill(workspace / "new.secret", b"made since")
        session.undo()
        third = session.checkpoint("third")
        assert [path for path, _ in get_snapshot(session, third).manifest] == ["a"]
    assert (workspace / "new.secret").read_bytes() == b"made since"


@pytest.mark.requirement("RB-2")
def test_undo_removes_what_the_restore_made_although_a_rule_ignores_it_now(
    workspace: Path,
) -> None:
    fill(workspace / "c.log", b"log")
    wait_a_tick(workspace)
    with SessionCheckpointer(workspace, "s") as session:
        first = session.checkpoint("first")
        (workspace / "c.log").unlink()
        fill(workspace / ".git/info/exclude", b"*.log\n")
        session.restore(first)
        assert (workspace / "c.log").exists()
        session.undo()
        assert not (workspace / "c.log").exists()


@pytest.mark.requirement("CP-11", "RB-4")
def test_a_marker_that_appears_among_sources_does_not_hide_them(workspace: Path) -> None:
    fill(workspace / "src/module.py", b"code")
    wait_a_tick(workspace)
    with SessionCheckpointer(workspace, "s") as session:
        first = session.checkpoint("first")
        fill(workspace / "src/module.py", b"wrecked")
        fill(workspace / "src/pyvenv.cfg", b"home = /usr\n")
        assert session.save_checkpoint("wrecked").checkpoint.files == 2
        (workspace / "src/module.py").unlink()
        session.restore(first)
    assert os.listdir(workspace / "src") == ["module.py"]
    assert (workspace / "src/module.py").read_bytes() == b"code"


@pytest.mark.requirement("RL-5")
def test_a_write_through_a_mapping_is_not_missed(workspace: Path) -> None:
    fill(workspace / "mapped", b"A" * 8192)
    fd = os.open(workspace / "mapped", os.O_RDWR)
    with mmap.mmap(fd, 8192) as mapped:
        os.close(fd)
        mapped[0:1] = b"B"
        wait_a_tick(workspace)
        with SessionCheckpointer(workspace, "s") as session:
            session.checkpoint("first")
            mapped[0:4] = b"CCCC"  # the page is dirty already: no time moves
            second = session.checkpoint("second")
            assert get_snapshot(session, second).artifact("mapped").read_bytes()[:4] == b"CCCC"


@pytest.mark.requirement("CP-11")
def test_a_name_of_a_file_returns_as_a_name_although_the_others_only_change_their_mode(
    workspace: Path,
) -> None:
    fill(workspace / "a", b"h")
    (workspace / "a").chmod(0o644)
    for name in ("b", "c"):
        os.link(workspace / "a", workspace / name)
    with SessionCheckpointer(workspace, "s") as session:
        first = session.checkpoint("first")
        (workspace / "c").unlink()
        (workspace / "a").chmod(0o600)
        session.restore(first)
    assert len({(workspace / name).stat().st_ino for name in "abc"}) == 1


@pytest.mark.requirement("RB-1", "CP-11")
def test_a_plan_warns_of_extended_attributes_that_go_with_a_file(workspace: Path) -> None:
    fill(workspace / "x", b"1")
    with SessionCheckpointer(workspace, "s") as session:
        first = session.checkpoint("first")
        fill(workspace / "x", b"2")
        os.setxattr(workspace / "x", "user.precious", b"only copy")
        assert any("user.precious" in warning for warning in session.plan_restore(first).warnings)


@pytest.mark.requirement("RB-5")
def test_a_restored_file_that_reads_back_differently_fails_the_restore(workspace: Path) -> None:
    """The disk, or a program, changes what was written before it is compared."""
    fill(workspace / "edited", b"right")
    fs = WatchedFilesystem()
    with composed(workspace, fs=fs.as_port()) as opened:
        first = opened.save()
        fill(workspace / "edited", b"agent")

        def spoil() -> None:
            fill(workspace / "edited", b"wrong")

        fs.after = once(lambda call: call.member == "exchange", spoil)
        with pytest.raises(RestoreFailed, match="edited"):
            opened.restore(first.id)
    assert (workspace / "edited").read_bytes() == b"agent"
