"""Checkpoints as tools of a function-calling agent: what to offer it, and what answers its calls.

>>> from holdfast.tools import ToolHandlers, definitions
>>> offered = definitions(format="openai")
>>> handlers = ToolHandlers(session)
>>> handlers.call("checkpoint_create", {"reasoning": "before the refactor"}).output
"""

from holdfast.tools.formats import definitions
from holdfast.tools.handlers import ToolHandlers, ToolResult

__all__ = ["ToolHandlers", "ToolResult", "definitions"]
