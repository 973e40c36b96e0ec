"""Part 1 again, one floor down: strace kills the command itself at each system call that writes.

Nothing of ours stands between the command and the kernel here, so that this also hits what passes
neither the file system port nor SQLite's own layer. It needs strace, and is part of `make torture`.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.torture.acts import Act, small_act
from tests.torture.campaign import ROOT, Campaign, Case, Scenario
from tests.torture.scenes import SESSION, problems

CHANGING = (
    "write pwrite64 fsync fdatasync ftruncate rename renameat renameat2 unlink unlinkat rmdir mkdir"
    " mkdirat link linkat symlink symlinkat chmod fchmod fchmodat utimensat flock"
).split()


def _run(act: Act, *strace: str) -> int:
    """The command under strace; its exit status."""
    words = ["checkpoint", "why"] if act.action == "save" else ["restore", act.argument, "--yes"]
    words += ["--git", act.git] if act.git and act.action == "restore" else []
    python = [sys.executable, "-m", "holdfast", "-C", str(act.scene.project)]
    environment = {
        **os.environ,
        "HOLDFAST_HOME": str(act.scene.home),
        "PYTHONPATH": str(ROOT / "src"),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    # The filter lets every call that is not asked for pass without a stop.
    traced = ["strace", "-f", "--seccomp-bpf", "-qq", *strace]
    command = [*traced, *python, "--session", SESSION, *words]
    return subprocess.run(command, env=environment, capture_output=True).returncode


def system_calls(act: Act, log: Path) -> list[tuple[str, int]]:
    """Every invocation of every call that changes something."""
    assert shutil.which("strace"), "this campaign needs strace: install it"
    act.scene.reset()
    assert _run(act, "-e", "trace=?" + ",?".join(CHANGING), "-o", str(log)) == 0
    names = re.findall(r"^(?:\d+ +)?([a-z0-9]+)\(", log.read_text(), re.MULTILINE)
    made = Counter(names)
    return [(name, number) for name in sorted(made) for number in range(1, made[name] + 1)]


def killed_command(act: Act, name: str, number: int, log: Path) -> int:
    """The exit status of the command, of which the process that makes this call dies there."""
    inject = f"inject={name}:signal=KILL:when={number}"
    return _run(act, "-e", f"trace={name}", "-e", inject, "-o", str(log))


def _kill_at_each(campaign: Campaign, scenario: Scenario, act: Act, log: Path) -> None:
    points = system_calls(act, log)

    def case(case: Case) -> None:
        name, number = points[case.number]
        act.scene.reset()
        status = killed_command(act, name, number, log)
        known, trees = act.acknowledged("done" if status == 0 and act.action != "save" else None)
        wrong = problems(act.scene.project, act.scene.home, known, trees)
        assert not wrong, "\n".join([f"{name} number {number}, status {status}", *wrong])

    campaign.run(
        scenario,
        case,
        slice_cases=0,
        space=len(points),
        covered="every system call that changes something",
        most_cases=len(points),
    )


@pytest.mark.torture
@pytest.mark.torture_share(2)
@pytest.mark.requirement("RL-1")
def test_a_checkpoint_command_killed_at_every_system_call(
    long_campaign: Campaign, quick_disk: Path
) -> None:
    title = "`holdfast checkpoint`, at every system call that changes something"
    scenario = Scenario(1, "strace-save", title)
    _kill_at_each(long_campaign, scenario, small_act(quick_disk, "save"), quick_disk / "log")


@pytest.mark.torture
@pytest.mark.torture_share(2)
@pytest.mark.requirement("RL-1", "RL-2")
def test_a_restore_command_killed_at_every_system_call(
    long_campaign: Campaign, quick_disk: Path
) -> None:
    title = "`holdfast restore`, at every system call that changes something"
    scenario = Scenario(1, "strace-restore", title)
    _kill_at_each(long_campaign, scenario, small_act(quick_disk, "restore"), quick_disk / "log")
