"""The public import name `holdfast.tools`; it holds no logic.

>>> from holdfast.tools import ToolHandlers, definitions
>>> offered = definitions(format="openai")
>>> handlers = ToolHandlers(session)
>>> handlers.call("checkpoint_create", {"reasoning": "before the refactor"}).output

Names are loaded when first used: a server tells what it offers before it needs the engine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.interfaces.tools.handlers import ToolHandlers, ToolResult, definitions

_HOMES = {
    "ToolHandlers": "holdfast.interfaces.tools.handlers",
    "ToolResult": "holdfast.interfaces.tools.handlers",
    "definitions": "holdfast.interfaces.tools.handlers",
}

__all__ = ["ToolHandlers", "ToolResult", "definitions"]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'holdfast.tools' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
