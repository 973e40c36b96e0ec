"""Agent state in a checkpoint: files by pattern, and state set through the Python API.

Modules that a save does not need are imported on first use: most workspaces have no agent state.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from holdfast.domain.component_states import EXACT, ComponentState
from holdfast.domain.errors import StoreDamaged
from holdfast.domain.wording import Remark, count_words, printable
from holdfast.ports.component import (
    Captured,
    CaptureRequest,
    ComponentPreview,
    ComponentProblem,
    ContentSink,
    ContentSource,
    Remainder,
    RestoreOf,
)

if TYPE_CHECKING:
    from holdfast.components.agents.pattern_walk import Roots
    from holdfast.components.agents.restore import AgentFilesRestore
    from holdfast.components.agents.states import Given
    from holdfast.domain.agent_patterns import Pattern
    from holdfast.ports.store import AgentStates

NAME = "agents"
_SHOWN = 5
_MOST_OPEN = 2


class KnownAgent(Protocol):
    """The name of its process, and where it keeps its memory of a workspace."""

    @property
    def name(self) -> str: ...

    @property
    def programs(self) -> Sequence[str]: ...

    def memory(self, workspace: Path, environment: Mapping[str, str]) -> Sequence[str]: ...


class AgentsComponent:
    """`chosen` is the setting `agent_state`; `given` are states that agents set through the
    library; `stores` is the directory of Holdfast's own files. `sessions` lists the sessions that
    have not ended, and `of_agents` those of them that an agent started. `agents` are those whose
    files and processes are known."""

    name = NAME
    order = 50
    outside = False
    restored_by_default = True
    modes = (EXACT,)

    def __init__(
        self,
        chosen: Sequence[str],
        environment: Mapping[str, str],
        given: AgentStates,
        *,
        workspace: Path | None = None,
        stores: Path | None = None,
        sessions: Callable[[], Sequence[str]] = tuple,
        of_agents: Callable[[], Sequence[str]] = tuple,
        agents: Callable[[], Mapping[str, KnownAgent]] = dict,
    ) -> None:
        self._chosen = chosen
        self._environment = environment
        self._given = given
        self._workspace = workspace
        self._stores = stores
        self._sessions = sessions
        self._of_agents = of_agents
        self._agents = agents

    def applies(self, workspace: Path) -> bool:
        return bool(self._chosen) or self._given.exist()

    def capture(self, request: CaptureRequest, sink: ContentSink) -> Captured | None:
        from holdfast.components.agents.capture import capture

        patterns = self._patterns(request.workspace)
        return capture(
            request, sink, self._roots(request.workspace), patterns, self._given_states()
        )

    def describe(self, state: ComponentState) -> Sequence[str]:
        facts = state.facts
        lines = []
        if facts["files"]:
            lines.append(f"{count_words(facts['files'], 'file')}, {facts['bytes']:,} bytes")
        if facts["given"]:
            named = ", ".join(_clean(f"{agent} ({session})") for session, agent in facts["given"])
            lines.append(f"{count_words(len(facts['given']), 'agent')}: {named}")
        return [*(lines or ["no agent state"]), *facts["left_out"]]

    def plan(self, request: RestoreOf) -> ComponentPreview:
        from holdfast.components.agents.pattern_walk import display_path

        steps = self._files_restore(request, everything_known=True).steps()
        actions = [f"write {display_path(*kept.place)}" for kept, _ in steps.write]
        actions += [f"create {display_path(*kept.place)}/" for kept in steps.make]
        actions += [f"remove {display_path(*entry.place)}" for entry in steps.remove]
        actions += [f"change the mode of {display_path(*kept.place)}" for kept in steps.change_mode]
        actions += self._given_actions(request)
        warnings = []
        if steps.beyond:
            some = ", ".join(display_path(*place) for place in steps.beyond[:_SHOWN])
            warnings.append(
                f"{count_words(len(steps.beyond), 'path')} not restored (no longer listed in "
                f"agent_state): {some}"
            )
        if actions:
            warnings += self._active(request.workspace)
        return ComponentPreview(tuple(actions), tuple(warnings))

    def concerns(
        self, workspace: Path, paths: Sequence[bytes], *, timeout_s: float
    ) -> Sequence[str]:
        """Running agents, even if nothing of theirs is saved: their knowledge of these files
        becomes outdated."""
        running = [
            Remark(f"{agent} is running here (process {process}) and may not notice the change")
            for agent, process in running_agents(workspace, self._agents().values())
        ]
        return [*running, *_still_open(self._of_agents())]

    def restore(self, request: RestoreOf) -> None:
        try:
            self._files_restore(request).run()
        except OSError as error:
            named = "" if error.filename is None else f" ({error.filename!r:.200})"
            raise ComponentProblem(f"cannot write agent files: {error.strerror}{named}") from error
        self._restore_given(request)

    def verify(self, request: RestoreOf) -> Sequence[str]:
        from holdfast.components.agents.states import encode_given

        found = list(self._files_restore(request).differences())
        if encode_given(self._given_states()) != encode_given(_target_given(request)):
            found.append("the agent state differs from the checkpoint")
        return found

    def files(self, state: ComponentState, contents: ContentSource) -> Mapping[bytes, str]:
        from holdfast.components.agents.states import files

        return files(state, contents, self._own_roots())

    def without(
        self, state: ComponentState, contents: ContentSource, paths: Sequence[bytes]
    ) -> Remainder:
        from holdfast.components.agents.states import without

        return without(state, contents, paths, self._own_roots())

    def forget(self, paths: Sequence[bytes]) -> None:
        """The setting belongs to the user, and is kept."""

    def follows(self, path: bytes) -> bool:
        if self._workspace is None:
            return False
        patterns = self._patterns(self._workspace)
        places = self._own_roots().places(path)
        return any(p.root is root and p.matches(names) for p in patterns for root, names in places)

    def _files_restore(
        self, request: RestoreOf, *, everything_known: bool = False
    ) -> AgentFilesRestore:
        from holdfast.components.agents.restore import AgentFilesRestore

        roots, patterns = self._roots(request.workspace), self._patterns(request.workspace)
        return AgentFilesRestore(request, roots, patterns, everything_known=everything_known)

    def _own_roots(self) -> Roots:
        if self._workspace is None:
            raise ComponentProblem("no workspace is known")
        return self._roots(self._workspace)

    def release(self, workspace: Path, owner: str, needed: Iterable[ComponentState]) -> None:
        """Nothing is kept outside the store."""

    def _restore_given(self, request: RestoreOf) -> None:
        from holdfast.components.agents.states import GIVEN, encode_given
        from holdfast.domain.trees.objects import digest_of

        target, said = _target_given(request), self._given_states()
        if encode_given(target) == encode_given(said):
            return
        known = None if request.present is None else request.present.content(GIVEN)
        if said and (known is None or known.digest != digest_of(encode_given(said))):
            raise ComponentProblem(
                "an agent set a new state in the meantime, which was kept; restore again"
            )
        self._given.replace(target)

    def _given_actions(self, request: RestoreOf) -> list[str]:
        target, said = _target_given(request), self._given_states()
        places = sorted(
            {
                (session, agent)
                for given in (target, said)
                for session in given
                for agent in given[session]
            }
        )
        return [
            f"restore the state of agent {_clean(agent)} in session {_clean(session)}"
            for session, agent in places
            if target.get(session, {}).get(agent) != said.get(session, {}).get(agent)
        ]

    def _given_states(self) -> Given:
        try:
            return self._given.load()
        except StoreDamaged as error:
            raise ComponentProblem(error.message) from None

    def _active(self, workspace: Path) -> list[str]:
        running = [
            f"{agent} is running here (process {process}) and may overwrite restored files"
            for agent, process in running_agents(workspace, self._agents().values())
        ]
        return [*running, *map(_not_ended, self._sessions())]

    def _patterns(self, workspace: Path) -> list[Pattern]:
        from holdfast.domain.agent_patterns import parse_pattern

        texts: list[str] = []
        known = self._agents() if self._chosen else {}
        for entry in self._chosen:
            agent = known.get(entry)
            own = agent.memory(workspace, self._environment) if agent is not None else (entry,)
            texts += [text for text in own if text not in texts]
        try:
            return [parse_pattern(text) for text in texts]
        except ValueError as error:
            raise ComponentProblem(f"agent_state: {error}") from None

    def _roots(self, workspace: Path) -> Roots:
        from holdfast.components.agents.pattern_walk import Roots

        home = self._environment.get("HOME", "")
        return Roots(
            os.fsencode(workspace),
            os.fsencode(home) if os.path.isabs(home) else None,
            None if self._stores is None else os.fsencode(self._stores),
        )


def _target_given(request: RestoreOf) -> Given:
    from holdfast.components.agents.states import GIVEN, decode_given

    try:
        return decode_given(b"".join(request.contents.read(GIVEN)))
    except KeyError:
        return {}
    except (ValueError, RecursionError) as error:
        raise ComponentProblem(f"the agent state in the checkpoint is unusable: {error}") from None


def _clean(text: str) -> str:
    return printable(text)[:200]


def _still_open(sessions: Sequence[str]) -> list[str]:
    """One line each, or one for many: agents do not always report their end."""
    if len(sessions) <= _MOST_OPEN:
        return list(map(_not_ended, sessions))
    newest = ", ".join(_clean(session) for session in reversed(sessions[-_MOST_OPEN:]))
    notified = "their agents are notified of a restore at their next step"
    return [
        Remark(f"{count_words(len(sessions), 'session')} are still open ({newest}, …); {notified}")
    ]


def _not_ended(session: str) -> str:
    notified = "its agent is notified of a restore at its next step"
    return Remark(f"session {_clean(session)} is still open; {notified}")


_PROCESSES = Path("/proc")
_ARGUMENT_BYTES = 4096
_LOOKED_AT = 2
"""The program, or an interpreter's script."""


def running_agents(workspace: Path, agents: Iterable[KnownAgent]) -> Iterator[tuple[str, int]]:
    """The names of running agents, with their process ids."""
    programs = {program: agent.name for agent in agents for program in agent.programs}
    try:
        processes = [entry for entry in os.listdir(_PROCESSES) if entry.isdecimal()]
    except OSError:
        return
    for process in sorted(processes, key=int):
        agent = _agent(_PROCESSES / process, programs)
        if agent is not None and _is_inside(_PROCESSES / process, workspace):
            yield agent, int(process)


def _agent(process: Path, programs: Mapping[str, str]) -> str | None:
    try:
        with open(process / "cmdline", "rb") as file:
            arguments = file.read(_ARGUMENT_BYTES).split(b"\0")
    except OSError:
        return None
    for argument in arguments[:_LOOKED_AT]:
        name = os.path.basename(os.fsdecode(argument)).partition(".")[0]
        if name in programs:
            return programs[name]
    return None


def _is_inside(process: Path, workspace: Path) -> bool:
    try:
        directory = Path(os.readlink(process / "cwd"))
    except OSError:
        return False
    return directory == workspace or workspace in directory.parents
