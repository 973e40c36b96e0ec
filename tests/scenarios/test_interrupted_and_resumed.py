"""Interrupted, resumed at the last checkpoint: an agent dies in the middle of its work."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast import start_session

AGENT = """
import os, signal, sys
from pathlib import Path
from holdfast import start_session
project = Path(sys.argv[1])
session = start_session(project, "nightly", agent="my-agent")
for step in range(1, 4):
    session.add_message("assistant", f"step {step}")
    (project / "work.txt").write_text(f"step {step} done")
    session.checkpoint(f"step {step}")
(project / "work.txt").write_text("half of step 4")
(project / "scratch.txt").write_text("garbage")
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.requirement("SE-1", "SE-2", "RL-1")
def test_interrupted_resumed_at_the_last_checkpoint(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    child = subprocess.run([sys.executable, "-c", AGENT, str(project)], check=False)
    assert child.returncode == -signal.SIGKILL

    # Another process takes the session over: the one that held it is gone.
    with start_session(project, "nightly", agent="my-agent") as session:
        assert [m.content for m in session.messages()] == ["step 1", "step 2", "step 3"]
        assert session.checkpoint_count == 4
        assert session.restore("HEAD") == 2
        assert (project / "work.txt").read_text() == "step 3 done"
        assert not (project / "scratch.txt").exists()
        # Nothing that was said is lost: the last checkpoint came after the last message.
        assert all(m.rolled_back_by is None for m in session.messages())
        session.add_message("assistant", "resumed after step 3")
        (project / "work.txt").write_text("step 4 done")
        session.checkpoint("step 4")
        assert session.end().status == "ended"
