"""How do I get back? Restores, undo, rounds and notes by the page alone, compared with the disk."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, Route, expect

from holdfast import SessionCheckpointer
from tests.interfaces.web.page.conftest import Tab, Tabs
from tests.interfaces.web.page.server_process import ServerProcess, serving
from tests.support.hostile_trees import fill
from tests.support.tree_hash import describe

pytestmark = [pytest.mark.requirement("WB-3"), pytest.mark.in_memory]

SESSION = "work"
LONG = "".join(f"line {number}\n" for number in range(1, 61))


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Two moments, `good` and `later`, and edits that no checkpoint has."""
    project = tmp_path / "project"
    fill(project / "src" / "app.py", LONG.encode())
    fill(project / "notes.txt", b"one\n")
    with SessionCheckpointer(project, SESSION) as session:
        session.checkpoint("Everything works", name="good")
        fill(project / "notes.txt", b"two\n")
        session.checkpoint("Changed the notes", name="later")
    text = LONG.replace("line 3\n", "line three\n").replace("line 50\n", "line fifty\n")
    fill(project / "src" / "app.py", text.encode())
    fill(project / "extra.txt", b"extra\n")
    return project


@pytest.fixture
def server(project: Path) -> Iterator[ServerProcess]:
    with serving(project, os.environ) as server:
        yield server


@pytest.fixture
def opened(new_tab: Tabs, server: ServerProcess) -> Tab:
    return new_tab(server)


def choose(page: Page, words: str) -> None:
    page.locator("a.row", has_text=words).click()
    expect(page.locator("a.row[aria-current]")).to_contain_text(words)


@pytest.mark.requirement("RB-8")
def test_a_restore_shows_what_it_does_then_does_it_and_undo_takes_it_back(
    opened: Tab, project: Path
) -> None:
    before = describe(project)
    page = opened.open_session(session=SESSION)
    choose(page, "Everything works")
    page.get_by_role("button", name="Restore this moment…").click()
    panel = page.get_by_role("dialog")
    expect(panel).to_contain_text("Restore “good”")
    expect(panel.locator(".steps li")).to_have_count(3)
    expect(panel).to_contain_text("The current state is saved first")
    assert describe(project) == before
    panel.get_by_role("button", name="Restore 3 files").click()
    toast = page.get_by_role("status").filter(has_text="Restored 3 files")
    expect(toast).to_be_visible()
    assert (project / "src" / "app.py").read_text() == LONG
    assert (project / "notes.txt").read_text() == "one\n"
    assert not (project / "extra.txt").exists()
    expect(page.locator("a.row", has_text="Back to “good”")).to_be_visible()
    toast.get_by_role("button", name="Undo").click()
    expect(page.get_by_role("status").filter(has_text="Undone")).to_be_visible()
    assert describe(project) == before


def test_a_restore_can_leave_files_out(opened: Tab, project: Path) -> None:
    page = opened.open_session(session=SESSION)
    choose(page, "Everything works")
    page.keyboard.press("r")
    panel = page.get_by_role("dialog")
    panel.get_by_role("checkbox", name="extra.txt").uncheck()
    panel.get_by_role("button", name="Restore 2 files").click()
    expect(page.get_by_role("status").filter(has_text="Restored 2 files")).to_be_visible()
    assert (project / "extra.txt").read_text() == "extra\n"
    assert (project / "src" / "app.py").read_text() == LONG


@pytest.mark.requirement("RB-7")
def test_one_hunk_is_restored_and_the_other_stays(opened: Tab, project: Path) -> None:
    page = opened.open_session("?with=now", session=SESSION)
    file = page.locator("article.file", has_text="app.py")
    hunk = file.locator(".hunk", has_text="line fifty")
    hunk.hover()
    hunk.get_by_role("button", name="Restore these lines").click()
    panel = page.get_by_role("dialog")
    expect(panel).to_contain_text("line 50")
    panel.get_by_role("button", name="Restore these lines").click()
    expect(page.get_by_role("status").filter(has_text="Restored lines of")).to_be_visible()
    text = (project / "src" / "app.py").read_text()
    assert text == LONG.replace("line 3\n", "line three\n")


