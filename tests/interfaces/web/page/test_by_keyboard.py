"""A whole task with the keyboard alone: what broke, one hunk back, undo, approve, commit."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from playwright.sync_api import Page, Route, expect

from holdfast import SessionCheckpointer
from tests.interfaces.web.page.conftest import Tab, Tabs
from tests.interfaces.web.page.server_process import serving
from tests.support.hostile_trees import fill

pytestmark = [pytest.mark.requirement("WB-3"), pytest.mark.in_memory]

SESSION = "work"
GOOD = "".join(f"line {number}\n" for number in range(1, 61))
BROKEN = GOOD.replace("line 10\n", "line broken\n").replace("line 50\n", "line useful\n")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A step that broke one line and improved another in the same file, and a later step."""
    project = tmp_path / "project"
    fill(project / "app.txt", GOOD.encode())
    git = ["git", "-C", str(project)]
    subprocess.run([*git, "init", "-q", "-b", "main"], check=True)
    subprocess.run([*git, "add", "-A"], check=True)
    subprocess.run([*git, "commit", "-q", "-m", "First"], check=True)
    with SessionCheckpointer(project, SESSION) as session:
        session.checkpoint("Everything works")
        fill(project / "app.txt", BROKEN.encode())
        session.checkpoint("Imported lazily")
        fill(project / "notes.txt", b"later\n")
        session.checkpoint("Wrote notes")
    return project


class Keys:
    """Presses keys, and moves with Tab to what has the focus next."""

    def __init__(self, page: Page) -> None:
        self.page = page

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)

    def reach(self, name: str) -> None:
        """Tab until an element with that name has the focus."""
        said = "document.activeElement.ariaLabel ?? document.activeElement.textContent.trim()"
        for _ in range(60):
            self.press("Tab")
            if str(self.page.evaluate(said)).startswith(name):
                return
        raise AssertionError(f"Tab does not lead to {name}")


def test_a_whole_task_needs_no_mouse(new_tab: Tabs, project: Path) -> None:
    with serving(project, os.environ) as server:
        tab: Tab = new_tab(server)
        page, keys = tab.open_link(), Keys(tab.page)
        git = ["git", "-C", str(project)]
        # Home → the session → the step that broke it, found by its words.
        expect(page.locator(".session-line")).to_be_visible()
        keys.reach(SESSION)
        keys.press("Enter")
        expect(page.locator("a.row[aria-current]")).to_contain_text("Wrote notes")
        keys.press("/")
        expect(page.get_by_role("searchbox")).to_be_focused()
        page.keyboard.type("lazily")
        expect(page.locator("a.hit mark").first).to_have_text("lazily")
        keys.press("ArrowDown", "Enter")
        expect(page.locator("a.row[aria-current]")).to_contain_text("Imported lazily")
        # The first change broke it: undo these lines, see them in the panel, and confirm.
        expect(page.locator(".hunk")).to_have_count(2)
        keys.press("n")
        expect(page.locator(".hunk.at")).to_contain_text("line broken")
        keys.press("l")
        panel = page.get_by_role("dialog")
        expect(panel.get_by_role("button", name="Undo these lines")).to_be_enabled()
        keys.reach("Undo these lines")
        keys.press("Enter")
        status = page.get_by_role("status")
        expect(status.filter(has_text="Restored lines of app.txt")).to_be_visible()
        mended = BROKEN.replace("line broken\n", "line 10\n")
        assert (project / "app.txt").read_text() == mended
        # Undo it, after a preview, and redo that.
        keys.press("u")
        expect(panel.get_by_role("button", name="Undo 1 file")).to_be_enabled()
        keys.reach("Undo 1 file")
        keys.press("Enter")
        expect(status.filter(has_text="Undone: 1 file")).to_be_visible()
        assert (project / "app.txt").read_text() == BROKEN
        keys.press("u")
        expect(panel.get_by_role("button", name="Redo 1 file")).to_be_enabled()
        keys.reach("Redo 1 file")
        keys.press("Enter")
        expect(status.filter(has_text="Redone: 1 file")).to_be_visible()
        assert (project / "app.txt").read_text() == mended
        # Approve, with a message, and commit with another.
        keys.press("a")
        expect(panel.get_by_label("Message")).to_be_focused()
        page.keyboard.type("imports work")
        keys.press("Enter")
        expect(status.filter(has_text="approved")).to_be_visible()
        keys.reach("Commit to git…")
        keys.press("Enter")
        expect(panel.get_by_role("button", name="Commit 2 files")).to_be_enabled()
        keys.reach("")  # the message
        keys.press("Control+a")
        page.keyboard.type("Import lazily")
        keys.reach("Commit 2 files")
        keys.press("Enter")
        expect(status.filter(has_text="Committed 2 files")).to_be_visible()
        done = [*git, "log", "-1", "--format=%s"]
        said = subprocess.run(done, check=True, capture_output=True, text=True)
        assert said.stdout.strip() == "Import lazily"
        assert (project / "app.txt").read_text() == mended


def test_a_button_keeps_the_focus_while_the_rest_of_its_panel_appears(
    new_tab: Tabs, project: Path
) -> None:
    with SessionCheckpointer(project, SESSION) as session:
        session.restore_checkpoint("HEAD~1")
        session.undo()
    with serving(project, os.environ) as server:
        page = new_tab(server).open_session(session=SESSION)
        held: list[Route] = []
        page.route("**/undo", lambda route: held.append(route))
        page.keyboard.press("u")
        panel = page.get_by_role("dialog")
        redo = panel.get_by_role("button", name="Redo 1 file")
        redo.focus()
        for route in held:
            route.continue_()
        expect(panel.get_by_role("button", name="Undo 1 file")).to_be_enabled()
        expect(redo).to_be_focused()


def test_each_view_is_reached_and_left_by_keyboard(new_tab: Tabs, project: Path) -> None:
    with serving(project, os.environ) as server:
        tab: Tab = new_tab(server)
        page, keys = tab.open_session(session=SESSION), Keys(tab.page)
        expect(page.locator("a.row[aria-current]")).to_contain_text("Wrote notes")
        keys.reach("Settings")
        keys.press("Enter")
        automatic = page.get_by_role("switch", name="Before an edit")
        expect(automatic).to_be_checked()
        automatic.focus()
        keys.press("Space")
        expect(automatic).not_to_be_checked()
        keys.press("h")
        expect(page.locator(".session-line")).to_be_visible()
        keys.reach("Health")
        keys.press("Enter")
        expect(page.get_by_role("heading", name="What doctor found")).to_be_visible()
        keys.reach("Check the store now")
        keys.press("Enter")
        expect(page.get_by_text("✓ No damage found.")).to_be_visible()
        tab.open_session(session=SESSION)
        keys.press("j", "c")
        panel = page.get_by_role("dialog")
        expect(panel.get_by_label("Why")).to_be_focused()
        page.keyboard.type("Half way")
        keys.press("Enter")
        expect(page.locator("a.row", has_text="Half way")).to_be_visible()
        keys.reach("Replay")
        keys.press("Enter")
        slider = page.get_by_role("slider", name="Step")
        expect(slider).to_be_visible()
        place = slider.input_value()
        keys.press("ArrowLeft")
        expect(slider).not_to_have_value(place)
        keys.press("Escape")
        expect(page.get_by_role("region", name="Timeline")).to_be_visible()
