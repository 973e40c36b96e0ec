"""The manifest of promises, and the marks in the tests that prove them.

Marks are read from the syntax tree, so that every test file counts, even if its import fails. A
mark may be on a test function, on a test class, or in a `pytestmark`.

    python -m tests.project.promises     list each promise with the tests that prove it
"""

from __future__ import annotations

import ast
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MANIFEST = ROOT / "promises.toml"


def read_manifest(path: Path = MANIFEST) -> dict[str, str]:
    """The sentence of every promise by its id, in the order of the file."""
    return {name: str(sentence) for name, sentence in tomllib.loads(path.read_text()).items()}


def marked_tests(root: Path = ROOT) -> dict[str, tuple[str, ...]]:
    """Which tests carry each id, as `file::name` or `file::Class::name`, sorted."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for path in sorted(root.joinpath("tests").rglob("test_*.py")):
        module = ast.parse(path.read_bytes(), filename=str(path))
        for node_id, ids in _marks_of_module(module, path.relative_to(root).as_posix()):
            for identifier in ids:
                found[identifier].add(node_id)
    return {identifier: tuple(sorted(tests)) for identifier, tests in sorted(found.items())}


def _marks_of_module(module: ast.Module, file: str) -> Iterator[tuple[str, list[str]]]:
    everywhere = _pytestmark(module.body)
    for node in module.body:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                if name.startswith("test"):
                    yield f"{file}::{name}", everywhere + _ids(node.decorator_list)
            case ast.ClassDef(name=name) if name.startswith("Test"):
                own = _ids(node.decorator_list) + _pytestmark(node.body)
                yield f"{file}::{name}", everywhere + own
                for inner in node.body:
                    if isinstance(inner, ast.FunctionDef) and inner.name.startswith("test"):
                        yield f"{file}::{name}::{inner.name}", _ids(inner.decorator_list)
            # A Hypothesis state machine becomes a test by assignment.
            case ast.Assign(targets=[ast.Name(id=name)]) if name.startswith("Test"):
                yield f"{file}::{name}", everywhere
            case _:
                pass


def _pytestmark(body: Iterable[ast.stmt]) -> list[str]:
    for node in body:
        match node:
            case ast.Assign(targets=[ast.Name(id="pytestmark")], value=value):
                return _ids(value.elts if isinstance(value, ast.List | ast.Tuple) else [value])
            case _:
                pass
    return []


def _ids(expressions: Iterable[ast.expr]) -> list[str]:
    """The ids named by `pytest.mark.requirement(...)` among decorators or marks."""
    ids: list[str] = []
    for expression in expressions:
        if isinstance(expression, ast.Call) and ast.unparse(expression.func).endswith(
            "mark.requirement"
        ):
            # Anything but literals raises here: a mark that cannot be read proves nothing.
            ids += [str(ast.literal_eval(argument)) for argument in expression.args]
    return ids


def main() -> int:
    marks = marked_tests()
    for identifier, sentence in read_manifest().items():
        print(f"{identifier}: {sentence}")
        for test in marks.get(identifier, ("no test proves it",)):
            print(f"    {test}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
