"""A real Chromium for the tests of the page, where the system has one.

Without windows of its own, if the system packages it so: that takes a third less processor time.
The first lines of a run say what is missing, and the tests that need it are then not collected.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Browser

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
