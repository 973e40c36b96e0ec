"""What a restore would do, before it does anything: authors, database rows, untouched files."""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

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
