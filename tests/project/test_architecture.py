"""The map of the house: `docs/design/architecture.md` names every package and only what exists."""

from __future__ import annotations

import ast
import re
from functools import cache

from tests.project.repository import ROOT, syntax

PAGE = ROOT / "docs/design/architecture.md"
SOURCE = ROOT / "src"
WALKS = ("A save", "A restore", "An agent event")
CHANGES = 12


@cache
def _sections() -> dict[str, str]:
    parts = re.split(r"^## (.+)$", PAGE.read_text("utf-8"), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def _exists(dotted: str) -> bool:
    """Whether a module, class, function or method of that name is in the source."""
    parts = dotted.split(".")
    for length in range(len(parts), 0, -1):
        place = SOURCE.joinpath(*parts[:length])
        module = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
        if module.exists():
            return _defines(syntax(module).body, parts[length:])
    return False


def _defines(body: list[ast.stmt], names: list[str]) -> bool:
    if not names:
        return True
    for node in body:
        kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
        if isinstance(node, kinds) and node.name == names[0]:
            return _defines(node.body, names[1:])
    return False


def test_the_map_has_one_line_for_every_package() -> None:
    listed = re.findall(r"^\| `(\S+)/` \|", _sections()["The map"], flags=re.MULTILINE)
    packages = {
        place.parent.relative_to(SOURCE / "holdfast").as_posix()
        for place in SOURCE.joinpath("holdfast").rglob("__init__.py")
    } - {"."}
    assert sorted(listed) == sorted(packages)


def test_every_function_of_a_walk_exists() -> None:
    named = {
        walk: re.findall(r"^\d+\. `(holdfast[\w.]+)`", _sections()[walk], flags=re.MULTILINE)
        for walk in WALKS
    }
    assert all(len(steps) >= 5 for steps in named.values()), named
    assert [f"{w}: {s}" for w, steps in named.items() for s in steps if not _exists(s)] == []


def test_every_place_for_a_change_exists() -> None:
    rows = re.findall(r"^\| ([^|`]+) \| (.+) \|$", _sections()["Where a change goes"], re.M)
    assert len(rows) >= CHANGES
    places = [place for _, cell in rows for place in re.findall(r"`([\w/.-]+)`", cell)]
    assert [p for p in places if not (SOURCE / "holdfast" / p).exists()] == []


def test_contributors_start_at_the_map() -> None:
    page = ROOT.joinpath("CONTRIBUTING.md").read_text("utf-8")
    links = re.findall(r"\]\(([^)]+)\)", page)
    assert links[0] == "docs/design/architecture.md"
