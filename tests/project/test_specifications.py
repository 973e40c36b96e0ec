"""`docs/reference/specifications.md` claims only what a test shows."""

from __future__ import annotations

import ast
import re
from functools import cache

from tests.project.repository import ROOT, syntax

PAGE = ROOT / "docs/reference/specifications.md"
STATES = ("works", "differs", "planned", "not planned")


@cache
def _rows() -> tuple[tuple[str, str, str], ...]:
    lines = PAGE.read_text("utf-8").splitlines()
    cells = [
        tuple(cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1])
        for line in lines
        if line.startswith("| ") and not line.startswith("| Feature ")
    ]
    return tuple((row[0], row[1], row[2]) for row in cells)


@cache
def _tests_of(path: str) -> frozenset[str]:
    place = ROOT / path
    if not place.is_file():
        return frozenset()
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return frozenset(node.name for node in ast.walk(syntax(place)) if isinstance(node, kinds))


def _named_tests(text: str) -> list[tuple[str, str]]:
    return re.findall(r"`(tests/[\w/]+\.py)::(test_\w+)`", text)


def test_every_row_has_a_known_state_and_a_reason() -> None:
    assert [row for row in _rows() if row[1] not in STATES or not row[2]] == []


def test_every_working_feature_names_its_test() -> None:
    assert [row[0] for row in _rows() if row[1] == "works" and not _named_tests(row[2])] == []


def test_every_named_test_exists() -> None:
    assert [
        f"{path}::{name}"
        for _, _, text in _rows()
        for path, name in _named_tests(text)
        if name not in _tests_of(path)
    ] == []
