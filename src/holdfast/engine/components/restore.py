"""Restores components with a checkpoint, and rolls them back if one of them fails.

    files are restored and verified → per component, in order: restore, verify
    → one fails: everything begun returns to the safety checkpoint's state

With best effort, a failure is reported and the others continue. Each call has a time limit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from holdfast.domain.checkpoints import Checkpoint
from holdfast.domain.component_states import EXACT, SOME, ComponentState
from holdfast.domain.errors import RestoreFailed
from holdfast.domain.ids import short
from holdfast.domain.restore.plan import (
    FAILED,
    RESTORED,
    ComponentOutcome,
    ComponentStep,
    RestorePlan,
)
from holdfast.domain.wording import reworded
from holdfast.engine.components.capture import present_state
from holdfast.engine.components.contents import StoreSource
from holdfast.engine.components.guard import Refusal, component_progress, guarded, lines, one_line
from holdfast.engine.components.manifests import read_states, state_of
from holdfast.engine.vault import Vault
from holdfast.ports.component import Component, ComponentPreview, Intended, RestoreOf
from holdfast.values.classes import replace

_SHOWN = 5
_SECONDS_A_CONTENT = 0.02
_NOTHING = "that checkpoint does not contain it; holdfast show REF lists its components"


class ComponentsFailed(Exception):
    """A component could not be restored, so the whole restore is rolled back."""


def intended_of(
    vault: Vault, target: Checkpoint, chosen: Sequence[tuple[str, str]]
) -> dict[str, Intended]:
    """What a capture must know so that the restore can be undone."""
    states = {state.name: state for state in read_states(vault.objects, target)} if chosen else {}
    return {
        name: Intended(states[name], mode, target.id, StoreSource(vault.objects, states[name]))
        for name, mode in chosen
        if name in states
    }


def plan_components(
    vault: Vault,
    target: Checkpoint,
    chosen: Sequence[tuple[str, str]],
    present: Sequence[ComponentState] | None = None,
) -> tuple[ComponentStep, ...]:
    """What would be done with each component, or why it cannot be done. Changes nothing. `present`
    is the current state, if it was just captured."""
    if not chosen:
        return ()
    intended = intended_of(vault, target, chosen)
    components = {one.name: one for one in vault.components.named(dict(chosen))}
    known = {state.name: state for state in present or ()}
    steps = []
    for name, mode in chosen:
        component, wanted = components.get(name), intended.get(name)
        if component is None:
            step = ComponentStep(name, mode, blocked=("it is not installed or turned off",))
        elif wanted is None:
            step = ComponentStep(name, mode, blocked=(_NOTHING,))
        elif wanted.state.failure is not None:
            why = f"it was not captured at that time: {wanted.state.failure}"
            step = ComponentStep(name, mode, blocked=(why,))
        else:
            now = known.get(name) or present_state(vault, component, wanted)
            step = _planned(vault, component, target, wanted, now)
        steps.append(step)
    order = {name: (c.order, name) for name, c in components.items()}
    return tuple(sorted(steps, key=lambda step: order.get(step.name, (0, step.name))))


def _planned(
    vault: Vault, component: Component, target: Checkpoint, wanted: Intended, now: ComponentState
) -> ComponentStep:
    lost = (*now.problems, *(() if now.failure is None else (now.failure,)))
    if lost:
        why = f"the current state cannot be saved, so undo could not restore it: {lost[0]}"
        return ComponentStep(component.name, wanted.mode, blocked=(why,))
    with _request_for(vault, "planning", target, wanted.state, now, wanted.mode) as request:
        try:
            return guarded(
                lambda: _step(component.name, wanted.mode, component.plan(request)),
                timeout_s=request.timeout_s,
            )
        except Refusal as error:
            return ComponentStep(component.name, wanted.mode, blocked=(str(error),))


def _step(name: str, mode: str, preview: ComponentPreview) -> ComponentStep:
    return ComponentStep(
        name,
        mode,
        lines(preview.actions),
        lines(preview.warnings),
        lines(preview.blocked),
        tuple((str(key), one_line(line)) for key, line in preview.choices),
    )


@contextmanager
def _request_for(
    vault: Vault,
    phase: str,
    target: Checkpoint,
    state: ComponentState,
    present: ComponentState | None,
    mode: str,
) -> Iterator[RestoreOf]:
    """A request that is valid within the block; afterwards, an abandoned call gets no content."""
    name = f"{target.name} ({short(target.id)})" if target.name else short(target.id)
    with component_progress(vault, state.name, phase) as progress:
        contents = StoreSource(vault.objects, state, progress)
        try:
            yield RestoreOf(
                workspace=vault.workspace,
                owner=vault.workspace_id,
                present=present,
                target=state,
                mode=mode,
                label=target.id,
                title=f"{name}: {target.intent.reasoning.splitlines()[0][:100]}",
                contents=contents,
                now_ns=vault.clock.now_ns(),
                timeout_s=vault.settings.component_timeout,
                progress=progress,
            )
        finally:
            contents.end()


class ComponentRestore:
    """The component part of one restore; `revert` rolls back what `run` began."""

    def __init__(
        self,
        vault: Vault,
        target: Checkpoint,
        safety: Checkpoint,
        chosen: Sequence[tuple[str, str]],
        *,
        best_effort: bool,
        present: Checkpoint | None = None,
    ) -> None:
        """`present` is the state captured just now, if that is not the safety checkpoint."""
        self._vault = vault
        self._target = target
        self._safety = safety
        self._present = present or safety
        self._best_effort = best_effort
        modes = dict(chosen)
        self._chosen = [(c, modes[c.name]) for c in vault.components.named(modes)]
        self._begun: list[tuple[Component, str]] = []
        self.outcomes: list[ComponentOutcome] = []

    def run(self) -> None:
        """`ComponentsFailed` if one fails, unless best effort was requested."""
        for component, mode in self._chosen:
            name = component.name
            state = state_of(self._vault.objects, self._target, name)
            if state is None or state.failure is not None:
                self._failed(name, mode, _NOTHING)
                continue
            try:
                self._restore(component, state, mode)
                self.outcomes.append(ComponentOutcome(name, mode, RESTORED))
            except Refusal as error:
                self._failed(name, mode, str(error), component)

    def _restore(self, component: Component, state: ComponentState, mode: str) -> None:
        present = state_of(self._vault.objects, self._present, component.name)
        self._begun.append((component, mode))
        with _request_for(self._vault, "restoring", self._target, state, present, mode) as request:
            timeout_s = _time_to_restore(request)
            guarded(lambda: component.restore(request), timeout_s=timeout_s)
            request.progress.advance("verifying", 0, None)
            wrong = guarded(lambda: lines(component.verify(request)), timeout_s=timeout_s)
        if wrong:
            raise Refusal(f"after the restore {wrong[0]}")

    def _failed(self, name: str, mode: str, why: str, component: Component | None = None) -> None:
        if not self._best_effort:
            raise ComponentsFailed(f"{name}: {why}")
        where = "not restored"
        if component is not None:
            where = "as it was before" if self._put_back(component, mode) is None else "unknown"
        self.outcomes.append(ComponentOutcome(name, mode, FAILED, f"{why} (it is {where})"))

    def revert(self) -> None:
        """Return everything begun to the safety checkpoint's state, newest first."""
        problems = []
        while self._begun:
            component, mode = self._begun.pop()
            why = self._put_back(component, mode)
            if why is not None:
                problems.append(f"{component.name}: {why}")
        if problems:
            raise RestoreFailed(
                f"the restore failed and could not be rolled back: {'; '.join(problems)}",
                hint="fix the cause; the next command rolls it back",
            )

    def _put_back(self, component: Component, mode: str) -> str | None:
        """None if it was put back, or the reason why not."""
        state = state_of(self._vault.objects, self._safety, component.name)
        if state is None or state.failure is not None:
            return "the previous state was not captured"
        # Each part is in its previous state or was just restored.
        begun = state_of(self._vault.objects, self._target, component.name)
        back = mode if mode.startswith(f"{SOME}:") else EXACT  # leave unselected parts alone
        with _request_for(self._vault, "rolling back", self._safety, state, begun, back) as request:
            try:
                guarded(lambda: component.restore(request), timeout_s=_time_to_restore(request))
            except Refusal as error:
                return str(error)
        return None


