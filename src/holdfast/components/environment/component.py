"""The environment component: which tools a checkpoint was made with, and which variables were set.

It records names of variables, never their values. It is never restored: `diff`, `show` and restore
previews list the differences.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from holdfast.domain.component_states import ComponentState
from holdfast.domain.wording import count_words, printable
from holdfast.ports.component import (
    Captured,
    CaptureRequest,
    ComponentPreview,
    ComponentProblem,
    ContentSink,
    RestoreOf,
)

NAME = "environment"
_ORDER = 90
_MOST_VARIABLES = 1_000
_LONGEST_NAME = 200
_SHOWN = 10


class EnvironmentComponent:
    """Describes the process that requests the checkpoint: a hook or a command, not the daemon."""

    name = NAME
    order = _ORDER
    outside = False
    recorded_only = True
    restored_by_default = False
    modes: tuple[str, ...] = ()

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment

    def applies(self, workspace: Path) -> bool:
        return True

    def capture(self, request: CaptureRequest, sink: ContentSink) -> Captured | None:
        from holdfast.components.environment.tool_versions import tool_versions

        names = sorted(printable(name)[:_LONGEST_NAME] for name in self._environment)
        facts = {
            "tools": tool_versions(self._environment, request.workspace),
            "variables": names[:_MOST_VARIABLES],
        }
        previous = request.previous
        return None if previous is not None and previous.facts == facts else Captured(facts)

    def describe(self, state: ComponentState) -> Sequence[str]:
        tools, variables = _parts(state)
        listed = ", ".join(f"{name} {_shown(version)}" for name, version in tools.items())
        return [f"{listed or 'no known tools'}; {count_words(len(variables), 'variable name')}"]

    def restore_notes(self, then: ComponentState, now: ComponentState) -> Sequence[str]:
        """Without variables, because those of an agent and of a shell always differ."""
        old_tools, new_tools = _parts(then)[0], _parts(now)[0]
        changed = [
            (name, old_tools.get(name, "not found"), new_tools.get(name, "not found"))
            for name in sorted({*old_tools, *new_tools})
        ]
        return [f"{name} {_shown(old)} → {_shown(new)}" for name, old, new in changed if old != new]

    def differences(self, before: ComponentState, after: ComponentState) -> Sequence[str]:
        old_variables, new_variables = _parts(before)[1], _parts(after)[1]
        lines = list(self.restore_notes(before, after))
        for label, added, removed in (
            ("variables added", new_variables, old_variables),
            ("variables removed", old_variables, new_variables),
        ):
            if names := sorted(set(added) - set(removed)):
                more = len(names) - _SHOWN
                rest = f" and {more:,} more" if more > 0 else ""
                lines.append(f"{label}: {', '.join(names[:_SHOWN])}{rest}")
        return lines

    def plan(self, request: RestoreOf) -> ComponentPreview:
        return ComponentPreview()

    def concerns(
        self, workspace: Path, paths: Sequence[bytes], *, timeout_s: float
    ) -> Sequence[str]:
        return ()

    def restore(self, request: RestoreOf) -> None:
        raise ComponentProblem("the environment is recorded, not restored")

    def verify(self, request: RestoreOf) -> Sequence[str]:
        return ()

    def release(self, workspace: Path, owner: str, needed: Iterable[ComponentState]) -> None:
        pass  # everything is in the facts


def _shown(version: str) -> str:
    """A recorded version in words. Without one, the date of the program file was recorded."""
    from holdfast.components.environment.tool_versions import DATED

    date = version.removeprefix(DATED)
    return version if date == version else f"(version unknown, program file from {date})"


def _parts(state: ComponentState) -> tuple[dict[str, str], list[str]]:
    return dict(state.facts["tools"]), list(state.facts["variables"])
