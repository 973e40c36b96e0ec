"""Some lines of a file come back, and later work on the same file stays."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from holdfast import SessionCheckpointer
from tests.interfaces.web.page.conftest import Tab, Tabs
from tests.interfaces.web.page.server_process import ServerProcess, serving
from tests.support.hostile_trees import fill

pytestmark = [pytest.mark.requirement("WB-3", "RB-7"), pytest.mark.in_memory]

SESSION = "work"
PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de"
    "0000000c49444154789c63f8cfc0000003010100c9fe92ef0000000049454e44ae426082"
)
FIRST = "".join(f"line {number}\n" for number in range(1, 61))
BROKEN = FIRST.replace("line 20\n", "line twenty\n").replace("line 24\n", "line twenty-four\n")
LATER = BROKEN.replace("line 50\n", "line fifty\n")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A step that changed lines 20 and 24, which are one hunk, and a later one in the same file."""
    project = tmp_path / "project"
    fill(project / "app.txt", FIRST.encode())
    with SessionCheckpointer(project, SESSION) as session:
        session.checkpoint("Everything works")
        fill(project / "app.txt", BROKEN.encode())
        session.checkpoint("Broke two lines")
        fill(project / "app.txt", LATER.encode())
        session.checkpoint("Worked on")
    return project


@pytest.fixture
def server(project: Path) -> Iterator[ServerProcess]:
    with serving(project, os.environ) as server:
        yield server


@pytest.fixture
def page(new_tab: Tabs, server: ServerProcess) -> Page:
    tab: Tab = new_tab(server)
    page = tab.open_session(session=SESSION)
    page.locator("a.row", has_text="Broke two lines").click()
    return page


def opened_panel(page: Page, words: str) -> Locator:
    hunk = page.locator(".hunk", has_text="line twenty-four")
    hunk.hover()
    hunk.get_by_role("button", name=words).click()
    return page.get_by_role("dialog")


def test_lines_of_an_earlier_step_are_undone_and_undone_again(page: Page, project: Path) -> None:
    panel = opened_panel(page, "Undo these lines…")
    expect(panel).to_contain_text("All other lines and files stay as they are")
    panel.get_by_role("button", name="Undo these lines").click()
    toast = page.get_by_role("status").filter(has_text="Restored lines of app.txt")
    expect(toast).to_be_visible()
    assert (project / "app.txt").read_text() == FIRST.replace("line 50\n", "line fifty\n")
    expect(page.locator("a.row", has_text="Restored lines of app.txt")).to_be_visible()
    toast.get_by_role("button", name="Undo").click()
    expect(page.get_by_role("status").filter(has_text="Undone")).to_be_visible()
    assert (project / "app.txt").read_text() == LATER


@pytest.mark.parametrize("comparison", ["Previous step", "Now"])
def test_neighbouring_changes_are_restored_one_by_one(
    page: Page, project: Path, comparison: str
) -> None:
    words = "Undo these lines"
    if comparison == "Now":
        page.locator("a.row", has_text="Everything works").click()
        page.get_by_role("button", name="Now", exact=True).click()
        words = "Restore these lines"
    panel = opened_panel(page, f"{words}…")
    panel.get_by_role("checkbox", name="The change at line 20").uncheck()
    expect(panel.get_by_role("checkbox")).to_have_count(2)
    panel.get_by_role("button", name=words).click()
    expect(page.get_by_role("status").filter(has_text="Restored lines")).to_be_visible()
    assert (project / "app.txt").read_text() == LATER.replace("line twenty-four\n", "line 24\n")


def test_lines_that_later_work_replaced_lead_to_the_comparison_with_now(
    page: Page, project: Path
) -> None:
    text = LATER.replace("line twenty\n", "line XX\n")
    fill(project / "app.txt", text.encode())
    panel = opened_panel(page, "Undo these lines…")
    expect(panel).to_contain_text("1 change replaced by later work")
    expect(panel.get_by_role("button", name="Undo these lines")).to_be_enabled()
    fill(project / "app.txt", text.replace("line twenty-four\n", "line XXIV\n").encode())
    panel.get_by_role("button", name="Cancel").click()
    panel = opened_panel(page, "Undo these lines…")
    expect(panel).to_contain_text("These lines have changed again since")
    expect(panel.get_by_role("button", name="Nothing to restore")).to_be_disabled()
    panel.get_by_role("button", name="Compare with now").click()
    changes = page.get_by_role("region", name="Changes")
    expect(changes).to_contain_text("since this moment")
    expect(changes).to_contain_text("line XXIV")


