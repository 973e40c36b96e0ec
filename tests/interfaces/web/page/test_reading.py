"""What did the agent do, and why? By mouse, by keyboard, on a phone, with hostile names."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.interfaces.web.page.conftest import PHONE, Tab, Tabs
from tests.interfaces.web.page.sample_session import HOSTILE_NAME, SESSION, TITLE, SampleSession
from tests.interfaces.web.page.server_process import serving
from tests.support.tree_hash import describe

if TYPE_CHECKING:
    from tests.interfaces.web.page.server_process import ServerProcess

pytestmark = pytest.mark.requirement("WB-3")

NAMED = "before the cleanup"


def test_home_leads_to_a_session_and_its_newest_moment(tab: Tab) -> None:
    page = tab.open("/")
    page.get_by_role("link", name=re.compile(TITLE)).click()
    expect(page).to_have_url(re.compile(f"/s/{SESSION}$"))
    chosen = page.locator("a.row[aria-current]")
    expect(chosen).to_contain_text("Awaited refresh in the middleware")
    expect(chosen).to_contain_text("you are here")
    page.locator("a.row", has_text="middleware.py").first.click()
    expect(page.get_by_role("region", name="Changes")).to_contain_text("1 file +2 −2 in this step")
    expect(page.locator(".line.a mark").first).to_contain_text("async")


def test_the_timeline_shows_messages_risks_names_notes_lanes_and_approval(tab: Tab) -> None:
    page = tab.open_session()
    timeline = page.get_by_role("region", name="Timeline")
    expect(timeline).to_contain_text("Make the token refresh async, and clean up")
    risky = page.locator("a.row", has_text="Before rm -rf src/session_store")
    expect(risky).to_contain_text("risky")
    expect(risky).to_contain_text("abandoned")
    named = page.locator("a.row", has_text=NAMED).last
    expect(named).to_contain_text("1 notes")
    expect(page.locator("a.row", has_text="Refresh becomes a coroutine")).to_contain_text("48%")
    expect(page.locator("a.row", has_text="login works")).to_contain_text("approved")
    expect(page.locator("svg.arcs path.tip").first).to_be_attached()
    expect(page.locator(".bracket.active").first).to_be_attached()
    expect(page.locator(".bracket.merged").first).to_be_attached()


def test_home_counts_the_files_that_wait_for_approval(tab: Tab, sample: SampleSession) -> None:
    page = tab.open("/")
    status = json.loads(sample.holdfast("diff", "approved", "--json"))
    line = page.get_by_role("link", name=re.compile(TITLE))
    expect(line).to_contain_text(f"{len(status['changes'])} files to approve")
    expect(line).to_contain_text("Claude Code")


def test_a_checkpoint_with_a_reason_shows_the_work_since_the_message(tab: Tab) -> None:
    page = tab.open_session()
    page.locator("a.row", has_text="Refresh becomes a coroutine").click()
    changes = page.get_by_role("region", name="Changes")
    expect(changes).to_contain_text("1 file +3 −3 since your message")
    expect(page.get_by_role("button", name="Message", exact=True)).to_have_attribute(
        "aria-pressed", "true"
    )


def test_moments_count_the_lines_that_they_changed(tab: Tab, sample: SampleSession) -> None:
    page = tab.open_session()
    row = page.locator("a.row", has_text="Wrote src/auth/middleware.py")
    expect(row.locator(".count").first).to_have_text("1 file +2 −2")
    deleted = page.locator("a.row", has_text="After rm -rf src/session_store")
    lost = sum(
        len((sample.project / "src" / "session_store" / name).read_text().splitlines())
        for name in ("__init__.py", "memory.py", "redis.py")
    )
    expect(deleted.locator(".count").first).to_have_text(f"3 files deleted −{lost}")


def test_a_moment_tells_its_reason_facts_and_what_was_left_out(tab: Tab) -> None:
    page = tab.open_session()
    page.locator("a.row", has_text=NAMED).last.click()
    moment = page.get_by_role("region", name="Moment")
    expect(moment).to_contain_text("Nothing imports the old store now")
    expect(moment).to_contain_text("72%")
    expect(moment).to_contain_text("feature/async")
    expect(moment).to_contain_text("app.db · 1 table, 214 rows")
    moment.get_by_text(re.compile("^[0-9]+ dirty$")).click()
    expect(moment).to_contain_text("src/auth/refresh.py")
    expect(moment).to_contain_text("Good place to come back to")
    moment.get_by_text(re.compile("^[0-9]+ paths$")).click()
    expect(moment).to_contain_text("node_modules")


def test_everything_is_reached_by_keyboard(tab: Tab) -> None:
    page = tab.open_session()
    chosen = page.locator("a.row[aria-current]")
    expect(chosen).to_contain_text("Awaited refresh")
    page.keyboard.press("j")
    expect(chosen).to_contain_text("middleware.py")
    page.keyboard.press("k")
    expect(chosen).to_contain_text("Awaited refresh")
    page.keyboard.press("2")
    expect(page.get_by_role("button", name="Now", exact=True)).to_have_attribute(
        "aria-pressed", "true"
    )
    expect(page.locator(".file").first).to_be_visible()
    page.keyboard.press("n")
    expect(page.locator(".hunk.at")).to_have_count(1)
    page.keyboard.press("]")
    expect(page.locator(".file.at")).to_have_count(1)
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keys")).to_contain_text("Older moment")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.keyboard.press("/")
    expect(page.get_by_role("searchbox")).to_be_focused()


def test_a_key_works_as_soon_as_the_moments_are_shown(tab: Tab) -> None:
    tab.page.add_init_script(
        """new MutationObserver((_, observer) => {
          if (!document.querySelector("a.row[aria-current]")) return;
          observer.disconnect();
          document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "j", bubbles: true }));
        }).observe(document, { childList: true, subtree: true });"""
    )
    page = tab.open_session()
    expect(page.locator("a.row[aria-current]")).to_contain_text("middleware.py")


@pytest.mark.requirement("WB-4")
def test_hostile_names_and_contents_are_text(tab: Tab) -> None:
    page = tab.open_session("?with=now")
    changes = page.get_by_role("region", name="Changes")
    expect(changes).to_contain_text(HOSTILE_NAME)
    expect(changes).to_contain_text("<script>alert(1)</script>")
    assert page.locator("img[src=x]").count() == 0


def test_any_two_moments_can_be_compared_in_one_column_or_two(tab: Tab) -> None:
    page = tab.open_session()
    expect(page.locator("a.row[aria-current]")).to_contain_text("Awaited refresh")
    page.locator("a.row", has_text="login works").click(modifiers=["Shift"])
    changes = page.get_by_role("region", name="Changes")
    expect(changes).to_contain_text("between the two")
    expect(changes).to_contain_text("refresh.py")
    page.get_by_role("button", name="Split").click()
    expect(page.locator(".split").filter(has_text="async def refresh(").first).to_be_visible()


def test_folded_lines_unfold(tab: Tab) -> None:
    page = tab.open_session("?with=now")
    file = page.locator("article.file", has_text="refresh.py").last
    expect(file).not_to_contain_text("Access tokens, refreshed before they expire")
    file.get_by_role("button", name=re.compile("unchanged line")).first.click()
    expect(file).to_contain_text("Access tokens, refreshed before they expire")


def test_one_change_is_copied_as_a_patch(tab: Tab) -> None:
    tab.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = tab.open_session("?with=now")
    hunk = page.locator("article.file", has_text="refresh.py").last.locator(".hunk").first
    hunk.hover()
    hunk.get_by_role("button", name="Copy this change").click()
    expect(page.get_by_role("status").filter(has_text="Copied")).to_be_visible()
    header, target, place, *lines = page.evaluate("navigator.clipboard.readText()").split("\n")
    assert header.startswith("--- a/")
    assert target == header.replace("--- a/", "+++ b/")
    assert place.startswith("@@ -")
    assert any(line.startswith(("+", "-")) for line in lines)


def test_an_id_is_shown_short_and_copied_whole(tab: Tab) -> None:
    tab.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = tab.open_session()
    chosen = page.locator("a.row[aria-current]")
    expect(chosen).to_contain_text("Awaited refresh")
    page.get_by_role("button", name="Copy the whole id").click()
    expect(page.get_by_role("status").filter(has_text="Copied")).to_be_visible()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == chosen.get_attribute("data-moment")
    expect(page.locator(".facts .id code")).to_have_text(copied[:8])


def test_search_leads_straight_to_the_moment(tab: Tab) -> None:
    page = tab.open("/search")
    page.get_by_role("searchbox").fill("coroutine")
    hit = page.locator("a.hit").first
    expect(hit).to_contain_text("Refresh becomes a coroutine")
    expect(hit.locator("mark").first).to_have_text("coroutine")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.locator("a.row[aria-current]")).to_contain_text("Refresh becomes a coroutine")


def test_escape_leaves_the_search(tab: Tab) -> None:
    page = tab.open_session()
    expect(page.locator("a.row[aria-current]")).to_contain_text("Awaited refresh")
    page.keyboard.press("Control+k")
    expect(page.get_by_role("searchbox")).to_be_focused()
    page.keyboard.type("coroutine")
    expect(page.locator("a.hit mark").first).to_have_text("coroutine")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Escape")
    expect(page.locator("a.row[aria-current]")).to_contain_text("Awaited refresh")


def test_facets_narrow_a_search(tab: Tab) -> None:
    page = tab.open("/search?q=session_store")
    hits = page.locator("a.hit")
    expect(hits.filter(has_text="After rm -rf")).to_have_count(1)
    kinds = page.get_by_label("Any kind")
    expect(kinds).to_contain_text("merge into main")
    expect(kinds).to_contain_text("end of day")
    kinds.select_option("risky")
    expect(hits).to_have_count(1)
    expect(hits).to_contain_text("Before rm -rf")
    page.get_by_label("Any agent").select_option("claude-code")
    page.get_by_label("Any time").select_option("1d")
    expect(hits).to_have_count(1)
    page.get_by_label("Path").fill("no/such/path")
    page.keyboard.press("Tab")
    expect(page.get_by_role("heading", name="Nothing found")).to_be_visible()


def test_half_typed_text_stays_when_the_page_is_drawn_again(tab: Tab) -> None:
    page = tab.open("/search?q=session_store")
    expect(page.locator("a.hit").first).to_be_visible()
    page.get_by_label("Path").press_sequentially("src/se")
    history = (
        "history.replaceState(null, '', '/search?q=refresh'); dispatchEvent(new Event('popstate'))"
    )
    page.evaluate(history)
    expect(page.locator("a.hit mark").first).to_contain_text("refresh")
    expect(page.get_by_label("Path")).to_have_value("src/se")
    tab.open("/settings")
    page.get_by_label("risky command: at most").press_sequentially("7")
    page.get_by_role("button", name="Dark", exact=True).dispatch_event("click")
    expect(page.get_by_role("button", name="Dark", exact=True)).to_have_attribute(
        "aria-pressed", "true"
    )
    expect(page.get_by_label("risky command: at most")).to_have_value("7")


def test_words_typed_last_do_not_undo_a_facet_chosen_meanwhile(tab: Tab) -> None:
    page = tab.open("/search?q=session_store")
    expect(page.locator("a.hit").first).to_be_visible()
    page.evaluate(
        """() => {
            const box = document.querySelector("input[type=search]");
            box.value = "session_store rm";
            box.dispatchEvent(new Event("input", {bubbles: true}));
            const kind = [...document.querySelectorAll("select")].find((one) =>
                one.querySelector("option[value=risky]"));
            return new Promise((resolve) => setTimeout(() => {
                kind.value = "risky";
                kind.dispatchEvent(new Event("change", {bubbles: true}));
                resolve();
            }, 50));
        }"""
    )
    expect(page).to_have_url(re.compile("q=session_store.rm"))
    expect(page).to_have_url(re.compile("kind=risky"))


def test_a_moment_quotes_the_whole_command_if_its_title_does_not(
    new_tab: Tabs, tmp_path: Path
) -> None:
    agent = SampleSession(tmp_path, os.environ)
    agent.make_project()
    agent.event("SessionStart", source="startup")
    agent.shell("rm -rf src/session_store && echo pushed")
    with serving(agent.project, agent.environment) as server:
        page = new_tab(server).open_session()
        calls = page.get_by_role("region", name="Moment").locator(".call")
        page.locator("a.row", has_text="Before rm -rf").click()
        expect(calls).to_have_text("Bash  rm -rf src/session_store && echo pushed")
        page.locator("a.row", has_text="After rm -rf").click()
        title = page.get_by_role("region", name="Moment").locator("h2")
        expect(title).to_have_text("After rm -rf src/session_store && echo pushed")
        expect(calls).to_have_count(0)


def test_a_file_that_is_gone_anyway_is_not_offered_for_removal(tab: Tab) -> None:
    page = tab.open_session()
    page.locator("a.row", has_text="Wrote src/auth/session.py").click()
    file = page.locator("article.file", has_text="session.py")
    expect(file).to_contain_text("Already removed")
    expect(file.get_by_role("button", name="Remove…")).to_have_count(0)


def test_a_message_leads_to_the_moment_before_it(tab: Tab) -> None:
    page = tab.open_session()
    page.locator("a.row.message", has_text="Make the token refresh async").click()
    expect(page.locator("a.row[aria-current]")).to_contain_text("Before your message")


@pytest.mark.requirement("SE-10")
def test_replay_shows_files_as_they_were_and_changes_nothing(
    tab: Tab, sample: SampleSession
) -> None:
    before = describe(sample.project)
    page = tab.open_session()
    page.locator("a.row", has_text="middleware.py").first.click()
    page.get_by_role("link", name="Replay").click()
    expect(page.get_by_role("heading", name=re.compile("middleware.py"))).to_be_visible()
    content = page.get_by_role("region", name="File then")
    expect(content).to_contain_text("async def middleware")
    slider = page.get_by_role("slider", name="Step")
    place = int(slider.input_value())
    for _ in range(3):
        page.keyboard.press("ArrowLeft")
    expect(slider).to_have_value(str(place - 3))
    page.get_by_role("button", name="middleware.py").click()
    expect(content).to_contain_text("def middleware")
    expect(content).not_to_contain_text("async def middleware")
    page.keyboard.press("Escape")
    expect(page.get_by_role("region", name="Timeline")).to_be_visible()
    assert describe(sample.project) == before


def test_a_replay_at_its_end_plays_from_the_start(tab: Tab) -> None:
    page = tab.open_session("/replay")
    slider = page.get_by_role("slider", name="Step")
    last = slider.get_attribute("max")
    expect(slider).to_have_value(last or "")
    page.get_by_role("button", name="Play").click()
    expect(slider).to_have_value("1")
    page.get_by_role("button", name="Pause").click()
    page.get_by_role("link", name="Leave the replay").click()
    expect(page.get_by_role("region", name="Timeline")).to_be_visible()


def test_health_shows_how_the_store_grew_and_when_it_was_checked(tab: Tab) -> None:
    page = tab.open("/health")
    expect(page.get_by_role("img", name=re.compile("^From .* to "))).to_be_visible()
    page.get_by_role("button", name="Check the store now").click()
    expect(page.locator("body")).to_contain_text("last check: no damage found")
    expect(page.locator("body")).to_contain_text("No damage found.")


def test_a_phone_shows_one_pane_with_a_way_back(
    new_tab: Tabs, sample_server: ServerProcess
) -> None:
    tab = new_tab(sample_server, phone=True)
    page = tab.open_session()
    timeline, moment = (page.get_by_role("region", name=name) for name in ("Timeline", "Moment"))
    changes = page.get_by_role("region", name="Changes")
    page.locator("a.row", has_text=NAMED).last.click()
    expect(moment).to_be_visible()
    expect(timeline).to_be_hidden()
    page.get_by_role("link", name="See the changes").click()
    expect(changes).to_be_visible()
    expect(moment).to_be_hidden()
    page.go_back()
    expect(moment).to_be_visible()
    page.get_by_role("link", name="Timeline").click()
    expect(timeline).to_be_visible()
    wide = page.evaluate("document.documentElement.scrollWidth")
    assert wide <= PHONE["width"]


SMALL_TARGETS = """() =>
  [...document.querySelectorAll("a, button, input, select, textarea, summary")]
    .map((one) => (one.matches("input[type=checkbox]") ? (one.closest("label") ?? one) : one))
    .filter((one) => one.checkVisibility() && one.getBoundingClientRect().height < 39.5)
    .map((one) => one.outerHTML.slice(0, 120))"""
"""A checkbox is as large as its label."""


def test_touch_targets_are_large_enough_on_a_phone(
    new_tab: Tabs, sample_server: ServerProcess
) -> None:
    tab = new_tab(sample_server, phone=True)
    views = {
        "/": ".session-line",
        "/search?q=refresh": "a.hit",
        "/settings": ".setting",
        "/health": ".fine",
        f"/s/{SESSION}": "a.row",
        f"/s/{SESSION}/replay": ".tree button",
    }
    for address, ready in views.items():
        page = tab.open(address)
        expect(page.locator(ready).first).to_be_visible()
        assert page.evaluate(SMALL_TARGETS) == [], address
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"], address
    page = tab.open_session()
    page.locator("a.row", has_text=NAMED).last.click()
    expect(page.locator(".facts")).to_be_visible()
    assert page.evaluate(SMALL_TARGETS) == []
    page.get_by_role("link", name="See the changes").click()
    page.get_by_role("button", name="Now", exact=True).click()
    expect(page.locator(".hunk").first).to_be_visible()
    assert page.evaluate(SMALL_TARGETS) == []
    page.keyboard.press("r")
    expect(page.get_by_role("dialog").locator(".steps li").first).to_be_visible()
    assert page.evaluate(SMALL_TARGETS) == []


def test_times_stay_right_while_the_page_is_open(
    new_tab: Tabs, sample_server: ServerProcess
) -> None:
    tab = new_tab(sample_server)
    page = tab.page
    page.clock.install()
    tab.open_session()
    newest = page.locator("a.row[data-moment] time").first
    expect(newest).to_have_attribute("title", re.compile("[0-9]{2}:[0-9]{2}:[0-9]{2}"))
    page.clock.fast_forward("03:00:00")
    expect(newest).to_have_text("3 h")
    expect(page.locator(".round time")).to_have_text("3 hours ago")
    expect(page.locator(".row.day")).to_have_text(re.compile("Today|Yesterday"))
    page.clock.fast_forward(10 * 24 * 3_600_000)
    expect(page.locator(".row.day")).not_to_have_text(re.compile("Today|Yesterday"))


def test_both_themes_can_be_chosen_and_stay(tab: Tab) -> None:
    page = tab.open_session()
    ground = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(ground)
    page.get_by_role("button", name="Switch light or dark theme").click()
    assert page.evaluate(ground) != light
    page.reload()
    assert page.evaluate(ground) != light


def test_an_unknown_address_and_an_unknown_session_say_so(tab: Tab) -> None:
    page = tab.open("/w/nowhere/s/none")
    refused = page.get_by_role("alert").filter(has_text="could not be loaded").first
    expect(refused).to_contain_text("unknown workspace")
    tab.open_session(session="no-such-session")
    expect(refused).to_contain_text("no-such-session")
