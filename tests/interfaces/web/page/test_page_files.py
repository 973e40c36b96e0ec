"""The shipped files of the page: whole, small, and without a way for text to become code."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

import holdfast.interfaces.web

pytestmark = pytest.mark.requirement("WB-3")

PAGE = Path(holdfast.interfaces.web.__file__).parent / "page"
VENDOR = PAGE / "vendor"
FIRST_VIEW_BYTES = 150_000
_IMPORT = re.compile(r"""(?:from|import)\s*\(?\s*["']([^"']+)["']""")
_LATE_IMPORT = re.compile(r"""import\(\s*["']([^"']+)["']\s*\)""")


def own_scripts() -> list[Path]:
    return sorted(PAGE.glob("*.js"))


class _Tags(HTMLParser):
    """Tags with their attributes, and the text inside scripts and styles."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.code: list[str] = []
        self._inside = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._inside = tag

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside in ("script", "style") and data.strip():
            self.code.append(data)


def read_index() -> _Tags:
    found = _Tags()
    found.feed((PAGE / "index.html").read_text())
    return found


def test_vendored_libraries_are_the_published_files_with_their_imports_made_relative() -> None:
    manifest = json.loads((VENDOR / "manifest.json").read_text())
    for one in manifest["files"]:
        content = (VENDOR / one["file"]).read_bytes()
        for name, place in manifest["imports"].items():
            content = content.replace(f'from"{place}"'.encode(), f'from"{name}"'.encode())
        assert hashlib.sha256(content).hexdigest() == one["sha256"], one["file"]
        assert (VENDOR / one["licence"]).read_text().strip()
    listed = {one["file"] for one in manifest["files"]}
    assert {path.name for path in VENDOR.glob("*.js")} == listed


def test_the_page_has_no_inline_code_and_asks_nobody_else() -> None:
    index = read_index()
    assert index.code == []
    for tag, attributes in index.tags:
        assert not any(name.startswith("on") or name == "style" for name in attributes), tag
        for name in ("src", "href"):
            if address := attributes.get(name):
                assert address.startswith("/page/"), address
                assert (PAGE / address.removeprefix("/page/")).is_file(), address


def test_no_script_can_turn_text_into_markup_or_code() -> None:
    doors = re.compile(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|dangerouslySet|\beval\b"
        r"|new Function|createContextualFragment|DOMParser|srcdoc|https?://(?!www\.w3\.org/)"
    )
    for script in own_scripts():
        assert not doors.search(script.read_text()), script.name


def test_every_import_is_a_file_of_the_page() -> None:
    for script in [*own_scripts(), *VENDOR.glob("*.js")]:
        for name in _IMPORT.findall(script.read_text()):
            assert name.startswith("./"), (script.name, name)
            assert (script.parent / name).is_file(), (script.name, name)


def test_the_first_view_is_light() -> None:
    """Everything that a session needs before it shows: compressed as a server sends it."""
    wanted = {PAGE / "index.html", PAGE / "session.js"}
    for _, attributes in read_index().tags:
        for name in ("src", "href"):
            if address := attributes.get(name):
                wanted.add(PAGE / address.removeprefix("/page/"))
    while True:
        more = {path for one in wanted for path in _needed_by(one)} - wanted
        if not more:
            break
        wanted |= more
    sizes = {path.name: len(gzip.compress(path.read_bytes(), 6)) for path in wanted}
    assert sum(sizes.values()) <= FIRST_VIEW_BYTES, sizes


def _needed_by(path: Path) -> set[Path]:
    if path.suffix != ".js":
        return set()
    text = path.read_text()
    late = set(_LATE_IMPORT.findall(text))
    return {(path.parent / name).resolve() for name in _IMPORT.findall(text) if name not in late}


def test_every_colour_is_named_in_one_place() -> None:
    """So that both themes are complete, and contrast is checked where the colours are."""
    plain = re.compile(r"#[0-9a-fA-F]{3,8}\b|\brgb\(")
    for sheet in sorted((PAGE / "css").glob("*.css")):
        if sheet.name == "colours.css":
            continue
        found = plain.findall(sheet.read_text())
        assert found in ([], ["rgb("]), (sheet.name, found)  # the shade behind a dialog


def test_motion_is_short_and_stops_for_people_who_asked_for_that() -> None:
    for sheet in sorted((PAGE / "css").glob("*.css")):
        text = sheet.read_text()
        for moving in re.findall(r"(?:animation|transition): ([^;]*);", text):
            assert "infinite" not in moving, (sheet.name, moving)
            assert all(int(ms) <= 150 for ms in re.findall(r"([0-9]+)ms", moving)), sheet.name
            assert not re.search(r"[0-9]s\b", moving), (sheet.name, moving)
        # That variable is 0 for them, and they get no animations.
        for moving in re.findall(r"transition: ([^;]*);", text):
            assert moving.endswith("var(--quick)"), (sheet.name, moving)
    quiet = (PAGE / "css" / "colours.css").read_text().partition("prefers-reduced-motion")[2]
    assert "--quick: 0ms" in quiet
    assert "animation: none !important" in quiet
