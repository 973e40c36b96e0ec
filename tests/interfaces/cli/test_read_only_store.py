"""A store on a file system that takes no writes, as after an error of the disk: it can be read."""

from __future__ import annotations

import contextlib
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast import SessionCheckpointer
from holdfast.adapters.local.store_lock import StoreLock
from holdfast.adapters.local.system import SystemClock
from holdfast.domain.errors import StoreReadOnly
from tests.interfaces.cli.command_line import CommandLine
from tests.support.read_only import seen_read_only, told_read_only
from tests.support.real_mounts import can_mount, mounted

pytestmark = pytest.mark.requirement("CL-3", "RL-6")

WAYS = ["mounted", "told"] if can_mount() else ["told"]

NOT_THE_ANSWER = {"elapsed_ms", "store_bytes", "size_bytes", "disk_bytes"}
"""What differs from one run of a command to the next."""
ABOUT_WRITING = {"next", "warnings"}
"""What a status says about the next checkpoint."""

LOOKS = (
    "status",
    "status --skipped",
    "log --records",
    "show first",
    "diff",
    "diff first",
    "diff first HEAD",
    "search state",
    "search timeout",
    "restore first --dry-run",
    "restore first a.txt --dry-run",
    "undo --dry-run",
    "reset --dry-run",
    "cleanup --dry-run",
    "purge a.txt --dry-run",
    "purge first --dry-run",
    "accept --dry-run",
    "import BUNDLE --dry-run",
    "why a.txt",
    "replay first",
    "stats",
    "config list",
    "check --data",
)


@pytest.fixture(params=WAYS)
def disk(request: pytest.FixtureRequest, holdfast_home: Path) -> Iterator[Callable[[], None]]:
    """Where stores lie; calling it makes it read-only: really, or as far as the calls of the
    system tell, for those who may not mount."""
    holdfast_home.mkdir(exist_ok=True)
    with contextlib.ExitStack() as undone:
        if request.param == "mounted":
            undone.enter_context(mounted(holdfast_home, "256m"))
        yield lambda: _close(request.param, holdfast_home, undone)


def _close(how: str, home: Path, undone: contextlib.ExitStack) -> None:
    if how == "mounted":
        subprocess.run(["mount", "-o", "remount,ro", str(home)], check=True)
    else:
        undone.enter_context(told_read_only(home))


def _files(workspace: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in workspace.rglob("*") if path.is_file()}


def _store(home: Path) -> Path:
    [store] = (home / "stores").iterdir()
    return store


def _git(workspace: Path, *arguments: str) -> str:
    return subprocess.run(
        ["git", *arguments], cwd=workspace, check=True, capture_output=True, text=True
    ).stdout


@pytest.fixture
def worked(cli: CommandLine, tmp_path: Path) -> CommandLine:
    """A repository, and a session with all that commands can tell of."""
    text = cli.workspace / "a.txt"
    _git(cli.workspace, "init", "-q")
    _git(cli.workspace, "config", "user.email", "me@example.org")
    _git(cli.workspace, "config", "user.name", "Me")
    text.write_text("one\n")
    cli.save("the first state", "--name", "first")
    text.write_text("one\ntwo\n")
    cli.save("the second state")
    cli.json("annotate", "first", "about a timeout")
    cli.json("approve", "-m", "good so far")
    text.write_text("three\n")
    cli.save("the third state")
    cli.json("restore", "HEAD~1", "--yes")
    cli.json("export", str(tmp_path / "bundle"))
    text.write_text("one\ntwo\nfour\n")
    return cli


@pytest.fixture(params=["plain", "encrypted"])
def looked_at(
    request: pytest.FixtureRequest, disk: Callable[[], None], cli: CommandLine, tmp_path: Path
) -> CommandLine:
    """On a disk that can become read-only, with a store of either kind."""
    if request.param == "encrypted":
        key = tmp_path / "the.key"
        request.getfixturevalue("monkeypatch").setenv("HOLDFAST_KEY_FILE", str(key))
        cli.json("init", "--encrypt", "--key-file", str(key))
    worked: CommandLine = request.getfixturevalue("worked")
    return worked


def _answers(cli: CommandLine, tmp_path: Path) -> dict[str, object]:
    found: dict[str, object] = {}
    for look in LOOKS:
        words = look.replace("BUNDLE", str(tmp_path / "bundle")).split()
        answer = cli("--json", *words)
        assert answer.status == 0, (look, answer)
        found[look] = _lasting(answer.json)
    return found


def _lasting(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _lasting(v) for k, v in value.items() if k not in NOT_THE_ANSWER}
    return [_lasting(one) for one in value] if isinstance(value, list) else value


