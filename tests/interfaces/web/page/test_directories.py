"""Directories in a restore: listed, chosen with a tick, and brought back without a file in them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.interfaces.web.page.conftest import Tabs
from tests.interfaces.web.page.sample_session import SampleSession
from tests.interfaces.web.page.server_process import ServerProcess, serving
from tests.support.hostile_trees import fill

pytestmark = [pytest.mark.requirement("WB-3", "RB-7"), pytest.mark.in_memory]

COMMAND = "rm -rf src/session_store uploads"


@pytest.fixture
def agent(tmp_path: Path) -> SampleSession:
    """An agent that deletes three files, a directory of them and one with an empty one in it."""
    agent = SampleSession(tmp_path, os.environ)
    agent.make_project()
    (agent.project / "uploads" / "incoming").mkdir(parents=True)
    agent.event("SessionStart", source="startup")
    agent.prompt("Clean up")
    agent.shell(COMMAND)
    fill(agent.project / "README.md", b"# Later work\n")
    fill(agent.project / "docs" / "guide.md", b"# Later work\n")
    return agent


@pytest.fixture
def page(agent: SampleSession, new_tab: Tabs) -> Iterator[Page]:
    with serving(agent.project, agent.environment) as server:
        yield opened(new_tab, server)


def opened(new_tab: Tabs, server: ServerProcess) -> Page:
    page = new_tab(server).open_session()
    expect(page.locator("a.row", has_text=f"After {COMMAND}")).to_be_visible()
    return page


def panel_of(page: Page) -> Locator:
    page.locator("a.row", has_text=f"Before {COMMAND}").click()
    page.get_by_role("button", name="Restore this moment…").click()
    return page.get_by_role("dialog")


def box(panel: Locator, path: str) -> Locator:
    return panel.get_by_role("checkbox", name=path, exact=True)


def test_an_empty_directory_is_shown_as_one_and_brought_back_alone(
    page: Page, agent: SampleSession
) -> None:
    row = page.locator("a.row", has_text=f"After {COMMAND}")
    expect(row).to_contain_text("3 files and 1 directory deleted")
    row.click()
    gone = page.locator("article.file", has_text="incoming/")
    expect(gone).to_contain_text("The directory was deleted.")
    gone.get_by_role("button", name="Bring back…").click()
    panel = page.get_by_role("dialog")
    expect(panel.locator(".steps li")).to_contain_text(["uploads/", "incoming/"])
    panel.get_by_role("button", name="Restore 2 directories").click()
    toast = page.get_by_role("status").filter(has_text="Restored 2 directories")
    expect(toast).to_be_visible()
    assert (agent.project / "uploads" / "incoming").is_dir()
    assert not (agent.project / "src" / "session_store").exists()


def test_a_part_of_a_restore_brings_back_its_directories(page: Page, agent: SampleSession) -> None:
    panel = panel_of(page)
    box(panel, "README.md").uncheck()
    box(panel, "docs/guide.md").uncheck()
    panel.get_by_role("button", name="Restore 3 files and 3 directories").click()
    expect(page.get_by_role("status").filter(has_text="Restored 3 files")).to_be_visible()
    assert (agent.project / "uploads" / "incoming").is_dir()
    assert len(list((agent.project / "src" / "session_store").iterdir())) == 3
    assert (agent.project / "README.md").read_text() == "# Later work\n"


def test_only_deleted_files_come_back_with_one_button(page: Page, agent: SampleSession) -> None:
    panel = panel_of(page)
    chosen = panel.get_by_role("group", name="Choose files")
    chosen.get_by_role("button", name="None").click()
    expect(panel.get_by_role("button", name="Nothing to restore")).to_be_disabled()
    chosen.get_by_role("button", name="All").click()
    expect(panel.get_by_role("button", name="Restore 5 files and 3 directories")).to_be_enabled()
    chosen.get_by_role("button", name="Only deleted files").press("Enter")
    expect(box(panel, "README.md")).not_to_be_checked()
    panel.get_by_role("button", name="Restore 3 files and 3 directories").click()
    expect(page.get_by_role("status").filter(has_text="Restored 3 files")).to_be_visible()
    assert (agent.project / "uploads" / "incoming").is_dir()
    assert (agent.project / "docs" / "guide.md").read_text() == "# Later work\n"


def test_a_tick_of_a_directory_is_one_for_everything_in_it(
    page: Page, agent: SampleSession
) -> None:
    panel = panel_of(page)
    directory = box(panel, "src/session_store/")
    directory.press("Space")
    expect(box(panel, "src/session_store/redis.py")).not_to_be_checked()
    expect(panel.get_by_role("button", name="Restore 2 files and 2 directories")).to_be_enabled()
    box(panel, "src/session_store/redis.py").check()
    assert directory.evaluate("box => box.indeterminate")
    panel.get_by_role("button", name="Restore 3 files and 3 directories").click()
    expect(page.get_by_role("status").filter(has_text="Restored 3 files")).to_be_visible()
    assert [one.name for one in (agent.project / "src" / "session_store").iterdir()] == ["redis.py"]


def test_a_new_directory_goes_with_everything_in_it_and_stays_for_a_file_that_stays(
    page: Page, agent: SampleSession
) -> None:
    fill(agent.project / "new" / "a.txt", b"a\n")
    fill(agent.project / "new" / "b.txt", b"b\n")
    panel = panel_of(page)
    panel.get_by_role("group", name="Choose files").get_by_role("button", name="None").click()
    box(panel, "new/").check()
    expect(panel.get_by_role("button", name="Restore 2 files and 1 directory")).to_be_enabled()
    box(panel, "new/a.txt").uncheck()
    panel.get_by_role("button", name="Restore 1 file", exact=True).click()
    expect(page.get_by_role("status").filter(has_text="Restored 1 file")).to_be_visible()
    assert [one.name for one in (agent.project / "new").iterdir()] == ["a.txt"]


def test_a_file_that_is_back_is_not_offered_again(page: Page, agent: SampleSession) -> None:
    page.locator("a.row", has_text=f"After {COMMAND}").click()
    redis = page.locator("article.file", has_text="redis.py")
    redis.get_by_role("button", name="Bring back…").click()
    page.get_by_role("dialog").get_by_role("button", name="Restore 1 file").click()
    expect(redis).to_contain_text("Already back")
    expect(redis.get_by_role("button", name="Bring back…")).to_have_count(0)
    memory = page.locator("article.file", has_text="memory.py")
    expect(memory.get_by_role("button", name="Bring back…")).to_be_visible()
    (agent.project / "src" / "session_store" / "redis.py").unlink()
    page.reload()
    expect(redis.get_by_role("button", name="Bring back…")).to_be_visible()
    expect(redis).not_to_contain_text("Already")
