"""Ctrl-C during a restore: answered at once, with what is true of the workspace."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.interfaces.cli.command_line import CommandLine
from tests.support.tree_hash import debris, describe, differences

pytestmark = pytest.mark.requirement("RB-3", "CL-3")

SIGNALLED = """
import os, signal, sys
from holdfast.interfaces.cli.main import main
from {module} import {owner}
before = {owner}.{name}
left = {after}
def signalled(self, *arguments, **keywords):
    global left
    if left == 0:
        left = -1
        os.kill(os.getpid(), signal.SIGINT)
    left -= 1
    return before(self, *arguments, **keywords)
{owner}.{name} = signalled
{more}
sys.exit(main({tokens!r}))
"""
SECOND = """
from holdfast.engine.restore.executor import Executor
undo_all = Executor.undo_all
def again(self):
    os.kill(os.getpid(), signal.SIGINT)
    return undo_all(self)
Executor.undo_all = again
"""
EXECUTOR = ("holdfast.engine.restore.executor", "Executor")


@pytest.mark.parametrize(
    ("place", "name", "after", "more", "said", "becomes"),
    [
        (
            ("holdfast.adapters.local.store_lock", "StoreLock"),
            "_acquire_file",
            0,
            "",
            "the restore had not begun",
            "old",
        ),
        (("holdfast.engine.scan.scanner", "Scanner"), "built", 0, "", "nothing was changed", "old"),
        (EXECUTOR, "_stage_one", 3, "", "nothing was changed", "old"),
        (EXECUTOR, "_apply_one", 3, "", "rolled back", "old"),
        (EXECUTOR, "make_durable", 0, "", "rolled back", "old"),
        (EXECUTOR, "_apply_one", 3, SECOND, "the next command rolls the restore back", "old"),
        (
            ("holdfast.engine.restore.staging", "Staging"),
            "remove",
            0,
            "",
            "the restore was already done; to undo it: holdfast undo",
            "new",
        ),
    ],
    ids=["waiting", "scanning", "staging", "replacing", "syncing", "twice", "tidying"],
)
def test_ctrl_c_says_what_is_true(
    cli: CommandLine,
    place: tuple[str, str],
    name: str,
    after: int,
    more: str,
    said: str,
    becomes: str,
) -> None:
    names = [f"f{number}" for number in range(8)]
    for each in names:
        (cli.workspace / each).write_text("first")
    target = cli.save()
    for each in names:
        (cli.workspace / each).write_text("second")
    cli.save()
    before = describe(cli.workspace)
    module, owner = place
    program = SIGNALLED.format(
        module=module,
        owner=owner,
        name=name,
        after=after,
        more=more,
        tokens=["restore", target, "--yes", "-C", str(cli.workspace)],
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 130
    lines = done.stderr.splitlines()
    assert lines[0] == "cancelling …"
    assert lines[1:] == [f"error: cancelled; {said}"]
    cli.json("status")
    if becomes == "old":
        assert differences(describe(cli.workspace), before) == []
    else:
        assert {(cli.workspace / each).read_text() for each in names} == {"first"}
    assert debris(cli.workspace) == []


@pytest.mark.parametrize(
    ("place", "name", "said", "becomes"),
    [
        (
            ("holdfast.interfaces.cli.invocation", "Invocation"),
            "open",
            "the restore had not begun",
            "second",
        ),
        (
            ("holdfast.interfaces.cli.terminal", "Terminal"),
            "line",
            "the restore was already done; to undo it: holdfast undo",
            "first",
        ),
    ],
    ids=["opening", "reporting"],
)
def test_ctrl_c_beside_the_restore_itself_says_what_is_true(
    cli: CommandLine, place: tuple[str, str], name: str, said: str, becomes: str
) -> None:
    (cli.workspace / "README.md").write_text("first")
    target = cli.save()
    (cli.workspace / "README.md").write_text("second")
    module, owner = place
    program = SIGNALLED.format(
        module=module,
        owner=owner,
        name=name,
        after=0,
        more="",
        tokens=["restore", target, "--yes", "-C", str(cli.workspace)],
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (130, f"error: cancelled; {said}\n")
    assert (cli.workspace / "README.md").read_text() == becomes
