"""`holdfast restore --git`: asked before, reported after, undone by undo."""

from __future__ import annotations

import json

import pytest

from tests.components.git.repositories import git
from tests.interfaces.cli.command_line import CommandLine


@pytest.mark.requirement("CL-5", "GT-2")
def test_the_command_line_asks_before_git_changes_and_tells_what_became_of_it(
    cli: CommandLine,
) -> None:
    place = cli.workspace
    git(place, "init", "-q", "-b", "main")
    git(place, "add", "-A")
    git(place, "commit", "-qm", "one")
    cli.json("checkpoint", "before", "--name", "before")
    git(place, "commit", "-q", "--allow-empty", "-m", "two")
    planned = cli.json("restore", "before", "--git", "exact", "--dry-run")
    (step,) = planned["components"]
    assert (step["name"], step["mode"], step["blocked"]) == ("git", "exact", [])
    assert any("1 commit leaves main" in line for line in step["actions"])
    refused = cli("restore", "before", "--git", "exact")
    assert refused.status == 5
    assert git(place, "log", "-1", "--format=%s") == "two\n"
    done = cli.json("restore", "before", "--git", "exact", "--yes")
    assert done["components"] == [{"name": "git", "mode": "exact", "status": "restored"}]
    assert git(place, "log", "-1", "--format=%s") == "one\n"
    cli.json("undo", "--yes")
    assert git(place, "log", "-1", "--format=%s") == "two\n"
    assert "main@" in cli("show", "before").out
    components = cli.json("show", "before")["components"]
    (shown,) = [one for one in components if one["name"] == "git"]
    assert shown["facts"]["head"]["ref"] == "refs/heads/main"
    cli.json("restore", "before", "--with", "git", "--yes")
    assert git(place, "log", "-1", "--format=%s") == "one\n"
    cli.json("undo", "--yes")
    cli.json("restore", "before", "--with", "git", "--without", "git", "--yes")
    assert git(place, "log", "-1", "--format=%s") == "two\n"
    wrong = cli("restore", "before", "README.md", "--git", "exact", "--json")
    assert wrong.status == 2
    assert "whole checkpoint" in json.loads(wrong.err)["error"]["message"]
    (place / ".git/HEAD").write_text("garbage\n")
    broken = cli("checkpoint", "in trouble", "--json")
    assert broken.status == 3
    assert json.loads(broken.out)["degraded"][0].startswith("git: the repository is damaged")


@pytest.mark.requirement("GT-1", "CL-5")
def test_deleted_references_are_listed_and_brought_back_by_name(cli: CommandLine) -> None:
    place = cli.workspace
    git(place, "init", "-q", "-b", "main")
    git(place, "add", "-A")
    git(place, "commit", "-qm", "one")
    git(place, "branch", "idea")
    git(place, "tag", "keepme")
    (place / "README.md").write_text("stashed\n")
    git(place, "add", "README.md")
    git(place, "stash", "push", "-q")
    cli.json("checkpoint", "before", "--name", "before")
    git(place, "stash", "clear")
    git(place, "branch", "-D", "idea")
    git(place, "tag", "-d", "keepme")
    shown = cli("restore", "before", "--git", "exact", "--yes")
    assert "branch idea is gone, tag keepme is gone, 1 stash entry is gone" in shown.err
    assert "--refs all" in shown.err
    gone = "branch idea is gone, tag keepme is gone, 1 stash entry is gone"
    assert "✓ git: already up to date\n" not in shown.out
    git(place, "commit", "-qm", "two", "--allow-empty")
    shown = cli("restore", "before", "--git", "exact", "--yes")
    assert f"✓ git: restored (exact), except: {gone}\n" in shown.out
    (place / "README.md").write_text("changed\n")
    shown = cli("restore", "before", "--git", "exact", "--yes")
    assert f"✓ git: already up to date, except: {gone}\n" in shown.out
    refused = cli("restore", "before", "--refs", "nothing-of-that-name", "--yes")
    assert refused.status == 5
    assert "nothing-of-that-name" in refused.err
    shown = cli("restore", "before", "--refs", "idea", "--refs", "stash", "--yes")
    assert shown.status == 0
    assert "✓ git: restored (refs: idea stash)\n" in shown.out
    assert "idea" in git(place, "branch")
    assert git(place, "stash", "list").startswith("stash@{0}: WIP on main")
    assert git(place, "tag") == ""
    assert cli("restore", "before", "--git", "exact", "--refs", "all", "--yes").status == 0
    assert git(place, "tag") == "keepme\n"


