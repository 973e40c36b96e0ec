"""Running edits and tool calls: their owners, and waiting for them before a save.

    a save finds edits in progress → waits for them, up to a limit → saves anyway, and marks the
    checkpoint as partial, with what was still running

The caller's own edits are not waited for, because a checkpoint inside an edit is intended. Neither
are edits on the same thread, which cannot end while the caller waits. Agents' tools count too, from
the hook before to the hook after, unless the caller is part of the agent.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING

from holdfast.domain.checkpoints import Skipped, SkipReason
from holdfast.domain.errors import NotFound, StoreDamaged
from holdfast.domain.ids import WorkspaceId
from holdfast.engine.save.workspace_tree import SavedTree, add_report
from holdfast.engine.vault import Vault
from holdfast.values.classes import replace

if TYPE_CHECKING:
    from holdfast.domain.story import Activity
    from holdfast.ports.agent_tools import RunningTool

_PAUSE_S = 0.02

_open: ContextVar[frozenset[tuple[WorkspaceId, int]]] = ContextVar("open", default=frozenset())
"""Per task and thread: work that a task hands to another thread still belongs to it."""

_threads: dict[tuple[WorkspaceId, int], int] = {}


def enter(vault: Vault, number: int, *, thread: int | None = None) -> None:
    """Record that the caller is inside an activity; `thread` is where its work runs."""
    key = (vault.workspace_id, number)
    _open.set(_open.get() | {key})
    _threads[key] = threading.get_ident() if thread is None else thread


def leave(vault: Vault, number: int) -> None:
    key = (vault.workspace_id, number)
    _open.set(_open.get() - {key})
    _threads.pop(key, None)


def inside(vault: Vault) -> frozenset[int]:
    """The activities that the caller is inside of, to be passed to a save."""
    return frozenset(number for place, number in _open.get() if place == vault.workspace_id)


def newest(vault: Vault) -> int:
    """The activity that the caller started last and is still inside of."""
    numbers = inside(vault)
    if not numbers:
        raise NotFound("no edit is open here", hint="start one: session.start_edit([path])")
    return max(numbers)


def wait_for_others(
    vault: Vault, inside: Collection[int] = (), *, tools: bool = True
) -> tuple[Skipped, ...]:
    """Wait for other edits and tools; returns those still running, for the save's report. `inside`
    are activities of the caller. Without `tools`, agents' tools are not waited for. Never call this
    with the store's lock held."""
    deadline_ns = vault.clock.monotonic_ns() + int(vault.settings.wait_for_edits * 1e9)
    pause = threading.Event()
    while True:
        others = _others(vault, inside) if vault.has_story() else []
        running = working_tools(vault) if tools else []
        awaited = [tool for tool in running if not tool.waited]
        hopeless = all(_is_on_this_thread(vault, activity) for activity in others)
        late = vault.clock.monotonic_ns() >= deadline_ns
        if late or (hopeless and not awaited):
            for tool in awaited:
                vault.running_tools.give_up(tool.key)
            notes = [note for activity in others for note in _notes(activity)]
            return (*notes, *map(_note, running))
        pause.wait(_PAUSE_S)


def with_unsettled(vault: Vault, saved: SavedTree, unsettled: Sequence[Skipped]) -> SavedTree:
    """The same save, with a report of what was still running, and a warning that the checkpoint is
    partial."""
    from holdfast.engine.stored_objects import object_batch  # late: few saves need it

    skipped = [*saved.scan.skipped, *unsettled]
    with object_batch(vault.objects) as writer:
        report = add_report(writer, skipped)
    reasons = dict.fromkeys(note.detail for note in unsettled)
    partial = "the checkpoint is partial and may contain half of its work (setting wait_for_edits)"
    warnings = [f"{why}; {partial}" for why in reasons]
    return replace(
        saved,
        scan=replace(saved.scan, skipped=skipped),
        report=report,
        warnings=(*saved.warnings, *warnings),
    )


def is_running(vault: Vault, activity: Activity) -> bool:
    """Whether the process that started it is still alive."""
    owner, processes = activity.owner, vault.processes
    return owner == processes.own_identity() or processes.is_alive(owner)


def working_tools(vault: Vault) -> list[RunningTool]:
    """Running tool calls, except those that the caller is part of."""
    if not vault.parts.has_running_tools():
        return []
    return vault.running_tools.of_others(vault.clock.now_ns())


def _note(tool: RunningTool) -> Skipped:
    why = f"a tool of an agent was still running: {tool.tool}"
    return Skipped(b"", SkipReason.UNSTABLE, why)


def _others(vault: Vault, inside: Collection[int]) -> list[Activity]:
    from holdfast.domain.story import ActivityKind  # late: most stores have no story

    awaited = (ActivityKind.EDIT, ActivityKind.TOOL)
    try:
        begun = vault.story.open_activities()
    except StoreDamaged:
        return []  # the save itself reports it
    return [
        activity
        for activity in begun
        if activity.kind in awaited
        and activity.number not in inside
        and is_running(vault, activity)
    ]


def _is_on_this_thread(vault: Vault, activity: Activity) -> bool:
    thread = _threads.get((vault.workspace_id, activity.number))
    return activity.owner == vault.processes.own_identity() and thread == threading.get_ident()


def _notes(activity: Activity) -> Iterator[Skipped]:
    from holdfast.domain.story import ActivityKind

    what = "an edit" if activity.kind is ActivityKind.EDIT else "a tool call"
    why = f"{what} was still running: {activity.reason:.200}"
    for path in activity.paths or (b"",):
        yield Skipped(path, SkipReason.UNSTABLE, why)
