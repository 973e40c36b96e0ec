"""A process that holds the store and hangs costs an agent a moment, and is named."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.interfaces.cli.command_line import CommandLine
from tests.interfaces.hooks.daemon_calls import told, tool_call
from tests.interfaces.hooks.hook_process import call_hook

HOLD = """
import sys
from pathlib import Path
from holdfast.bootstrap import open_workspace
with open_workspace(Path(sys.argv[1]), create=False) as opened, opened.store.exclusive():
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.mark.requirement("HK-2", "HK-7")
def test_the_hook_goes_on_says_why_and_saves_with_the_next_event(
    project: Path, cli: CommandLine
) -> None:
    call_hook("claude-code", tool_call(project, "t1"), project)
    before = len(told(cli))
    (project / "src" / "app.py").write_text("price = 3\n")
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(project)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdin is not None
        assert holder.stdout.readline() == b"held\n"
        holder.send_signal(signal.SIGSTOP)
        answer = call_hook("claude-code", tool_call(project, "t2"), project)
        assert (answer.status, answer.err) == (0, "")
        holder.send_signal(signal.SIGCONT)
        holder.stdin.close()
    assert len(told(cli)) == before
    (entry,) = cli.json("status")["unprotected"]
    assert f"process {holder.pid}" in entry["reason"]
    assert "makes no progress" in entry["reason"]
    call_hook("claude-code", tool_call(project, "t3"), project)
    assert len(told(cli)) == before + 1