@pytest.mark.requirement("RB-7")
def test_one_file_is_restored_alone(opened: Tab, project: Path) -> None:
    page = opened.open_session("?with=now", session=SESSION)
    file = page.locator("article.file", has_text="app.py")
    file.get_by_role("button", name="Restore file").click()
    page.get_by_role("dialog").get_by_role("button", name="Restore 1 file").click()
    expect(page.get_by_role("status").filter(has_text="Restored 1 file")).to_be_visible()
    assert (project / "src" / "app.py").read_text() == LONG
    assert (project / "extra.txt").exists()


def test_a_workspace_that_changed_since_the_preview_is_not_restored(
    opened: Tab, project: Path
) -> None:
    page = opened.open_session(session=SESSION)
    choose(page, "Everything works")
    page.keyboard.press("r")
    panel = page.get_by_role("dialog")
    button = panel.get_by_role("button", name="Restore 3 files")
    expect(button).to_be_enabled()
    fill(project / "new.txt", b"mine\n")
    before = describe(project)
    button.click()
    expect(page.get_by_role("status").filter(has_text="Nothing was restored")).to_be_visible()
    expect(panel.get_by_role("button", name="Restore 4 files")).to_be_visible()
    assert describe(project) == before


def test_nor_is_a_part_of_a_workspace_that_changed_since_the_preview(
    opened: Tab, project: Path
) -> None:
    page = opened.open_session(session=SESSION)
    choose(page, "Everything works")
    page.keyboard.press("r")
    panel = page.get_by_role("dialog")
    panel.get_by_role("checkbox", name="extra.txt").uncheck()
    fill(project / "notes.txt", b"mine\n")
    before = describe(project)
    panel.get_by_role("button", name="Restore 2 files").click()
    refused = page.get_by_role("status").filter(has_text="Nothing was restored")
    expect(refused).to_contain_text("has changed since the preview")
    assert describe(project) == before


def test_a_click_counts_even_if_the_round_bar_arrives_while_the_button_is_down(
    opened: Tab, project: Path
) -> None:
    page = opened.page
    held: list[Route] = []
    page.route("**/approval", lambda route: held.append(route))
    opened.open_session(session=SESSION)
    button = page.get_by_role("region", name="Moment").get_by_role("button", name="Add a note")
    button.hover()
    page.mouse.down()
    for route in held:
        route.continue_()
    page.unroute("**/approval")
    expect(page.get_by_role("region", name="Unapproved work")).to_contain_text("Approve…")
    page.mouse.up()
    expect(page.get_by_label("Note", exact=True)).to_be_visible()


def test_half_written_words_stay_while_an_agent_saves(opened: Tab, project: Path) -> None:
    page = opened.open_session(session=SESSION)
    moment = page.get_by_role("region", name="Moment")
    moment.get_by_role("button", name="Add a note").click()
    moment.get_by_label("Note").fill("Half a note")
    with SessionCheckpointer(project, SESSION) as session:
        session.checkpoint("The agent went on")
    expect(page.locator("a.row", has_text="The agent went on")).to_be_visible()
    expect(page.locator("a.row[aria-current]")).to_contain_text("Changed the notes")
    expect(moment.get_by_label("Note")).to_have_value("Half a note")


def test_folded_files_stay_folded_while_an_agent_works(opened: Tab, project: Path) -> None:
    page = opened.open_session("?with=now", session=SESSION)
    file = page.locator("article.file", has_text="app.py")
    expect(file.locator(".hunk")).to_have_count(2)
    file.get_by_role("button", expanded=True).click()
    expect(file.locator(".hunk")).to_have_count(0)
    fill(project / "agent.txt", b"agent\n")
    with SessionCheckpointer(project, SESSION) as session:
        session.checkpoint("The agent went on")
    expect(page.locator("article.file", has_text="agent.txt")).to_be_visible()
    expect(file.locator(".hunk")).to_have_count(0)


