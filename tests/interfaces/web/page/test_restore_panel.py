"""What a restore would do, before it does anything: authors, database rows, untouched files."""

from __future__ import annotations

import os
import re
import sqlite3
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from tests.interfaces.web.page.conftest import Tabs
from tests.interfaces.web.page.sample_session import SampleSession
from tests.interfaces.web.page.server_process import ServerProcess, serving
from tests.support.hostile_trees import fill

pytestmark = [pytest.mark.requirement("WB-3", "RB-8"), pytest.mark.in_memory]

OTHER = "the-other-agent"


@pytest.fixture
def agent(tmp_path: Path) -> SampleSession:
    agent = SampleSession(tmp_path, os.environ)
    agent.make_project()
    agent.event("SessionStart", source="startup")
    agent.prompt("Tidy up")
    return agent


@pytest.fixture
def server(agent: SampleSession) -> Iterator[ServerProcess]:
    with serving(agent.project, agent.environment) as server:
        yield server


def saved(page: Page, path: str) -> None:
    """Hooks save after an edit in the background."""
    expect(page.locator("a.row", has_text=f"Wrote {path}")).to_be_visible()


def opened_panel(page: Page) -> Locator:
    page.locator("a.row", has_text="Session started").click()
    page.get_by_role("button", name="Restore this moment…").click()
    return page.get_by_role("dialog")


def step(panel: Locator, name: str) -> Locator:
    return panel.locator(".steps li", has_text=name)


def test_each_file_names_who_changed_it_last(
    new_tab: Tabs, server: ServerProcess, agent: SampleSession, tmp_path: Path
) -> None:
    other = SampleSession(tmp_path, agent.environment, OTHER)
    page = new_tab(server).open_session()
    agent.write("src/auth/tokens.py", "class Token:\n    by_the_agent = True\n")
    saved(page, "src/auth/tokens.py")
    fill(agent.project / "README.md", b"# Mine\n")
    agent.write("docs/guide.md", "# Guide\n")
    saved(page, "docs/guide.md")
    other.event("SessionStart", source="startup")
    other.write("src/auth/middleware.py", "# by another agent\n")
    saved(new_tab(server).open_session(session=OTHER), "src/auth/middleware.py")
    fill(agent.project / "tests/auth/test_refresh.py", b"# not saved yet\n")
    panel = opened_panel(page)
    expect(step(panel, "tokens.py").locator(".by.mine")).to_contain_text("Claude Code")
    expect(step(panel, "README.md").locator(".by.other")).to_contain_text("edited by you")
    theirs = step(panel, "middleware.py").locator(".by.other")
    expect(theirs).to_contain_text("Claude Code in another session")
    expect(theirs.locator("time")).to_have_attribute("datetime", re.compile("T"))
    expect(step(panel, "test_refresh.py").locator(".by.other")).to_contain_text("not saved yet")


def test_databases_show_their_rows_now_and_then(
    new_tab: Tabs, server: ServerProcess, agent: SampleSession
) -> None:
    with sqlite3.connect(agent.project / "app.db") as database:
        database.execute("delete from sessions where id > 14")
        database.execute("create table jobs (id)")
    database.close()
    fill(agent.project / "README.md", b"# Mine\n")
    panel = opened_panel(new_tab(server).open_session())
    rows = panel.get_by_role("region", name="Databases")
    expect(rows).to_contain_text("sessions: 14 rows now → 214 then")
    expect(rows).to_contain_text("jobs: 0 rows now → no table then")
    step(panel, "app.db").get_by_role("checkbox").uncheck()
    expect(rows).to_have_count(0)


