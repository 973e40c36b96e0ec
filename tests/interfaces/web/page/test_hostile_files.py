"""Names and contents that would mislead a careless page: they are shown as what they are."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from holdfast import SessionCheckpointer
from tests.interfaces.web.page.conftest import Tabs
from tests.interfaces.web.page.server_process import serving
from tests.support.hostile_trees import fill

pytestmark = [pytest.mark.requirement("WB-3", "WB-4"), pytest.mark.in_memory]

SESSION = "hostile"
MARKUP = "<script>alert(1)</script><img src=x onerror=alert(1)>"
LONG_LINE_BYTES = 10_000_000


def notebook(source: str) -> bytes:
    cell = {"cell_type": "markdown", "id": "a", "metadata": {}, "source": [source]}
    whole = {"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(whole).encode()


FILES = {
    b"javascript:alert(1).md": MARKUP.encode(),
    b"evil\xe2\x80\xaegpj.txt": b"text\n",
    b"bad\xffname.txt": b"bytes\n",
    b"a\nb.txt": b"lines\n",
    b"markup.ipynb": notebook(MARKUP),
    b"one-line.txt": b"x" * LONG_LINE_BYTES,
    b"no-image.png": b"\x89PNG\r\n\x1a\n\0" + MARKUP.encode(),
    b"picture.svg": f"<svg onload='alert(1)'>{MARKUP}</svg>".encode(),
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    project = tmp_path / "project"
    fill(project / "README.md", b"# Project\n")
    with SessionCheckpointer(project, SESSION) as session:
        session.checkpoint("Before")
        for name, content in FILES.items():
            fill(project / os.fsdecode(name), content)
        session.checkpoint(MARKUP, name=MARKUP)
        session.add_message("user", MARKUP)
        session.annotate("HEAD", MARKUP)
    return project


def file_named(page: Page, name: str) -> Locator:
    return page.locator("article.file").filter(has_text=name)


def test_hostile_files_are_shown_as_what_they_are(new_tab: Tabs, project: Path) -> None:
    with serving(project, os.environ) as server:
        page = new_tab(server).open_session("?with=first", session=SESSION)
        expect(page.locator("article.file")).to_have_count(len(FILES))
        expect(file_named(page, "javascript:alert(1).md")).to_contain_text(MARKUP)
        expect(file_named(page, "evil‹202E›gpj.txt")).to_be_visible()
        expect(file_named(page, "a‹000A›b.txt")).to_be_visible()
        expect(file_named(page, "bad")).to_contain_text("bytes")
        expect(file_named(page, "markup.ipynb")).to_contain_text(MARKUP)
        expect(file_named(page, "picture.svg")).to_contain_text("onload")
        expect(file_named(page, "one-line.txt")).to_contain_text(
            "Too large to show by line: 10 MB."
        )
        picture = file_named(page, "no-image.png")
        picture.scroll_into_view_if_needed()
        expect(picture).to_contain_text("Not an image that can be shown")
        expect(page.get_by_role("region", name="Moment").locator("h2")).to_have_text(MARKUP)
        expect(page.locator(".annotation")).to_contain_text(MARKUP)
        assert page.locator("img[src=x], main script, main svg[onload]").count() == 0


def test_hostile_files_are_named_in_the_restore_panel_and_in_the_search(
    new_tab: Tabs, project: Path
) -> None:
    with serving(project, os.environ) as server:
        tab = new_tab(server)
        page = tab.open_session(session=SESSION)
        page.locator("a.row", has_text="Before").last.click()
        page.keyboard.press("r")
        panel = page.get_by_role("dialog")
        expect(panel.locator(".steps li")).to_have_count(len(FILES))
        line = panel.locator(".steps li", has_text="one-line.txt")
        line.get_by_role("button", name="Show").click()
        expect(line).to_contain_text("Too large to show by line: 10 MB.")
        page.keyboard.press("Escape")
        tab.open("/search?q=alert")
        expect(page.locator("a.hit").first).to_contain_text(MARKUP)
        assert page.locator("img[src=x], main script").count() == 0
