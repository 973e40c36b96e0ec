"""State other than files, as a plug-in: git, a database, an agent's memory.

A component captures its state into a checkpoint and restores it. It never sees the store, the
catalog or the engine. Every call has a time limit, and its result a size limit. If it raises, the
checkpoint records the reason, and files are saved anyway.

A third-party component is an entry point of the group `holdfast.components`. Holdfast calls it
without arguments to create the component, if the setting `components` names it. Every component
must pass the suite `holdfast.testing.component_contract`.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from holdfast.domain.component_states import ComponentState, StoredContent
from holdfast.domain.ids import CheckpointId
from holdfast.ports.progress import NoProgress, Progress
from holdfast.values.classes import NamedTuple, dataclass, field

if TYPE_CHECKING:
    from holdfast.domain.git.drift import GitDrift, PresentGit
    from holdfast.domain.purges import Holder, Purged


class ComponentProblem(Exception):
    """Raised by a component: a readable reason, with the fix."""


class ContentSink(Protocol):
    """Stores bytes in the object store: chunked, deduplicated and compressed."""

    def add(self, name: str, pieces: Iterable[bytes]) -> None:
        """Store content under a name that is unique in this capture. Pieces are read one at a time,
        so content may be larger than memory."""

    def keep(self, name: str, content: StoredContent) -> None:
        """Reuse content of the previous state without sending its bytes again."""


class ContentSource(Protocol):
    """Returns the bytes that the sink stored, verified."""

    def read(self, name: str) -> Iterator[bytes]:
        """The pieces of a content, in order; `KeyError` if the state has no content of that
        name."""


@dataclass(frozen=True, slots=True)
class Intended:
    """The restore that is about to happen, for the capture before it, which must be able to undo
    it. `contents` are those of the state."""

    state: ComponentState
    mode: str
    label: str
    contents: ContentSource | None = None


class SeenFile(NamedTuple):
    """A plain file, as a scan saw it."""

    size: int
    mtime_ns: int
    ctime_ns: int
    mode: int


class SeenDirectory(NamedTuple):
    """What a scan learned about the files of one directory, by its path in the workspace.

    While `proof` is equal, the files are unchanged. `files` has the files whose content is settled,
    by name."""

    path: bytes
    proof: object
    files: Callable[[], Mapping[bytes, SeenFile]]


def unknown_changes() -> None:
    return None


def nothing_seen() -> tuple[SeenDirectory, ...]:
    return ()


@dataclass(frozen=True, slots=True)
class CaptureRequest:
    """`previous` is the state in the previous checkpoint. `checkpoint` is the id of the new one,
    for data that a component keeps outside the store; None if the result is not kept, and then
    nothing may be left anywhere. `owner` distinguishes the data of several stores.

    A call that takes longer than `timeout_s` is abandoned, and its later results are refused.
    `progress` may be called from time to time; transferred bytes are counted automatically.

    `repositories` are captured directories below the workspace that are git repositories; empty if
    they are not wanted, None if unknown. If `thorough` is False, this is one of many automatic
    checkpoints, which may skip costly and rarely needed parts. `changed` returns the paths that may
    differ from the previous checkpoint; None if unknown. `seen` returns what the scan learned about
    captured files, so that components need not check again."""

    workspace: Path
    owner: str
    checkpoint: CheckpointId | None
    previous: ComponentState | None
    now_ns: int
    timeout_s: float
    intended: Intended | None = None
    progress: Progress = field(default_factory=NoProgress)
    repositories: tuple[bytes, ...] | None = None
    thorough: bool = True
    changed: Callable[[], Sequence[bytes] | None] = unknown_changes
    seen: Callable[[], Iterable[SeenDirectory]] = nothing_seen


@dataclass(frozen=True, slots=True)
class Captured:
    """The state that a component reports. `notes` are private to the component and not part of the
    state."""

    facts: dict[str, Any]
    problems: tuple[str, ...] = ()
    notes: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RestoreOf:
    """`present` is the current state (as far as it was captured), `target` the wanted one. `label`
    names the checkpoint for people, and `title` describes it. `progress` works as in a capture."""

    workspace: Path
    owner: str
    present: ComponentState | None
    target: ComponentState
    mode: str
    label: str
    title: str
    contents: ContentSource
    now_ns: int
    timeout_s: float
    progress: Progress = field(default_factory=NoProgress)


@dataclass(frozen=True, slots=True)
class ComponentPreview:
    """What a restore would do, one line per action; empty if there is nothing to do.

    A `Remark` among `warnings` needs no action. `blocked` lists reasons that prevent the restore.
    `choices` are parts that can be restored one by one, each with a key and its line: the mode
    `some:KEY,KEY` restores only these."""

    actions: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    blocked: tuple[str, ...] = ()
    choices: tuple[tuple[str, str], ...] = ()


class Component(Protocol):
    """One kind of state. Instances keep no important state between calls.

    A component that keeps failing is skipped for a while, because its service may not respond. A
    component with `outside = False` depends on local files only and is always tried.

    If it keeps data outside the store and is not a `SearchableComponent`, `not_searched` may say so
    in its own words after a purge."""

    @property
    def name(self) -> str:
        """Lower-case letters, digits, `-` and `_`; unique."""

    @property
    def order(self) -> int:
        """Captured and restored after components with a lower number; 100 by default."""

    @property
    def restored_by_default(self) -> bool:
        """Whether a restore of a whole checkpoint includes it by default, in the mode of its
        attribute `default_mode`, or else in `exact`."""

    @property
    def modes(self) -> tuple[str, ...]:
        """The ways to restore it; the first is `exact`. Empty for a `RecordedComponent`."""

    def applies(self, workspace: Path) -> bool:
        """Whether there is anything to capture here. Called in every save, so it may make only a
        few system calls."""

    def capture(self, request: CaptureRequest, sink: ContentSink) -> Captured | None:
        """Capture the current state, as of one moment.

        None means that nothing has changed since `previous`, including contents. The component must
        prove that cheaply.

        List parts that cannot be captured in `problems`, each with a fix. Raise `ComponentProblem`
        if nothing can be captured. Change nothing that is visible to others. The component may keep
        alive what the state refers to, until `release` says that it is no longer needed.
        """

    def describe(self, state: ComponentState) -> Sequence[str]:
        """A few readable lines about the state, from the state alone."""

    def plan(self, request: RestoreOf) -> ComponentPreview:
        """What `restore` would do now; changes nothing. `request.present` may be None."""

    def concerns(
        self, workspace: Path, paths: Sequence[bytes], *, timeout_s: float
    ) -> Sequence[str]:
        """Warnings before these files of the workspace are overwritten or removed, one line each.
        Called for previews only, even if the component does not apply. Paths are relative to the
        workspace. A `Remark` is a line that needs no action."""

    def restore(self, request: RestoreOf) -> None:
        """Restore the target, as the mode says.

        It must be idempotent: after a crash it is called again, however far it got. Raise
        `ComponentProblem` if it fails. The engine then calls it with the previous state as the
        target, in the mode `exact`. Never destroy anything that `present` does not have.
        """

    def verify(self, request: RestoreOf) -> Sequence[str]:
        """After `restore`: what differs from the target; empty if nothing does."""

    def release(self, workspace: Path, owner: str, needed: Iterable[ComponentState]) -> None:
        """Release everything kept alive for `owner` that none of these states needs, because the
        checkpoints that named it are gone.

        Iterating over `needed` reads every checkpoint, so a component that keeps nothing skips it.
        A component that stops half-way, because of an error, must release nothing."""


@runtime_checkable
class DividedComponent(Component, Protocol):
    """Additional methods of a component with the mode `some`, whose parts are restored one by
    one."""

    def differing(
        self,
        one: ComponentState,
        its_contents: ContentSource,
        other: ComponentState,
        others_contents: ContentSource,
    ) -> Sequence[str]:
        """The keys of parts that differ between two states, or that only one of them has."""


@runtime_checkable
class VersionedComponent(Component, Protocol):
    """Additional methods of a component that versions the workspace's files itself, as git does.
    Files that are restored without it belong to another version."""

    def drift(
        self,
        workspace: Path,
        state: ComponentState,
        after: Mapping[bytes, Callable[[], bytes | None]],
        *,
        timeout_s: float,
    ) -> GitDrift | None:
        """The current position and that of the checkpoint; None if they are the same. `after` is
        what a restore is about to write, None for removed files. Paths are relative to the
        workspace."""

    def place(self, request: CaptureRequest) -> PresentGit | None:
        """The current position, for display; None if there is none. Nothing is captured, and a
        `previous` state that is still valid is reused."""


@runtime_checkable
class SearchableComponent(Component, Protocol):
    """A component that can search its own data outside the store for purged content. Its attribute
    `also_searches`, if any, names components whose data is in the same place."""

    def holders(self, workspace: Path, purged: Purged, *, timeout_s: float) -> Sequence[Holder]:
        """Places that still have the content; nothing is changed. Raises `ComponentProblem` if that
        is unknown."""


@dataclass(frozen=True, slots=True)
class Remainder:
    """A state without some of its files: the new facts, and the contents that changed."""

    facts: dict[str, Any]
    changed: dict[str, bytes]


@runtime_checkable
class FileComponent(Component, Protocol):
    """Additional methods of a component that holds files, of which single ones can be purged. Paths
    are absolute."""

    def files(self, state: ComponentState, contents: ContentSource) -> Mapping[bytes, str]:
        """Each path whose bytes the state holds, with the name of their content."""

    def without(
        self, state: ComponentState, contents: ContentSource, paths: Sequence[bytes]
    ) -> Remainder:
        """The state without these paths and everything below. Their contents are removed, and a
        restore of the state leaves the paths alone."""

    def forget(self, paths: Sequence[bytes]) -> None:
        """Stop tracking these paths and everything below. Called with the store's lock held."""

    def follows(self, path: bytes) -> bool:
        """Whether the next capture would include the path."""


