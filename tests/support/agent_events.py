"""Handling an agent's event in this process, from the event to the reply."""

from __future__ import annotations

import os

from holdfast.domain.agent_events import AgentEvent, Reply
from holdfast.interfaces.hooks.runtime_files import event_handler


def handle(event: AgentEvent) -> Reply:
    handler = event_handler(os.environ)
    return handler.handle_event(event, handler.workspace_for(event))
