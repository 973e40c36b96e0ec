"""An agent's day in an encrypted store: automatic work writes no name in clear, and finds its notes
again."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast import SessionCheckpointer, Workspace
from holdfast.bootstrap.workspace import open_workspace
from holdfast.domain.agent_events import AgentEvent, EventKind, ToolKind
from holdfast.domain.ids import SessionId
from tests.components.git.repositories import commit, git
from tests.support.agent_events import handle
from tests.support.encrypted_stores import files_with, make_encrypted

pytestmark = pytest.mark.requirement("ST-6")

BRANCH, FEATURE, TOOL = "hidden-mainline", "hidden-feature", "mcp__hidden__tool"
SESSION, TITLE, PROMPT, PATH = "hidden-session", "hidden title", "hidden wish", "hidden-file.txt"
NAMES = (BRANCH, FEATURE, TOOL, SESSION, TITLE, PROMPT, PATH)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOLDFAST_KEY_FILE", str(tmp_path / "key"))
    project = tmp_path / "project"
    project.mkdir()
    git(project, "init", "-q", "-b", BRANCH)
    commit(project, PATH, "one\n")
    git(project, "checkout", "-qb", FEATURE)
    commit(project, "feature.txt", "new\n")
    git(project, "checkout", "-q", BRANCH)
    return project


def _call(project: Path, use: str, *, after: bool = False, shell: bool = False) -> AgentEvent:
    return AgentEvent(
        "claude-code",
        "PostToolUse" if after else "PreToolUse",
        EventKind.AFTER_TOOL if after else EventKind.BEFORE_TOOL,
        session=SESSION,
        tool="Bash" if shell else TOOL,
        tool_kind=ToolKind.SHELL if shell else ToolKind.EDIT,
        command=f"git merge {FEATURE}" if shell else "",
        paths=() if shell else (str(project / PATH),),
        tool_use_id=use,
        cwd=str(project),
    )


def _found(home: Path) -> dict[str, set[str]]:
    """Which files show each of the names."""
    found: dict[str, set[str]] = {name: set() for name in NAMES}
    for path, needle in files_with(home, *(name.encode() for name in NAMES)):
        found[needle.decode()].add(Path(path).name)
    return found


def _work(project: Path, home: Path) -> list[dict[str, set[str]]]:
    """A day; what the files show while a tool runs, and at the end."""
    with Workspace(project) as workspace:
        workspace.settings.set("auto_merge", [BRANCH])
    prompt = AgentEvent(
        "claude-code",
        "UserPromptSubmit",
        EventKind.MESSAGE,
        session=SESSION,
        prompt=PROMPT,
        cwd=str(project),
    )
    handle(prompt)
    edit = _call(project, "t1")
    handle(edit)
    handle(edit)  # as when two settings files name the hook
    during = _found(home)
    (project / PATH).write_text("two\n")
    handle(_call(project, "t1", after=True))
    handle(_call(project, "t2", shell=True))
    git(project, "add", "-A")
    git(project, "commit", "-qm", "two")
    git(project, "merge", "-q", "--no-edit", FEATURE)
    handle(_call(project, "t2", after=True, shell=True))
    handle(_call(project, "t3"))
    with SessionCheckpointer(project, SESSION) as session:
        session.add_message("user", PROMPT)
        session.checkpoint("by hand", name=PATH)
        session.restore("HEAD~1")
        session.undo()
        session.search(PROMPT)
    with Workspace(project) as workspace:
        workspace.sessions.rename(SessionId(SESSION), TITLE)
        assert list(workspace.events())
    return [during, _found(home)]


def test_an_encrypted_store_shows_no_name_of_the_work_in_it(
    project: Path, tmp_path: Path, holdfast_home: Path
) -> None:
    make_encrypted(project, tmp_path / "key")
    assert _work(project, holdfast_home) == [{name: set() for name in NAMES}] * 2
    with open_workspace(project, create=False) as opened:
        vault = opened.engine.vault
        assert {call.tool for call in vault.tool_log.calls()} == {TOOL, "Bash"}
        assert vault.tool_log.calls()[0].is_end_reported
        kinds = [one.kind.value for one in vault.catalog.history(None)]
        assert kinds.count("merge") == 1
        notes = {"main-branches", "hook-events", "tool-log"}
        opened_names = {
            path.name
            for path in vault.files.files()
            if path.name in notes and any(vault.files.opened_parts(path))
        }
        assert opened_names == notes  # a purge looks into them


def test_a_plain_store_shows_the_names_that_an_encrypted_one_hides(
    project: Path, holdfast_home: Path
) -> None:
    """The search of the test above finds what there is to find."""
    SessionCheckpointer(project, SESSION).close()
    open_workspace(project, create=True).close()
    during, after = _work(project, holdfast_home)
    assert BRANCH in after
    assert "main-branches" in after[BRANCH]
    assert "tool-log" in after[TOOL]
    assert any(len(name) == 32 for name in during[TOOL])  # in running-tools
    assert all(after.values())
