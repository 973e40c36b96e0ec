"""Promises and tests are tied together in both directions."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from tests.project.promises import marked_tests, read_manifest

PROMISES = read_manifest()


@cache
def _marks() -> dict[str, tuple[str, ...]]:
    """Read in a test, because collection in every worker need not parse every test file."""
    return marked_tests()


def test_every_promise_is_proven_by_a_marked_test() -> None:
    assert [identifier for identifier in PROMISES if not _marks().get(identifier)] == []


def test_no_mark_names_a_promise_that_is_not_in_the_manifest() -> None:
    unknown = {name: tests for name, tests in _marks().items() if name not in PROMISES}
    assert unknown == {}


def test_every_promise_is_one_written_sentence() -> None:
    short = [i for i, text in PROMISES.items() if not text.endswith(".") or len(text) <= 40]
    assert short == []


def test_marks_are_found_on_functions_classes_modules_and_state_machines(tmp_path: Path) -> None:
    tests = tmp_path / "tests"
    tests.mkdir()
    (tests / "test_places.py").write_text(
        "import pytest\n"
        "from pytest import mark\n"
        'pytestmark = [pytest.mark.requirement("M-1"), pytest.mark.torture]\n'
        '@pytest.mark.requirement("F-1", "F-2")\n'
        "def test_function(): ...\n"
        '@mark.requirement("C-1")\n'
        "class TestClass:\n"
        '    @pytest.mark.requirement("F-1")\n'
        "    def test_method(self): ...\n"
        "TestMachine = Machine.TestCase\n"
        '@pytest.mark.requirement("X-1")\n'
        "def not_a_test(): ...\n"
    )
    file = "tests/test_places.py"
    assert marked_tests(tmp_path) == {
        "C-1": (f"{file}::TestClass",),
        "F-1": (f"{file}::TestClass::test_method", f"{file}::test_function"),
        "F-2": (f"{file}::test_function",),
        "M-1": (f"{file}::TestClass", f"{file}::TestMachine", f"{file}::test_function"),
    }
