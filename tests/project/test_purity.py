"""Clock, randomness, environment and terminal stay at the edge; the domain only computes.

The syntax trees are searched for every use of such a facility, through any alias an import gave it.
A module that may use one is named below, with what it may use; an entry that is no longer needed
fails too.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.project.repository import PACKAGE, modules, relative, syntax

# All that the domain may import from outside itself: values and pure functions.
PURE = frozenset(
    "__future__ abc base64 binascii bisect blake3 collections dataclasses datetime difflib enum "
    "errno fnmatch functools heapq itertools json math operator re stat string struct textwrap "
    "types typing unicodedata".split()
)

FACILITIES = {
    "clock": (
        "datetime.date.today",
        "datetime.datetime.now",
        "datetime.datetime.today",
        "datetime.datetime.utcnow",
        "time.clock_gettime",
        "time.clock_gettime_ns",
        "time.localtime",
        "time.monotonic",
        "time.monotonic_ns",
        "time.perf_counter",
        "time.perf_counter_ns",
        "time.sleep",
        "time.time",
        "time.time_ns",
    ),
    "randomness": ("os.urandom", "random", "secrets", "uuid.uuid1", "uuid.uuid4"),
    "environment": (
        "getpass.getuser",
        "os.environ",
        "os.environb",
        "os.getcwd",
        "os.getcwdb",
        "os.getenv",
        "os.path.expanduser",
        "os.putenv",
        "pathlib.Path.cwd",
        "pathlib.Path.home",
        "sys.argv",
    ),
    "terminal": (
        "input",
        "os.get_terminal_size",
        "print",
        "shutil.get_terminal_size",
        "sys.stderr",
        "sys.stdin",
        "sys.stdout",
    ),
}

# The edge: module or package, and what it may use.
EDGES = {
    "__main__.py": {"environment"},
    "bootstrap": {"environment"},
    "interfaces/agent_setup": {"environment", "clock"},
    "interfaces/cli": {"environment", "terminal", "clock"},
    "interfaces/daemon": {"environment", "terminal", "clock"},
    "interfaces/hooks": {"environment", "terminal", "clock"},
    "adapters/local/system.py": {"clock", "randomness"},
}


DOMAIN = sorted(PACKAGE.joinpath("domain").rglob("*.py"))


def uses(module: ast.Module) -> Iterator[tuple[int, str, str]]:
    """Every use of a facility: line, facility, full name."""
    known = {name: facility for facility, names in FACILITIES.items() for name in names}
    aliases = _aliases(module)
    for node in ast.walk(module):
        if isinstance(node, ast.Name | ast.Attribute):
            name = _full_name(node, aliases)
            for prefix in _prefixes(name):
                if prefix in known:
                    yield node.lineno, known[prefix], prefix


def _aliases(module: ast.Module) -> dict[str, str]:
    aliases = {"print": "print", "input": "input"}
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            for alias in node.names:
                first = alias.name.split(".")[0]
                aliases[alias.asname or first] = alias.name if alias.asname else first
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                aliases[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    return aliases


def _full_name(node: ast.expr, aliases: dict[str, str]) -> str:
    match node:
        case ast.Name(id=name):
            return aliases.get(name, "")
        case ast.Attribute(value=value, attr=attr):
            owner = _full_name(value, aliases)
            return f"{owner}.{attr}" if owner else ""
        case _:
            return ""


def _prefixes(name: str) -> Iterator[str]:
    parts = name.split(".")
    for length in range(1, len(parts) + 1):
        yield ".".join(parts[:length])


def _edge_of(path: Path) -> str | None:
    inside = path.relative_to(PACKAGE).as_posix()
    for edge in EDGES:
        if inside == edge or inside.startswith(edge + "/"):
            return edge
    return None


def test_clock_randomness_environment_and_terminal_stay_at_the_edge() -> None:
    stray = [
        f"{relative(path)}:{line}: {name} ({facility})"
        for path in modules()
        for line, facility, name in uses(syntax(path))
        if facility not in EDGES.get(_edge_of(path) or "", set())
    ]
    assert stray == []


def test_an_edge_uses_what_it_is_allowed_and_nothing_is_allowed_in_vain() -> None:
    used: dict[str, set[str]] = {edge: set() for edge in EDGES}
    for path in modules():
        if edge := _edge_of(path):
            used[edge] |= {facility for _, facility, _ in uses(syntax(path))}
    assert used == EDGES


def test_the_domain_imports_only_values_and_pure_functions() -> None:
    foreign = [
        f"{relative(path)}: {name}"
        for path in DOMAIN
        for name in _imported(syntax(path))
        if name.split(".")[0] not in PURE | {"holdfast"}
    ]
    assert foreign == []


def _imported(module: ast.Module) -> Iterator[str]:
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or "."


def test_the_domain_opens_nothing_and_runs_nothing() -> None:
    outside = {"open", "input", "print", "exec", "eval", "compile", "__import__"}
    called = [
        f"{relative(path)}:{node.lineno}: {node.func.id}"
        for path in DOMAIN
        for node in ast.walk(syntax(path))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        if node.func.id in outside
    ]
    assert called == []


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("import time\ntime.time()", {("clock", "time.time")}),
        ("import time as t\nx = t.monotonic", {("clock", "time.monotonic")}),
        ("from time import sleep as nap\nnap(1)", {("clock", "time.sleep")}),
        ("from datetime import datetime\ndatetime.now(tz)", {("clock", "datetime.datetime.now")}),
        ("import datetime as d\nd.date.today()", {("clock", "datetime.date.today")}),
        ("import os\nos.environ.get('X')", {("environment", "os.environ")}),
        ("from pathlib import Path\nPath.home()", {("environment", "pathlib.Path.home")}),
        ("import random\nrandom.Random(1)", {("randomness", "random")}),
        ("print('x')", {("terminal", "print")}),
        ("import time\ntime.strftime('%Y')\nclock.time()", set()),
    ],
)
def test_uses_are_found_through_any_alias(source: str, found: set[tuple[str, str]]) -> None:
    assert {(facility, name) for _, facility, name in uses(ast.parse(source))} == found
