"""The contents of checkpoints: files, skipped paths, and state other than files."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from holdfast.domain.errors import StoreDamaged
from holdfast.domain.ids import SessionId
from holdfast.domain.paths import join, to_text
from holdfast.domain.trees.entries import DirectoryEntry, FileEntry
from holdfast.engine import stored_objects
from holdfast.values.classes import NamedTuple

if TYPE_CHECKING:
    from holdfast.app.open_workspace import OpenWorkspace
    from holdfast.domain.checkpoints import Checkpoint, Skipped
    from holdfast.domain.component_states import ComponentState
    from holdfast.domain.ids import Digest
    from holdfast.domain.outcomes import SaveOutcome
    from holdfast.domain.snapshots import Artifact, WorkspaceSnapshot
    from holdfast.domain.trees.entries import Entry
    from holdfast.engine.compare.tree_diff import IgnoredContent
    from holdfast.engine.components.databases import SavedDatabase as SavedDatabase
    from holdfast.engine.vault import Vault


_AGENTS = "agents"
_GIVEN = "given"


class AgentState(NamedTuple):
    """A state that an agent set through the library in a session, as of the checkpoint."""

    session_id: SessionId
    agent: str
    state: dict[str, Any]


class Contents:
    """Contents of checkpoints in an open workspace."""

    def __init__(self, opened: OpenWorkspace) -> None:
        self._engine, self._vault = opened.engine, opened.engine.vault
        self._ignored: IgnoredContent | None = None

    def entry(self, checkpoint: Checkpoint, path: bytes) -> Entry | None:
        """The entry at a path in a checkpoint. An empty path is the workspace itself."""
        if path in (b"", b"."):
            size_bytes = checkpoint.size_bytes
            return DirectoryEntry(b"", 0o755, checkpoint.tree, checkpoint.files, size_bytes)
        return stored_objects.entry_at(self._vault.load_tree, checkpoint.tree, path)

    def entries(
        self, checkpoint: Checkpoint, directory: bytes = b""
    ) -> Iterator[tuple[bytes, Entry]]:
        """Every path below a directory, in order; nothing if the path is not a directory."""
        found = self.entry(checkpoint, directory)
        if isinstance(found, DirectoryEntry):
            yield from stored_objects.list_entries(self._vault.load_tree, found.digest, directory)

    def names(self, checkpoint: Checkpoint, directory: bytes) -> Sequence[tuple[bytes, Entry]]:
        """The direct entries of a directory, in order."""
        found = self.entry(checkpoint, directory)
        if not isinstance(found, DirectoryEntry):
            return ()
        return sorted(self._vault.load_tree(found.digest).by_name.items())

    def read(self, entry: FileEntry) -> Iterator[bytes]:
        """The bytes of a file, in verified pieces."""
        return stored_objects.read_content(self._vault.objects, entry)

    def require_shown(self, path: bytes, checkpoint: Checkpoint) -> None:
        """Raise `Refused` for a file that ignore rules exclude, because it may hold secrets."""
        if self._ignored is None:
            from holdfast.engine.compare.tree_diff import IgnoredContent

            self._ignored = IgnoredContent(self._vault)
        self._ignored.require_shown(path, checkpoint)

    def newest_with(self, path: bytes) -> Checkpoint | None:
        """The newest checkpoint of any session that has the path."""
        from holdfast.engine.history.history import newest_with

        return newest_with(self._vault, path)

    def skipped(self, checkpoint: Checkpoint) -> list[Skipped]:
        """Paths that a checkpoint left out, with reasons."""
        from holdfast.engine.restore.plan import read_report

        return read_report(self._vault, checkpoint)

    def component_states(self, checkpoint: Checkpoint) -> Sequence[ComponentState]:
        from holdfast.engine.components.manifests import read_states

        return read_states(self._vault.objects, checkpoint)

    def component_lines(self, checkpoint: Checkpoint) -> Sequence[tuple[str, str]]:
        """One readable line per component, with its name."""
        from holdfast.engine.components.manifests import describe_components

        return describe_components(self._vault, checkpoint)

    def component_summary(self, checkpoint: Checkpoint) -> dict[str, str]:
        """What each component saved, as text, without failed and damaged components."""
        from holdfast.engine.components.manifests import describe_states, read_states

        try:
            states = read_states(self._vault.objects, checkpoint)
        except StoreDamaged:
            return {}
        captured = [state for state in states if state.failure is None]
        lines: dict[str, str] = {}
        for name, line in describe_states(self._vault, checkpoint, captured):
            lines[name] = f"{lines[name]}; {line}" if name in lines else line
        if "git" in lines:
            from holdfast.domain.git.drift import git_place

            git = next(state for state in captured if state.name == "git")
            if (place := git_place(git, checkpoint)) is not None:
                lines["git"] = place
        return lines

    def databases(self, checkpoint: Checkpoint) -> list[SavedDatabase]:
        """SQLite files near the top of the workspace, and PostgreSQL databases."""
        from holdfast.engine.components.databases import saved_databases

        return saved_databases(self._vault, checkpoint)

    def databases_in(self, outcome: SaveOutcome) -> list[SavedDatabase]:
        """Like `databases`, for a new checkpoint: reads directories only if there may be any."""
        with_files, made = outcome.may_have_databases, outcome.checkpoint
        if not with_files and self._readable_state(made, "postgres") is None:
            return []
        from holdfast.engine.components.databases import saved_databases

        return saved_databases(self._vault, made, with_files=with_files)

    def counted_databases(self, checkpoint: Checkpoint) -> list[SavedDatabase]:
        """Like `databases`, with row counts of SQLite files. Counting reads each file."""
        from holdfast.engine.components.databases import counted_databases

        return counted_databases(self._vault, checkpoint)

    def agent_states(self, checkpoint: Checkpoint) -> list[AgentState]:
        """Agent states set through the Python API, as of a checkpoint."""
        from holdfast.engine.components.contents import StoreSource

        state = self._state_of(checkpoint, _AGENTS)
        if state is None or state.content(_GIVEN) is None:
            return []
        data = b"".join(StoreSource(self._vault.objects, state).read(_GIVEN))
        try:
            return [
                AgentState(SessionId(session), agent, dict(given))
                for session, agents in json.loads(data).items()
                for agent, given in agents.items()
            ]
        except (ValueError, TypeError, AttributeError, RecursionError) as error:
            raise StoreDamaged(
                f"the agent states of the checkpoint are unusable: {error}"
            ) from None

    def memory_files(self, checkpoint: Checkpoint) -> Iterator[tuple[bytes, bytes]]:
        """Path and content of each agent memory file in a checkpoint, in order."""
        from holdfast.engine.components.contents import StoreSource
        from holdfast.ports.component import ComponentProblem, FileComponent

        state = self._state_of(checkpoint, _AGENTS)
        component = next((c for c in self._vault.components.all() if c.name == _AGENTS), None)
        if state is None or state.failure is not None or not isinstance(component, FileComponent):
            return
        source = StoreSource(self._vault.objects, state)
        try:
            named = component.files(state, source)
        except ComponentProblem as error:
            raise StoreDamaged(str(error)) from None
        for path, name in sorted(named.items()):
            yield path, b"".join(source.read(name))

    def git_state(self, checkpoint: Checkpoint) -> ComponentState | None:
        """Git state in a checkpoint; None if there is none or it is damaged."""
        return self._readable_state(checkpoint, "git")

    def environment(self, checkpoint: Checkpoint) -> ComponentState | None:
        """Tool versions and variable names in a checkpoint; None as for `git_state`."""
        return self._readable_state(checkpoint, "environment")

    def _readable_state(self, checkpoint: Checkpoint, name: str) -> ComponentState | None:
        try:
            return self._state_of(checkpoint, name)
        except StoreDamaged:
            return None

    def _state_of(self, checkpoint: Checkpoint, name: str) -> ComponentState | None:
        from holdfast.engine.components.manifests import state_of

        return state_of(self._vault.objects, checkpoint, name)

    def git_states(self, checkpoints: Iterable[Checkpoint]) -> dict[str, ComponentState]:
        """`git_state` of many checkpoints, by checkpoint id."""
        found = ((one.id, self.git_state(one)) for one in checkpoints)
        return {identifier: state for identifier, state in found if state is not None}

    def explain_deletion(
        self, checkpoints: Iterable[Checkpoint | None], doing: str
    ) -> AbstractContextManager[None]:
        """Raise `Refused` if one of the checkpoints is deleted while the block runs. Readers hold
        no lock, so this can happen."""
        hint = "list checkpoints: holdfast log"
        hint = hint if doing == "shown" else f"compare others; {hint}"
        return stored_objects.explain_deletion(self._vault, checkpoints, doing, hint)


def snapshots_of(vault: Vault, checkpoints: Iterable[Checkpoint]) -> list[WorkspaceSnapshot]:
    """Checkpoints as public snapshots: files are listed, and their content is read on demand.

    Checkpoints share most directories, so each directory is listed only once."""
    from holdfast.domain.snapshots import WorkspaceSnapshot

    listing = _Listing(vault)
    return [
        WorkspaceSnapshot(
            id=checkpoint.id,
            timestamp=checkpoint.created_at,
            parent=checkpoint.parent,
            intent=checkpoint.intent,
            artifacts=listing.of(checkpoint.tree, b""),
            kind=checkpoint.kind.value,
        )
        for checkpoint in checkpoints
    ]


class _Listing:
    def __init__(self, vault: Vault) -> None:
        self._vault = vault
        self._known: dict[tuple[Digest, bytes], tuple[Artifact, ...]] = {}

    def of(self, tree: Digest, directory: bytes) -> tuple[Artifact, ...]:
        """Every file below a directory, in order."""
        known = self._known.get((tree, directory))
        if known is not None:
            return known
        found: list[Artifact] = []
        for name, entry in sorted(self._vault.load_tree(tree).by_name.items()):
            path = join(directory, name)
            if isinstance(entry, DirectoryEntry):
                found += self.of(entry.digest, path)
            elif isinstance(entry, FileEntry):
                found.append(self._artifact(path, entry))
        self._known[tree, directory] = tuple(found)
        return self._known[tree, directory]

    def _artifact(self, path: bytes, entry: FileEntry) -> Artifact:
        from holdfast.domain.snapshots import Artifact

        return Artifact(
            to_text(path),
            entry.digest.hex(),
            entry.size,
            entry.mode,
            lambda: stored_objects.read_content(self._vault.objects, entry),
        )