@runtime_checkable
class RecordedComponent(Component, Protocol):
    """A component that is recorded and compared, but never restored, such as tool versions.

    It has no modes and no contents, and is captured with manual and risky checkpoints only. `plan`,
    `restore` and `verify` are not called."""

    @property
    def recorded_only(self) -> bool:
        """True."""

    def differences(self, before: ComponentState, after: ComponentState) -> Sequence[str]:
        """The differences between two states, one line each; empty if they are equal."""

    def restore_notes(self, then: ComponentState, now: ComponentState) -> Sequence[str]:
        """The differences that may keep files of `then` from working now."""


class Components(Protocol):
    """The components of a workspace; each is loaded when first needed."""

    def any_for(self, workspace: Path, *, recorded: bool) -> bool:
        """Whether any component may apply here. Called in every save, so it makes only a few
        system calls, and returns True if in doubt. Components that are only recorded count if
        `recorded`."""

    def all(self) -> Sequence[Component]:
        """All components that could be loaded, in order."""

    def applying(self, workspace: Path) -> Sequence[Component]:
        """Those of `all` that may apply here, by the same check as `any_for`. No other is
        loaded."""

    def named(self, names: Container[str]) -> Sequence[Component]:
        """Those of `all` with these names. No other is loaded."""

    def missing(self) -> Sequence[str]:
        """Names in the settings that cannot be loaded, each with the reason."""
