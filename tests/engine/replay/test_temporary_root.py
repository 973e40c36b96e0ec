"""A state on disk, for as long as it is in use: private, not writable, gone afterwards."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast import SessionCheckpointer
from holdfast.domain.errors import NotFound, Refused
from holdfast.domain.paths import InvalidPath
from tests.support.hostile_trees import fill
from tests.support.tree_hash import describe

pytestmark = pytest.mark.requirement("SE-10")

PROGRAM = """
import sys
from pathlib import Path
from holdfast import SessionCheckpointer
session = SessionCheckpointer(Path(sys.argv[1]), "s")
first, second = session.replay(), session.replay()
first.materialise()
print(second.materialise(), flush=True)
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary files go."""
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setenv("TMPDIR", str(place))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return place


@pytest.fixture
def session(tmp_path: Path, place: Path) -> Iterator[SessionCheckpointer]:
    workspace = tmp_path / "project"
    fill(workspace / "src/deep/app.py", b"print()\n", 0o644)
    fill(workspace / "run", b"#!/bin/sh\n", 0o4777)
    fill(workspace / "secret", b"x", 0o000 if os.geteuid() == 0 else 0o600)
    (workspace / "empty").mkdir(mode=0o777)
    (workspace / "link").symlink_to("src/deep/app.py")
    (workspace / "out").symlink_to("/etc/passwd")
    with SessionCheckpointer(workspace, "s") as session:
        session.checkpoint("why")
        yield session


def test_everything_is_there_private_and_not_writable(
    session: SessionCheckpointer, place: Path
) -> None:
    with session.replay() as replay:
        root = replay.materialise()
        assert place in root.parents
        found = {str(path.relative_to(root)): path for path in root.rglob("*")}
        assert set(found) == {
            "empty",
            "link",
            "out",
            "run",
            "secret",
            "src",
            "src/deep",
            "src/deep/app.py",
        }
        assert found["src/deep/app.py"].read_bytes() == b"print()\n"
        assert os.readlink(found["out"]) == "/etc/passwd"
        for path in [place / os.listdir(place)[0], root, *root.rglob("*")]:
            if not path.is_symlink():
                assert path.stat().st_mode & 0o7377 == 0o100 * path.is_dir() or path.name == "run"
        assert found["run"].stat().st_mode & 0o7777 == 0o500
        assert found["secret"].stat().st_mode & 0o7777 == 0o400
        workspace = session.workspace / "src/deep/app.py"
        assert found["src/deep/app.py"].stat().st_mtime_ns == workspace.stat().st_mtime_ns
    assert os.listdir(place) == []


def test_only_what_is_asked_for_is_written(session: SessionCheckpointer, place: Path) -> None:
    with session.replay() as replay:
        assert os.listdir(place) == []
        app = replay.materialise("src/deep/app.py")
        assert app.read_bytes() == b"print()\n"
        (root,) = place.iterdir()
        files = [path for path in root.rglob("*") if path.is_file()]
        assert files == [app]
        assert replay.materialise("src/deep/app.py") == app
        assert replay.materialise("src") == app.parent.parent
        assert replay.materialise("link").is_symlink()
    assert os.listdir(place) == []


def test_what_was_given_out_stays_when_other_states_are_looked_at(
    session: SessionCheckpointer,
) -> None:
    fill(session.workspace / "run", b"another")
    session.checkpoint("later")
    with session.replay() as replay:
        later = replay.materialise("run")
        replay.back()
        earlier = replay.materialise("run")
        assert (later.read_bytes(), earlier.read_bytes()) == (b"another", b"#!/bin/sh\n")


@pytest.mark.parametrize("path", ["../escape", "/etc/passwd", "a//b", ".git/config", "a/../b"])
def test_no_path_leads_out(session: SessionCheckpointer, place: Path, path: str) -> None:
    with session.replay() as replay, pytest.raises(InvalidPath):
        replay.materialise(path)
    assert os.listdir(place) == []


def test_below_a_link_there_is_nothing(session: SessionCheckpointer) -> None:
    with session.replay() as replay, pytest.raises(NotFound):
        replay.materialise("out/below")


def test_it_is_gone_after_an_exception(session: SessionCheckpointer, place: Path) -> None:
    def fail() -> None:
        with session.replay() as replay:
            replay.materialise()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert os.listdir(place) == []


def test_it_goes_with_its_last_user(session: SessionCheckpointer, place: Path) -> None:
    replay = session.replay()
    replay.materialise()
    assert len(os.listdir(place)) == 1
    del replay
    assert os.listdir(place) == []


def _run(session: SessionCheckpointer, then: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM + then, str(session.workspace)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdin=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_it_is_gone_after_a_signal_which_still_ends_the_process(
    session: SessionCheckpointer, place: Path, ending: signal.Signals
) -> None:
    with _run(session, "sys.stdin.read()") as process:
        assert process.stdout is not None
        shown = Path(process.stdout.readline().strip())
        assert shown.is_dir()
        assert len(os.listdir(place)) == 2
        process.send_signal(ending)
        process.communicate(timeout=60)
    assert process.returncode == -ending
    assert os.listdir(place) == []


def test_it_is_gone_when_python_ends_without_closing_it(
    session: SessionCheckpointer, place: Path
) -> None:
    with _run(session, "raise SystemExit(7)") as process:
        process.communicate(timeout=60)
    assert process.returncode == 7
    assert os.listdir(place) == []


def test_a_forked_process_does_not_take_it_away(session: SessionCheckpointer, place: Path) -> None:
    then = """
