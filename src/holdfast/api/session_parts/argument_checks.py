"""What callers pass to a session, checked once at the border and by the name of the argument.

Guarantee: behind the border a text is a text, a number a number that every database can count, a
list of paths a tuple of texts. Anything else is a `UsageError` that names the argument and what it
takes, before anything is done. What only the engine can judge (that a name is taken, that a
checkpoint exists) is left to it.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from holdfast.domain.errors import UsageError
from holdfast.domain.intent import storable

T = TypeVar("T")
Check = Callable[[str, Any], Any]

_FARTHEST = 1 << 53
_LONGEST_SHOWN = 60
_LONGEST_NAME_BYTES = 255


def _wrong(name: str, value: object, wanted: str) -> UsageError:
    shown = repr(value)
    if len(shown) > _LONGEST_SHOWN:
        shown = f"{shown[:_LONGEST_SHOWN]}…"
    return UsageError(f"{name} is {shown}", hint=f"{name} takes {wanted}")


def text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise _wrong(name, value, "a text")
    return value


def prose(name: str, value: Any) -> str:
    return storable(text(name, value))


def named_path(name: str, value: Any) -> str:
    """A path as a text; whether there can be such a one is for the engine to say."""
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
        raise UsageError(f"{name} is one path, not a list of them", hint=f"use [{str(value)!r}]")
    return tuple(path(f"an entry of {name}", one) for one in items(name, value))


def texts(name: str, value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        raise UsageError(f"{name} is one text, not a list of them", hint=f"use [{value!r}]")
    return tuple(text(f"an entry of {name}", one) for one in items(name, value))


def items(name: str, value: Any) -> Any:
    """Anything to go through, once; what it holds is looked at by who takes it."""
    if isinstance(value, str):
        return value
    if not isinstance(value, Iterable) or isinstance(value, (bytes, Mapping)):
        raise _wrong(name, value, "a list")
    return tuple(value)


def hunks(name: str, value: Any) -> tuple[int | str, ...]:
    if isinstance(value, str):
        raise UsageError(f"{name} is one text, not a list of them", hint=f"use [{value!r}]")
    for one in (found := items(name, value)):
        if isinstance(one, bool) or not isinstance(one, (int, str)):
            raise _wrong(f"an entry of {name}", one, "a number or a name of a hunk")
    return tuple(found)


def whole(name: str, value: Any) -> int:
    """A number beyond all numbers is taken as the last one there is."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise _wrong(name, value, "a whole number")
    return max(-_FARTHEST, min(value, _FARTHEST))


def limit(name: str, value: Any) -> int:
    if (found := whole(name, value)) < 0:
        raise _wrong(name, value, "a number from 0 on")
    return found


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


def function(name: str, value: Any) -> Any:
    if not callable(value):
        raise _wrong(name, value, "a function")
    return value


_BY_NAME: Mapping[str, Check] = {
    **dict.fromkeys(("snapshot_id", "reference", "references", "from_id", "to_id", "ref"), text),
    **dict.fromkeys(("checkpoints", "before", "as_session"), text),
    **dict.fromkeys(("reason", "why", "message", "title", "agent"), prose),
    **dict.fromkeys(("path", "workspace"), path),
    "paths": paths,
    "co_authors": texts,
    **dict.fromkeys(("tags", "tool_calls"), items),
    "hunks": hunks,
    **dict.fromkeys(("first", "after", "number", "line"), whole),
    "limit": limit,
    **dict.fromkeys(("best_effort", "everywhere", "records", "revisions", "replace"), flag),
    **dict.fromkeys(("force", "keep_shared", "foreign", "dry_run", "edit", "everything"), flag),
    **dict.fromkeys(("look", "reuse"), flag),
    "components": choices,
    "file_filter": function,
}
_ONLY_HERE: Mapping[tuple[str, str], Check | None] = {
    ("get_by_name", "name"): text,
    ("why", "path"): named_path,
    ("import_transcript", "path"): named_path,
    # The engine's own words, which say more.
    ("messages", "first"): None,
    ("messages", "limit"): None,
    ("timeline", "before"): None,
    ("annotate", "number"): None,
    ("search", "limit"): None,
    ("why", "line"): None,
}
_VARIADIC = 0x04


def checked(kind: type[T]) -> type[T]:
    """A class whose public methods, inherited ones too, and `__init__` check their arguments."""
    for name in dir(kind):
        if name.startswith("_") and name != "__init__":
            continue
        found = next(vars(one)[name] for one in kind.__mro__ if name in vars(one))
        if isinstance(found, classmethod):
            setattr(kind, name, classmethod(_checking(found.__func__, name)))
        elif callable(found) and hasattr(found, "__code__"):
            setattr(kind, name, _checking(found, name))
    return kind


def _checking(method: Any, name: str) -> Any:
    code = method.__code__
    count = code.co_argcount + code.co_kwonlyargcount
    positional = code.co_varnames[: code.co_argcount]
    checks: dict[str, Check] = {}
    for argument in code.co_varnames[1:count]:
        check = _ONLY_HERE.get((name, argument), _BY_NAME.get(argument))
        if check is not None:
            checks[argument] = _or_none(check, str(method.__annotations__.get(argument, "")))
    rest = code.co_varnames[count] if code.co_flags & _VARIADIC else None
    of_rest = {"references": text, "paths": path}.get(rest or "")
    if not checks and of_rest is None:
        return method

    @functools.wraps(method)
    def call(*given: Any, **named: Any) -> Any:
        values = [
            checks[at](at, value) if at in checks else value
            for at, value in zip(positional, given, strict=False)
        ]
        values += [
            of_rest(f"an entry of {rest}", value) if of_rest is not None else value
            for value in given[len(positional) :]
        ]
        for at, value in named.items():
            if at in checks:
                named[at] = checks[at](at, value)
        return method(*values, **named)

    return call


def _or_none(check: Check, annotation: str) -> Check:
    if "None" not in annotation:
        return check
    return lambda name, value: None if value is None else check(name, value)
