"""The answer to one call of a tool, and how what failed is told."""

from __future__ import annotations

from dataclasses import dataclass, field

from holdfast.domain.errors import HoldfastError
from holdfast.interfaces.tools.shell_words import in_calls
from holdfast.interfaces.tools.wording import many_lines, one_line


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The answer to one call: `output` is for the model; `data`, one of the shapes in
    `holdfast.interfaces.tools.results`, is there for programs when the call succeeded."""

    tool_call_id: str | None
    success: bool
    output: str
    data: object = field(default=None, compare=False)


def told(error: HoldfastError) -> str:
    """An error as a model can act on it."""
    hint = f"\nWhat to do: {many_lines(in_calls(error.hint))}" if error.hint else ""
    return f"Not done ({error.code}): {many_lines(error.message)}{hint}"


def as_data(error: HoldfastError) -> dict[str, str | None]:
    """The same for programs that hand it to one."""
    return error.to_dict() | {"hint": in_calls(error.hint) if error.hint else None}


def unexpected(name: str, error: Exception) -> str:
    """A failure that nobody foresaw, without its stack."""
    reason = one_line(str(error))[:300]
    return (
        f"{name} failed unexpectedly: {type(error).__name__}{': ' if reason else ''}{reason}.\n"
        "What to do: go on with your work if you can, and tell the person that this call failed."
    )
