"""Dataclasses and named tuples that cost next to nothing to define.

    at import     → a class with its slots; nothing is compiled
    first call    → `__eq__` or `__hash__` is compiled; the standard library does that at import
    first calls   → `__init__` walks the fields; it is compiled only for a class of many instances
    first access  → `__dataclass_fields__` is created by the standard library

The standard library compiles six methods for each dataclass while its module is imported. The
modules of a checkpoint have more than forty, which took a quarter of the command's start-up time.

Guarantees: instances compare, hash, print, copy, pickle, match and (when frozen) refuse changes
like the standard library's. Its `replace`, `fields` and `asdict` work on them. Type checkers treat
the four functions as the standard library's own.

Not supported: base classes with fields, `__post_init__`, order, keyword-only and init-only fields.
Such a class uses the standard library's decorator; so may any that no command needs at start-up.
"""

from __future__ import annotations

import collections
import sys
from collections.abc import Callable, Mapping
from functools import partial
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any, NoReturn

_ABSENT: Any = object()
_STANDARD_ATTRIBUTES = frozenset(("__module__", "__orig_bases__"))
_NOT_COPIED = ("__dict__", "__weakref__")
_INSTANCES_BEFORE_COMPILING = 16
"""Compiling `__init__` takes as long as going through the fields of fifty instances, and most
classes have fewer than five in a command."""
_GENERATED = frozenset(("__init__", "__eq__", "__hash__", "__setattr__", "__delattr__"))