def test_files_that_stay_as_they_are_are_counted(
    new_tab: Tabs, server: ServerProcess, agent: SampleSession
) -> None:
    unsaved = {".git", ".holdfast", "node_modules"}
    places = (one.relative_to(agent.project) for one in agent.project.rglob("*") if one.is_file())
    total = sum(unsaved.isdisjoint(place.parts) for place in places)
    fill(agent.project / "README.md", b"# Mine\n")
    fill(agent.project / "extra.txt", b"extra\n")
    (agent.project / "docs" / "logo.png").unlink()
    page = new_tab(server).open_session()
    panel = opened_panel(page)
    untouched = panel.locator(".counts div").last
    expect(untouched).to_have_text(f"{total - 2} untouched")
    step(panel, "extra.txt").get_by_role("checkbox").uncheck()
    step(panel, "README.md").get_by_role("checkbox").uncheck()
    expect(untouched).to_have_text(f"{total} untouched")
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Now", exact=True).click()
    file = page.locator("article.file", has_text="README.md")
    file.get_by_role("button", name="Restore file").click()
    expect(panel).to_contain_text("Takes orders and payments.")  # one file is shown, not counted
    expect(untouched).to_have_count(0)


@pytest.fixture
def outside(agent: SampleSession, tmp_path: Path) -> Path:
    """A file outside the project that the agent changed; and its memory, changed since."""
    outside = tmp_path / "outside" / "deploy.conf"
    fill(outside, b"region=eu\n")
    fill(agent.project / "CLAUDE.md", b"# Rules\n")
    agent.holdfast("config", "set", "agent_state", '["claude-code"]')
    agent.holdfast("checkpoint", "Everything works", "--session", agent.session)
    call = {"tool_name": "Edit", "tool_input": {"file_path": str(outside)}, "tool_use_id": "edit"}
    agent.event("PreToolUse", **call)
    fill(outside, b"region=us\n")
    agent.event("PostToolUse", **call, tool_response={})
    agent.shell("rm -rf src/session_store && echo pushed")
    fill(agent.project / "CLAUDE.md", b"# Other rules\n")
    return outside


def opened_before_the_edit(page: Page) -> Locator:
    page.locator("a.row", has_text="Before editing").click()
    page.get_by_role("button", name="Restore this moment…").click()
    return page.get_by_role("dialog")


def test_files_outside_are_offered_as_a_choice_and_come_back_if_chosen(
    new_tab: Tabs, agent: SampleSession, outside: Path
) -> None:
    with serving(agent.project, agent.environment) as server:
        page = new_tab(server).open_session()
        panel = opened_before_the_edit(page)
        other = panel.get_by_role("region", name="Other state")
        offered = other.get_by_role("checkbox", name="Files outside the workspace")
        expect(offered).not_to_be_checked()
        expect(other).to_contain_text(f"write {outside}")
        expect(panel).not_to_contain_text("--external")
        offered.check()
        button = panel.get_by_role("button", name=re.compile("^Restore .* files outside"))
        expect(button).to_be_enabled()
        button.click()
        restored = page.get_by_role("status").filter(has_text="and files outside the workspace")
        expect(restored).to_be_visible()
        assert outside.read_bytes() == b"region=eu\n"
        assert (agent.project / "CLAUDE.md").read_bytes() == b"# Rules\n"


def test_other_state_stays_if_some_files_are_left_out_and_the_panel_says_so(
    new_tab: Tabs, agent: SampleSession, outside: Path
) -> None:
    with serving(agent.project, agent.environment) as server:
        page = new_tab(server).open_session()
        panel = opened_before_the_edit(page)
        other = panel.get_by_role("region", name="Other state")
        expect(other.get_by_role("checkbox", name="Agent memory")).to_be_checked()
        expect(panel.get_by_role("button", name=re.compile("and agent memory$"))).to_be_enabled()
        step(panel, "CLAUDE.md").get_by_role("checkbox").uncheck()
        expect(other).to_contain_text("Stays as it is, because you left out some files.")
        panel.get_by_role("button", name="Restore 3 files and 1 directory", exact=True).click()
        expect(page.get_by_role("status").filter(has_text="Restored 3 files")).to_be_visible()
        assert (agent.project / "CLAUDE.md").read_bytes() == b"# Other rules\n"
        assert outside.read_bytes() == b"region=us\n"


