"""A store on a file system that takes no writes, as after an error of the disk: it can be read."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.interfaces.cli.command_line import CommandLine
from tests.support.real_mounts import can_mount, mounted

pytestmark = pytest.mark.requirement("CL-3", "RL-6")

_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT


@pytest.fixture(params=["mounted", "told"] if can_mount() else ["told"])
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
        return
    really = os.open
    patch = undone.enter_context(pytest.MonkeyPatch.context())

    def open_to_read(path: Any, flags: int, *arguments: Any, **named: Any) -> int:
        if flags & _WRITING and os.fsencode(path).startswith(os.fsencode(home)):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), path)
        return really(path, flags, *arguments, **named)

    patch.setattr(os, "open", open_to_read)


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
        ("restore", "HEAD~1", "--yes"),
        ("delete", "HEAD~1", "--yes"),
        ("config", "set", "budget", '"1 GB"'),
        ("status",),
        ("diff",),
    ],
    ids=lambda words: words[0],
)
def test_whatever_needs_writing_is_refused_with_the_way_out(
    disk: Callable[[], None], cli: CommandLine, words: tuple[str, ...]
) -> None:
    cli.save("the first state")
    (cli.workspace / "added.txt").write_text("one more\n")
    cli.save("the second state")
    before = {path: path.read_bytes() for path in cli.workspace.rglob("*") if path.is_file()}
    disk()

    refused = cli("--json", *words)

    assert refused.status == 5
    assert refused.error["code"] == "store_unwritable"
    assert "read-only" in refused.error["message"]
    assert "HOLDFAST_HOME" in refused.error["hint"]
    after = {path: path.read_bytes() for path in cli.workspace.rglob("*") if path.is_file()}
    assert after == before


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
    assert {one["status"] for one in read_only} <= {"problem"}
    assert bool(read_only) == bool(os.statvfs(os.environ["HOLDFAST_HOME"]).f_flag & os.ST_RDONLY)
