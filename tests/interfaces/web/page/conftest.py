"""A browser, signed in to a real server of a real workspace."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import ConsoleMessage, Page, ViewportSize, expect

from tests.interfaces.web.page.sample_session import SESSION, SampleSession
from tests.interfaces.web.page.server_process import ServerProcess, serving
from tests.support.chromium import WHY_NO_CHROMIUM, SharedBrowser

_IN_A_BROWSER = (
    "accessibility",
    "by_keyboard",
    "changing",
    "directories",
    "hostile_files",
    "lines",
    "live",
    "long_sessions",
    "other_origins",
    "page_logic",
    "reading",
    "restore_panel",
    "settings",
    "shared_browser",
    "trouble",
)
collect_ignore = [f"test_{name}.py" for name in _IN_A_BROWSER] if WHY_NO_CHROMIUM else []

PATIENCE_MS = 20_000
WIDE: ViewportSize = {"width": 1440, "height": 900}
PHONE: ViewportSize = {"width": 390, "height": 844}


@pytest.fixture(scope="session")
def shared_browser() -> Iterator[SharedBrowser]:
    """The only one of this worker: to start one takes as long as a test."""
    browser = SharedBrowser()
    yield browser
    browser.close()


@pytest.fixture(scope="session")
def sample(
    memory_of_the_run: Path | None, tmp_path_factory: pytest.TempPathFactory
) -> SampleSession:
    """A day of an agent, for tests that only look."""
    place = tmp_path_factory.mktemp("sample")
    if memory_of_the_run is not None:
        place = memory_of_the_run / "sample"
        place.mkdir()
    sample = SampleSession(place, {**os.environ, "HOLDFAST_HOME": str(place / "store")})
    sample.make_project()
    sample.work()
    sample.add_hostile_name()
    return sample


@pytest.fixture(scope="module")
def sample_server(sample: SampleSession) -> Iterator[ServerProcess]:
    with serving(sample.project, sample.environment) as server:
        yield server


class Tab:
    """A page of the browser, signed in and still empty, and what went wrong in it."""

    def __init__(self, page: Page, server: ServerProcess) -> None:
        self.page, self.server = page, server
        self.problems: list[str] = []
        page.on("pageerror", lambda error: self.problems.append(str(error)))
        page.on("dialog", lambda dialog: self.problems.append(f"dialog: {dialog.message}"))
        page.on("console", self._console)
        # As the browser would, and without the page that the link leads to.
        signed_in = page.context.request.get(server.new_link(), max_redirects=0)
        assert signed_in.status == 303

    def _console(self, message: ConsoleMessage) -> None:
        if message.type == "error" and "Failed to load resource" not in message.text:
            self.problems.append(message.text)

    def open_link(self) -> Page:
        """Open home by a link that signs the browser in, as a person does."""
        self.page.context.clear_cookies()
        self.page.goto(self.server.new_link())
        return self.page

    def open(self, path: str) -> Page:
        """From then on the page follows the workspace: it sees what changes, and what is lost."""
        with self.page.expect_response("**/events"):
            self.page.goto(self.server.url + path)
        return self.page

    def open_session(self, rest: str = "", session: str = SESSION) -> Page:
        page = self.open(f"/s/{session}{rest}")
        page.wait_for_selector("main")
        return page


class Tabs:
    """Opens tabs, each in a browser profile of its own."""

    def __init__(self, browser: SharedBrowser) -> None:
        self._browser = browser
        self.opened: list[Tab] = []

    def __call__(
        self,
        server: ServerProcess,
        *,
        phone: bool = False,
        dark: bool = False,
        checked_from_outside: bool = False,
    ) -> Tab:
        """`checked_from_outside` lets a test run code that the page's policy forbids."""
        context = self._browser.new_context(
            bypass_csp=checked_from_outside,
            viewport=PHONE if phone else WIDE,
            color_scheme="dark" if dark else "light",
            reduced_motion="reduce",
        )
        context.set_default_timeout(PATIENCE_MS)
        tab = Tab(context.new_page(), server)
        self.opened.append(tab)
        return tab


@contextmanager
def new_tabs(shared_browser: SharedBrowser) -> Iterator[Tabs]:
    """At the end no tab may have reported a problem."""
    expect.set_options(timeout=PATIENCE_MS)
    tabs = Tabs(shared_browser)
    with shared_browser.in_use():
        yield tabs
        for tab in tabs.opened:
            tab.page.context.close()
    assert [problem for tab in tabs.opened for problem in tab.problems] == []


@pytest.fixture
def new_tab(shared_browser: SharedBrowser) -> Iterator[Tabs]:
    with new_tabs(shared_browser) as tabs:
        yield tabs


@pytest.fixture
def tab(new_tab: Tabs, sample_server: ServerProcess) -> Tab:
    return new_tab(sample_server)
