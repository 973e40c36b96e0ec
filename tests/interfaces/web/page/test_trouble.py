"""The project or its store is moved, lost or unknown while the page is open: it says so."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from playwright.sync_api import expect

from holdfast import SessionCheckpointer
from tests.interfaces.web.page.conftest import Tabs
from tests.interfaces.web.page.server_process import serving
from tests.support.hostile_trees import fill

pytestmark = [pytest.mark.requirement("WB-3"), pytest.mark.on_disk]

SESSION = "work"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    project = tmp_path / "project"
    fill(project / "notes.txt", b"one\n")
    with SessionCheckpointer(project, SESSION) as session:
        session.checkpoint("Everything works")
        fill(project / "notes.txt", b"two\n")
        session.checkpoint("Later")
    return project


def test_a_store_that_is_gone_is_named_and_the_page_catches_up_when_it_is_back(
    new_tab: Tabs, project: Path
) -> None:
    with SessionCheckpointer(project, SESSION) as session:
        store = session.opened.store_directory
    with serving(project, os.environ) as server:
        page = new_tab(server).open_session(session=SESSION)
        expect(page.locator("a.row[aria-current]")).to_contain_text("Later")
        store.rename(store.with_name("away"))
        banner = page.get_by_role("alert").filter(has_text="The store cannot be read.")
        expect(banner).to_contain_text("is missing")
        expect(page.locator("a.row", has_text="Everything works")).to_be_visible()
        store.with_name("away").rename(store)
        with SessionCheckpointer(project, SESSION) as session:
            session.checkpoint("Back again")
        expect(page.locator("a.row", has_text="Back again")).to_be_visible()
        expect(banner).to_have_count(0)


def test_a_project_that_was_moved_is_not_shown_as_a_new_one(new_tab: Tabs, project: Path) -> None:
    with serving(project, os.environ) as server:
        tab = new_tab(server)
        page = tab.open_session("?with=now", session=SESSION)
        expect(page.locator("a.row[aria-current]")).to_contain_text("Later")
        project.rename(project.with_name("moved"))
        page.keyboard.press("r")
        panel = page.get_by_role("dialog")
        expect(panel.get_by_role("alert")).to_contain_text("cannot open the workspace")
        expect(panel.get_by_role("button", name="Restore", exact=True)).to_be_disabled()
        tab.open("/")
        expect(page.get_by_role("alert")).to_contain_text(f"{project} is not there any more.")
        expect(page.get_by_role("heading", name="Nothing saved yet")).to_have_count(0)
        project.with_name("moved").rename(project)
        page.get_by_role("button", name="Try again").click()
        expect(page.locator(".session-line")).to_be_visible()


def test_an_unknown_session_leads_to_the_known_ones_and_is_not_begun(
    new_tab: Tabs, project: Path
) -> None:
    with serving(project, os.environ) as server:
        tab = new_tab(server)
        page = tab.open_session(session="no-such-session")
        expect(page.get_by_role("alert")).to_contain_text("unknown session: 'no-such-session'")
        expect(page.get_by_role("button", name="Save now…")).to_have_count(0)
        page.get_by_role("link", name="All sessions", exact=True).click()
        expect(page.locator(".session-line")).to_have_count(1)
