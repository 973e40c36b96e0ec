"""Named tuples that cost little to define: their annotations are not looked at.

`typing.NamedTuple` compiles each annotation that is a text, and with `from __future__ import
annotations` all of them are; the first one costs as much as ten modules, because Python then sets
up what it needs for syntax trees. Whatever is on the way to a checkpoint takes this one.

Guarantee: the same class as `typing.NamedTuple` makes of the same body, and type checkers take it
for that. Does not do: calls such as `NamedTuple("Name", [...])`, methods that use `super()`.
"""

from __future__ import annotations

import collections
from typing import TYPE_CHECKING, Any

_OF_EVERY_CLASS = frozenset(("__module__", "__orig_bases__"))


class _TupleMaker(type):
    """Takes the body of a class, and gives back a class of named tuples."""

    def __new__(cls, name: str, bases: tuple[type, ...], body: dict[str, Any]) -> Any:
        if not bases:
            return super().__new__(cls, name, bases, body)
        fields = tuple(body.get("__annotations__", ()))
        given = [field for field in fields if field in body]
        if given != list(fields[len(fields) - len(given) :]):
            raise TypeError(f"{name}: a field without a default follows one that has a default")
        defaults = [body.pop(field) for field in given]
        make: Any = collections.namedtuple
        made = make(name, fields, defaults=defaults, module=body["__module__"])
        if bases[1:]:  # `Generic[T]`, which wants to see its subclass being made
            return type(name, (made, *bases[1:]), body | {"__slots__": ()})
        for attribute, value in body.items():
            if attribute not in _OF_EVERY_CLASS:
                setattr(made, attribute, value)
        return made


class _NamedTuple(metaclass=_TupleMaker):
    """What a class of named tuples names as its base."""


if TYPE_CHECKING:
    from typing import NamedTuple
else:
    NamedTuple = _NamedTuple

__all__ = ["NamedTuple"]
