"""Captures components for a checkpoint, after its files are durable.

    per component, in order: unchanged since the last checkpoint → its entry is reused
    → else capture, within time and size → contents and manifest durable

Guarantee: whatever a component does, the checkpoint is made and missing parts are reported. It
costs nothing if no component applies, and writes nothing if nothing changed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from functools import partial

from holdfast.domain.checkpoints import Checkpoint, Skipped, SkipReason
from holdfast.domain.component_states import (
    LARGEST_MANIFEST_BYTES,
    ComponentState,
    encode_manifest,
)
from holdfast.domain.errors import StoreDamaged
from holdfast.domain.ids import CheckpointId
from holdfast.domain.paths import parent
from holdfast.domain.trees.objects import digest_of
from holdfast.engine.components.component_snapshot import NOTHING, CapturedComponents
from holdfast.engine.components.contents import NoSink, StoreSink, changed_since, seen_directories
from holdfast.engine.components.guard import ComponentProgress, Refusal, component_progress, guarded
from holdfast.engine.components.manifests import (
    failed,
    is_guarded,
    is_recorded_only,
    paused_state,
    read_states,
)
from holdfast.engine.save.space_limit import SpaceLimit
from holdfast.engine.scan.scanner import Scan
from holdfast.engine.vault import Vault
from holdfast.ports.component import (
    Captured,
    CaptureRequest,
    Component,
    Intended,
    SeenDirectory,
    nothing_seen,
    unknown_changes,
)
from holdfast.ports.objects import ObjectWriter
from holdfast.values.classes import replace

_LARGEST_FACTS_BYTES = LARGEST_MANIFEST_BYTES // 4


def capture(
    vault: Vault,
    checkpoint: CheckpointId,
    before: Checkpoint | None,
    intended: Mapping[str, Intended],
    *,
    only: Container[str] | None = None,
    beyond_budget: bool,
    thorough: bool = True,
    recorded: bool = False,
    scan: Scan | None = None,
) -> CapturedComponents:
    """Called with the store's lock held; `before` is the previous HEAD."""
    # Capture the target of a restore even if nothing exists there now.
    due = intended or {}
    found = vault.components.all() if due else vault.components.applying(vault.workspace)
    wanted = [c for c in found if recorded or not is_recorded_only(c)]
    applying = _applicable(vault, [c for c in wanted if c.name not in due])
    chosen = [c for c in wanted if c.name in due or c.name in applying]
    missing = vault.components.missing()
    known = _known(vault, before)
    kept: list[ComponentState] = []
    if only is not None:
        chosen = [component for component in chosen if component.name in only]
        missing = ()
        kept = [state for name, state in known.items() if name not in only]
    if not chosen and not missing and not kept:
        return NOTHING
    run = _Run(vault, checkpoint, known, intended, beyond_budget=beyond_budget)
    run.thorough = thorough
    if scan is not None:
        run.repositories = _repositories(vault, scan.skipped)
        run.changed = partial(changed_since, vault, before, scan)
        run.seen = partial(seen_directories, scan.root)
    try:
        states = kept + [run.capture(component) for component in chosen]
        for text in missing:
            name, _, why = text.partition(": ")
            states.append(ComponentState(name, failure=why))
        return run.finish(tuple(states), before)
    except BaseException:
        run.abandon()
        raise


def present_state(vault: Vault, component: Component, intended: Intended | None) -> ComponentState:
    """The current state, for a preview: nothing is stored or kept alive."""
    with component_progress(vault, component.name, "looking") as progress:
        request = CaptureRequest(
            workspace=vault.workspace,
            owner=vault.workspace_id,
            checkpoint=None,
            previous=None,
            now_ns=vault.clock.now_ns(),
            timeout_s=vault.settings.component_timeout,
            intended=intended,
            progress=progress,
        )
        try:
            captured = guarded(
                lambda: component.capture(request, NoSink()), timeout_s=request.timeout_s
            )
            return _checked(component.name, captured, None)
        except Refusal as error:
            return ComponentState(component.name, failure=str(error))


def _repositories(vault: Vault, skipped: Sequence[Skipped]) -> tuple[bytes, ...]:
    """Directories below the workspace in which the scan found `.git`, for components that ask for
    them; only those whose files are captured."""
    if vault.settings.git_nested != "on":
        return ()
    found = {parent(skip.path) for skip in skipped if skip.reason is SkipReason.GIT_DATA}
    return tuple(sorted(found - {b""}))


def _applicable(vault: Vault, components: Sequence[Component]) -> set[str]:
    """The names of components that have something to capture. Most have nothing, so all are asked
    in one call. A component that cannot answer is included: its capture fails with the reason."""
    answers: dict[str, bool] = {}
    unasked = list(components)
    while unasked:
        found: dict[str, bool] = {}
        try:
            guarded(
                partial(_ask, vault, unasked, found), timeout_s=vault.settings.component_timeout
            )
        except Refusal:
            found = dict(found)  # a copy, because the abandoned call may still add to it
            stuck = next((c.name for c in unasked if c.name not in found), None)
            if stuck is not None:  # otherwise the last one answered just after the limit
                found[stuck] = True
        answers |= found
        unasked = [component for component in unasked if component.name not in answers]
    return {name for name, applies in answers.items() if applies}


