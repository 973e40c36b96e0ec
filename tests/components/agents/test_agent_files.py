"""What agents keep in files comes back as it was, wherever it lies, and nothing else is touched."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from holdfast.components.agents import restore as restoring
from holdfast.components.agents.component import AgentsComponent
from holdfast.domain.component_states import ComponentState
from holdfast.ports.component import ComponentProblem
from tests.support.agent_desk import Desk
from tests.support.component_runs import ComponentRun


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path, "~/.agent/memory", ".notes/**/*.md")


@pytest.mark.requirement("AG-1")
def test_memory_inside_and_outside_of_the_workspace_comes_back_byte_exact(desk: Desk) -> None:
    desk.write("~/.agent/memory/MEMORY.md", b"first\r\n\xff\x00", 0o600)
    desk.write("~/.agent/memory/topics/deep/a.md", b"a" * 5_000, 0o640)
    desk.write(".notes/2024/plan.md", b"plan")
    (desk.home / ".agent/memory/empty").mkdir(mode=0o750)
    (desk.home / ".agent/memory/latest").symlink_to("MEMORY.md")
    os.utime(desk.place("~/.agent/memory/MEMORY.md"), ns=(1, 1_600_000_000_123_456_789))
    before = desk.tree()
    then = desk.run.captured()

    desk.write("~/.agent/memory/MEMORY.md", b"second", 0o666)
    desk.place("~/.agent/memory/topics/deep/a.md").unlink()
    desk.place("~/.agent/memory/topics/deep").rmdir()
    desk.place("~/.agent/memory/latest").unlink()
    desk.write("~/.agent/memory/latest", b"a file now")
    desk.write("~/.agent/memory/new/b.md", b"new")
    desk.place("~/.agent/memory/empty").rmdir()
    desk.write(".notes/2024/plan.md", b"another plan")
    changed = desk.tree()
    present = desk.run.restore_to(then)

    assert desk.tree() == before
    mtime_ns = desk.place("~/.agent/memory/MEMORY.md").stat().st_mtime_ns
    assert mtime_ns == 1_600_000_000_123_456_789
    desk.run.restore(present, desk.run.captured())
    assert desk.tree() == changed


@pytest.mark.requirement("AG-1")
def test_files_beside_those_that_are_named_are_neither_kept_nor_touched(desk: Desk) -> None:
    desk.write("~/.agent/memory/a.md", b"a")
    desk.write("~/.agent/credentials.json", b"secret")
    desk.write(".notes/2024/plan.txt", b"no markdown")
    then = desk.run.captured()
    desk.write("~/.agent/credentials.json", b"renewed")
    desk.write(".notes/2024/plan.txt", b"changed")
    desk.run.restore_to(then)
    assert desk.place("~/.agent/credentials.json").read_bytes() == b"renewed"
    assert desk.place(".notes/2024/plan.txt").read_bytes() == b"changed"
    assert b"secret" not in b"".join(desk.run.contents(then).of.values())


@pytest.mark.requirement("AG-1")
def test_nothing_is_read_again_when_nothing_changed(desk: Desk) -> None:
    path = desk.write("~/.agent/memory/a.md", b"a")
    then = desk.run.captured()
    assert desk.run.capture(then) is None
    times = path.stat()
    path.write_bytes(b"b")  # the same size, and the same time of change
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert not desk.run.captured(then).same_as(then)


@pytest.mark.requirement("AG-1")
def test_a_file_that_is_too_new_to_be_distinguished_from_a_change_is_read_again(desk: Desk) -> None:
    desk.write("~/.agent/memory/a.md", b"a")
    desk.run.now_ns = time.time_ns()
    then = desk.run.captured()
    again = desk.run.captured(then)
    assert again.same_as(then)


@pytest.mark.requirement("AG-1")
def test_what_was_written_after_the_last_look_is_not_lost(desk: Desk) -> None:
    path = desk.write("~/.agent/memory/a.md", b"first")
    then = desk.run.captured()
    path.write_bytes(b"second")
    present = desk.run.captured()
    path.write_bytes(b"written while the restore began")
    desk.write("~/.agent/memory/new.md", b"new, and nobody has it")
    with pytest.raises(ComponentProblem, match=r"a\.md changed in the meantime.*restore again"):
        desk.run.component.restore(desk.run.request(then, present))
    assert path.read_bytes() == b"written while the restore began"
    assert desk.place("~/.agent/memory/new.md").read_bytes() == b"new, and nobody has it"


@pytest.mark.requirement("AG-1")
def test_a_file_that_changes_between_plan_and_exchange_is_not_lost(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = desk.write("~/.agent/memory/a.md", b"first")
    then = desk.run.captured()
    path.write_bytes(b"second")
    present = desk.run.captured()
    write_file = restoring.AgentFilesRestore._write_file

    def write_and_meddle(self: restoring.AgentFilesRestore, *arguments: Any) -> None:
        write_file(self, *arguments)
        path.write_bytes(b"third")

    monkeypatch.setattr(restoring.AgentFilesRestore, "_write_file", write_and_meddle)
    with pytest.raises(ComponentProblem, match="changed in the meantime"):
        desk.run.component.restore(desk.run.request(then, present))
    assert path.read_bytes() == b"third"
    assert [p.name for p in path.parent.iterdir()] == ["a.md"]


@pytest.mark.requirement("AG-1")
def test_without_knowing_what_is_there_nothing_is_replaced_or_removed(desk: Desk) -> None:
    desk.write("~/.agent/memory/a.md", b"first")
    desk.write("~/.agent/memory/gone.md", b"gone")
    then = desk.run.captured()
    desk.place("~/.agent/memory/gone.md").unlink()
    desk.run.component.restore(desk.run.request(then, None))
    assert desk.place("~/.agent/memory/gone.md").read_bytes() == b"gone"
    desk.write("~/.agent/memory/a.md", b"second")
    with pytest.raises(ComponentProblem, match="changed in the meantime"):
        desk.run.component.restore(desk.run.request(then, None))
    assert desk.place("~/.agent/memory/a.md").read_bytes() == b"second"


@pytest.mark.requirement("AG-1")
def test_a_link_in_the_way_is_named_and_never_followed(desk: Desk) -> None:
    elsewhere = desk.home / "dotfiles"
    (elsewhere / "memory").mkdir(parents=True)
    (elsewhere / "memory/a.md").write_bytes(b"behind a link")
    (desk.home / ".agent").symlink_to(elsewhere)
    state = desk.run.captured()
    assert state.facts["files"] == 0
    assert "~/.agent is a link, and links are not followed" in state.facts["left_out"][0]
    assert any("is a link" in line for line in desk.run.component.describe(state))


@pytest.mark.requirement("AG-1")
def test_a_directory_exchanged_for_a_link_does_not_lead_a_restore_away(desk: Desk) -> None:
    desk.write("~/.agent/memory/a.md", b"first")
    then = desk.run.captured()
    victim = desk.home / "victim"
    victim.mkdir()
    (victim / "a.md").write_bytes(b"first but not ours")
    desk.place("~/.agent/memory/a.md").unlink()
    desk.place("~/.agent/memory").rmdir()
    desk.place("~/.agent/memory").symlink_to(victim)
    present = desk.run.captured()
    desk.run.restore(then, present)
    assert (victim / "a.md").read_bytes() == b"first but not ours"
    assert desk.place("~/.agent/memory").is_dir()
    assert not desk.place("~/.agent/memory").is_symlink()
    assert desk.place("~/.agent/memory/a.md").read_bytes() == b"first"


@pytest.mark.requirement("AG-1")
@pytest.mark.parametrize(
    "path",
    ["../outside", ".agent/memory/../../outside", "/etc/passwd", "", ".agent//memory", ".git/x"],
)
def test_a_place_that_no_capture_would_have_made_is_refused(desk: Desk, path: str) -> None:
    desk.write("~/.agent/memory/a.md", b"a")
    then = desk.run.captured()
    forged = desk.run.altered(then, "index", f'[["home", "{path}", "file", 420, 0]]'.encode())
    before = desk.tree()
    with pytest.raises(ComponentProblem, match="unusable"):
        desk.run.component.restore(desk.run.request(forged, then))
    assert desk.tree() == before


@pytest.mark.requirement("AG-1")
def test_a_place_that_is_no_longer_named_is_left_alone_and_said(desk: Desk) -> None:
    desk.write("~/.agent/memory/a.md", b"first")
    then = desk.run.captured()
    contents = desk.run.contents(then)
    desk.choose(".notes")
    desk.run.kept[id(then)] = contents
    desk.write("~/.agent/memory/a.md", b"second")
    preview = desk.run.plan(then, desk.run.captured())
    assert preview.actions == ()
    assert "2 paths not restored" in preview.warnings[0]
    assert "~/.agent/memory/a.md" in preview.warnings[0]
    desk.run.restore(then, desk.run.captured())
    assert desk.place("~/.agent/memory/a.md").read_bytes() == b"second"


@pytest.mark.requirement("AG-1")
def test_what_cannot_be_read_is_a_problem_with_its_reason(
    desk: Desk, ordinary_permissions: None
) -> None:
    desk.write("~/.agent/memory/open.md", b"open")
    desk.write("~/.agent/memory/closed.md", b"closed", 0o000)
    os.mkfifo(desk.home / ".agent/memory/pipe")
    state = desk.run.captured()
    assert state.facts["files"] == 1
    assert state.problems == ("~/.agent/memory/closed.md: Permission denied",)
    assert state.facts["left_out"] == [
        "~/.agent/memory/pipe is not a regular file and is not saved"
    ]


@pytest.mark.requirement("AG-1")
def test_stores_and_git_data_are_passed_over_whatever_a_pattern_says(tmp_path: Path) -> None:
    desk = Desk(tmp_path, "~/data", "**")
    desk.write("~/data/holdfast/stores/x/catalog.db", b"catalog")
    desk.write("~/data/mine.md", b"mine")
    desk.write(".git/config", b"config")
    desk.write("a.md", b"a")
    component = AgentsComponent(
        ["~/data", "**"],
        {"HOME": str(desk.home)},
        desk.given,
        stores=desk.home / "data" / "holdfast",
    )
    state = ComponentRun(component, desk.workspace, time.time_ns()).captured()
    assert state.facts["files"] == 2
    assert state.facts["left_out"] == [
        "~/data/holdfast contains Holdfast's own stores and is not saved"
    ]


@pytest.mark.requirement("AG-1")
def test_a_preview_names_every_file_and_the_agents_that_are_at_work(desk: Desk) -> None:
    desk.write("~/.agent/memory/a.md", b"first")
    desk.given.replace({"refactor": {"main": {"memory": 1}}})
    then = desk.run.captured()
    desk.write("~/.agent/memory/a.md", b"second")
    desk.write("~/.agent/memory/b.md", b"new")
    desk.given.replace({"refactor": {"main": {"memory": 2}}})
    desk.sessions.append("refactor (claude-code)")
    before = desk.tree()
    preview = desk.run.plan(then, desk.run.captured())
    assert preview.actions == (
        "write ~/.agent/memory/a.md",
        "remove ~/.agent/memory/b.md",
        "restore the state of agent main in session refactor",
    )
    assert any("refactor (claude-code) is still open" in text for text in preview.warnings)
    assert desk.tree() == before
    assert desk.run.plan(desk.run.captured(), desk.run.captured()).actions == ()


@pytest.mark.requirement("AG-1")
def test_a_process_of_an_agent_in_the_workspace_is_reported(desk: Desk, tmp_path: Path) -> None:
    desk.write("~/.agent/memory/a.md", b"first")
    then = desk.run.captured()
    desk.write("~/.agent/memory/a.md", b"second")
    program = tmp_path / "codex"
    program.symlink_to("/bin/cat")
    pipe = subprocess.PIPE
    with subprocess.Popen([program], cwd=desk.workspace, stdin=pipe, stdout=pipe) as agent:
        assert agent.stdin is not None
        assert agent.stdout is not None
        agent.stdin.write(b"are you there?\n")
        agent.stdin.flush()
        assert agent.stdout.readline() == b"are you there?\n"
        warnings = desk.run.plan(then, desk.run.captured()).warnings
        agent.stdin.close()
    assert [text for text in warnings if f"codex is running here (process {agent.pid})" in text]


@pytest.mark.requirement("AG-1")
def test_states_given_by_agents_come_back_with_the_files(desk: Desk) -> None:
    desk.given.replace({"one": {"a": {"memory": ["x"]}}, "two": {"b": {"n": 1.5}}})
    then = desk.run.captured()
    assert list(desk.run.component.describe(then)) == ["2 agents: a (one), b (two)"]
    desk.given.replace({"one": {"c": {}}})
    present = desk.run.restore_to(then)
    assert desk.given.load() == {"one": {"a": {"memory": ["x"]}}, "two": {"b": {"n": 1.5}}}
    desk.given.replace({"one": {"given": {"while": "restoring"}}})
    with pytest.raises(ComponentProblem, match="a new state in the meantime"):
        desk.run.component.restore(desk.run.request(then, present))
    assert desk.given.load() == {"one": {"given": {"while": "restoring"}}}


def test_the_state_of_no_agents_applies_to_nothing(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    assert not desk.run.component.applies(desk.workspace)
    desk.given.replace({"s": {"a": {}}})
    assert desk.run.component.applies(desk.workspace)


def test_a_forged_file_is_not_written_where_its_content_is_missing(desk: Desk) -> None:
    desk.write("~/.agent/memory/a.md", b"a")
    then = desk.run.captured()
    forged = desk.run.altered(
        then, "index", b'[["home", ".agent/memory/other.md", "file", 420, 0]]'
    )
    with pytest.raises(ComponentProblem, match="is missing from the checkpoint"):
        desk.run.component.restore(desk.run.request(forged, ComponentState("agents")))
