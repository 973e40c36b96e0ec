"""The shape of the source: a module says first what it is, and is named after what it holds."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tests.project.repository import PACKAGE, ROOT, files, modules, relative, syntax

FUNCTION_LINES = 80
BEHIND_THE_API = {"vault", "engine", "catalog", "_vault", "_engine"}
VAGUE_NAMES = {"utils", "util", "helpers", "helper", "common", "manager", "base", "misc"}

NAMED_IN_STRINGS = {
    # Public names, imported on first use.
    "__init__.py": {
        "holdfast.api.session",
        "holdfast.api.workspace",
        "holdfast.domain.errors",
        "holdfast.domain.intent",
        "holdfast.domain.snapshots",
    },
    "tools/__init__.py": {"holdfast.interfaces.tools.handlers"},
    # One module per command, imported when it is chosen.
    "interfaces/cli/verbs.py": {"holdfast.interfaces.cli.commands"},
    # Programs of other processes; and the agents, the only import that points outward.
    "adapters/local/live_database.py": {"holdfast.adapters.local.live_database"},
    "bootstrap/components.py": {"holdfast.bootstrap.second_reader", "holdfast.interfaces.agents"},
    # A group of entry points, and no import.
    "components/installed.py": {"holdfast.components"},
}
"""Modules named in strings, which the import linter cannot see, by the file that names them."""

PYTHON_FILES = [path for path in files() if path.suffix == ".py"]


def test_a_function_fits_on_a_screen_or_two() -> None:
    too_long = [
        f"{relative(path)}: {node.name}: {node.end_lineno - node.lineno + 1} lines"
        for path in modules()
        for node in ast.walk(syntax(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.end_lineno is not None
        and node.end_lineno - node.lineno >= FUNCTION_LINES
    ]
    assert too_long == []


def test_a_module_opens_with_a_sentence_about_its_concept() -> None:
    openings = {
        relative(path): (ast.get_docstring(syntax(path)) or "").split("\n\n")[0]
        for path in PYTHON_FILES
    }
    assert {path: text for path, text in openings.items() if not text.endswith((".", ":"))} == {}


def test_a_module_is_named_after_what_it_holds() -> None:
    vague = [
        relative(path)
        for path in PYTHON_FILES
        if VAGUE_NAMES.intersection(path.relative_to(ROOT).with_suffix("").parts)
    ]
    assert vague == []


def test_interfaces_reach_nothing_behind_the_api() -> None:
    # Imports are linted; this is about objects that an object of the api would hand out.
    reached = [
        f"{relative(path)}:{node.lineno}: .{node.attr}"
        for path in modules()
        if "interfaces" in path.parts
        for node in ast.walk(syntax(path))
        if isinstance(node, ast.Attribute) and node.attr in BEHIND_THE_API
    ]
    assert reached == []


def test_no_test_is_skipped_and_no_work_is_left_for_later() -> None:
    # Put together here, so that this file does not find itself.
    unwanted = [f"pytest.{word}" for word in ("skip", "xfail", "importorskip")]
    unwanted += [f"mark.{word}" for word in ("skip", "skipif", "xfail")]
    unwanted += ["TO" + "DO", "FIX" + "ME"]
    found = [
        f"{relative(path)}: {word}"
        for path in PYTHON_FILES
        for word in unwanted
        if word in path.read_text("utf-8")
    ]
    assert found == []


def test_modules_are_named_in_strings_only_where_that_is_known() -> None:
    named: dict[str, set[str]] = {}
    for path in modules():
        for text in _strings(syntax(path)):
            for module in filter(_exists, _IN_STRING.findall(text)):
                named.setdefault(path.relative_to(PACKAGE).as_posix(), set()).add(module)
    assert named == NAMED_IN_STRINGS


_IN_STRING = re.compile(r"(?:\A|\b(?:import|from) )(holdfast(?:\.\w+)+)(?=\.?\Z|\s)")


def _exists(module: str) -> bool:
    place = PACKAGE.parent.joinpath(*module.split("."))
    return place.is_dir() or place.with_suffix(".py").exists()


def _strings(tree: ast.Module) -> Iterator[str]:
    """Every string of a module but those that stand alone: its docstrings."""
    alone = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in alone:
            yield node.value
