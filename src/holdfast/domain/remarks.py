"""Warnings that nobody has to act on.

A warning is a sentence. One that only says what happens in any case is a `Remark`: it is told in
passing, and no screen paints it yellow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable


class Remark(str):
    """A warning that asks for nothing."""

    __slots__ = ()


def reworded(warning: str, change: Callable[[str], str]) -> str:
    """The warning in other words; a remark stays one."""
    words = change(warning)
    return Remark(words) if isinstance(warning, Remark) else words


def remarks_in(warnings: Iterable[str]) -> list[str]:
    """The remarks among them, as plain text."""
    return [str(warning) for warning in warnings if isinstance(warning, Remark)]
