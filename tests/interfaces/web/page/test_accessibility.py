"""Every view, in both themes and both widths, under axe-core; and what axe cannot see."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect

from tests.interfaces.web.page.conftest import Tab, Tabs, new_tabs
from tests.interfaces.web.page.sample_session import SESSION

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from tests.interfaces.web.page.server_process import ServerProcess
    from tests.support.chromium import SharedBrowser

pytestmark = pytest.mark.requirement("WB-3")

AXE = files("axe_playwright_python").joinpath("axe.min.js").read_text("utf-8")
VIEWS = {
    "home": "/",
    "session": f"/s/{SESSION}",
    "changes": f"/s/{SESSION}?with=now",
    "replay": f"/s/{SESSION}/replay",
    "search": "/search?q=refresh",
    "settings": "/settings",
    "health": "/health",
}
PANELS = {"restore": "r", "save": "c", "undo": "u", "keys": "?"}


def violations(page: Page) -> list[str]:
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE)
    found: list[Any] = page.evaluate("axe.run().then(({ violations }) => violations)")
    return [
        f"{one['id']}: {node['html'][:200]} {node['failureSummary'][:300]}"
        for one in found
        for node in one["nodes"]
    ]


def settled(page: Page) -> Page:
    """Everything that the view asks for is there."""
    expect(page.locator("main").first).to_be_visible()
    expect(page.locator(".loading")).to_have_count(0)
    return page


Look = tuple[bool, bool]
"""On a phone or not, and dark or light."""
LOOKS: tuple[Look, ...] = ((False, False), (False, True), (True, False), (True, True))


@pytest.fixture(scope="module")
def found_in_views(
    shared_browser: SharedBrowser, sample_server: ServerProcess
) -> dict[Look, dict[str, list[str]]]:
    """Each view is loaded once a width. Between the themes, style sheets alone choose: a change of
    theme is as good as a load."""
    found: dict[Look, dict[str, list[str]]] = {look: {} for look in LOOKS}
    with new_tabs(shared_browser) as new_tab:
        for phone in (False, True):
            tab = new_tab(sample_server, phone=phone, checked_from_outside=True)
            for name, path in VIEWS.items():
                settled(tab.open(path))
                for dark in (False, True):
                    tab.page.emulate_media(color_scheme="dark" if dark else "light")
                    found[phone, dark][name] = violations(settled(tab.page))
    return found


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("phone", [False, True], ids=["wide", "phone"])
def test_no_view_has_a_violation(
    found_in_views: dict[Look, dict[str, list[str]]], dark: bool, phone: bool
) -> None:
    assert found_in_views[phone, dark] == {name: [] for name in VIEWS}


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_no_panel_has_a_violation(new_tab: Tabs, sample_server: ServerProcess, dark: bool) -> None:
    tab = new_tab(sample_server, dark=dark, checked_from_outside=True)
    page = settled(tab.open_session())
    for name, key in PANELS.items():
        page.keyboard.press(key)
        expect(page.get_by_role("dialog")).to_be_visible()
        assert violations(settled(page)) == [], name
        page.keyboard.press("Escape")
        expect(page.get_by_role("dialog")).to_have_count(0)


def test_the_focus_is_seen_wherever_it_is(tab: Tab) -> None:
    page = settled(tab.open_session())
    seen = set()
    for _ in range(25):
        page.keyboard.press("Tab")
        outline = page.evaluate(
            """() => [document.activeElement.outerHTML.slice(0, 80),
                getComputedStyle(document.activeElement).outlineStyle]"""
        )
        assert outline[1] == "solid", outline
        seen.add(outline[0])
    assert len(seen) > 15


def test_a_panel_keeps_the_focus_and_gives_it_back(tab: Tab) -> None:
    page = settled(tab.open_session())
    button = page.get_by_role("button", name="Save now…")
    button.focus()
    page.keyboard.press("Enter")
    inside = "document.activeElement.closest('dialog') !== null"
    expect(page.get_by_role("dialog")).to_be_visible()
    for _ in range(12):
        page.keyboard.press("Tab")
        # Between the last and the first element the browser's own controls have the focus.
        assert page.evaluate(f"{inside} || document.activeElement === document.body")
    page.keyboard.press("Escape")
    expect(button).to_be_focused()


def test_nothing_moves_for_people_who_asked_for_that(tab: Tab) -> None:
    page = settled(tab.open_session())
    page.keyboard.press("?")
    moving = page.evaluate("document.getAnimations().length")
    assert moving == 0
