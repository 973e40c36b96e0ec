"""Which tool calls of agents may have made the change that an undo takes back.

A call that begins in a state that was saved a moment ago gets no checkpoint of its own: the one
there is serves. So the newest checkpoint before a call may have been made for an earlier one, which
changed nothing. The log of tools knows each call, by the checkpoint that it began at; where the log
does not go back that far, the call that the checkpoint was made for is taken.

    calls that began at the checkpoint, without those after which all was found unchanged
      none                      no call did it: somebody else has changed something since
      its own                   told with what it was asked to do
      others                    told by their tools; by the checkpoint after it, if one was made

Also what the last calls deleted and no checkpoint has, where nothing else has changed since:

    rm -rf .git, make clean → every saved file is as it was → undo would take back an earlier thing

The reports of the checkpoints that were made before the calls tell what was there and left out.
What built-in rules leave out is made again by a tool, and is no loss.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from holdfast.domain.checkpoints import Checkpoint, Kind
from holdfast.domain.ids import SessionId
from holdfast.domain.ignore.defaults import is_made_by_tools
from holdfast.domain.restore.plan import Missing
from holdfast.domain.timeline.undo_history import State
from holdfast.engine.restore.plan import missing_now
from holdfast.engine.undo.outside_files import keys_outside
from holdfast.engine.vault import Vault
from holdfast.ports.agent_tools import LoggedCall
from holdfast.values.classes import dataclass

_MOST_PATHS = 3


@dataclass(frozen=True, slots=True)
class Cause:
    """Calls of one session. `subject` is the command or the paths, where it is one call and they
    are known."""

    session_id: SessionId
    at_ns: int
    tools: tuple[str, ...]
    calls: int = 1
    subject: str = ""


def tool_calls_after(vault: Vault, before: State, after: Checkpoint | None) -> tuple[Cause, ...]:
    """Those that may have led from a state to what is there now; `after` is the first checkpoint
    that has it."""
    log = vault.tool_log
    return tuple(_causes(vault, before, after, log.calls(), log.looks()))


def call_begun_at(vault: Vault, before: Checkpoint) -> Cause | None:
    """The newest call that began at a checkpoint; None where none did."""
    calls = [call for call in vault.tool_log.calls() if call.at == before.id]
    if is_before_tool(before) and not calls[1:]:
        return _own(vault, before)
    return _later(before, calls[-1:], None) if calls else None


def _causes(
    vault: Vault,
    before: State,
    after: Checkpoint | None,
    calls: list[LoggedCall],
    looks: list[tuple[int, str]],
) -> Iterator[Cause]:
    """The newest of each session. When the newest checkpoint of all is of something else, it was
    no tool call; neither was it one that an undo took back."""
    returned = [place for place, one in enumerate(before.checkpoints) if one.kind is Kind.RESTORE]
    since = before.checkpoints[returned[-1] + 1 if returned else 0 :]
    ordinary = [one for one in since if not one.kind.is_record]
    seen: set[SessionId] = set()
    for one in reversed(ordinary):
        began_here = [call for call in calls if call.at == one.id]
        if one is ordinary[-1] and not began_here and not is_before_tool(one):
            return
        if one.session_id in seen:
            continue
        seen.add(one.session_id)
        left = [call for call in began_here if _may_have_changed(call, one, looks)]
        if is_before_tool(one) and (not began_here or left == began_here[:1]):
            yield _own(vault, one)
        elif left:
            yield _later(one, left, after)


def _may_have_changed(call: LoggedCall, at: Checkpoint, looks: list[tuple[int, str]]) -> bool:
    """Not if all was as before when it had ended. A look sees nothing outside the workspace."""
    if call.ended_ns is None or keys_outside((at,)):
        return True
    return all(looked_ns < call.ended_ns for looked_ns, seen in looks if seen == at.id)


def _own(vault: Vault, before: Checkpoint) -> Cause:
    call = before.intent.tool_calls[-1]
    known: Mapping[str, object] = call if isinstance(call, Mapping) else {}
    subject = str(known.get("command") or "")
    paths = known.get("paths")
    if not subject and isinstance(paths, list | tuple):
        root = f"{vault.workspace}/"
        subject = ", ".join(str(path).removeprefix(root) for path in paths[:_MOST_PATHS])
    tool = str(known.get("tool") or "tool")
    return Cause(before.session_id, before.created_at_ns, (tool,), subject=subject)


def _later(before: Checkpoint, calls: list[LoggedCall], after: Checkpoint | None) -> Cause:
    tools = tuple(dict.fromkeys(call.tool or "tool" for call in calls))
    subject = ""
    if len(calls) == 1 and after is not None and after.session_id == before.session_id:
        said = f"After {tools[0]}: "
        subject = after.intent.reasoning.removeprefix(said)
        subject = "" if subject == after.intent.reasoning else subject
    at_ns = max(call.begun_ns for call in calls)
    return Cause(before.session_id, at_ns, tools, len(calls), subject)


def is_before_tool(checkpoint: Checkpoint) -> bool:
    kinds = (Kind.TOOL, Kind.RISKY)
    return checkpoint.kind in kinds and bool(checkpoint.intent.tool_calls)


@dataclass(frozen=True, slots=True)
class Loss:
    """The call, and what it deleted."""

    cause: Cause
    missing: tuple[Missing, ...]


def loss_since(vault: Vault, state: State) -> Loss | None:
    """What calls since a state, which the workspace is still in, have deleted: the newest of them
    that has. What was gone already when an undo or a restore led to the state does not count."""
    returned = [place for place, one in enumerate(state.checkpoints) if one.kind is Kind.RESTORE]
    for one in reversed(state.checkpoints[returned[-1] + 1 if returned else 0 :]):
        cause = call_begun_at(vault, one)
        if cause is None:
            continue
        missing = tuple(gone for gone in missing_now(vault, one) if _is_loss(gone))
        if missing:
            return Loss(cause, missing)
    return None


def _is_loss(gone: Missing) -> bool:
    return not gone.by_default and not is_made_by_tools(gone.path, is_directory=True)
