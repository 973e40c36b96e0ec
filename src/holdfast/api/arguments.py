"""Argument checks for the Python API, run before anything else happens.

Guarantee: afterwards, text is a string, numbers fit into the database, and a list of paths is a
tuple of strings. Anything else raises `UsageError` with the argument's name and the expected value.
The engine checks the rest: whether a name is taken, whether a checkpoint exists.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from holdfast.domain.checkpoints import Kind, kinds_named
from holdfast.domain.errors import UsageError
from holdfast.domain.intent import storable

T = TypeVar("T")

_FARTHEST = 1 << 53
_LONGEST_SHOWN = 60
_LONGEST_NAME_BYTES = 255


def _wrong(name: str, value: object, wanted: str) -> UsageError:
    shown = repr(value)
    if len(shown) > _LONGEST_SHOWN:
        shown = f"{shown[:_LONGEST_SHOWN]}…"
    return UsageError(f"{name} cannot be {shown}", hint=f"use {wanted}")


def optional(check: Callable[[str, Any], T], name: str, value: Any) -> T | None:
    return None if value is None else check(name, value)


def text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise _wrong(name, value, "a text")
    return value


def prose(name: str, value: Any) -> str:
    return storable(text(name, value))


def named_path(name: str, value: Any) -> str:
    """A path as a string. The engine checks whether such a path can exist."""
    found = os.fspath(value) if isinstance(value, (str, os.PathLike)) else value
    if not isinstance(found, str):
        raise _wrong(name, value, "a path")
    try:
        os.fsencode(found)
    except UnicodeEncodeError:
        raise _wrong(name, value, "a path that a file can have") from None
    return found


def path(name: str, value: Any) -> str:
    found = named_path(name, value)
    if not found or "\0" in found:
        raise _wrong(name, value, "a path")
    if max(len(os.fsencode(part)) for part in found.split("/")) > _LONGEST_NAME_BYTES:
        raise _wrong(name, value, f"names of at most {_LONGEST_NAME_BYTES} bytes")
    return found


def paths(name: str, value: Any) -> tuple[str, ...]:
    if isinstance(value, (str, bytes, os.PathLike)):
        raise UsageError(
            f"{name} must be a list of paths, but one path was given", hint=f"use [{str(value)!r}]"
        )
    return tuple(path(f"an entry of {name}", one) for one in items(name, value))


def texts(name: str, value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        raise UsageError(
            f"{name} must be a list of strings, but one string was given", hint=f"use [{value!r}]"
        )
    return tuple(text(f"an entry of {name}", one) for one in items(name, value))


def items(name: str, value: Any) -> Any:
    """Any iterable as a tuple. Its items are checked where they are used."""
    if isinstance(value, str):
        return value
    if not isinstance(value, Iterable) or isinstance(value, (bytes, Mapping)):
        raise _wrong(name, value, "a list")
    return tuple(value)


def hunks(name: str, value: Any) -> tuple[int | str, ...]:
    if isinstance(value, str):
        raise UsageError(
            f"{name} must be a list of strings, but one string was given", hint=f"use [{value!r}]"
        )
    for one in (found := items(name, value)):
        if isinstance(one, bool) or not isinstance(one, (int, str)):
            raise _wrong(f"an entry of {name}", one, "a number or a name of a hunk")
    return tuple(found)


def whole_number(name: str, value: Any) -> int:
    """A whole number, clamped to the range that the database supports."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise _wrong(name, value, "a whole number")
    return max(-_FARTHEST, min(value, _FARTHEST))


def limit(name: str, value: Any) -> int:
    if (found := whole_number(name, value)) < 0:
        raise _wrong(name, value, "a number, 0 or more")
    return found


def kinds(name: str, value: Any) -> tuple[Kind, ...]:
    """One or several kinds of checkpoints, separated by commas."""
    found = kinds_named(text(name, value))
    if not found:
        known = ", ".join(["auto", *(kind.value for kind in Kind)])
        raise UsageError(f"{name}: unknown kind {value!r}", hint=f"kinds are: {known}")
    return found


def seconds(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not value >= 0:
        raise _wrong(name, value, "a number of seconds")
    return float(value)


def flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise _wrong(name, value, "True or False")
    return value


def choices(name: str, value: Any) -> Mapping[str, str]:
    if not isinstance(value, Mapping):
        raise _wrong(name, value, 'a mapping, such as {"git": "exact"}')
    for key, chosen in value.items():
        if not isinstance(key, str) or not isinstance(chosen, str):
            raise _wrong(f"an entry of {name}", {key: chosen}, 'texts, such as "git": "exact"')
    return value


def step(name: str, value: Any) -> Any:
    from holdfast.domain.restore.plan import Step

    if not isinstance(value, Step):
        raise _wrong(name, value, "a step of a restore plan")
    return value


def function(name: str, value: Any) -> Any:
    if not callable(value):
        raise _wrong(name, value, "a function")
    return value
