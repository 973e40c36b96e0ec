"""Named tuples that are cheap to define are what `typing.NamedTuple` makes."""

from __future__ import annotations

import copy
import pickle
import typing
from typing import Any, Generic, TypeVar

import pytest

from holdfast.values import classes

pytestmark = pytest.mark.requirement("PF-7")

T = TypeVar("T")


def _define(base: Any) -> Any:
    class Part(base):  # type: ignore[misc]
        """A part."""

        name: bytes
        size: int = 0
        mark: str | None = None

        @property
        def double(self) -> int:
            return self.size * 2

        @classmethod
        def named(cls, name: bytes) -> Any:
            return cls(name)

        @staticmethod
        def kind() -> str:
            return "part"

    return Part


OURS, THEIRS = _define(classes.NamedTuple), _define(typing.NamedTuple)


class Place(classes.NamedTuple):
    """At the top of a module, where pickle can find it."""

    row: int
    column: int = 0


class Found(classes.NamedTuple, Generic[T]):
    """What was found, and how often."""

    what: T
    times: int = 1


def test_the_class_says_the_same_of_itself() -> None:
    for name in (
        "__name__",
        "__qualname__",
        "__module__",
        "__doc__",
        "__match_args__",
        "__slots__",
    ):
        assert getattr(OURS, name) == getattr(THEIRS, name), name
    for name in ("_fields", "_field_defaults", "__mro__"):
        assert str(getattr(OURS, name)) == str(getattr(THEIRS, name)), name
    assert list(OURS.__annotations__) == list(THEIRS.__annotations__)


def test_instances_are_tuples_with_names() -> None:
    for cls in (OURS, THEIRS):
        made = cls(b"a", 2)
        assert made == (b"a", 2, None) == tuple(made)
        assert (made.name, made.size, made.mark, made.double) == (b"a", 2, None, 4)
        assert repr(made) == "Part(name=b'a', size=2, mark=None)"
        assert (cls.named(b"x"), cls.kind(), made.kind()) == ((b"x", 0, None), "part", "part")
        assert made._replace(size=3)._asdict() == {"name": b"a", "size": 3, "mark": None}
        assert cls._make([b"a", 2, None]) == made
        assert hash(made) == hash((b"a", 2, None))
        assert not hasattr(made, "__dict__")
        with pytest.raises(AttributeError):
            made.size = 3


@pytest.mark.parametrize("words", [(), (b"a", 1, "m", 4)])
def test_wrong_arguments_are_refused_in_the_same_words(words: tuple[Any, ...]) -> None:
    said = []
    for cls in (OURS, THEIRS):
        with pytest.raises(TypeError) as refused:
            cls(*words)
        said.append(str(refused.value))
    assert said[0] == said[1]


def test_tuples_are_copied_pickled_and_matched() -> None:
    made = Place(1, 2)
    for again in (copy.copy(made), copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
        assert (type(again), again) == (Place, made)
    match made:
        case Place(row, column):
            assert (row, column) == (1, 2)


def test_a_tuple_can_be_generic() -> None:
    found = Found[str]("x")
    assert (type(found), found, found.what, found.times) == (Found, ("x", 1), "x", 1)
    assert pickle.loads(pickle.dumps(found)) == found


def test_a_field_without_a_default_cannot_follow_one_with_a_default() -> None:
    with pytest.raises(TypeError, match="default"):

        class Wrong(classes.NamedTuple):
            size: int = 0
            name: bytes  # type: ignore[misc]
