"""A real Chromium for the tests of the page, where the system has one.

Without windows of its own, if the system packages it so: that takes a third less processor time.
The first lines of a run say what is missing, and the tests that need it are then not collected.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext

_NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")

CHROMIUM = next((found for name in _NAMES if (found := shutil.which(name))), None)
WHY_NO_CHROMIUM = None if CHROMIUM else "there is no chromium; install the system's package"


@contextmanager
def running_browser() -> Iterator[Browser]:
    """Headless, without update checks or a first-run page."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM,
            args=[
                "--no-sandbox",  # tests may run as root, and open nothing but the page
                "--disable-gpu",
                "--disable-background-networking",
                "--disable-component-update",
                "--no-first-run",
            ],
        )
        yield browser
        browser.close()


class SharedBrowser:
    """One browser for many tests: started for the first of them, and again whenever it has died.

    Playwright's event loop counts as running in this thread for as long as the browser does. So
    that other tests can run loops of their own in between, it does so only inside `in_use`.
    """

    def __init__(self) -> None:
        self._running = ExitStack()
        self._browser: Browser | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Tests call the browser, its contexts and their pages inside this block alone."""
        asyncio._set_running_loop(self._loop)
        try:
            yield
        finally:
            self._loop = asyncio._get_running_loop()
            asyncio._set_running_loop(None)

    def new_context(self, **options: Any) -> BrowserContext:
        """A profile of its own, in a new browser if the last one no longer answers."""
        from playwright.sync_api import Error

        if self._browser is not None:
            with suppress(Error):
                return self._browser.new_context(**options)
            self._end()
        self._browser = self._running.enter_context(running_browser())
        return self._browser.new_context(**options)

    def close(self) -> None:
        with self.in_use():
            self._end()

    def _end(self) -> None:
        from playwright.sync_api import Error

        self._browser = None
        with suppress(Error):  # that it is gone already
            self._running.close()
