"""Promises and tests are tied together in both directions."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.project.promises import (
    MANIFEST,
    Promise,
    marked_tests,
    read_manifest,
    write_manifest,
)

PROMISES = read_manifest()
MARKS = marked_tests()


@pytest.mark.parametrize("identifier", PROMISES)
def test_every_promise_is_proven_by_a_marked_test(identifier: str) -> None:
    assert MARKS.get(identifier), f'no test carries @pytest.mark.requirement("{identifier}")'


@pytest.mark.parametrize("identifier", PROMISES)
def test_the_manifest_lists_exactly_the_tests_that_carry_the_mark(identifier: str) -> None:
    assert PROMISES[identifier].tests == MARKS.get(identifier, ()), "run `make promises`"


def test_no_mark_names_a_promise_that_is_not_in_the_manifest() -> None:
    unknown = {name: tests for name, tests in MARKS.items() if name not in PROMISES}
    assert unknown == {}


def test_every_promise_is_one_written_sentence() -> None:
    for identifier, promise in PROMISES.items():
        assert promise.sentence.endswith("."), identifier
        assert len(promise.sentence) > 40, identifier


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


def test_writing_the_manifest_changes_the_lists_and_nothing_else(tmp_path: Path) -> None:
    copy = tmp_path / "promises.toml"
    copy.write_bytes(MANIFEST.read_bytes())
    promises = {name: Promise(promise.sentence, ("a", "b")) for name, promise in PROMISES.items()}
    write_manifest(promises, copy)
    assert read_manifest(copy) == promises
    assert copy.read_text().split("\n[")[0].strip() == MANIFEST.read_text().split("\n[")[0].strip()
    write_manifest(PROMISES, copy)
    assert read_manifest(copy) == PROMISES