def test_unchanged_lines_unfold_to_both_ends_of_the_file(page: Page) -> None:
    file = page.locator("article.file", has_text="app.txt")
    expect(file).to_contain_text("line twenty-four")
    expect(file).not_to_contain_text("line 60")
    file.get_by_role("button", name="16 unchanged lines").click()
    expect(file.locator(".line").first).to_contain_text("line 1")
    file.get_by_role("button", name="Show lines below").click()
    expect(file.locator(".line").last).to_contain_text("line 60")
    expect(file.locator(".line").last).to_contain_text("60")
    expect(file.locator(".unfold")).to_have_count(0)


def test_the_other_moment_of_a_comparison_can_be_picked_by_a_plain_click(page: Page) -> None:
    page.locator("a.row", has_text="Worked on").click()
    page.get_by_role("button", name="Other…").click()
    expect(page.get_by_text("Choose the moment to compare with")).to_be_visible()
    page.locator("a.row", has_text="Everything works").click()
    changes = page.get_by_role("region", name="Changes")
    expect(changes).to_contain_text("1 file +3 −3 between the two moments")
    expect(page.get_by_text("Choose the moment to compare with")).to_have_count(0)


def test_a_large_change_is_shown_in_pieces(new_tab: Tabs, tmp_path: Path) -> None:
    project = tmp_path / "large"
    lines = [f"line {number}\n" for number in range(40_000)]
    fill(project / "app.txt", "".join(lines).encode())
    with SessionCheckpointer(project, SESSION) as session:
        session.checkpoint("Everything works")
        changed = [f"new {one}" if n % 20 == 0 else one for n, one in enumerate(lines)]
        fill(project / "app.txt", "".join(changed).encode())
        session.checkpoint("Changed all over")
    with serving(project, os.environ) as server:
        page = new_tab(server).open_session(session=SESSION)
        file = page.locator("article.file")
        expect(file).to_contain_text("app.txt")
        if file.get_by_role("button", expanded=False).count():
            file.get_by_role("button", expanded=False).click()
        expect(file.locator(".hunk").first).to_contain_text("new line 0")
        before = file.locator(".hunk").count()
        file.get_by_role("button", name="Show more of this change").click()
        expect(file.locator(".hunk").nth(before)).to_be_attached()
        assert before < 2_000


def test_changes_that_are_not_lines_are_named(new_tab: Tabs, tmp_path: Path) -> None:
    project = tmp_path / "named"
    fill(project / "run.sh", b"#!/bin/sh\n")
    fill(project / "data.bin", bytes(range(256)) * 8)
    fill(project / "old.txt", FIRST.encode())
    fill(project / "logo.png", PIXEL)
    with SessionCheckpointer(project, SESSION) as session:
        session.checkpoint("Everything works")
        (project / "run.sh").chmod(0o755)
        fill(project / "data.bin", bytes(range(256)) * 16)
        (project / "old.txt").rename(project / "new.txt")
        (project / "logo.png").unlink()
        (project / "empty").mkdir()
        session.checkpoint("Other changes")
    with serving(project, os.environ) as server:
        page = new_tab(server).open_session(session=SESSION)

        def file(name: str) -> Locator:
            return page.locator("article.file").filter(has_text=name)

        expect(file("run.sh")).to_contain_text("Mode changed from 0644 to 0755")
        expect(file("data.bin")).to_contain_text("A binary file: 2.0 kB before, 4.1 kB after.")
        expect(file("new.txt")).to_contain_text("from old.txt")
        expect(file("empty/")).to_contain_text("An empty directory was added.")
        picture = file("logo.png").get_by_role("img", name="Before: logo.png")
        picture.scroll_into_view_if_needed()
        expect(picture).to_have_js_property("naturalWidth", 1)
