"""Calling a tool that is expected to succeed."""

from __future__ import annotations

import dataclasses
import json
from typing import Any, TypeVar

from holdfast.tools import ToolHandlers

T = TypeVar("T")


def done(tools: ToolHandlers, name: str, kind: type[T], /, **arguments: Any) -> tuple[str, T]:
    """The answer of a call that succeeds; its data can be sent anywhere as JSON."""
    result = tools.call(name, arguments, "call-1")
    assert (result.tool_call_id, result.success) == ("call-1", True), result.output
    assert isinstance(result.data, kind)
    told: Any = result.data
    json.dumps(dataclasses.asdict(told), ensure_ascii=False).encode()
    result.output.encode()
    return result.output, result.data
