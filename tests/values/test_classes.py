"""Dataclasses that are cheap to define behave like the standard library's, in everything used."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
import threading
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

import holdfast
from holdfast.domain.settings.schema import Settings
from holdfast.values import classes

pytestmark = pytest.mark.requirement("PF-7")

_texts = st.text(max_size=3)
_arguments = st.fixed_dictionaries(
    {"name": _texts},
    optional={
        "size": st.integers(0, 2),
        "tags": st.lists(_texts, max_size=2).map(tuple),
        "note": _texts,
    },
)


def _in_both_ways(**options: bool) -> tuple[Any, Any]:
    """One class, made here and by the standard library."""

    def define(module: Any) -> Any:
        @module.dataclass(**options)
        class Part:
            """A part."""

            LIMIT: ClassVar[int] = 7
            name: str
            size: int = 0
            tags: list[str] = module.field(default_factory=list)
            note: str | None = module.field(
                default=None, compare=False, repr=False, metadata={"help": "of no weight"}
            )

            @property
            def double(self) -> int:
                return self.size * 2

        return Part

    return define(classes), define(dataclasses)


MUTABLE = _in_both_ways(slots=True)
FROZEN = _in_both_ways(frozen=True, slots=True)
QUIET = _in_both_ways(frozen=True, slots=True, repr=False)
ROOMY = _in_both_ways(frozen=True)
ALL = [MUTABLE, FROZEN, QUIET, ROOMY]


def _told(call: Callable[..., Any], *words: Any, **named: Any) -> Any:
    """What comes of a call: its value, or the kind and text of its error."""
    try:
        return call(*words, **named)
    except Exception as error:
        return type(error), str(error)


@pytest.mark.parametrize("pair", ALL)
@given(one=_arguments, other=_arguments)
def test_instances_are_equal_hashed_and_shown_like_those_of_the_standard_library(
    pair: tuple[Any, Any], one: dict[str, Any], other: dict[str, Any]
) -> None:
    (ours, theirs), said = pair, []
    for made in (ours(**one), theirs(**one)):
        second = type(made)(**other)
        said.append(
            [
                made == second,
                made != second,
                made == 1,
                _told(hash, made) == _told(hash, second),
                made.note,
                made.double,
                dataclasses.asdict(made),
                type(made).LIMIT,
            ]
        )
    assert said[0] == said[1]


@pytest.mark.parametrize("pair", [MUTABLE, FROZEN, ROOMY])
def test_what_is_shown_is_the_same_text_even_of_a_value_that_holds_itself(
    pair: tuple[Any, Any],
) -> None:
    shown = []
    for cls in pair:
        tags: list[Any] = ["a"]
        made = cls("x", 2, tags)
        tags.append(made)
        shown.append(repr(made))
    assert shown[0] == shown[1] != ""
    assert "note" not in shown[0]
    assert repr(QUIET[0]("x")).startswith("<")


@pytest.mark.parametrize("pair", ALL)
@pytest.mark.parametrize(
    ("words", "named"),
    [((), {}), (("a", 1, [], "n", 5), {}), (("a",), {"name": "b"}), ((), {"nothing": 1})],
)
def test_wrong_arguments_are_refused_in_the_same_words(
    pair: tuple[Any, Any], words: tuple[Any, ...], named: dict[str, Any]
) -> None:
    told = [_told(cls, *words, **named) for cls in pair]
    assert told[0] == told[1]
    assert told[0][0] is TypeError


@pytest.mark.parametrize("pair", ALL)
def test_a_default_that_can_change_is_made_for_each_instance(pair: tuple[Any, Any]) -> None:
    one, other = pair[0]("a"), pair[0]("a")
    assert one.tags == []
    assert one.tags is not other.tags


@pytest.mark.parametrize("pair", [FROZEN, QUIET, ROOMY])
def test_a_frozen_value_refuses_changes_in_the_same_words(pair: tuple[Any, Any]) -> None:
    told = []
    for cls in pair:
        made = cls("a")
        told.append([_told(setattr, made, "size", 1), _told(delattr, made, "size")])
        assert made.size == 0
    assert told[0] == told[1]
    assert told[0][0][0] is dataclasses.FrozenInstanceError


def test_one_that_is_not_frozen_takes_changes_and_nothing_it_has_no_room_for() -> None:
    made = MUTABLE[0]("a")
    made.size = 3
    assert made == MUTABLE[0]("a", 3)
    for cls in (MUTABLE[0], FROZEN[0]):
        assert not hasattr(cls("a"), "__dict__")
    with pytest.raises(AttributeError):
        made.other = 1
    with pytest.raises(TypeError, match="unhashable"):
        hash(made)


@pytest.mark.parametrize("pair", ALL)
@pytest.mark.parametrize("replace", [classes.replace, dataclasses.replace])
def test_replacing_attributes_works_both_ways_on_both(
    pair: tuple[Any, Any], replace: Callable[..., Any]
) -> None:
    for cls in pair:
        made = replace(cls("a", 1, ["t"], "n"), size=2)
        assert (type(made), made.name, made.size, made.tags, made.note) == (cls, "a", 2, ["t"], "n")
        with pytest.raises(TypeError, match="nothing"):
            replace(made, nothing=1)


@pytest.mark.parametrize("pair", ALL)
def test_fields_and_signatures_are_shown_as_the_standard_library_does(
    pair: tuple[Any, Any],
) -> None:
    ours, theirs = pair
    for told, wanted in zip(dataclasses.fields(ours), dataclasses.fields(theirs), strict=True):
        for name in ("name", "type", "default", "default_factory", "repr", "compare", "metadata"):
            assert getattr(told, name) == getattr(wanted, name)
    assert [one.name for one in classes.fields(ours)] == [
        one.name for one in classes.fields(ours("a"))
    ]
    assert ours.__match_args__ == theirs.__match_args__
    assert list(inspect.signature(ours).parameters) == list(inspect.signature(theirs).parameters)
    assert ours.__init__.__annotations__ == theirs.__init__.__annotations__
    assert ours.__init__.__qualname__ == theirs.__init__.__qualname__
    assert (ours.__doc__, ours.__module__) == (theirs.__doc__, theirs.__module__)
    assert dataclasses.is_dataclass(ours)


@classes.dataclass(frozen=True, slots=True)
class Place:
    """At the top of a module, where pickle can find it."""

    row: int
    column: int = 0


@classes.dataclass(frozen=True, slots=True)
class Nothing:
    """Without any attribute."""


def test_values_are_copied_and_pickled() -> None:
    made = Place(1, 2)
    for again in (copy.copy(made), copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
        assert again == made
        assert again is not made
    assert {Place(1): "x"}[Place(1, 0)] == "x"
    assert Nothing() == Nothing()
    assert (hash(Nothing()), repr(Nothing())) == (hash(()), "Nothing()")


def test_values_are_matched_by_position() -> None:
    match Place(1, 2):
        case Place(row, column):
            assert (row, column) == (1, 2)


@pytest.mark.parametrize("options", [{"slots": True}, {"frozen": True, "slots": True}, {}])
def test_a_class_compiles_nothing_for_a_few_instances_and_its_many_are_the_same(
    options: dict[str, bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled: list[str] = []
    real = classes._compiled

    def noted(cls: Any, name: str, *others: Any) -> Any:
        compiled.append(name)
        return real(cls, name, *others)

    monkeypatch.setattr(classes, "_compiled", noted)
    ours, theirs = _in_both_ways(**options)
    calls: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
        (("a",), {}),
        (("a", 1), {"note": "n"}),
        ((), {"name": "a", "tags": ["t"]}),
    ]
    for words, named in calls:
        assert dataclasses.asdict(ours(*words, **named)) == dataclasses.asdict(
            theirs(*words, **named)
        )
    assert "__init__" not in compiled
    many = [ours("a", number) for number in range(100)]
    assert [one.size for one in many] == list(range(100))
    assert compiled.count("__init__") == 1


def test_the_first_instances_may_be_made_by_many_threads_at_once() -> None:
    for _ in range(50):
        cls = _in_both_ways(frozen=True, slots=True)[0]
        barrier = threading.Barrier(4)
        made: list[Any] = []

        def make(cls: Any = cls, barrier: Any = barrier, made: Any = made) -> None:
            barrier.wait()
            made.extend(cls("a", 1) for _ in range(20))

        threads = [threading.Thread(target=make) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert made == [cls("a", 1)] * 80


def _with_post_init(module: Any) -> None:
    @module.dataclass(slots=True)
    class Wrong:
        name: str

        def __post_init__(self) -> None:
            raise AssertionError


def _with_own_equality(module: Any) -> None:
    @module.dataclass(slots=True)
    class Wrong:
        name: str

        def __eq__(self, other: object) -> bool:
            raise AssertionError

        __hash__ = None  # type: ignore[assignment]


def _with_fields_of_a_base(module: Any) -> None:
    @module.dataclass(slots=True)
    class Wrong(Place):
        name: str = ""


def _with_a_shared_default(module: Any) -> None:
    @module.dataclass(slots=True)
    class Wrong:
        names: list[str] = []  # noqa: RUF012 - what is refused


@pytest.mark.parametrize(
    "define", [_with_post_init, _with_own_equality, _with_fields_of_a_base, _with_a_shared_default]
)
def test_what_is_not_done_here_is_refused_when_the_class_is_defined(
    define: Callable[[Any], None],
) -> None:
    with pytest.raises((TypeError, ValueError)):
        define(classes)


def _classes_made_here() -> Iterator[Any]:
    for found in walk_packages([str(Path(holdfast.__file__).parent)], "holdfast."):
        if found.name.startswith(("holdfast.domain.", "holdfast.ports.", "holdfast.engine.")):
            for one in vars(import_module(found.name)).values():
                own = isinstance(one, type) and one.__module__ == found.name
                if own and "__value_fields__" in vars(one):
                    yield one


def test_every_class_of_the_product_that_is_made_here_can_be_described() -> None:
    found = list(_classes_made_here())
    assert Settings in found
    for cls in found:
        told = [one.name for one in dataclasses.fields(cls)]
        assert told == list(inspect.signature(cls).parameters) == list(cls.__match_args__)
