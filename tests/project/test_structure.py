"""The shape of the source: small modules that open by saying what they are."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.project.repository import ROOT, files, modules, relative, syntax

MODULE_LINES = 400
FUNCTION_LINES = 80
VAGUE_NAMES = {"utils", "util", "helpers", "helper", "common", "manager", "base", "misc"}

PYTHON_FILES = [path for path in files() if path.suffix == ".py"]


@pytest.mark.parametrize("path", PYTHON_FILES, ids=relative)
def test_a_module_is_short_enough_to_be_read_at_once(path: Path) -> None:
    assert len(path.read_text("utf-8").splitlines()) <= MODULE_LINES


@pytest.mark.parametrize("path", modules(), ids=relative)
def test_a_function_fits_on_a_screen_or_two(path: Path) -> None:
    too_long = [
        f"{node.name}: {node.end_lineno - node.lineno + 1} lines"
        for node in ast.walk(syntax(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.end_lineno is not None
        and node.end_lineno - node.lineno >= FUNCTION_LINES
    ]
    assert too_long == []


@pytest.mark.parametrize("path", PYTHON_FILES, ids=relative)
def test_a_module_opens_with_a_sentence_about_its_concept(path: Path) -> None:
    opening = (ast.get_docstring(syntax(path)) or "").split("\n\n")[0]
    assert opening.endswith((".", ":")), f"opening: {opening!r}"


@pytest.mark.parametrize("path", PYTHON_FILES, ids=relative)
def test_a_module_is_named_after_what_it_holds(path: Path) -> None:
    parts = path.relative_to(ROOT).with_suffix("").parts
    assert not VAGUE_NAMES.intersection(parts)


@pytest.mark.parametrize("path", PYTHON_FILES, ids=relative)
def test_no_test_is_skipped_and_no_work_is_left_for_later(path: Path) -> None:
    # Put together here, so that this file does not find itself.
    unwanted = [f"pytest.{word}" for word in ("skip", "xfail", "importorskip")]
    unwanted += [f"mark.{word}" for word in ("skip", "skipif", "xfail")]
    unwanted += ["TO" + "DO", "FIX" + "ME"]
    source = path.read_text("utf-8")
    assert [word for word in unwanted if word in source] == []