def _time_to_restore(request: RestoreOf) -> float:
    """The limit stops calls that hang. Writing many files durably gets more time."""
    return request.timeout_s + _SECONDS_A_CONTENT * len(request.target.contents)


def unrestored_warnings(
    vault: Vault, target: Checkpoint, chosen: Sequence[tuple[str, str]]
) -> tuple[str, ...]:
    """Warnings about components that the checkpoint could not save. Also about parts that differ
    and are not restored because they were not selected, for components whose parts are selected one
    by one (BX-7)."""
    if target.components is None:
        return ()
    states = {s.name: s for s in read_states(vault.objects, target) if s.name not in dict(chosen)}
    lost = [text.partition(": ") for text in vault.components.missing()] if states else []
    warnings = [f"{name}: left as it is; {why}" for name, _, why in lost if name in states]
    for component in vault.components.named(states):
        failure = states[component.name].failure
        if failure is not None and component.restored_by_default:
            warnings.append(
                f"{component.name}: left as it is; that checkpoint could not save it: {failure}"
            )
        elif SOME in component.modes:
            (step,) = plan_components(vault, target, ((component.name, EXACT),))
            differing = [line for _, line in step.choices] + list(step.blocked)
            if differing:
                some = "; ".join(differing[:_SHOWN]) + ("; …" if len(differing) > _SHOWN else "")
                warnings.append(
                    f"{component.name}: differs, and is not restored without "
                    f"--{component.name}: {some}"
                )
    return tuple(warnings)


