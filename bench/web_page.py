"""How quickly the web page shows a session with a long past, in a real Chromium.

    python -m bench.web_page [--checkpoints N] [--files N] [--rounds N]

The store is that of `bench.web_api`. Every time is read in the browser, after the frame in which
the result was painted:

- first paint and first moments: an empty browser cache, from the start of the navigation
- a click: on moments that no browser has asked for before, until all five files of the diff are
  there
- scrolling: the wheel moves through every moment of the session, older pages load meanwhile, and
  the time between frames is recorded
- a live event: from the end of a save in another process than the server's until its row is there

Tools with a shadow repository run `git log` and `git diff` for a click and have drawn nothing by
then. The ratio of a click is to these two commands.
"""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from bench import web_api
from bench.contest import Book
from bench.peers import HOLDFAST, REFERENCE
from bench.processes import Failed, plain_surroundings
from bench.web_api import FILES_CHANGED, SESSION, Past, Server
from holdfast.bootstrap.workspace import open_workspace
from holdfast.domain.ids import SessionId
from holdfast.domain.intent import make_intent
from tests.support.chromium import WHY_NO_CHROMIUM, running_browser

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, StorageState, ViewportSize

PAINT = "page: first paint"
MOMENTS = "page: first moments of the session"
FRAME = "page: frames while scrolling through the session"
SLOWEST_FRAME = "page: slowest frame of the same"
CLICK = "page: click on a moment, diff of 5 files"
LIVE = "page: a save of another process becomes visible"
LIMITS_MS = {PAINT: 500.0, FRAME: 50.0, SLOWEST_FRAME: 50.0, CLICK: 150.0, LIVE: 300.0}

OLDEST = "it begins"
"""The reason of the first save that `bench.finding.fill` makes."""
_WINDOW: "ViewportSize" = {"width": 1440, "height": 900}
_PATIENCE_MS = 20_000
_WHEEL_PX = 1_500
_PAUSE_MS = 300
"""Between two measurements: the page finishes what it began."""

_CLOCK_STEP_MS = 1.0
"""The browser's clock counts in these. A row can be there before the saving process runs on."""

_SCRIPT = Path(__file__).with_suffix(".js")


def main() -> int:
    given = _parse()
    with tempfile.TemporaryDirectory(prefix="holdfast-page-") as directory:
        work = Path(directory)
        with plain_surroundings(work):
            os.environ["HOLDFAST_HOME"] = str(work / "holdfast")
            past = web_api.prepare(work, given.checkpoints, given.files, given.rounds + 1)
            book = Book()
            with web_api.serving(past.workspace) as server:
                measure(book, past, server, given.rounds)
            web_api.measure_git(book, work, past.workspace, given.checkpoints, given.rounds)
            compare_a_click(book)
            page = Book()
            page.pages.update((name, book.pages[name]) for name in (*LIMITS_MS, MOMENTS))
            print(web_api.printed(page, LIMITS_MS))
    return 0


def measure(book: Book, past: Past, server: Server, rounds: int) -> None:
    """Everything. A page that does not show what it should is a fault, not a figure."""
    try:
        if WHY_NO_CHROMIUM:
            raise Failed(WHY_NO_CHROMIUM)
        with running_browser() as browser:
            _measure(book, past, server, browser, rounds)
    except Failed as error:
        for operation in (*LIMITS_MS, MOMENTS):
            book.at(operation, HOLDFAST.title).fault(str(error))


def compare_a_click(book: Book) -> None:
    """The peer's figure for a click: `git log` and `git diff`, one after the other."""
    pairs = zip(
        book.at(web_api.TIMELINE, REFERENCE.title).samples,
        book.at(web_api.DIFF, REFERENCE.title).samples,
        strict=True,
    )
    book.at(CLICK, REFERENCE.title).samples += [listing + diff for listing, diff in pairs]


def _measure(book: Book, past: Past, server: Server, browser: "Browser", rounds: int) -> None:
    with _tab(browser) as page:
        page.goto(server.login_link())
        signed_in = page.context.storage_state()
    address = f"http://{server.host}/s/{SESSION}"

    def record(operation: str, *taken_ms: float) -> None:
        book.at(operation, HOLDFAST.title).samples += [one / 1000 for one in taken_ms]

    for _ in range(rounds):
        with _tab(browser, signed_in) as page:
            page.goto(address)
            record(MOMENTS, page.evaluate("bench.start.then(({ at }) => at)"))
            record(PAINT, page.evaluate("bench.firstPaint()"))
    with _tab(browser, signed_in) as page:
        page.goto(address)
        record(CLICK, *_clicks(page, past, rounds))
    with _tab(browser, signed_in) as page:
        page.goto(address)
        frames_ms = _frames(page)
        record(FRAME, *frames_ms)
        record(SLOWEST_FRAME, max(frames_ms))
    with _tab(browser, signed_in) as page:
        page.goto(address)
        record(LIVE, *_live_saves(page, past.workspace, rounds))


@contextmanager
def _tab(browser: "Browser", signed_in: "StorageState | None" = None) -> Iterator["Page"]:
    """A page of a browser profile whose cache is empty."""
    context = browser.new_context(viewport=_WINDOW, storage_state=signed_in)
    context.set_default_timeout(_PATIENCE_MS)
    context.add_init_script(path=_SCRIPT)
    yield context.new_page()
    context.close()


def _clicks(page: "Page", past: Past, rounds: int) -> Iterator[float]:
    """From the newest moment to older ones; the newest is what the page shows at first."""
    moments = list(enumerate(past.saved))[-2 : -2 - rounds : -1]
    for number, moment in moments:
        row = page.locator(f"a.row[data-moment='{moment}']")
        row.scroll_into_view_if_needed()
        page.wait_for_timeout(_PAUSE_MS)
        page.evaluate(
            "(args) => bench.watchClick(...args)", [FILES_CHANGED, web_api.line_of(number)]
        )
        row.click()
        yield page.evaluate("bench.shown")


def _frames(page: "Page") -> list[float]:
    page.locator("a.row").first.hover()
    page.wait_for_timeout(_PAUSE_MS)
    page.evaluate("bench.watchFrames()")
    while not page.evaluate("bench.isAtTheEnd()"):
        page.mouse.wheel(0, _WHEEL_PX)
    frames: list[float] = page.evaluate("bench.frames_ms")
    if OLDEST not in page.locator("a.row").last.inner_text():
        raise Failed("scrolling did not reach the oldest moment")
    return frames


def _live_saves(page: "Page", workspace: Path, rounds: int) -> Iterator[float]:
    page.locator("a.row").first.wait_for()
    with open_workspace(workspace, create=False, force=True) as opened:
        for number in range(rounds):
            page.wait_for_timeout(_PAUSE_MS)
            words = f"live save {number:04}"
            (workspace / "live.txt").write_text(words)
            page.evaluate("(words) => bench.watchRow(words)", words)
            opened.engine.save(SessionId(SESSION), make_intent(words))
            saved = time.time()
            shown_ms = page.evaluate("bench.shown.then(({ clock }) => clock)") - saved * 1000
            yield max(shown_ms, _CLOCK_STEP_MS)


def _parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.web_page")
    parser.add_argument("--checkpoints", type=int, default=10_000, metavar="N")
    parser.add_argument("--files", type=int, default=10_000, metavar="N")
    parser.add_argument("--rounds", type=int, default=40, metavar="N")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