def test_what_a_restore_cannot_undo_is_listed_with_the_commands_that_ran_since(
    new_tab: Tabs, agent: SampleSession, outside: Path
) -> None:
    with serving(agent.project, agent.environment) as server:
        page = new_tab(server).open_session()
        panel = opened_before_the_edit(page)
        rest = panel.get_by_role("region", name="Not undone")
        expect(rest).to_contain_text("Not undone: network calls, git remotes")
        rest.get_by_text("1 command ran since").click()
        expect(rest.locator("code")).to_have_text("rm -rf src/session_store && echo pushed")
        page.keyboard.press("Escape")
        page.locator("a.row", has_text="After rm -rf").click()
        page.keyboard.press("r")
        expect(panel).to_contain_text("Not undone")
        expect(panel).not_to_contain_text("ran since")


def test_parts_of_other_state_are_chosen_one_by_one(
    new_tab: Tabs, agent: SampleSession, tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = [tmp_path_factory.mktemp("outside") / name for name in ("a.conf", "b.conf")]
    git = ["git", "-C", str(agent.project)]
    subprocess.run([*git, "branch", "idea"], check=True)
    subprocess.run([*git, "tag", "v1"], check=True)
    for number, path in enumerate(outside):
        fill(path, b"old\n")
        call = {"tool_name": "Edit", "tool_input": {"file_path": str(path)}, "tool_use_id": number}
        agent.event("PreToolUse", **call)
    agent.holdfast("checkpoint", "Everything works", "--session", agent.session)
    for path in outside:
        fill(path, b"new\n")
    agent.shell("git branch -D idea; git tag -d v1; git commit -qm x --allow-empty; echo > new.txt")
    with serving(agent.project, agent.environment) as server:
        page = new_tab(server).open_session()
        page.locator("a.row", has_text="Everything works").click()
        page.keyboard.press("r")
        panel = page.get_by_role("dialog")
        panel.get_by_role("checkbox", name="Files outside").check()
        panel.get_by_role("checkbox", name="a.conf").uncheck()
        panel.get_by_label("How to restore git").select_option("exact")
        panel.get_by_role("checkbox", name="branch idea").check()
        expect(panel).to_contain_text("branch idea is recreated")
        panel.get_by_role("button", name=re.compile("^Restore 1 file, git, and files")).click()
        expect(page.get_by_role("status").filter(has_text="Restored 1 file, git")).to_be_visible()
    assert [path.read_bytes() for path in outside] == [b"new\n", b"old\n"]
    names = subprocess.run(
        [*git, "for-each-ref", "--format=%(refname:short)"], check=True, capture_output=True
    )
    assert b"idea" in names.stdout
    assert b"v1" not in names.stdout


def test_what_could_not_be_restored_is_said(
    new_tab: Tabs, server: ServerProcess, agent: SampleSession
) -> None:
    fill(agent.project / "README.md", b"# Mine\n")
    page = new_tab(server).open_session()

    def with_failures(route: Route) -> None:
        answer = route.fetch()
        outcome = answer.json()
        outcome["components"] = [{"name": "git", "mode": "exact", "status": "failed"}]
        outcome["components"][0]["detail"] = "the index is locked"
        outcome["conflicts"] = [{"path": "docs/guide.md", "reason": "it changed meanwhile"}]
        route.fulfill(response=answer, json=outcome)

    page.route("**/rollback", with_failures)
    panel = opened_panel(page)
    panel.get_by_role("button", name="Restore 1 file").click()
    said = page.locator(".toast")
    expect(said.filter(has_text="Restored 1 file.")).to_be_visible()
    wrong = page.locator(".toast.wrong")
    expect(wrong).to_contain_text("Git was not restored: the index is locked")
    expect(wrong).to_contain_text("docs/guide.md: it changed meanwhile")
