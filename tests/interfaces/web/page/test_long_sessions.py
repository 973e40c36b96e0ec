"""A session of a thousand moments: only what is in sight is drawn, and every moment is reached."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from playwright.sync_api import expect

from holdfast import SessionCheckpointer
from tests.interfaces.web.page.conftest import Tabs
from tests.interfaces.web.page.server_process import serving
from tests.support.hostile_trees import fill

pytestmark = [pytest.mark.requirement("WB-3"), pytest.mark.in_memory]

MOMENTS = 1300
"""More than one page of the timeline holds."""
MOST_DRAWN = 80
SESSION = "long"
TOP = "document.querySelector('.pane.timeline').scrollTop"


@pytest.fixture
def first(tmp_path: Path) -> str:
    """The id of the oldest moment."""
    fill(tmp_path / "project" / "a.txt", b"a\n")
    with SessionCheckpointer(tmp_path / "project", SESSION) as session:
        first = session.checkpoint("Moment 0", name="oldest")
        for number in range(1, MOMENTS):
            session.checkpoint(f"Moment {number}")
    return first


def test_a_long_session_is_drawn_in_part_and_reached_whole(
    new_tab: Tabs, tmp_path: Path, first: str
) -> None:
    with serving(tmp_path / "project", os.environ) as server:
        tab = new_tab(server)
        page = tab.open_session(session=SESSION)
        expect(page.locator("a.row").first).to_contain_text(f"Moment {MOMENTS - 1}")
        oldest = page.locator(f"a.row[data-moment='{first}']")
        while oldest.count() == 0:
            page.evaluate(f"{TOP} += 20_000")
            page.wait_for_timeout(50)
            assert page.locator(".row").count() <= MOST_DRAWN
        expect(oldest).to_contain_text("Moment 0")

        # A link to an old moment loads as much as it needs, and shows it in the list.
        tab.open_session(f"/{first}", session=SESSION)
        expect(page.locator("a.row[aria-current]")).to_contain_text("Moment 0")
        assert page.locator(".row").count() <= MOST_DRAWN

        # What arrives at the top does not move what one reads further down.
        page.keyboard.press("k")
        expect(page.locator("a.row[aria-current]")).to_contain_text("Moment 1")
        before = page.locator("a.row[aria-current]").bounding_box()
        height = page.locator(".rows").bounding_box()
        with SessionCheckpointer(tmp_path / "project", SESSION) as session:
            session.checkpoint("One more")
        page.wait_for_function(
            "(before) => document.querySelector('.rows').offsetHeight > before",
            arg=height["height"] if height else 0,
        )
        assert page.locator("a.row[aria-current]").bounding_box() == before