def first_blocked(steps: Sequence[ComponentStep]) -> str | None:
    return next((f"{s.name}: {s.blocked[0]}" for s in steps if s.blocked), None)


def without_blocked(steps: Sequence[ComponentStep]) -> tuple[tuple[str, str], ...]:
    return tuple((step.name, step.mode) for step in steps if not step.blocked)


def mark_idle(
    outcomes: Sequence[ComponentOutcome], steps: Sequence[ComponentStep]
) -> tuple[ComponentOutcome, ...]:
    """Mark components that had nothing to do, and list the parts that were left as they are."""
    planned = {step.name: step for step in steps}
    return tuple(
        replace(one, idle=not step.actions, left=_left(step))
        if one.status == RESTORED and (step := planned.get(one.name)) is not None
        else replace(one, idle=one.status == RESTORED)
        for one in outcomes
    )


def _left(step: ComponentStep) -> tuple[str, ...]:
    """Choices that were not selected."""
    return tuple(line for _, line in step.choices if line not in step.actions)


def blocked_outcomes(steps: Sequence[ComponentStep]) -> tuple[ComponentOutcome, ...]:
    """The outcomes of best effort for components that cannot even be started."""
    return tuple(
        ComponentOutcome(step.name, step.mode, FAILED, step.blocked[0])
        for step in steps
        if step.blocked
    )


def with_component_steps(plan: RestorePlan, steps: tuple[ComponentStep, ...]) -> RestorePlan:
    """The plan with its component steps and their warnings."""
    warnings = tuple(
        reworded(text, f"{step.name}: {{}}".format)
        for step in steps
        for text in step.warnings
        if text not in plan.warnings  # already reported for the files
    )
    return replace(plan, components=steps, warnings=(*plan.warnings, *warnings))


def file_warnings(vault: Vault, paths: Sequence[bytes]) -> tuple[str, ...]:
    """Components' warnings about files that are about to change; failures are ignored in a preview.
    Every component is asked, because agents may be at work even if nothing of theirs is saved."""
    said: list[str] = []
    timeout_s = vault.settings.component_timeout
    for component in vault.components.all() if paths else ():
        try:
            said += guarded(partial(_file_warnings, vault, component, paths), timeout_s=timeout_s)
        except Refusal as error:  # a plug-in must not stop a preview
            said.append(f"{component.name}: {error}")
    return tuple(said)


def _file_warnings(vault: Vault, component: Component, paths: Sequence[bytes]) -> tuple[str, ...]:
    timeout_s = vault.settings.component_timeout
    return lines(component.concerns(vault.workspace, paths, timeout_s=timeout_s))
