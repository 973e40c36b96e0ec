"""The documentation site: the pages that its navigation names, and what its HTML loads.

python -m tests.project.site DIRECTORY     fail if a page loads anything from another address
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

from tests.project.repository import ROOT

CONFIGURATION = ROOT / "zensical.toml"
_LOADING = {"script": "src", "img": "src", "iframe": "src", "link": "href", "source": "src"}


def navigation() -> Iterator[str]:
    """The pages in the navigation, in its order."""
    yield from _leaves(tomllib.loads(CONFIGURATION.read_text("utf-8"))["project"]["nav"])


def _leaves(node: object) -> Iterator[str]:
    if isinstance(node, str):
        yield node
    else:
        assert isinstance(node, dict | list)
        for child in node.values() if isinstance(node, dict) else node:
            yield from _leaves(child)


class _Loads(HTMLParser):
    """Collects the addresses that a browser loads for a page, without following its links."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        address = dict(attributes).get(_LOADING.get(tag, ""))
        if address:
            self.addresses.append(address)


def loaded_from_elsewhere(html: str) -> list[str]:
    """The addresses outside the site that a browser loads for a page."""
    parser = _Loads()
    parser.feed(html)
    return [address for address in parser.addresses if re.match(r"(?:[a-z]+:)?//", address)]


def main(site: Path) -> int:
    pages = sorted(site.rglob("*.html"))
    found = [
        f"{page.relative_to(site)} loads {address}"
        for page in pages
        for address in loaded_from_elsewhere(page.read_text("utf-8"))
    ]
    print(*found, f"{len(pages)} pages in {site}", sep="\n")
    return 1 if found or not pages else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
