"""The manifest of promises, and the marks in the tests that it is compared with.

Marks are read from the syntax tree, so that the comparison sees every test file, also one whose
import fails. A mark may stand on a test function, on a test class, or in a `pytestmark`.

    python -m tests.project.promises --write     refresh the lists of promises.toml from the marks
"""

from __future__ import annotations

import ast
import json
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MANIFEST = ROOT / "promises.toml"


@dataclass(frozen=True, slots=True)
class Promise:
    """One promise: a sentence for people, and the tests that prove it."""

    sentence: str
    tests: tuple[str, ...]


def read_manifest(path: Path = MANIFEST) -> dict[str, Promise]:
    """Every promise by its id, in the order of the file."""
    tables = tomllib.loads(path.read_text("utf-8"))
    return {
        identifier: Promise(table["promise"], tuple(table.get("tests", ())))
        for identifier, table in tables.items()
    }


def write_manifest(promises: Mapping[str, Promise], path: Path = MANIFEST) -> None:
    """Write the file again: its opening comment and the sentences stay as they are."""
    lines = path.read_text("utf-8").splitlines()
    written = [line for line in _until_first_table(lines) if line]
    for identifier, promise in promises.items():
        written += ["", f"[{identifier}]", f"promise = {_toml_string(promise.sentence)}"]
        listed = [f"    {_toml_string(test)}," for test in promise.tests]
        written += ["tests = [", *listed, "]"] if listed else ["tests = []"]
    path.write_text("\n".join(written) + "\n", "utf-8")


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


def _until_first_table(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        if line.startswith("["):
            return
        yield line


def _toml_string(text: str) -> str:
    # JSON's escapes are a subset of those of a TOML basic string.
    return json.dumps(text, ensure_ascii=False)


def main(arguments: list[str]) -> int:
    if arguments != ["--write"]:
        print(__doc__, file=sys.stderr)
        return 2
    marks = marked_tests()
    promises = read_manifest()
    write_manifest(
        {
            identifier: Promise(promise.sentence, marks.get(identifier, ()))
            for identifier, promise in promises.items()
        }
    )
    for identifier in sorted(marks.keys() - promises.keys()):
        print(f"no promise {identifier}, named by {', '.join(marks[identifier])}", file=sys.stderr)
    for identifier in [name for name in promises if name not in marks]:
        print(f"no test proves {identifier}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