def test_whatever_only_looks_says_there_what_it_says_elsewhere(
    looked_at: CommandLine, disk: Callable[[], None], tmp_path: Path
) -> None:
    expected = _answers(looked_at, tmp_path)
    before = _files(looked_at.workspace)
    disk()
    found = _answers(looked_at, tmp_path)
    for look in ("status", "status --skipped"):
        there, elsewhere = found.pop(look), expected.pop(look)
        assert isinstance(there, dict)
        assert isinstance(elsewhere, dict)
        assert {name for name in there if there[name] != elsewhere[name]} == ABOUT_WRITING
        assert "read-only" in there["warnings"][0]
        assert "mount it writable" in there["next"]
    assert found == expected
    assert _files(looked_at.workspace) == before


@pytest.mark.requirement("SE-8")
@pytest.mark.parametrize("index", ["behind", "never made", "damaged"])
def test_a_search_finds_everything_whatever_the_index_holds(
    looked_at: CommandLine, disk: Callable[[], None], holdfast_home: Path, index: str
) -> None:
    if index != "never made":
        assert len(looked_at.json("search", "state")["hits"]) == 3
    looked_at.save("the newest state")
    if index == "damaged":
        (_store(holdfast_home) / "search.db-wal").unlink()
        (_store(holdfast_home) / "search.db").write_bytes(b"no index" * 1000)
    disk()
    found = looked_at.json("search", "state")
    assert (len(found["hits"]), found["complete"], found["warnings"]) == (4, True, [])


def test_what_a_power_cut_took_from_the_index_is_found_in_the_packs(
    looked_at: CommandLine, disk: Callable[[], None], holdfast_home: Path, tmp_path: Path
) -> None:
    objects = _store(holdfast_home) / "objects"
    shutil.copytree(objects, tmp_path / "kept", ignore=shutil.ignore_patterns("packs"))
    looked_at.save("the newest state")
    shutil.copytree(tmp_path / "kept", objects, dirs_exist_ok=True)
    disk()
    assert looked_at.json("check", "--data") == {"ok": True, "problems": []}
    assert looked_at.json("diff")["changes"] == []
    assert looked_at.json("diff", "HEAD~1", "HEAD")["changes"] != []
    assert looked_at.json("restore", "first", "--dry-run")["operations"] != []


def test_remembered_scans_that_cannot_be_used_are_done_without(
    disk: Callable[[], None], cli: CommandLine, holdfast_home: Path
) -> None:
    cli.save()
    (cli.workspace / "added.txt").write_text("one more\n")
    (_store(holdfast_home) / "stat-cache.db-wal").unlink()
    (_store(holdfast_home) / "stat-cache.db").write_bytes(b"no cache" * 1000)
    disk()
    assert cli.json("diff")["changes"] == [{"path": "added.txt", "change": "added"}]


def test_a_workspace_that_has_moved_is_found_and_looked_at(
    disk: Callable[[], None], cli: CommandLine
) -> None:
    first = cli.save()
    disk()
    moved = CommandLine(cli.workspace.rename(cli.workspace.with_name("moved")))
    assert [one["id"] for one in moved.json("log")] == [first]
    assert moved.json("diff")["changes"] == []


def test_the_library_looks_there_too(disk: Callable[[], None], project: Path) -> None:
    with SessionCheckpointer(project, "one") as session:
        first = session.checkpoint("the first state")
        (project / "added.txt").write_text("one more\n")
        second = session.checkpoint("the second state")
    disk()
    with SessionCheckpointer(project, "one") as session:
        assert session.diff(first, second) == {"added.txt": "added"}
        assert session.plan_restore(first).affected_files == (b"added.txt",)
        with pytest.raises(StoreReadOnly):
            session.restore(first)
    assert (project / "added.txt").exists()


def test_a_restore_that_was_interrupted_stays_as_it_is_and_is_reported(
    disk: Callable[[], None], cli: CommandLine
) -> None:
    first = cli.save("the first state")
    (cli.workspace / "README.md").write_text("wrecked\n")
    program = (
        "import os, signal\n"
        "from holdfast.engine.restore.executor import Executor\n"
        "from holdfast.interfaces.cli.main import main\n"
        "Executor.make_durable = lambda self: os.kill(os.getpid(), signal.SIGKILL)\n"
        f"main({['-C', str(cli.workspace), 'restore', first, '--yes']!r})\n"
    )
    killed = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
    assert killed.returncode == -signal.SIGKILL
    before = _files(cli.workspace)
    disk()
    assert first in [one["id"] for one in cli.json("log")]
    for words in (("status",), ("diff",), ("restore", first, "--dry-run"), ("checkpoint", "x")):
        refused = cli("--json", *words)
        assert (refused.status, refused.error["code"]) == (5, "store_unwritable")
        assert "HOLDFAST_HOME" in refused.error["hint"]
    assert "a restore was interrupted" in cli("status").err
    assert _files(cli.workspace) == before


