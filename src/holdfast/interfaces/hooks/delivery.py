"""Where an event goes: the one place between the hook's process and the work.

Standard library only until the work begins, which is done here, in this process.
"""

from __future__ import annotations

from holdfast.interfaces.hooks.events import AgentEvent, Reply


def deliver(event: AgentEvent) -> Reply:
    """Do what the event asks for; what is saved is durable when this returns."""
    from holdfast.interfaces.hooks.handling import handle  # imports the engine

    return handle(event)
