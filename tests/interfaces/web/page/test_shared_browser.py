"""The browser that the tests of a worker share: a dead one is replaced, and loops are not mixed."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator

import pytest
from playwright.sync_api import Error

from tests.support.chromium import SharedBrowser


@pytest.fixture
def browser() -> Iterator[SharedBrowser]:
    browser = SharedBrowser()
    yield browser
    browser.close()


def children(process: int) -> list[int]:
    with open(f"/proc/{process}/task/{process}/children", encoding="ascii") as listed:
        return [int(one) for one in listed.read().split()]


@pytest.mark.linux
@pytest.mark.parametrize("victim", ["browser", "driver"])
def test_the_test_after_a_crash_gets_a_new_browser(browser: SharedBrowser, victim: str) -> None:
    others = children(os.getpid())
    with browser.in_use():
        page = browser.new_context().new_page()
        (driver,) = set(children(os.getpid())) - set(others)
        (chromium,) = children(driver)  # leads a group of its own
        if victim == "browser":
            os.killpg(chromium, signal.SIGKILL)
        else:
            os.kill(driver, signal.SIGKILL)
        with pytest.raises(Error):
            page.goto("about:blank")
    with browser.in_use():
        page = browser.new_context().new_page()
        assert page.evaluate("1 + 1") == 2


def test_other_tests_run_loops_of_their_own_while_the_browser_runs(browser: SharedBrowser) -> None:
    for number in range(2):
        with browser.in_use():
            assert browser.new_context().new_page().evaluate("(n) => n", number) == number
        assert asyncio.run(asyncio.sleep(0, number)) == number
