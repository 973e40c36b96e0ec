"""The map of the house: `docs/design/architecture.md` names every package and only what exists."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import FrameType

from holdfast import SessionCheckpointer
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


def _steps(walk: str) -> list[str]:
    return re.findall(r"^\d+\. `(holdfast[\w.]+)`", _sections()[walk], flags=re.MULTILINE)


def test_every_function_of_a_walk_exists() -> None:
    named = {walk: _steps(walk) for walk in WALKS}
    assert all(len(steps) >= 5 for steps in named.values()), named
    assert [f"{w}: {s}" for w, steps in named.items() for s in steps if not _exists(s)] == []


@contextmanager
def _calls() -> Iterator[list[str]]:
    """The functions of the product that are called within the block, by their first call."""
    found: dict[str, None] = {}

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            module = str(frame.f_globals.get("__name__"))
            if module.startswith("holdfast."):
                found.setdefault(f"{module}.{frame.f_code.co_qualname}")

    names: list[str] = []
    sys.setprofile(note)
    try:
        yield names
    finally:
        sys.setprofile(None)
        names += found


def test_a_save_and_a_restore_take_the_steps_of_their_walks_in_order(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", tmp_path / "project"], check=True)
    (tmp_path / "project" / "file").write_text("1")
    with SessionCheckpointer(tmp_path / "project", "s") as session:
        with _calls() as saved:
            session.save_checkpoint("begin")
        (tmp_path / "project" / "file").write_text("2")
        with _calls() as restored:
            session.restore_checkpoint("initial", components={"git": "exact"})
    for walk, calls in (("A save", saved), ("A restore", restored)):
        assert [name for name in calls if name in _steps(walk)] == _steps(walk)


def test_every_place_for_a_change_exists() -> None:
    rows = re.findall(r"^\| ([^|`]+) \| (.+) \|$", _sections()["Where a change goes"], re.M)
    assert len(rows) >= CHANGES
    places = [place for _, cell in rows for place in re.findall(r"`([\w/.-]+)`", cell)]
    assert [p for p in places if not (SOURCE / "holdfast" / p).exists()] == []


def test_contributors_start_at_the_map() -> None:
    page = ROOT.joinpath("CONTRIBUTING.md").read_text("utf-8")
    links = re.findall(r"\]\(([^)]+)\)", page)
    assert links[0] == "docs/design/architecture.md"
