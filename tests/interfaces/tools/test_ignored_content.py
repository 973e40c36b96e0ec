"""Tools and their protocol withhold the content of ignored files, whether captured or not."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from holdfast import SessionCheckpointer
from holdfast.domain.errors import Refused
from holdfast.tools import ToolHandlers
from tests.behind_the_api import engine_of
from tests.support.composition import configure
from tests.support.hostile_trees import fill

pytestmark = pytest.mark.requirement("CP-14")

SECRET = b"TOKEN=hunter2\n"


@pytest.fixture
def workspace(workspace: Path) -> Path:
    fill(workspace / ".gitignore", b".env\nsecrets/\n")
    fill(workspace / ".env", SECRET)
    fill(workspace / "secrets/key", SECRET)
    return workspace


def _name(session: SessionCheckpointer, *paths: bytes) -> None:
    vault = engine_of(session).vault
    with vault.lock.hold():
        vault.parts.named_paths.replace(paths)


@pytest.mark.parametrize("path", [".env", "secrets/key", ".holdfast/workspace.json"])
def test_why_withholds_a_file_that_is_left_out(
    tools: ToolHandlers, session: SessionCheckpointer, path: str
) -> None:
    tools.call("checkpoint_create", {"reasoning": "begin"})
    answer = tools.call("checkpoint_why", {"path": path})
    assert not answer.success
    assert "hunter2" not in answer.output
    assert "content withheld" in answer.output
    with pytest.raises(Refused, match="left out of checkpoints"):
        session.why(path)


@pytest.mark.parametrize("how", ["named", "included"])
def test_a_captured_file_that_is_ignored_is_withheld_from_every_reader(
    tools: ToolHandlers, session: SessionCheckpointer, workspace: Path, how: str
) -> None:
    if how == "named":
        _name(session, b".env", b"secrets/key")
    else:
        configure(workspace, include=[".env", "secrets/"])
    with SessionCheckpointer(workspace, "agent") as session:
        tools = ToolHandlers(session)
        first = tools.call("checkpoint_create", {"reasoning": "begin"})
        assert first.success
        fill(workspace / ".env", b"TOKEN=hunter3\n")
        fill(workspace / "src/app.py", b"print(2)\n")
        (workspace / "secrets/key").rename(workspace / "key.txt")
        now = tools.call("checkpoint_diff", {"content": True})
        tools.call("checkpoint_create", {"reasoning": "changed"})
        stored = tools.call(
            "checkpoint_diff", {"from_ref": "HEAD~1", "to_ref": "HEAD", "content": True}
        )
        for answer in (now, stored):
            assert answer.success
            assert "modified .env" in answer.output
            assert "content withheld: the file is ignored" in answer.output
            assert "hunter" not in answer.output
            assert "+print(2)" in answer.output
        for ref in (None, "HEAD", "HEAD~1"):
            told = tools.call("checkpoint_why", {"path": ".env", "ref": ref})
            assert not told.success
            assert "hunter" not in told.output
            with pytest.raises(Refused, match="content withheld"):
                session.why(".env", ref=ref)


def test_a_tracked_file_that_a_rule_ignores_is_shown(tools: ToolHandlers, workspace: Path) -> None:
    subprocess.run(("git", "init", "-q"), cwd=workspace, check=True)
    subprocess.run(("git", "add", "-f", "secrets/key"), cwd=workspace, check=True)
    tools.call("checkpoint_create", {"reasoning": "begin"})
    answer = tools.call("checkpoint_why", {"path": "secrets/key"})
    assert answer.success
    assert "TOKEN=hunter2" in answer.output


@pytest.mark.requirement("CP-14", "SE-6")
def test_the_record_of_an_edit_has_nothing_of_an_ignored_file(
    session: SessionCheckpointer, workspace: Path
) -> None:
    session.checkpoint("begin")
    with session.editing([".env", "src/app.py"]) as edit:
        fill(workspace / ".env", b"TOKEN=hunter3\n")
        fill(workspace / "src/app.py", b"print(2)\n")
    diff = session.edit_diff(edit.number)
    assert diff is not None
    assert "hunter" not in diff
    assert "content withheld" in diff
    assert "+print(2)" in diff


def test_a_search_does_not_find_what_an_ignored_file_holds(
    tools: ToolHandlers, session: SessionCheckpointer, workspace: Path
) -> None:
    _name(session, b".env")
    tools.call("checkpoint_create", {"reasoning": "begin"})
    found = tools.call("checkpoint_search", {"query": "hunter2"})
    assert "0" in found.output or "No" in found.output
    assert "TOKEN" not in found.output
