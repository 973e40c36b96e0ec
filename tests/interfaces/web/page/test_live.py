"""The page while an agent works: what is saved appears, and a lost server is caught up with."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.interfaces.web.page.conftest import Tabs
from tests.interfaces.web.page.sample_session import SESSION, SampleSession
from tests.interfaces.web.page.server_process import serving

pytestmark = [pytest.mark.requirement("WB-3"), pytest.mark.in_memory]


@pytest.fixture
def agent(tmp_path: Path) -> SampleSession:
    """An agent that has just begun."""
    agent = SampleSession(tmp_path, os.environ)
    agent.make_project()
    agent.event("SessionStart", source="startup")
    agent.prompt("Tidy up")
    return agent


def test_what_a_hook_saves_appears_without_a_reload(new_tab: Tabs, agent: SampleSession) -> None:
    with serving(agent.project, agent.environment) as server:
        tab = new_tab(server)
        page = tab.open_session()
        expect(page.locator(".row.message")).to_contain_text("Tidy up")
        page.evaluate("window.notReloaded = true")
        agent.write("README.md", "# Tidy\n")
        row = page.locator("a.row", has_text=re.compile("Wrote"))
        expect(row).to_contain_text("1 file")
        agent.prompt("Now the guide")
        expect(page.locator(".row.message").first).to_contain_text("Now the guide")
        assert page.evaluate("window.notReloaded")


def test_a_persons_own_edits_look_different(new_tab: Tabs, agent: SampleSession) -> None:
    with serving(agent.project, agent.environment) as server:
        page = new_tab(server).open_session()
        agent.write("docs/guide.md", "# Guide\n")
        written = page.locator("a.row", has_text="Wrote docs/guide.md")
        expect(written).to_contain_text("1 file")
        (agent.project / "README.md").write_text("# Mine\n")
        agent.prompt("Now the rest")
        mine = page.locator("a.row.person", has_text="Before your message")
        expect(mine).to_contain_text("your edits")
        expect(mine.locator(".lanes rect.dot")).to_be_visible()
        expect(written).not_to_contain_text("your edits")


def test_home_shows_a_session_as_soon_as_it_begins(new_tab: Tabs, agent: SampleSession) -> None:
    with serving(agent.project, agent.environment) as server:
        page = new_tab(server).open_link()
        line = page.locator(".session-line")
        expect(line).to_have_count(1)
        before = line.inner_text()
        agent.write("README.md", "# Tidy\n")
        expect(line).not_to_have_text(before)


def test_an_empty_workspace_shows_how_to_begin_and_then_its_first_session(
    new_tab: Tabs, tmp_path: Path
) -> None:
    agent = SampleSession(tmp_path, os.environ)
    agent.make_project()
    with serving(agent.project, agent.environment) as server:
        tab = new_tab(server)
        page = tab.open("/")
        page = tab.open("/settings")
        expect(page.get_by_text("Nothing is saved yet.")).to_be_visible()
        expect(page.get_by_role("alert")).to_have_count(0)
        for address in ("/health", "/search?q=a", "/"):
            page = tab.open(address)
            expect(page.get_by_role("heading", name="Nothing saved yet")).to_have_count(1)
            expect(page.get_by_text("holdfast install claude-code")).to_be_visible()
            expect(page.get_by_role("alert")).to_have_count(0)
        agent.event("SessionStart", source="startup")
        expect(page.locator(".session-line")).to_be_visible()


def test_the_page_says_that_the_server_is_gone_and_catches_up(
    new_tab: Tabs, agent: SampleSession
) -> None:
    with serving(agent.project, agent.environment) as server:
        tab = new_tab(server)
        page = tab.open_session()
        expect(page.locator(".row.message")).to_be_visible()
        port = server.port
    expect(page.get_by_role("alert").filter(has_text="Not connected")).to_be_visible()
    agent.write("README.md", "# Tidy\n")
    with serving(agent.project, agent.environment, port=port):
        expect(page.locator("a.row", has_text="Wrote")).to_be_visible()
        expect(page.get_by_role("alert")).to_have_count(0)
        assert page.url.endswith(f"/s/{SESSION}")


def test_messages_that_a_restore_rolled_back_are_greyed(
    new_tab: Tabs, agent: SampleSession
) -> None:
    with serving(agent.project, agent.environment) as server:
        page = new_tab(server).open_session()
        agent.write("README.md", "# Tidy\n")
        agent.prompt("Delete the guide")
        agent.shell("rm docs/guide.md")
        message = page.locator(".row.message", has_text="Delete the guide")
        expect(message).not_to_have_class(re.compile("rolled-back"))
        page.locator("a.row", has_text="Wrote README.md").click()
        page.keyboard.press("r")
        page.get_by_role("dialog").get_by_role("button", name="Restore 1 file").click()
        expect(message).to_have_class(re.compile("rolled-back"))
        expect(message).to_contain_text("rolled back")
        expect(page.locator("a.row.aside", has_text="After rm")).to_contain_text("abandoned")
        assert (agent.project / "docs" / "guide.md").exists()
