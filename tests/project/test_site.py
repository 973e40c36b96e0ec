"""The documentation site has every page, and loads nothing from elsewhere.

`make site` builds it and fails on a broken link.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.project.repository import ROOT
from tests.project.site import loaded_from_elsewhere, main, navigation


def test_every_page_is_in_the_navigation_once() -> None:
    docs = ROOT / "docs"
    pages = sorted(path.relative_to(docs).as_posix() for path in docs.rglob("*.md"))
    assert sorted(navigation()) == pages


@pytest.mark.parametrize(
    ("html", "found"),
    [
        ("<script src='https://cdn.example/x.js'></script>", ["https://cdn.example/x.js"]),
        ("<link rel=stylesheet href='//fonts.example/a.css'>", ["//fonts.example/a.css"]),
        ("<img src='../assets/a.svg'><script src='a.js'></script>", []),
        ("<a href='https://example.org/'>a link is not loaded</a>", []),
    ],
)
def test_addresses_that_a_browser_loads_are_found(html: str, found: list[str]) -> None:
    assert loaded_from_elsewhere(html) == found


def test_a_site_that_loads_something_or_is_empty_is_refused(tmp_path: Path) -> None:
    assert main(tmp_path) == 1
    page = tmp_path / "index.html"
    page.write_text("<p>whole</p>")
    assert main(tmp_path) == 0
    page.write_text("<script src='https://cdn.example/x.js'></script>")
    assert main(tmp_path) == 1