def test_cancel_and_escape_change_nothing(opened: Tab, project: Path) -> None:
    before = describe(project)
    page = opened.open_session(session=SESSION)
    expect(page.locator("a.row").first).to_be_visible()
    for leave in ("Escape", "Cancel"):
        page.keyboard.press("r")
        expect(page.get_by_role("dialog")).to_be_visible()
        if leave == "Cancel":
            page.get_by_role("button", name="Cancel").click()
        else:
            page.keyboard.press("Escape")
        expect(page.get_by_role("dialog")).to_have_count(0)
    assert describe(project) == before


def test_a_checkpoint_is_saved_with_reason_name_and_note(opened: Tab, project: Path) -> None:
    page = opened.open_session(session=SESSION)
    page.get_by_role("button", name="Save now…").click()
    panel = page.get_by_role("dialog")
    panel.get_by_label("Why").fill("Half way there")
    panel.get_by_label("Name").fill("halfway")
    panel.get_by_label("Note").fill("The parser is next")
    panel.get_by_role("button", name="Save checkpoint").click()
    choose(page, "Half way there")
    moment = page.get_by_role("region", name="Moment")
    expect(moment).to_contain_text("halfway")
    expect(moment).to_contain_text("The parser is next")
    with SessionCheckpointer(project, SESSION) as session:
        found = session.get("halfway")
        assert found is not None
        assert found.intent.reasoning == "Half way there"


def test_notes_are_added_and_corrected_in_place(opened: Tab, project: Path) -> None:
    page = opened.open_session(session=SESSION)
    choose(page, "Everything works")
    moment = page.get_by_role("region", name="Moment")
    moment.get_by_role("button", name="Add a note").click()
    moment.get_by_label("Note").fill("Green")
    moment.get_by_role("button", name="Save note").click()
    expect(moment.locator(".annotation")).to_contain_text("Green")
    moment.get_by_role("button", name="Edit").click()
    moment.get_by_label("Note").fill("All green")
    moment.get_by_role("button", name="Save note").click()
    expect(moment.locator(".annotation")).to_contain_text("All green")
    with SessionCheckpointer(project, SESSION) as session:
        assert [note.text for note in session.annotations("good")] == ["All green"]


def test_a_round_is_approved_and_the_next_one_reset(opened: Tab, project: Path) -> None:
    approved = describe(project)
    page = opened.open_session(session=SESSION)
    bar = page.get_by_role("region", name="Unapproved work")
    bar.get_by_role("button", name="Approve…").click()
    expect(page.get_by_role("dialog").get_by_label("Message")).to_be_focused()
    page.keyboard.type("looks right")
    page.keyboard.press("Enter")
    expect(page.get_by_role("status").filter(has_text="approved")).to_be_visible()
    fill(project / "notes.txt", b"broken\n")
    with SessionCheckpointer(project, SESSION) as session:
        session.checkpoint("Broke it")
    page.reload()
    expect(bar).to_contain_text("looks right")
    bar.get_by_role("button", name="Reset…").click()
    page.get_by_role("dialog").get_by_role("button", name="Reset 1 file").click()
    expect(page.get_by_role("status").filter(has_text="Restored 1 file")).to_be_visible()
    assert describe(project) == approved
    expect(page.locator(".bracket.merged").first).to_be_attached()
    expect(page.locator(".bracket.abandoned").first).to_be_attached()


@pytest.mark.requirement("GT-3")
def test_work_is_accepted_to_git_with_an_edited_message(opened: Tab, project: Path) -> None:
    git = ["git", "-C", str(project)]
    subprocess.run([*git, "init", "-q", "-b", "main"], check=True)
    subprocess.run([*git, "add", "notes.txt"], check=True)
    subprocess.run([*git, "commit", "-q", "-m", "First"], check=True)
    with SessionCheckpointer(project, SESSION) as session:
        session.checkpoint("The extra file", name="extra")
    page = opened.open_session(session=SESSION)
    page.get_by_role("button", name="Commit to git…").click()
    panel = page.get_by_role("dialog", name="Commit to git")
    panel.get_by_role("textbox").fill("Add the extra file")
    panel.get_by_role("button", name=re.compile("Commit [0-9]+ file")).click()
    expect(page.get_by_role("status").filter(has_text="Committed")).to_be_visible()
    said = subprocess.run(
        [*git, "log", "-1", "--format=%s"], check=True, capture_output=True, text=True
    )
    assert said.stdout.strip() == "Add the extra file"