class _Field:
    """One attribute of a class; named as in the standard library."""

    __slots__ = ("compare", "default", "default_factory", "metadata", "name", "repr", "type")

    def __init__(
        self,
        *,
        default: Any = _ABSENT,
        default_factory: Any = _ABSENT,
        repr: bool = True,  # noqa: A002 - the standard library's name
        compare: bool = True,
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        self.name = self.type = ""
        self.default = default
        self.default_factory = default_factory
        self.repr = repr
        self.compare = compare
        self.metadata = metadata or {}


def _dataclass(
    *,
    frozen: bool = False,
    slots: bool = False,
    repr: bool = True,  # noqa: A002 - the standard library's name
) -> Callable[[type[Any]], type[Any]]:
    def made(cls: type[Any]) -> type[Any]:
        fields = _fields_of(cls)
        methods: dict[str, Any] = {"__eq__": _MadeOnFirstUse(_make_equal)}
        methods["__hash__"] = _MadeOnFirstUse(_make_hash) if frozen else None
        if repr:
            methods["__repr__"] = _repr
        if frozen:
            methods |= {"__setattr__": _refuse_to_assign, "__delattr__": _refuse_to_delete}
        if frozen and slots:
            methods |= {"__getstate__": _get_state, "__setstate__": _set_state}
        return _recreated(cls, fields, methods, slots=slots)

    return made


def _fields_of(cls: type[Any]) -> tuple[_Field, ...]:
    if any(hasattr(base, "__dataclass_fields__") for base in cls.__bases__):
        raise TypeError(f"{cls.__qualname__} inherits fields")
    if own := (_GENERATED | {"__post_init__"}) & cls.__dict__.keys():
        raise TypeError(f"{cls.__qualname__} has methods of its own: {', '.join(sorted(own))}")
    found = []
    for name, kind in cls.__annotations__.items():
        if not isinstance(kind, str):
            raise TypeError(f"{cls.__module__} evaluates its annotations")
        if kind.startswith("ClassVar["):
            continue
        given = cls.__dict__.get(name, _ABSENT)
        one = given if isinstance(given, _Field) else _Field(default=given)
        if isinstance(one.default, (list, dict, set)):
            raise ValueError(f"{name} needs a default_factory: its default would be shared")
        one.name, one.type = name, kind
        found.append(one)
    return tuple(found)


def _recreated(
    cls: type[Any], fields: tuple[_Field, ...], methods: dict[str, Any], *, slots: bool
) -> type[Any]:
    """Recreate the class with methods and slots, because slots cannot be added to an existing
    class."""
    names = tuple(one.name for one in fields)
    own = {name: v for name, v in cls.__dict__.items() if name not in _NOT_COPIED}
    for name in names:
        own.pop(name, None)
    space = methods | own
    if slots:
        space["__slots__"] = names
    space["__qualname__"] = cls.__qualname__
    space["__match_args__"] = names
    space["__value_fields__"] = fields
    space["__init__"] = _Init(_make_init)
    space["__dataclass_fields__"] = _MadeOnFirstUse(_make_standard_fields)
    made: type[Any] = type(cls).__call__(type(cls), cls.__name__, cls.__bases__, space)
    return made


class _MadeOnFirstUse:
    """A class attribute that is created on first use and replaces itself with the result."""

    __slots__ = ("home", "make", "name")

    def __init__(self, make: Callable[[type[Any]], Any]) -> None:
        self.make = make

    def __set_name__(self, owner: type[Any], name: str) -> None:
        self.home = owner
        self.name = name

    def __get__(self, instance: object, owner: type[Any]) -> Any:
        # A second thread creates the same again. A subclass that asks is not the class it belongs
        # to.
        made = self.make(self.home)
        setattr(self.home, self.name, made)
        bind = getattr(type(made), "__get__", None)
        return made if bind is None else bind(made, instance, owner)


class _Init(_MadeOnFirstUse):
    """`__init__`, compiled once a class has many instances, or when looked up on the class."""

    __slots__ = ("instances",)

    def __init__(self, make: Callable[[type[Any]], Any]) -> None:
        super().__init__(make)
        self.instances = 0

    def __get__(self, instance: object, owner: type[Any]) -> Any:
        if instance is None or self.instances >= _INSTANCES_BEFORE_COMPILING:
            return super().__get__(instance, owner)
        self.instances += 1
        return partial(self._assign, instance)

    def _assign(self, instance: object, /, *given: Any, **named: Any) -> None:
        fields = self.home.__value_fields__
        by_name = 0
        for number, one in enumerate(fields):
            if number < len(given):
                value = given[number]
            elif one.name in named:
                value = named[one.name]
                by_name += 1
            elif one.default_factory is not _ABSENT:
                value = one.default_factory()
            elif one.default is not _ABSENT:
                value = one.default
            else:
                break
            object.__setattr__(instance, one.name, value)
        else:
            if by_name == len(named) and len(given) <= len(fields):
                return
        # For wrong arguments, the compiled one raises the usual error.
        super().__get__(instance, self.home)(*given, **named)


def _make_init(cls: type[Any]) -> Any:
    """Compiled in its module's namespace, so that its annotations resolve there."""
    known: dict[str, Any] = {"_set": object.__setattr__, "_absent": _ABSENT}
    taken, body = ["self"], []
    frozen = cls.__dict__.get("__setattr__") is _refuse_to_assign
    for number, one in enumerate(cls.__value_fields__):
        name = value = one.name
        if one.default_factory is not _ABSENT:
            known[f"_make{number}"] = one.default_factory
            taken.append(f"{name}=_absent")
            value = f"_make{number}() if {name} is _absent else {name}"
        elif one.default is not _ABSENT:
            known[f"_default{number}"] = one.default
            taken.append(f"{name}=_default{number}")
        else:
            taken.append(name)
        body.append(f"  _set(self, {name!r}, {value})" if frozen else f"  self.{name} = {value}")
    init = _compiled(cls, "__init__", taken, body or ["  pass"], known)
    init.__annotations__ = {one.name: one.type for one in cls.__value_fields__} | {"return": None}
    return init


def _make_equal(cls: type[Any]) -> Any:
    own, others = (_compared(cls, whose) for whose in ("self", "other"))
    body = [f"  if other.__class__ is self.__class__: return {own} == {others}"]
    return _compiled(cls, "__eq__", ["self", "other"], [*body, "  return NotImplemented"], {})


def _make_hash(cls: type[Any]) -> Any:
    body = [f"  return hash({_compared(cls, 'self')})"]
    return _compiled(cls, "__hash__", ["self"], body, {})


def _compared(cls: type[Any], whose: str) -> str:
    return f"({''.join(f'{whose}.{one.name}, ' for one in cls.__value_fields__ if one.compare)})"


def _compiled(
    cls: type[Any], name: str, taken: list[str], body: list[str], known: dict[str, Any]
) -> Any:
    """A method with these arguments; `known` are the other names that it uses."""
    head = [f"def _maker({', '.join(known)}):", f" def {name}({', '.join(taken)}):"]
    made: dict[str, Any] = {}
    exec("\n".join([*head, *body, f" return {name}"]), vars(sys.modules[cls.__module__]), made)
    method = made["_maker"](**known)
    method.__qualname__ = f"{cls.__qualname__}.{name}"
    return method


def _make_standard_fields(cls: type[Any]) -> Any:
    """The fields as the standard library would describe them."""
    import dataclasses

    described = []
    for one in cls.__value_fields__:
        defaults = {n: getattr(one, n) for n in ("default", "default_factory")}
        given: Any = {name: value for name, value in defaults.items() if value is not _ABSENT}
        described_field = dataclasses.field(
            **given, repr=one.repr, compare=one.compare, metadata=one.metadata
        )
        described.append((one.name, one.type, described_field))
    like: Any = dataclasses.make_dataclass(cls.__name__, described)
    return like.__dataclass_fields__


@recursive_repr()
def _repr(self: Any) -> str:
    shown = (one.name for one in self.__value_fields__ if one.repr)
    return f"{type(self).__qualname__}({', '.join(f'{n}={getattr(self, n)!r}' for n in shown)})"


def _refuse_to_assign(self: Any, name: str, value: Any) -> NoReturn:
    from dataclasses import FrozenInstanceError

    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_to_delete(self: Any, name: str) -> NoReturn:
    from dataclasses import FrozenInstanceError

    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _get_state(self: Any) -> list[Any]:
    return [getattr(self, name) for name in self.__match_args__]


def _set_state(self: Any, state: list[Any]) -> None:
    for name, value in zip(self.__match_args__, state, strict=True):
        object.__setattr__(self, name, value)


def _fields(value: Any) -> tuple[_Field, ...]:
    """The fields of a class or an instance."""
    described: tuple[_Field, ...] = value.__value_fields__
    return described


def _replace(value: Any, /, **changes: Any) -> Any:
    """The same value with these attributes changed."""
    for name in value.__match_args__:
        if name not in changes:
            changes[name] = getattr(value, name)
    return type(value)(**changes)


if TYPE_CHECKING:
    from dataclasses import dataclass, field, fields, replace
else:
    dataclass, field, fields, replace = _dataclass, _Field, _fields, _replace


class _TupleMaker(type):
    """Turns a class body into a named tuple class.

    `typing.NamedTuple` compiles each annotation that is a string, and with `from __future__ import
    annotations` all of them are. The first costs as much as ten modules, because Python then sets
    up its syntax trees. This creates the same class from the same body. Not supported: calls such
    as `NamedTuple("Name", [...])`, and methods that use `super()`.
    """

    def __new__(cls, name: str, bases: tuple[type, ...], body: dict[str, Any]) -> Any:
        if not bases:
            return super().__new__(cls, name, bases, body)
        names = tuple(body.get("__annotations__", ()))
        given = [one for one in names if one in body]
        if given != list(names[len(names) - len(given) :]):
            raise TypeError(f"{name}: a field without a default follows one that has a default")
        defaults = [body.pop(one) for one in given]
        make: Any = collections.namedtuple
        made = make(name, names, defaults=defaults, module=body["__module__"])
        if bases[1:]:  # `Generic[T]`, which needs its subclass to be created normally
            return type(name, (made, *bases[1:]), body | {"__slots__": ()})
        for attribute, value in body.items():
            if attribute not in _STANDARD_ATTRIBUTES:
                setattr(made, attribute, value)
        return made


class _NamedTuple(metaclass=_TupleMaker):
    """The base of a named tuple class."""


if TYPE_CHECKING:
    from typing import NamedTuple
else:
    NamedTuple = _NamedTuple

__all__ = ["NamedTuple", "dataclass", "field", "fields", "replace"]
