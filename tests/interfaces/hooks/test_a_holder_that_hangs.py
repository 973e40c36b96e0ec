"""A process that holds the store and hangs costs an agent a moment, and is named."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from holdfast import SessionCheckpointer
from holdfast.adapters.local import store_lock
from holdfast.tools import ToolHandlers
from tests.interfaces.cli.command_line import CommandLine
from tests.support.daemon_calls import logged_checkpoints, tool_call
from tests.support.daemons import daemon_here
from tests.support.hook_process import call_hook

HOLD = """
import sys
from pathlib import Path
from holdfast.bootstrap.workspace import open_workspace
with open_workspace(Path(sys.argv[1]), create=False) as opened, opened.store.hold():
    print("held", flush=True)
    sys.stdin.read()
"""


@contextmanager
def stopped_holder(project: Path) -> Iterator[int]:
    """A process that has the store, and was stopped; goes on and ends with the block."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(project)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdin is not None
        assert holder.stdout.readline() == b"held\n"
        holder.send_signal(signal.SIGSTOP)
        try:
            yield holder.pid
        finally:
            holder.send_signal(signal.SIGCONT)
            holder.stdin.close()


def hook_answer(project: Path, use: str) -> str:
    answer = call_hook("claude-code", tool_call(project, use), project)
    assert (answer.status, answer.err) == (0, "")
    return json.dumps(answer.json)


@pytest.mark.requirement("HK-2", "HK-7")
@pytest.mark.parametrize("through", ["the hook alone", "the daemon"])
def test_the_hook_goes_on_says_why_and_saves_with_the_next_event(
    project: Path,
    cli: CommandLine,
    runtime: Path,
    patience: None,
    monkeypatch: pytest.MonkeyPatch,
    through: str,
) -> None:
    with contextlib.ExitStack() as ended:
        if through == "the daemon":
            ended.enter_context(daemon_here())
        else:
            monkeypatch.setenv("HOLDFAST_DAEMON", "off")
            monkeypatch.setenv("HOLDFAST_HOOK_LOCK_TIMEOUT", "0.5")
        hook_answer(project, "t1")
        before = len(logged_checkpoints(cli))
        (project / "src" / "app.py").write_text("price = 3\n")
        with stopped_holder(project) as number:
            said = hook_answer(project, "t2")
            assert f"process {number}" in said
            assert "makes no progress" in said
            assert hook_answer(project, "t3") == "{}", "once is enough"
        assert len(logged_checkpoints(cli)) == before
        reasons = {entry["reason"] for entry in cli.json("status")["unprotected"]}
        assert all("makes no progress" in reason for reason in reasons)
        assert "protects this session again" in hook_answer(project, "t4")
        assert len(logged_checkpoints(cli)) == before + 1


@pytest.mark.requirement("CL-3", "MC-1")
def test_people_and_tools_do_not_wait_for_a_stopped_process_either(
    project: Path, cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_DAEMON", "off")
    monkeypatch.setattr(store_lock, "_STOPPED_S", 0.2)
    cli.save("first")
    with SessionCheckpointer(project, "tools") as session, stopped_holder(project) as number:
        for arguments in (("status",), ("checkpoint", "why"), ("undo", "--yes")):
            answer = cli(*arguments)
            assert (answer.status, "makes no progress" in answer.err) == (8, True)
            assert f"kill {number}" in answer.err
        answered = ToolHandlers(session).call("checkpoint_create", {"reasoning": "why"})
        assert "makes no progress" in answered.output