@pytest.mark.requirement("GT-3")
def test_an_approved_round_is_committed_without_later_work(opened: Tab, project: Path) -> None:
    git = ["git", "-C", str(project)]
    subprocess.run([*git, "init", "-q", "-b", "main"], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "First"], check=True)
    page = opened.open_session(session=SESSION)
    page.get_by_role("button", name="Approve…").click()
    page.get_by_role("dialog").get_by_role("button", name="Approve round 1").click()
    toast = page.get_by_role("status").filter(has_text="approved")
    toast.get_by_role("button", name="Commit to git…").click()
    panel = page.get_by_role("dialog", name="Commit to git")
    button = panel.get_by_role("button", name=re.compile("Commit [0-9]+ file"))
    expect(button).to_be_enabled()
    fill(project / "later.txt", b"later\n")
    with SessionCheckpointer(project, SESSION) as session:
        session.checkpoint("The agent went on")
    button.click()
    expect(page.get_by_role("status").filter(has_text="Committed")).to_be_visible()
    listed = subprocess.run(
        [*git, "ls-tree", "-r", "--name-only", "HEAD"], check=True, capture_output=True, text=True
    )
    assert "extra.txt" in listed.stdout
    assert "later.txt" not in listed.stdout


@pytest.mark.parametrize("way", ["key", "button"])
def test_undo_of_the_last_thing_shows_it_first(opened: Tab, project: Path, way: str) -> None:
    page = opened.open_session(session=SESSION)
    expect(page.locator("a.row").first).to_be_visible()
    if way == "key":
        page.keyboard.press("u")
    else:
        page.get_by_role("button", name="Undo…").click()
    panel = page.get_by_role("dialog")
    expect(panel).to_contain_text("extra.txt")
    panel.get_by_role("button", name="Undo 2 files").click()
    expect(page.get_by_role("status").filter(has_text="Undone: 2 files")).to_be_visible()
    assert (project / "src" / "app.py").read_text() == LONG
    assert not (project / "extra.txt").exists()


def test_an_undone_restore_is_redone_from_its_message_and_from_the_undo_panel(
    opened: Tab, project: Path
) -> None:
    before = describe(project)
    page = opened.open_session(session=SESSION)
    choose(page, "Everything works")
    page.keyboard.press("r")
    page.get_by_role("dialog").get_by_role("button", name="Restore 3 files").click()
    status = page.get_by_role("status")
    status.get_by_role("button", name="Undo").click()
    expect(status.filter(has_text="Undone: 3 files")).to_be_visible()
    assert describe(project) == before
    status.get_by_role("button", name="Redo").click()
    expect(status.filter(has_text="Redone: 3 files")).to_be_visible()
    assert not (project / "extra.txt").exists()
    status.get_by_role("button", name="Undo").click()
    expect(status.filter(has_text="Undone: 3 files")).to_be_visible()
    page.reload()
    page.get_by_role("button", name="Undo…").click()
    page.get_by_role("dialog").get_by_role("button", name="Redo 3 files").click()
    expect(status.filter(has_text="Redone: 3 files")).to_be_visible()
    assert not (project / "extra.txt").exists()


def test_a_restore_of_some_files_is_named_and_counted_at_once(opened: Tab, project: Path) -> None:
    page = opened.open_session(session=SESSION)
    unsaved = page.get_by_text(" not saved")
    expect(unsaved).to_have_text("2 files not saved")
    choose(page, "Everything works")
    page.keyboard.press("r")
    panel = page.get_by_role("dialog")
    panel.get_by_role("checkbox", name="extra.txt").uncheck()
    panel.get_by_role("button", name="Restore 2 files").click()
    row = page.locator("a.row", has_text="Restored 2 paths")
    row.click()
    expect(page.get_by_role("region", name="Moment").locator("h2")).to_have_text("Restored 2 paths")
    expect(unsaved).to_have_count(0)
    page.reload()
    expect(row).to_be_visible()
    fill(project / "notes.txt", b"three\n")
    page.reload()
    expect(unsaved).to_have_text("1 file not saved")


