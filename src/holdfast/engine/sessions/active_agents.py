"""Agents whose sessions have not ended, and the processes that hooks recorded for them.

If an agent's process is gone, its session has ended, whether or not the agent reported it.
"""

from __future__ import annotations

from holdfast.domain.errors import StoreDamaged
from holdfast.domain.ids import SessionId
from holdfast.domain.sessions import Session, SessionStatus
from holdfast.domain.wording import printable
from holdfast.engine.vault import Vault
from holdfast.values.classes import dataclass

AGENT_PROCESS = "process of the agent"
"""The metadata key under which hooks record the agent's process."""
STARTING_PROCESS = "process that began the session"
"""The key for the process of the first event. Some agents start a helper process for each event,
so the session has not ended if this one is gone."""

_STATUS = {True: "ended", False: "running", None: "not asked"}


@dataclass(frozen=True, slots=True)
class ActiveAgent:
    """An agent with a session that has not ended. `process` is the identity of its process, None
    if hooks have not recorded one."""

    session_id: SessionId
    agent: str
    process: str | None = None

    @property
    def process_number(self) -> int | None:
        return None if self.process is None else int(self.process.partition(" ")[0])

    def __str__(self) -> str:
        return f"{printable(self.agent)} ({self.session_id})"


def active_agents(vault: Vault) -> list[ActiveAgent]:
    """Oldest session first, each with the newest known process that still runs."""
    from holdfast.engine.edits.open_activities import working_tools

    calling = {tool.session: tool.owner for tool in working_tools(vault)}
    found = []
    for session in vault.catalog.sessions():
        if session.agent is None or session.status is not SessionStatus.ACTIVE:
            continue
        from holdfast.ports.agent_tools import session_digest  # late: many have no agent

        recorded = (_process(vault, session, key) for key in (AGENT_PROCESS, STARTING_PROCESS))
        known = (calling.get(session_digest(session.agent, session.id)), *recorded)
        process = next((one for one in known if one and vault.processes.is_alive(one)), None)
        is_active = process or effective_status(vault, session) is SessionStatus.ACTIVE
        if is_active and vault.catalog.counts(session.id).checkpoints:
            found.append(ActiveAgent(session.id, session.agent, process))
    return found


@dataclass(frozen=True, slots=True)
class StoppedAgent:
    """The result of asking an agent to end: `ended`; `running` if it did not end in time; or
    `not asked` if hooks recorded no process, or if it runs this command."""

    agent: ActiveAgent
    status: str


def stop_agents(vault: Vault, *, wait_s: float) -> list[StoppedAgent]:
    """Ask each active agent to end, through the process that hooks recorded, and wait for it."""
    found: list[StoppedAgent] = []
    statuses: dict[str, str] = {}
    for agent in active_agents(vault):
        if agent.process is not None and agent.process not in statuses:
            ended = vault.processes.ask_to_end(agent.process, wait_s=wait_s)
            statuses[agent.process] = _STATUS[ended]
        found.append(StoppedAgent(agent, statuses.get(agent.process or "", _STATUS[None])))
    return found


def effective_status(vault: Vault, session: Session) -> SessionStatus:
    """The status, `ended` also if the agent's process is gone."""
    if session.status is not SessionStatus.ACTIVE:
        return session.status
    process = _process(vault, session)
    is_gone = process and not vault.processes.is_alive(process)
    return SessionStatus.ENDED if is_gone else session.status


def _process(vault: Vault, session: Session, key: str = AGENT_PROCESS) -> str | None:
    """The identity of the agent's process, if hooks recorded it."""
    try:
        return vault.story.fact(session.id, key) if vault.has_story() else None
    except StoreDamaged:
        return None