@pytest.mark.parametrize("mounting", [True, False] if can_mount() else [False])
def test_who_writes_through_another_mount_is_waited_for(
    mounting: bool,
    cli: CommandLine,
    holdfast_home: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A volume that a container has read-only is still written by others."""
    cli.save()
    cli.json("config", "set", "lock_timeout", "0")
    writer = StoreLock(_store(holdfast_home) / "lock", SystemClock(), purpose="somebody else")
    with seen_read_only(holdfast_home, tmp_path / "view", mounting=mounting):
        monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "view"))
        assert cli.json("diff")["changes"] == []
        with writer.hold(0):
            assert cli("--json", "diff").error["code"] == "busy"
            assert len(cli.json("log")) == 1
        assert cli.json("diff")["changes"] == []


def test_what_it_holds_can_be_looked_at_and_carried_away(
    disk: Callable[[], None], cli: CommandLine, tmp_path: Path
) -> None:
    first = cli.save("the first state")
    (cli.workspace / "added.txt").write_text("one more\n")
    second = cli.save("the second state")
    disk()

    assert [one["id"] for one in cli.json("log")] == [second, first]
    assert cli.json("show", first)["reasoning"] == "the first state"
    assert cli.json("diff", first, second)["changes"] == [{"path": "added.txt", "change": "added"}]
    assert "+one more" in cli("diff", first, second).out
    assert cli.json("check", "--data") == {"ok": True, "problems": []}
    cli.json("export", str(tmp_path / "carried.holdfast"))


@pytest.mark.parametrize(
    "words",
    [
        ("checkpoint", "no way"),
        ("restore", "first", "--yes"),
        ("delete", "first", "--yes"),
        ("config", "set", "budget", '"1 GB"'),
        ("annotate", "HEAD", "a note"),
        ("approve",),
        ("undo", "--yes"),
        ("reset", "--yes"),
        ("cleanup",),
        ("purge", "added.txt", "--yes", "--force"),
        ("attempt", "try it", "--", "touch", "made-by-it"),
        ("repair",),
        ("watch",),
    ],
    ids=lambda words: words[0],
)
def test_whatever_needs_writing_is_refused_with_the_way_out(
    disk: Callable[[], None], cli: CommandLine, words: tuple[str, ...]
) -> None:
    cli.save("the first state", "--name", "first")
    (cli.workspace / "added.txt").write_text("one more\n")
    cli.save("the second state")
    cli.json("restore", "first", "--yes")
    (cli.workspace / "added.txt").write_text("something else\n")
    before = _files(cli.workspace)
    disk()

    refused = cli("--json", *words)

    assert refused.status == 5
    assert refused.error["code"] == "store_unwritable"
    assert "read-only" in refused.error["message"]
    assert "HOLDFAST_HOME" in refused.error["hint"]
    assert _files(cli.workspace) == before


@pytest.mark.requirement("GT-3")
@pytest.mark.parametrize("words", [(), ("first..HEAD",)], ids=["all", "a range"])
def test_no_commit_is_made_that_the_log_could_not_tell_of(
    disk: Callable[[], None], worked: CommandLine, words: tuple[str, ...]
) -> None:
    _git(worked.workspace, "add", "a.txt")
    _git(worked.workspace, "commit", "-qm", "one")
    before = _git(worked.workspace, "rev-parse", "HEAD")
    disk()
    refused = worked("--json", "accept", *words, "--yes")
    assert (refused.status, refused.error["code"]) == (5, "store_unwritable")
    assert _git(worked.workspace, "rev-parse", "HEAD") == before


def test_a_copy_of_it_is_a_store_like_any_other(
    disk: Callable[[], None],
    cli: CommandLine,
    holdfast_home: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first = cli.save("the first state")
    (cli.workspace / "added.txt").write_text("one more\n")
    cli.save("the second state")
    disk()

    copy = tmp_path / "copy"
    shutil.copytree(holdfast_home, copy)
    monkeypatch.setenv("HOLDFAST_HOME", str(copy))

    cli.json("restore", first, "--yes")
    assert not (cli.workspace / "added.txt").exists()
    cli.json("undo", "--yes")
    assert (cli.workspace / "added.txt").read_text() == "one more\n"


@pytest.mark.requirement("ST-4")
def test_the_doctor_names_the_cause_and_no_permission_that_is_right(
    disk: Callable[[], None], cli: CommandLine
) -> None:
    cli.save()
    disk()
    found = cli("doctor", "--json").json["findings"]
    assert not [one for one in found if "chmod u+rwX" in (one["cure"] or "")]
    read_only = [one for one in found if "read-only" in one["finding"]]
    assert {one["status"] for one in read_only} == {"problem"}
