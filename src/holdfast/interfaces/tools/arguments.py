"""Checks the arguments of a call against a tool's parameters.

Models send text for numbers, JSON in strings, and names that do not exist. Unambiguous mistakes are
accepted. For others, the answer names the argument, the accepted values and an example, so that the
next call is right.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import Any

from holdfast.domain.errors import UsageError
from holdfast.interfaces.tools.tool import LONGEST_TEXT, MOST_ITEMS, Parameter, ParameterType, Tool

_LONGEST_JSON = 4_000_000
_LONGEST_SHOWN = 60
_TRUTHS = {"true": True, "false": False}


class BadArguments(UsageError):
    """Arguments that cannot be used; the hint shows a call that works."""

    code = "bad_arguments"


def parse_arguments(tool: Tool, arguments: object) -> dict[str, Any]:
    """A value for every parameter, with defaults; raises `BadArguments`, which names the
    mistake."""
    given = _by_parameter(tool, _object(tool, arguments))
    values: dict[str, Any] = {}
    for parameter in tool.parameters:
        value = given.get(parameter.name)
        if _is_left_out(parameter, value):
            if parameter.required:
                raise BadArguments(
                    f"{tool.name} needs {parameter.name}: {parameter.description}",
                    hint=_example(tool),
                )
            values[parameter.name] = parameter.default
            continue
        try:
            values[parameter.name] = _READERS[parameter.type](parameter, value)
        except ValueError as error:
            raise BadArguments(
                f"{parameter.name} of {tool.name} {error}", hint=_example(tool, parameter)
            ) from None
    return values


def _by_parameter(tool: Tool, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments by parameter name, with aliases resolved."""
    given: dict[str, Any] = {}
    for name, value in arguments.items():
        parameter = tool.parameter(str(name))
        if parameter is None:
            known = ", ".join(parameter.name for parameter in tool.parameters) or "no arguments"
            raise BadArguments(
                f"{tool.name} has no argument {_shown(name)}; it takes: {known}",
                hint=_example(tool),
            )
        if _is_left_out(parameter, value):
            given.setdefault(parameter.name, value)
            continue
        if not _is_left_out(parameter, given.get(parameter.name)) and (
            given[parameter.name] != value
        ):
            raise BadArguments(
                f"{tool.name} got {_shown(name)} and another name of {parameter.name}, with "
                "different values",
                hint=f"pass {parameter.name} alone; {_example(tool, parameter)}",
            )
        given[parameter.name] = value
    return given


def _is_left_out(parameter: Parameter, value: object) -> bool:
    """Models write null or an empty string for arguments they leave out."""
    blank = isinstance(value, str) and not value.strip()
    return value is None or (blank and not parameter.required and parameter.type == "string")


def _object(tool: Tool, arguments: object) -> Mapping[str, Any]:
    if arguments is None:
        return {}
    if isinstance(arguments, bytes):
        arguments = arguments.decode("utf-8", "replace")
    if isinstance(arguments, str):
        if not arguments.strip():
            return {}
        if len(arguments) > _LONGEST_JSON:
            raise BadArguments(
                f"the arguments of {tool.name} are {len(arguments):,} characters long; at most "
                f"{_LONGEST_JSON:,} are read",
                hint=_example(tool),
            )
        try:
            arguments = json.loads(arguments)
        except (ValueError, RecursionError):
            raise BadArguments(
                f"the arguments of {tool.name} are not valid JSON", hint=_example(tool)
            ) from None
    if not isinstance(arguments, Mapping):
        raise BadArguments(
            f"the arguments of {tool.name} are {_kind_of(arguments)}, not an object",
            hint=_example(tool),
        )
    return arguments


def _text(parameter: Parameter, value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"is {_kind_of(value)}, not a string")
    if parameter.least is not None and not value.strip():
        raise ValueError("is empty")
    longest = int(parameter.most or LONGEST_TEXT)
    if not parameter.in_bytes and len(value) > longest:
        raise ValueError(f"has {len(value):,} characters; the limit is {longest:,}")
    return value


def _number(parameter: Parameter, value: Any) -> int | float:
    whole = parameter.type == "integer"
    wanted = "a whole number" if whole else "a number"
    if isinstance(value, str) and len(value) <= _LONGEST_SHOWN:
        try:
            value = float(value)
        except ValueError:
            raise ValueError(f"is {_shown(value)}, not {wanted}") from None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"is {_kind_of(value)}, not {wanted}")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number) or (whole and number != int(number)):
        raise ValueError(f"is not a valid value: {wanted} is needed")
    if parameter.least is not None and number < parameter.least:
        raise ValueError(f"is {number:g}; the minimum is {parameter.least:g}")
    if parameter.most is not None and number > parameter.most:
        raise ValueError(f"is {number:g}; the maximum is {parameter.most:g}")
    return int(number) if whole else number


def _boolean(parameter: Parameter, value: Any) -> bool:
    if isinstance(value, str) and value.lower() in _TRUTHS:
        return _TRUTHS[value.lower()]
    if not isinstance(value, bool):
        raise ValueError(f"is {_kind_of(value)}, not true or false")
    return value


def _texts(parameter: Parameter, value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        value = _list_in_text(value)
    if not isinstance(value, list | tuple):
        raise ValueError(f"is {_kind_of(value)}, not a list of strings")
    if len(value) > MOST_ITEMS:
        raise ValueError(f"has {len(value):,} entries; the limit is {MOST_ITEMS:,}")
    for item in value:
        if not isinstance(item, str) or not item.strip():
            raise ValueError(f"contains {_kind_of(item)}; every entry must be a non-empty string")
        if len(item) > LONGEST_TEXT:
            raise ValueError("contains an entry that is too long")
    return tuple(value)


def _list_in_text(value: str) -> Any:
    """A list from JSON, or a list with this one entry."""
    if value.lstrip().startswith("["):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return [value] if value.strip() else []


def _mapping(parameter: Parameter, value: Any) -> dict[str, Any]:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            raise ValueError("is a string, not an object") from None
    if not isinstance(value, Mapping):
        raise ValueError(f"is {_kind_of(value)}, not an object")
    if len(value) > MOST_ITEMS or not all(isinstance(key, str) for key in value):
        raise ValueError("is too large or too deeply nested")
    return dict(value)


_READERS: Mapping[ParameterType, Callable[[Parameter, Any], Any]] = {
    "string": _text,
    "integer": _number,
    "number": _number,
    "boolean": _boolean,
    "strings": _texts,
    "object": _mapping,
}


def _kind_of(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, int | float):
        return "a number"
    if isinstance(value, str):
        return "a text" if value.strip() else "an empty string"
    if isinstance(value, list | tuple):
        return "a list"
    return "an object" if isinstance(value, Mapping) else f"a {type(value).__name__}"


def _shown(value: object) -> str:
    text = ascii(value)
    return text if len(text) <= _LONGEST_SHOWN else text[:_LONGEST_SHOWN] + "…"


def _example(tool: Tool, parameter: Parameter | None = None) -> str:
    """A call that works, with the argument in question."""
    wanted = [known for known in tool.parameters if known.required or known is parameter]
    arguments = {known.name: known.example for known in wanted}
    return f"for example: {tool.name} {json.dumps(arguments, ensure_ascii=False)}"