@pytest.mark.requirement("GT-1", "CL-8")
def test_branch_commit_and_dirty_files_are_shown_with_a_checkpoint(cli: CommandLine) -> None:
    place = cli.workspace
    git(place, "init", "-q", "-b", "main")
    git(place, "add", "-A")
    git(place, "commit", "-qm", "one")
    commit = git(place, "rev-parse", "HEAD").strip()
    cli.json("checkpoint", "nothing changed")
    (place / "README.md").write_text("changed\n")
    made = cli.json("checkpoint", "one file changed")
    told = {"branch": "main", "commit": commit, "dirty": 1, "dirty_files": ["README.md"]}
    assert made["git"] == told | {"staged_files": []}
    git(place, "add", "README.md")
    told |= {"staged_files": ["README.md"]}
    assert cli.json("checkpoint", "the same, staged")["git"] == told
    assert cli.json("show", "HEAD")["git"] == told
    shown = cli.json("log")
    assert [one["git"]["dirty"] for one in shown] == [1, 1, 0]
    assert f"main@{commit[:7]}, 1 dirty" in cli("show", "HEAD").out
    before = cli("show", "HEAD~2").out
    assert f"main@{commit[:7]}" in before
    assert " dirty" not in before


@pytest.mark.requirement("GT-1", "RB-13", "CL-5")
def test_references_that_stay_gone_are_named_with_the_command_that_brings_them_back(
    cli: CommandLine,
) -> None:
    place = cli.workspace
    git(place, "init", "-q", "-b", "main")
    git(place, "add", "-A")
    git(place, "commit", "-qm", "one")
    git(place, "branch", "idea")
    (place / "README.md").write_text("stashed\n")
    git(place, "stash", "push", "-q")
    saved = cli.save("before")
    git(place, "stash", "clear")
    git(place, "branch", "-D", "idea")
    (place / "src" / "app.py").unlink()
    command = f"holdfast restore {saved[:10]} --refs all"
    line = f"  git: branch idea is gone, 1 stash entry is gone; to restore them: {command}"
    for typed in (("restore", saved, "--dry-run"), ("undo", "--dry-run"), ("undo", "--yes")):
        assert line in cli(*typed).out.splitlines()
    assert cli(*command.split()[1:], "--yes").status == 0
    assert "idea" in git(place, "branch")
    assert "to restore them" not in cli("restore", saved, "--dry-run").out


@pytest.mark.requirement("GT-7", "RB-13")
def test_an_undo_names_the_command_that_restores_git(cli: CommandLine) -> None:
    place = cli.workspace
    git(place, "init", "-q", "-b", "main")
    git(place, "add", "-A")
    git(place, "commit", "-qm", "one")
    saved = cli.save("before")
    git(place, "checkout", "-q", "-b", "other")
    (place / "src" / "app.py").unlink()
    shown = cli("undo", "--dry-run")
    assert f"holdfast restore {saved[:10]} --git exact also restores git" in shown.err
    assert "--git branch" not in shown.err


@pytest.mark.requirement("GT-2", "GT-5")
def test_a_component_that_had_nothing_to_do_is_not_said_to_be_restored(cli: CommandLine) -> None:
    place = cli.workspace
    git(place, "init", "-q", "-b", "main")
    git(place, "add", "-A")
    git(place, "commit", "-qm", "one")
    git(place, "worktree", "add", "-q", str(place.parent / "beside"))
    cli.json("checkpoint", "before", "--name", "before")
    (place / "README.md").write_text("changed\n")
    assert "worktrees" not in cli("restore", "before", "--yes").out
    said = cli("restore", "before", "--git", "exact", "--yes").out
    assert "✓ git: already up to date" in said
    assert "git: restored" not in said
    git(place, "worktree", "remove", "--force", str(place.parent / "beside"))
    assert "✓ worktrees: restored (missing only)" in cli("restore", "before", "--yes").out