import os
if os.fork() == 0:
    raise SystemExit(0)
os.wait()
print(first.materialise("run").is_file() and len(os.listdir(sys.argv[2])), flush=True)
"""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM + then, str(session.workspace), str(place)],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout.split()[-1] == "2"
    assert os.listdir(place) == []


def test_what_a_killed_process_left_is_removed_by_the_next_one(
    session: SessionCheckpointer, place: Path
) -> None:
    with _run(session, "sys.stdin.read()") as process, session.replay() as replay:
        assert process.stdout is not None
        process.stdout.readline()
        mine = replay.materialise("run")
        assert len(os.listdir(place)) == 3
        process.kill()
        process.communicate(timeout=60)
        with session.replay() as other:
            other.materialise("run")
            # The two of the dead process are gone, the one in use is not.
            assert len(os.listdir(place)) == 2
            assert mine.read_bytes() == b"#!/bin/sh\n"
    assert os.listdir(place) == []


def test_a_stranger_by_that_name_is_left_alone(session: SessionCheckpointer, place: Path) -> None:
    fill(place / "holdfast-replay-file", b"not a directory")
    (place / "holdfast-replay-link").symlink_to(session.workspace)
    before = describe(session.workspace)
    with session.replay() as replay:
        replay.materialise()
    assert sorted(os.listdir(place)) == ["holdfast-replay-file", "holdfast-replay-link"]
    assert describe(session.workspace) == before


def test_the_workspace_is_no_place_for_it(
    session: SessionCheckpointer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(session.workspace / "empty"))
    monkeypatch.setattr(tempfile, "tempdir", None)
    with session.replay() as replay:
        with pytest.raises(Refused, match="is inside the workspace"):
            replay.materialise("run")
        assert replay.read("run") == b"#!/bin/sh\n"
    assert os.listdir(session.workspace / "empty") == []


def test_signals_with_their_own_handler_keep_it(session: SessionCheckpointer) -> None:
    before = signal.getsignal(signal.SIGTERM)
    theirs = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with session.replay() as replay:
            replay.materialise("run")
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
            assert signal.getsignal(signal.SIGTERM) is not before
        assert signal.getsignal(signal.SIGTERM) is before
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, theirs)


def test_it_works_in_another_thread(session: SessionCheckpointer, place: Path) -> None:
    seen: list[bytes] = []

    def look() -> None:
        with session.replay() as replay:
            seen.append(replay.materialise("run").read_bytes())

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert seen == [b"#!/bin/sh\n"]
    assert os.listdir(place) == []