def _ask(vault: Vault, components: Sequence[Component], found: dict[str, bool]) -> None:
    for component in components:
        found[component.name] = bool(component.applies(vault.workspace))


def _known(vault: Vault, before: Checkpoint | None) -> dict[str, ComponentState]:
    if before is None:
        return {}
    try:
        return {state.name: state for state in read_states(vault.objects, before)}
    except StoreDamaged:
        return {}  # the parent is unreadable, but the current state can be saved


class _Run:
    """The captures of one checkpoint; at most one batch of objects is open at a time."""

    def __init__(
        self,
        vault: Vault,
        checkpoint: CheckpointId,
        known: dict[str, ComponentState],
        intended: Mapping[str, Intended],
        *,
        beyond_budget: bool,
    ) -> None:
        self._vault = vault
        self._checkpoint = checkpoint
        self._known = known
        self._intended = intended
        self._beyond_budget = beyond_budget
        self._writer: ObjectWriter | None = None
        self.repositories: tuple[bytes, ...] | None = None
        self.thorough = True
        self.changed: Callable[[], Sequence[bytes] | None] = unknown_changes
        self.seen: Callable[[], Iterable[SeenDirectory]] = nothing_seen

    def capture(self, component: Component) -> ComponentState:
        with component_progress(self._vault, component.name, "saving") as progress:
            return self._capture(component, progress)

    def _capture(self, component: Component, progress: ComponentProgress) -> ComponentState:
        vault, name = self._vault, component.name
        previous, breaks = self._known.get(name), is_guarded(component)
        # A restore's safety checkpoint is needed to undo it.
        if breaks and not self._beyond_budget and not self._intended:
            resting = paused_state(previous, vault.clock.now_ns())
            if resting is not None:
                return resting
        request = CaptureRequest(
            workspace=vault.workspace,
            owner=vault.workspace_id,
            checkpoint=self._checkpoint,
            previous=previous if previous is not None and previous.failure is None else None,
            now_ns=vault.clock.now_ns(),
            timeout_s=vault.settings.component_timeout,
            intended=self._intended.get(name),
            progress=progress,
            repositories=self.repositories,
            thorough=self.thorough,
            changed=self.changed,
            seen=self.seen,
        )
        self._commit()
        sink = StoreSink(
            vault.objects,
            limit_bytes=vault.settings.component_max_size,
            # A restore's safety checkpoint may exceed the budget.
            store_limit=SpaceLimit(vault, budget=not self._beyond_budget).bytes,
            progress=progress,
            previous=request.previous,
        )
        begun_ns = vault.clock.monotonic_ns()
        try:
            captured = guarded(
                lambda: component.capture(request, sink), timeout_s=request.timeout_s
            )
            state = _checked(name, captured, request.previous)
        except Refusal as error:
            writer = sink.close()
            if writer is not None:
                writer.abandon()
            if not breaks:
                return ComponentState(name, failure=str(error))
            took_ns = vault.clock.monotonic_ns() - begun_ns
            now_ns = vault.clock.now_ns()
            return failed(name, str(error), previous, now_ns=now_ns, took_ns=took_ns)
        self._writer = sink.close()
        return state if captured is None else replace(state, contents=sink.contents)

    def finish(
        self, states: tuple[ComponentState, ...], before: Checkpoint | None
    ) -> CapturedComponents:
        data = encode_manifest(states)
        digest = digest_of(data)
        if before is None or before.components != digest:
            writer = self._writer or self._vault.objects.writer()
            self._writer = writer
            writer.add(digest, data)
        self._commit()
        return CapturedComponents(digest, states)

    def _commit(self) -> None:
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.commit()

    def abandon(self) -> None:
        if self._writer is not None:
            self._writer.abandon()


def _checked(
    name: str, captured: Captured | None, previous: ComponentState | None
) -> ComponentState:
    """A component's answer, if it is valid; otherwise `Refusal`."""
    if captured is None:
        if previous is None:
            raise Refusal("it reported no change, but has no earlier state")
        return previous
    try:
        rows = [captured.facts, captured.notes, list(captured.problems)]
        text = json.dumps(rows)
        if len(text) > _LARGEST_FACTS_BYTES:
            raise Refusal(f"its facts use {len(text)} bytes; store large data as contents")
        facts, notes, problems = json.loads(text)
        if not isinstance(facts, dict) or not isinstance(notes, dict):
            raise Refusal("its facts are not an object")
        return ComponentState(name, facts, (), tuple(map(str, problems)), None, notes)
    except (TypeError, ValueError, AttributeError, RecursionError) as error:
        raise Refusal(f"its facts are not JSON: {error}") from None
