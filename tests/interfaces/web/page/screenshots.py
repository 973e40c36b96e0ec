"""Pictures of the page for the documentation, taken from a real server of a real session.

usage: python -m tests.interfaces.web.page.screenshots DIRECTORY

Those named in SHOWN are also written to docs/assets, where the README and the guide show them.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Browser, Page

from tests.interfaces.web.page.sample_session import SESSION, SampleSession
from tests.interfaces.web.page.server_process import ServerProcess, serving
from tests.support.chromium import running_browser
from tests.support.small_png import small_png

_WIDE = (1440, 900)
_PHONE = (390, 844)
_NAMED = "before the cleanup"
ASSETS = Path(__file__).parents[4] / "docs" / "assets"
SHOWN = ("session-light", "restore-light")


@dataclass(frozen=True, slots=True)
class Picture:
    """`at` is the address, or the words of a moment to choose; `key` opens a panel."""

    name: str
    at: str = f"/s/{SESSION}"
    moment: str | None = None
    key: str | None = None
    is_phone: bool = False
    is_dark: bool = False


def pictures() -> list[Picture]:
    """Every view: light and dark on a wide screen, light on a phone."""
    views = [
        Picture("home", "/"),
        Picture("session", moment=_NAMED),
        Picture("changes", moment="After rm -rf"),
        Picture("restore", moment=_NAMED, key="r"),
        Picture("replay", f"/s/{SESSION}/replay"),
        Picture("search", "/search?q=refresh"),
        Picture("settings", "/settings"),
        Picture("health", "/health"),
        Picture("keys", key="?"),
    ]
    return [
        Picture(f"{one.name}-{kind}", one.at, one.moment, one.key, is_phone, is_dark)
        for one in views
        for kind, is_phone, is_dark in (
            ("light", False, False),
            ("dark", False, True),
            ("phone", True, False),
        )
    ]


def take(browser: Browser, server: ServerProcess, picture: Picture, place: Path) -> None:
    width, height = _PHONE if picture.is_phone else _WIDE
    context = browser.new_context(
        viewport={"width": width, "height": height},
        color_scheme="dark" if picture.is_dark else "light",
        reduced_motion="reduce",
    )
    page = context.new_page()
    page.goto(server.new_link())
    page.goto(server.url + picture.at)
    _settle(page)
    if picture.moment is not None:
        page.locator("a.row", has_text=re.compile(picture.moment)).last.click()
        _settle(page)
    if picture.key is not None:
        page.keyboard.press(picture.key)
        page.get_by_role("dialog").wait_for()
        _settle(page)
    taken = small_png(page.screenshot())
    (place / f"{picture.name}.png").write_bytes(taken)
    if picture.name in SHOWN:
        (ASSETS / f"page-{picture.name}.png").write_bytes(taken)
    context.close()


def _settle(page: Page) -> None:
    page.wait_for_timeout(1000)
    page.locator(".loading").first.wait_for(state="detached")


def main(place: Path) -> None:
    place.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory).resolve()
        own = {"HOME": str(root), "HOLDFAST_HOME": str(root / "store"), "HOLDFAST_DAEMON": "off"}
        sample = SampleSession(root, {**os.environ, **own, "GIT_CONFIG_GLOBAL": os.devnull})
        sample.make_project()
        sample.work()
        other = SampleSession(root, sample.environment, "landing-copy", "landing-page")
        other.make_project()
        other.event("SessionStart", source="startup")
        other.prompt("Shorter copy on the landing page")
        other.holdfast("sessions", "rename", other.session, "Shorter copy on the landing page")
        other.write("README.md", "# Landing page\n\nShort and clear.\n")
        other.holdfast("approve", "-m", "short and clear", "--session", other.session)
        with serving(sample.project, sample.environment) as server, running_browser() as browser:
            for picture in pictures():
                take(browser, server, picture, place)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
