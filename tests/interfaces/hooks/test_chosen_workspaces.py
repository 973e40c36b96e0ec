"""Which directory becomes the workspace of an agent: its repository, its project, or its own."""

from __future__ import annotations

import fcntl
import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.interfaces.cli.command_line import CommandLine
from tests.support import forked_commands
from tests.support.daemon_calls import tool_call
from tests.support.hook_process import HookAnswer
from tests.support.hooks_here import call_hook

pytestmark = pytest.mark.requirement("CP-16")


def git(place: Path, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=place, check=True, capture_output=True)


def fill(path: Path, text: str = "1\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def repository(place: Path) -> Path:
    fill(place / "code.py")
    git(place, "init", "-q")
    git(place, "add", "-A")
    git(place, "commit", "-qm", "begin")
    return place


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the user's projects are."""
    place = tmp_path / "ada"
    place.mkdir()
    monkeypatch.setenv("HOME", str(place))
    return place


def opened_on(
    place: Path,
    command: str = "make",
    *,
    standing: Path | None = None,
    hook: Callable[..., HookAnswer] = call_hook,
) -> HookAnswer:
    """The answer to an agent that was opened on a directory, and is about to run a command."""
    standing = standing or place
    event: dict[str, Any] = tool_call(standing, f"t-{command}-{standing}", command)
    answer = hook("claude-code", event, standing, environment={"CLAUDE_PROJECT_DIR": str(place)})
    assert (answer.status, answer.err) == (0, "")
    return answer


def context_of(answer: HookAnswer) -> str:
    return json.dumps(answer.json)


def saved_in(place: Path) -> set[str]:
    """What the newest checkpoint of the agent holds, in the workspace that a directory is in."""
    entries = CommandLine(place).json("show", "HEAD", "--session", "s1", "--files")["entries"]
    return {entry["path"] for entry in entries}


def workspace_of(place: Path) -> str:
    return str(CommandLine(place).json("status")["workspace"])


@pytest.mark.requirement("AU-1")
def test_an_agent_opened_on_a_package_is_protected_in_the_whole_repository(home: Path) -> None:
    """What `git reset --hard && git clean -fd :/` reaches is in the checkpoint before it."""
    mono = repository(home / "mono")
    fill(mono / "packages/app/main.py")
    shared = fill(mono / "packages/shared/draft.py", "not committed\n")
    opened_on(mono / "packages/app", "git reset --hard && git clean -fd :/")
    git(mono, "clean", "-qfd")
    assert not shared.exists()
    cli = CommandLine(mono / "packages/app")
    assert cli.json("status")["workspace"] == str(mono)
    cli.json("restore", "HEAD", "--session", "s1", "--yes")
    assert shared.read_text() == "not committed\n"
    assert not (mono / "packages/app/.holdfast").exists()


def test_a_part_of_a_repository_that_has_a_store_of_its_own_keeps_it(home: Path) -> None:
    mono = repository(home / "mono")
    fill(mono / "packages/app/main.py")
    app = CommandLine(mono / "packages/app")
    assert f"part of the repository {mono}" in app("init").out
    opened_on(mono / "packages/app")
    assert saved_in(mono / "packages/app") == {"main.py"}


@pytest.mark.requirement("GT-5")
@pytest.mark.parametrize("opened", ["the project", "the worktree"])
def test_a_worktree_inside_the_project_is_a_workspace_of_its_own(home: Path, opened: str) -> None:
    project = repository(home / "shop")
    opened_on(project)
    git(project, "worktree", "add", "-q", ".claude/worktrees/b")
    worktree = project / ".claude/worktrees/b"
    draft = fill(worktree / "draft.py", "not committed\n")
    opened_on(project if opened == "the project" else worktree, "rm draft.py", standing=worktree)
    assert workspace_of(worktree) == str(worktree)
    opened_on(project, "later")
    CommandLine(project).json("restore", "initial", "--session", "s1", "--yes")
    assert draft.read_text() == "not committed\n"
    draft.unlink()
    CommandLine(worktree).json("restore", "HEAD", "--session", "s1", "--yes")
    assert draft.read_text() == "not committed\n"


def test_a_repository_of_dotfiles_does_not_make_the_home_directory_a_workspace(
    home: Path,
) -> None:
    repository(home)
    fill(home / "notes/today.txt")
    opened_on(home / "notes")
    assert saved_in(home / "notes") == {"today.txt"}
    assert not (home / ".holdfast").exists()


@pytest.mark.requirement("ST-3")
def test_an_agent_at_home_makes_no_workspace_of_it(home: Path, holdfast_home: Path) -> None:
    fill(home / "notes.txt")
    told = context_of(opened_on(home))
    assert "is your home directory, not a project" in told
    assert "start the agent in a project directory" in told.lower()
    assert "-C DIR" not in told  # an agent's user gives no options to a hook
    assert "--force" not in told
    assert not (home / ".holdfast").exists()
    assert "is your home directory, not a project" in (holdfast_home / "hooks.log").read_text()


@pytest.mark.parametrize("sign", ["package.json", "go.mod", "shop.sln", "Makefile"])
def test_without_git_the_project_is_known_by_its_signs(home: Path, sign: str) -> None:
    fill(home / "code/shop" / sign)
    fill(home / "code/shop/src/deep/app.py")
    opened_on(home / "code/shop/src/deep")
    assert saved_in(home / "code/shop/src/deep") == {sign, "src/deep/app.py"} | {"src", "src/deep"}
    assert not (home / "code/.holdfast").exists()


def test_a_stray_package_file_does_not_make_all_projects_beside_it_one_workspace(
    home: Path,
) -> None:
    fill(home / "code/package.json")
    repository(home / "code/shop")
    fill(home / "code/notes/today.txt")
    opened_on(home / "code/notes")
    assert saved_in(home / "code/notes") == {"today.txt"}


@pytest.mark.requirement("AU-1")
def test_an_agent_that_was_started_above_its_projects_does_not_make_them_one_workspace(
    home: Path,
) -> None:
    code = home / "code"
    shop, blog = repository(code / "shop"), repository(code / "blog")
    fill(code / "todo.txt")
    first = opened_on(code, "rm todo.txt")
    assert saved_in(code) == {"todo.txt"}
    assert "is not a project" in context_of(first)
    assert opened_on(code, "again").json == {}, "it is told once"
    fill(shop / "draft.py")
    opened_on(code, "rm draft.py", standing=shop)
    assert "draft.py" in saved_in(shop)
    assert workspace_of(shop) == str(shop)
    assert not (blog / ".holdfast").exists()
    skipped = CommandLine(code).json("status", "--skipped")["skipped"]
    reasons = {skip["path"]: skip["reason"] for skip in skipped}
    assert "separate workspace" in reasons["shop"]


@pytest.mark.requirement("AU-1")
@pytest.mark.parametrize("started_in", ["code", "."], ids=["above them", "at home"])
def test_an_edit_is_saved_in_the_project_of_the_file_wherever_the_agent_was_started(
    home: Path, started_in: str
) -> None:
    shop = repository(home / "code/shop")
    draft = fill(shop / "src/draft.py", "not committed\n")
    before = {
        **tool_call(home / started_in, "t1"),
        "tool_name": "Write",
        "tool_input": {"file_path": str(draft), "content": "2\n"},
    }
    after = {**before, "hook_event_name": "PostToolUse", "tool_response": {}}
    environment = {"CLAUDE_PROJECT_DIR": str(home / started_in)}
    for event in (before, after):
        answer = call_hook("claude-code", event, home / started_in, environment=environment)
        assert (answer.status, answer.json) == (0, {})
        draft.write_text("2\n")
    CommandLine(shop).json("restore", "initial", "--session", "s1", "--yes")
    assert draft.read_text() == "not committed\n"


@pytest.mark.requirement("AU-1")
@pytest.mark.parametrize(
    "command",
    ["rm -rf shop/src", "cd shop && git clean -fdx", "git -C shop reset --hard", "rm shop/code.py"],
)
def test_a_command_is_saved_in_the_project_that_it_goes_to(home: Path, command: str) -> None:
    code = home / "code"
    shop = repository(code / "shop")
    repository(code / "blog")
    fill(shop / "src/draft.py", "not committed\n")
    opened_on(code, command)
    assert "src/draft.py" in saved_in(shop)
    assert workspace_of(shop) == str(shop)


@pytest.mark.requirement("CP-13")
@pytest.mark.parametrize(
    "command",
    [
        "rm -rf shop/src blog/src",
        "rm -rf *",
        "find . -name '*.py' -delete",
        "cd shop && rm -r src; cd ../blog && git reset --hard",
        "rm -rf ~/code/shop blog",
    ],
)
def test_a_command_that_reaches_several_projects_is_saved_in_each(home: Path, command: str) -> None:
    code = home / "code"
    projects = [repository(code / "shop"), repository(code / "blog")]
    for project in projects:
        fill(project / "src/draft.py", "not committed\n")
    told = context_of(opened_on(code, command))
    for project in projects:
        assert "src/draft.py" in saved_in(project)
        assert f"holdfast -C {project} undo" in told
        shutil.rmtree(project)
        project.mkdir()
        undone = CommandLine(project)("undo", "--yes")
        assert (undone.status, "not in the checkpoint: .git" in undone.out) == (3, True), undone
        assert (project / "src/draft.py").read_text() == "not committed\n"
    assert "undo" not in context_of(opened_on(code, f"{command} ")), "it is told once"


@pytest.mark.requirement("CP-13", "GT-5")
@pytest.mark.parametrize("rule", ["", ".claude/\n"])
@pytest.mark.parametrize(
    "command",
    [
        "rm -rf .claude",
        "rm -rf .claude/worktrees/b/src",
        "cd .claude/worktrees/b && git reset --hard && git clean -fd",
        "git worktree remove --force .claude/worktrees/b",
        "echo 2 > .claude/worktrees/b/src/draft.py",
    ],
)
def test_a_command_that_reaches_a_worktree_below_is_saved_there_too(
    home: Path, command: str, rule: str
) -> None:
    project = repository(home / "shop")
    fill(project / ".gitignore", rule)
    git(project, "worktree", "add", "-q", ".claude/worktrees/b")
    fill(project / ".claude/worktrees/b/src/draft.py", "not committed\n")
    opened_on(project, command)
    assert "src/draft.py" in saved_in(project / ".claude/worktrees/b")
    assert "code.py" in saved_in(project)


@pytest.mark.requirement("HK-7")
def test_a_project_below_that_cannot_be_saved_is_named(home: Path, holdfast_home: Path) -> None:
    code = home / "code"
    shop, blog = repository(code / "shop"), repository(code / "blog")
    opened_on(blog)
    store = json.loads((blog / ".holdfast/workspace.json").read_text())["id"]
    with open(holdfast_home / "stores" / store / "lock", "rb+") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        command = "rm -rf shop/code.py blog/code.py"
        told = context_of(opened_on(code, command, hook=forked_commands.call_hook))
    assert "could not save everything that this call can change" in told
    assert f"{blog}: " in told
    assert "code.py" in saved_in(shop)


@pytest.mark.requirement("GT-5")
def test_an_edit_in_a_worktree_below_is_saved_there_wherever_the_agent_stands(
    home: Path,
) -> None:
    project = repository(home / "shop")
    opened_on(project)
    git(project, "worktree", "add", "-q", ".claude/worktrees/b")
    draft = fill(project / ".claude/worktrees/b/src/draft.py", "not committed\n")
    event = {
        **tool_call(project, "t1"),
        "tool_name": "Write",
        "tool_input": {"file_path": str(draft), "content": "2\n"},
    }
    call_hook("claude-code", event, project, environment={"CLAUDE_PROJECT_DIR": str(project)})
    assert "src/draft.py" in saved_in(project / ".claude/worktrees/b")


def test_a_command_in_such_a_directory_asks_for_init(home: Path) -> None:
    code = home / "code"
    repository(code / "shop")
    fill(code / "todo.txt")
    cli = CommandLine(code)
    refused = cli("checkpoint", "why")
    assert refused.status == 5
    assert "holdfast init" in refused.err
    assert "separate workspaces and are left out" in cli("init").out
    assert cli.json("checkpoint", "why")["files"] == 1


def test_a_command_in_a_plain_directory_needs_no_init(home: Path) -> None:
    fill(home / "novel/chapter-1.txt")
    assert CommandLine(home / "novel").json("checkpoint", "why")["files"] == 1


@pytest.mark.requirement("CP-11", "CP-1")
def test_the_library_takes_the_directory_that_it_is_given(home: Path) -> None:
    from holdfast import SessionCheckpointer

    sandbox = home / "sandbox"
    repository(sandbox / "checkout")
    with SessionCheckpointer(sandbox, "s") as session:
        session.checkpoint("all of it")
    cli = CommandLine(sandbox)
    shown = cli.json("show", "HEAD", "--session", "s", "--files")
    assert "checkout/code.py" in {entry["path"] for entry in shown["entries"]}
    repository(home / "mono")
    fill(home / "mono/part/file")
    with SessionCheckpointer(home / "mono/part", "s") as session:
        session.checkpoint("just that")
    assert workspace_of(home / "mono/part") == str(home / "mono/part")


@pytest.mark.requirement("AU-1")
def test_an_agent_whose_directory_is_gone_is_protected_in_its_project(home: Path) -> None:
    """Not in the project that the hook's own process happens to be in."""
    shop, other = repository(home / "shop"), repository(home / "other")
    event = tool_call(shop / "src/gone", "t1", "make")
    answer = call_hook("claude-code", event, other)
    assert (answer.status, answer.err) == (0, "")
    assert saved_in(shop) == {"code.py"}
    assert not (other / ".holdfast").exists()
