"""One thing is named in the singular: no text of the program says `1 files`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

from holdfast.domain.wording import count_words
from tests.project.repository import ROOT

pytestmark = pytest.mark.requirement("CL-2")

_THINGS = re.compile(
    r" (?:more |newer |other )?(files|paths|checkpoints|messages|sessions|hunks|lines|rows|tables"
    r"|parts|calls|failures|entries|minutes|hours|days|rounds|annotations|directories)\b"
)


_NEVER_ONE = (
    "len(bundle.sessions)",  # more than one is what is wrong
    "self._per_second",  # a rate
    "self._in_flight",  # as many as there is room for
    "_SELECT",  # a statement
    "len(value)",  # more than a thousand is what is wrong
    "_number(notes, 'failures')",  # at least three
    "count",  # of watched directories, when there is no room for more
)


def _texts(tree: ast.AST, chosen: bool = False) -> Iterator[tuple[int, str, str]]:
    """A value and the words behind it, except where another text was chosen for one."""
    if isinstance(tree, ast.JoinedStr) and not chosen:
        for value, words in zip(tree.values, tree.values[1:], strict=False):
            if isinstance(value, ast.FormattedValue) and isinstance(words, ast.Constant):
                yield tree.lineno, ast.unparse(value.value), str(words.value)
    for child in ast.iter_child_nodes(tree):
        yield from _texts(child, chosen or isinstance(tree, ast.IfExp))


def test_no_number_precedes_a_fixed_plural() -> None:
    found = []
    for file in sorted((ROOT / "src" / "holdfast").rglob("*.py")):
        for line, value, words in _texts(ast.parse(file.read_text())):
            is_constant = re.fullmatch(r"_?[A-Z][A-Z_]*|kind|key|checkpoint\.kind\.value", value)
            if _THINGS.match(words) and not is_constant and not value.startswith(_NEVER_ONE):
                found.append(f"{file.relative_to(ROOT)}:{line}: {{{value}}}{words}")
    assert found == []


@pytest.mark.parametrize(
    ("number", "said"), [(0, "0 files"), (1, "1 file"), (2, "2 files"), (1200, "1,200 files")]
)
def test_things_are_counted(number: int, said: str) -> None:
    assert count_words(number, "file") == said
    assert count_words(number, "entry", "entries").endswith("entry" if number == 1 else "entries")
