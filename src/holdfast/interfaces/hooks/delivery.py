"""Where an event goes when the daemon has not dealt with it: the work is done in this process.

The daemon is begun only afterwards, for the next event: an agent never waits until one is there.
"""

from __future__ import annotations

from holdfast.domain.agent_events import AgentEvent, Reply


def deliver(event: AgentEvent, *, begin_daemon: bool = False) -> Reply:
    """Do what the event asks for; what is saved is durable when this returns."""
    from holdfast.interfaces.hooks.handling import handle  # imports the engine

    settings = []
    reply = handle(event, lambda opened: settings.append(opened.engine.vault.settings))
    if begin_daemon and settings and settings[0].daemon == "on":
        import os

        from holdfast.interfaces.daemon.client import begin_daemon as begin

        begin(os.environ)
    return reply