def test_home_shows_this_project_first_and_calls_no_session_of_yours_working(
    opened: Tab, tmp_path: Path
) -> None:
    fill(tmp_path / "another" / "notes.txt", b"one\n")
    with SessionCheckpointer(tmp_path / "another", "elsewhere") as session:
        session.checkpoint("Later than everything in this project")
    page = opened.open("/")
    cards = page.locator("section.workspace")
    expect(cards.filter(has_text="elsewhere")).to_have_count(1)
    expect(cards.filter(has_text="this project")).to_have_count(1)
    card = cards.first
    expect(card).to_contain_text("this project")
    line = card.locator(".session-line", has_text=SESSION)
    expect(line).to_contain_text("You · open")
    expect(line.locator(".live.idle")).to_have_count(1)


def test_a_search_from_home_covers_every_project(opened: Tab, tmp_path: Path) -> None:
    fill(tmp_path / "another" / "notes.txt", b"one\n")
    with SessionCheckpointer(tmp_path / "another", "elsewhere") as session:
        session.checkpoint("Everything works there too")
    page = opened.open("/")
    page.get_by_role("searchbox").fill("everything works")
    page.keyboard.press("Enter")
    hits = page.locator("a.hit")
    expect(hits).to_have_count(2)
    expect(hits.filter(has_text="another · elsewhere")).to_have_count(1)
    where = page.get_by_role("combobox").filter(has_text="Every project")
    where.select_option("This project")
    expect(hits).to_have_count(1)
    where.select_option("Every project")
    hits.filter(has_text="another").click()
    expect(page).to_have_url(re.compile("/w/[^/]+/s/elsewhere/"))
    expect(page.locator("a.row[aria-current]")).to_contain_text("Everything works there too")


def test_what_another_session_saved_is_not_called_unsaved(opened: Tab, project: Path) -> None:
    page = opened.open_session(session=SESSION)
    newest = page.locator("a.row", has_text="Changed the notes")
    expect(newest).to_contain_text("you are here")
    with SessionCheckpointer(project, "another") as session:
        session.checkpoint("Saved by another agent")
    expect(newest).not_to_contain_text("you are here")
    expect(page.locator(".filter-bar")).to_contain_text("2 files changed")
    expect(page.locator(".filter-bar")).not_to_contain_text("not saved")


def test_a_long_restore_shows_its_progress_until_it_is_done(opened: Tab, project: Path) -> None:
    page = opened.open_session(session=SESSION)
    choose(page, "Everything works")
    page.keyboard.press("r")
    panel = page.get_by_role("dialog")

    def later(route: Route) -> None:
        route.continue_(headers={**route.request.headers, "prefer": "respond-async"})

    def running(route: Route) -> None:
        """The first look at the operation finds it half way."""
        page.unroute("**/api/operations/*")
        half = {"status": "running", "done": 2, "total": 4, "phase": "write"}
        route.fulfill(json={**half, "id": "x", "kind": "restore"})

    page.route("**/rollback", later)
    page.route("**/api/operations/*", running)
    seen = "document.querySelector('dialog .working')?.textContent ?? ''"
    page.evaluate(
        f"""new MutationObserver(() => {{ window.seen = (window.seen ?? "") + ({seen}); }})
            .observe(document.body, {{ characterData: true, childList: true, subtree: true }})"""
    )
    panel.get_by_role("button", name="Restore 3 files").click()
    expect(page.get_by_role("status").filter(has_text="Restored 3 files")).to_be_visible()
    assert "2 of 4" in page.evaluate("window.seen")
    assert not (project / "extra.txt").exists()
