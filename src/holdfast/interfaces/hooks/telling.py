"""What an agent was to be told: noted as told once it has the answer, and not before.

Guarantee: a notice that a hook, or the daemon for it, could not hand over is told with the next
event. One whose answer went out just before the process was killed is told twice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.bootstrap.workspace import open_workspace

if TYPE_CHECKING:
    from pathlib import Path

    from holdfast.domain.agent_events import AgentEvent, NoticeClaim


def settle_in(event: AgentEvent, workspace: Path, claim: NoticeClaim, *, told: bool) -> None:
    """Open the workspace for it; what goes wrong is written down, and the claim runs out."""
    from holdfast.engine.conversation.notices import settle_claim
    from holdfast.interfaces.hooks.problems import note_trouble

    try:
        purpose = f"holdfast hook {event.agent}"
        with open_workspace(workspace, create=False, purpose=purpose) as opened:
            settle_claim(opened.engine.vault, claim, told=told)
    except Exception as error:  # the agent has its answer
        note_trouble(event, "it was not noted that the agent was told", error)
