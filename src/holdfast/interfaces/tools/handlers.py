"""Answers an agent's tool calls on one session.

Guarantee: a call always gets an answer, whatever was passed and whatever failed; nothing is raised
into the agent's loop. What failed is told with its reason and the way out, never as a stack trace.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from typing import Any

from holdfast.api.session import SessionCheckpointer
from holdfast.domain.agent_events import NoticeClaim
from holdfast.domain.errors import HoldfastError
from holdfast.domain.ids import CheckpointId
from holdfast.engine.conversation.notices import claim_notices, settle_claim, take_notices
from holdfast.interfaces.tools import (
    comparing,
    explaining,
    housekeeping,
    looking,
    saving,
    searching,
    taking_back,
)
from holdfast.interfaces.tools.answers import ToolResult, told, unexpected
from holdfast.interfaces.tools.arguments import parse_arguments
from holdfast.interfaces.tools.bench import Answer, Bench
from holdfast.interfaces.tools.confirmations import Confirmations
from holdfast.interfaces.tools.shell_words import notice_in_calls
from holdfast.interfaces.tools.specs import SPECS

Handler = Callable[[Bench, dict[str, Any]], Answer]

HANDLERS: Mapping[str, Handler] = {
    "checkpoint_create": saving.create,
    "checkpoint_list": looking.list_checkpoints,
    "checkpoint_history": looking.history,
    "checkpoint_show": looking.show,
    "checkpoint_stats": looking.statistics,
    "checkpoint_search": searching.search,
    "checkpoint_annotate": saving.annotate,
    "checkpoint_diff": comparing.diff,
    "checkpoint_why": explaining.why,
    "checkpoint_restore": taking_back.restore,
    "checkpoint_undo": taking_back.undo,
    "checkpoint_approve": saving.approve,
    "checkpoint_reset": taking_back.reset,
    "checkpoint_cleanup": housekeeping.cleanup,
    "checkpoint_auto_configure": housekeeping.auto_configure,
}


class ToolHandlers:
    """The tools of one session; safe to use from many threads.

    >>> ToolHandlers(session).call("checkpoint_restore", {"ref": "before-refactor"})
    """

    def __init__(self, session: SessionCheckpointer) -> None:
        vault = session.opened.engine.vault
        self._bench = Bench(session, Confirmations(vault.clock, vault.ids.new_id))

    @property
    def session(self) -> SessionCheckpointer:
        return self._bench.session

    def call(
        self,
        name: str,
        arguments: Mapping[str, Any] | str | None = None,
        tool_call_id: str | None = None,
    ) -> ToolResult:
        """Do what the model asked for. `arguments` may be the object or its JSON text. What was
        taken back since the last call is told with the answer, once (RB-10)."""
        result, restored = self.answer(name, arguments, tool_call_id)
        return with_notices(result, self._notices(() if restored is None else (restored,)))

    def answer(
        self,
        name: str,
        arguments: Mapping[str, Any] | str | None = None,
        tool_call_id: str | None = None,
    ) -> tuple[ToolResult, CheckpointId | None]:
        """The answer alone, and the record of a restore that it tells about. What else there is to
        tell waits for somebody who tells it."""
        try:
            if not isinstance(name, str) or name not in HANDLERS:
                return ToolResult(tool_call_id, False, _unknown(name)), None
            answer = HANDLERS[name](self._bench, parse_arguments(SPECS[name], arguments))
            return ToolResult(tool_call_id, True, answer.text, answer.data), answer.restored
        except HoldfastError as error:
            return ToolResult(tool_call_id, False, told(error)), None
        except Exception as error:
            return ToolResult(tool_call_id, False, unexpected(name, error)), None

    def claim(self, restored: CheckpointId | None) -> NoticeClaim | None:
        """What there is to tell with an answer that may not reach the agent: `settle` says whether
        it did, and what did not is told with the next one."""
        try:
            vault, session_id = self._bench.engine.vault, self._bench.session_id
            answered = () if restored is None else (restored,)
            return claim_notices(vault, session_id, answered=answered)
        except HoldfastError:
            return None  # as below

    def settle(self, claim: NoticeClaim, *, told: bool) -> None:
        settle_claim(self._bench.engine.vault, claim, told=told)

    def _notices(self, answered: Sequence[CheckpointId]) -> list[str]:
        """What else there is to tell; of a restore that the answer tells about, only the rest."""
        try:
            vault, session_id = self._bench.engine.vault, self._bench.session_id
            return take_notices(vault, session_id, answered=answered)
        except HoldfastError:
            return []  # a story that cannot be read is no reason to withhold an answer


def with_notices(result: ToolResult, notices: Sequence[str]) -> ToolResult:
    """The answer with what else the agent has to know, in calls of tools."""
    if not notices:
        return result
    return replace(result, output="\n\n".join((result.output, *map(notice_in_calls, notices))))


def _unknown(name: object) -> str:
    close = get_close_matches(name[:100], HANDLERS, 1) if isinstance(name, str) else []
    meant = f" Did you mean {close[0]}?" if close else ""
    return f"There is no tool {ascii(name)[:100]}.{meant} Tools are: {', '.join(HANDLERS)}."
