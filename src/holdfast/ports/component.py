"""A part of state other than files, as a plug-in: git, a database, an agent's memory.

A component takes its state into a checkpoint and restores it. It never sees the store, the catalog
or the engine. Every call has a time limit, and its result a size limit. If it raises, the
checkpoint carries the reason, and files are saved anyway.

A third-party component is an entry point of the group `holdfast.components`, called without an
argument to make one; the setting `components` has to name it. Every component has to pass the suite
`holdfast.testing.component_contract`.
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
    """Raised by a component: a reason for people, with the way out."""


class ContentSink(Protocol):
    """Takes bytes into the object store: cut by content, deduplicated, compressed."""

    def add(self, name: str, pieces: Iterable[bytes]) -> None:
        """Store a content under a name that is unique in this capture. Pieces are taken one at a
        time, so a content may be larger than memory."""

    def keep(self, name: str, content: StoredContent) -> None:
        """Take over a content of the state before, as it was, without giving its bytes again."""


class ContentSource(Protocol):
    """Gives back what the sink took, proven to be the same bytes."""

    def read(self, name: str) -> Iterator[bytes]:
        """The pieces of a content in order; `KeyError` when the state has none of that name."""


@dataclass(frozen=True, slots=True)
class Intended:
    """What a restore is about to do, for a capture that must be able to undo it; `contents` are
    those of the state."""

    state: ComponentState
    mode: str
    label: str
    contents: ContentSource | None = None


class SeenFile(NamedTuple):
    """What a scan learned about a plain file."""

    size: int
    mtime_ns: int
    ctime_ns: int
    mode: int


class SeenDirectory(NamedTuple):
    """What a scan learned about the files of one directory, by its path in the workspace. While
    `proof` is equal, so is everything about them. `files` are those that had settled, by name."""

    path: bytes
    proof: object
    files: Callable[[], Mapping[bytes, SeenFile]]


def unknown_changes() -> None:
    return None


def nothing_seen() -> tuple[SeenDirectory, ...]:
    return ()


@dataclass(frozen=True, slots=True)
class CaptureRequest:
    """`previous` is the state of the checkpoint before; `checkpoint` the id of the one being made,
    for what a component leaves outside of the store, None when the result is not kept and nothing
    may be left anywhere. `owner` tells one store's leavings from another's. A call that takes
    longer than `timeout_s` is given up; what it still does then is refused. `progress` may be
    called now and then with the state of the work; the bytes that pass are counted anyway.
    `repositories` are captured directories below the workspace that are git repositories of their
    own, none when they are not wanted, and None when they are unknown. Not `thorough`: one of many
    automatic checkpoints, which may do without what is costly and seldom needed. `changed` gives
    the paths that may be others than at the checkpoint before; None when unknown. `seen` gives what
    the scan learned about the files it captured, so components need not ask again."""

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
    """What a component says about its state; `notes` are for itself, and no part of the state."""

    facts: dict[str, Any]
    problems: tuple[str, ...] = ()
    notes: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RestoreOf:
    """`present` is how things are (as far as it was captured), `target` what they shall become;
    `label` names the checkpoint for people, `title` says what it is; `progress` is as in a
    capture."""

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
    """What a restore would do, one line each; nothing to do when empty. Of `warnings`, a `Remark`
    asks for nothing; `blocked` are reasons for which it cannot be done. `choices` are parts that
    can be restored one by one, each with a key and its line: the mode `some:KEY,KEY` means just
    these."""

    actions: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    blocked: tuple[str, ...] = ()
    choices: tuple[tuple[str, str], ...] = ()


class Component(Protocol):
    """One kind of state. Instances hold no state between calls that matters.

    One that fails again and again is left alone for a while, as what it talks to may not answer; a
    component with `outside = False` depends on local files alone and is always tried."""

    @property
    def name(self) -> str:
        """Lower-case letters, digits, `-` and `_`; unique."""

    @property
    def order(self) -> int:
        """Captured and restored after those with a lower number; 100 unless there is a reason."""

    @property
    def restored_by_default(self) -> bool:
        """Whether a restore of a whole checkpoint includes it by default; in the mode that its
        attribute `default_mode` names, if it has one, else `exact`."""

    @property
    def modes(self) -> tuple[str, ...]:
        """The ways in which it can be restored; the first is `exact`. None of a
        `RecordedComponent`."""

    def applies(self, workspace: Path) -> bool:
        """Whether there is anything to capture here. Asked in every save: a system call or two."""

    def capture(self, request: CaptureRequest, sink: ContentSink) -> Captured | None:
        """The state as it is now, of one moment. None means that nothing has changed since
        `previous`, contents included; that has to be found out cheaply, and proven.

        What cannot be captured goes into `problems`, each with the way out; raises
        `ComponentProblem` when nothing can be. Changes nothing that anybody else can see, but may
        keep alive what the state refers to until `release` says that it is no longer needed.
        """

    def describe(self, state: ComponentState) -> Sequence[str]:
        """The state in a few lines, for people; from the state alone."""

    def plan(self, request: RestoreOf) -> ComponentPreview:
        """What `restore` would do now; changes nothing. `request.present` may be None."""

    def concerns(
        self, workspace: Path, paths: Sequence[bytes], *, timeout_s: float
    ) -> Sequence[str]:
        """Warnings before these files of the workspace are overwritten or removed, a line each;
        asked for previews only, also of one that does not apply. Paths are relative to the
        workspace. A `Remark` is a line that needs no action."""

    def restore(self, request: RestoreOf) -> None:
        """Bring the target about, as the mode says. Doing it twice is the same as once: after a
        crash it is called again, however far it came. Raises `ComponentProblem` when it cannot;
        the engine then calls it with what was there before as the target, in the mode `exact`.
        Never destroys anything that `present` does not have.
        """

    def verify(self, request: RestoreOf) -> Sequence[str]:
        """After `restore`: what is not as it should be; nothing when all is."""

    def release(self, workspace: Path, owner: str, needed: Iterable[ComponentState]) -> None:
        """Release everything that was kept alive for `owner` and that none of these states needs:
        checkpoints that named it are gone. Going through `needed` costs every checkpoint there is,
        so a component that keeps nothing does not; one that stops half-way, because of an error,
        must let nothing go."""


@runtime_checkable
class DividedComponent(Component, Protocol):
    """A component with the mode `some`, whose parts come and go one by one, has these as well."""

    def differing(
        self,
        one: ComponentState,
        its_contents: ContentSource,
        other: ComponentState,
        others_contents: ContentSource,
    ) -> Sequence[str]:
        """The keys of the parts that one state has otherwise than the other, or one alone has."""


@runtime_checkable
class VersionedComponent(Component, Protocol):
    """A component that versions the files of the workspace itself, as git does, has this as well:
    files that come back without it belong to another version."""

    def drift(
        self,
        workspace: Path,
        state: ComponentState,
        after: Mapping[bytes, Callable[[], bytes | None]],
        *,
        timeout_s: float,
    ) -> GitDrift | None:
        """Where it is now and where it was; None when that is the same. `after` is what a restore
        is about to write, None for what it removes: paths are relative to the workspace."""

    def place(self, request: CaptureRequest) -> PresentGit | None:
        """Where it is now, for a screen; None where there is nothing, or nothing usable. Nothing is
        captured, and a `previous` state that still holds need not be found again."""


@runtime_checkable
class SearchableComponent(Component, Protocol):
    """A component that can look for purged content where it is at home, outside the store."""

    def holders(self, workspace: Path, purged: Purged, *, timeout_s: float) -> Sequence[Holder]:
        """Where it still is; nothing is changed. `ComponentProblem` when that is unknown."""


@dataclass(frozen=True, slots=True)
class Remainder:
    """A state without some of its files: its facts then, and the contents that read otherwise."""

    facts: dict[str, Any]
    changed: dict[str, bytes]


@runtime_checkable
class FileComponent(Component, Protocol):
    """A component that holds files of which one can be removed for good has these as well. Paths
    are absolute."""

    def files(self, state: ComponentState, contents: ContentSource) -> Mapping[bytes, str]:
        """Each path that the state holds bytes of, with the name of their content."""

    def without(
        self, state: ComponentState, contents: ContentSource, paths: Sequence[bytes]
    ) -> Remainder:
        """The state with nothing at these paths and below, which a restore of it then leaves
        alone; the contents that belong to them go."""

    def forget(self, paths: Sequence[bytes]) -> None:
        """Follow these paths, and all below them, no longer. Called with the store's lock held."""

    def follows(self, path: bytes) -> bool:
        """Whether the next capture would take it."""


@runtime_checkable
class RecordedComponent(Component, Protocol):
    """A component that is recorded and compared, and never restored, such as tool versions. It has
    no modes and no contents, and is captured with manual and risky checkpoints only. `plan`,
    `restore` and `verify` are not called."""

    @property
    def recorded_only(self) -> bool:
        """True."""

    def differences(self, before: ComponentState, after: ComponentState) -> Sequence[str]:
        """How two states differ, a line each; nothing when they are the same."""

    def restore_notes(self, then: ComponentState, now: ComponentState) -> Sequence[str]:
        """Those differences that may keep files of `then` from working now."""


class Components(Protocol):
    """Those that take part in a workspace; nothing is loaded before one is needed."""

    def any_for(self, workspace: Path, *, recorded: bool) -> bool:
        """Whether any component may have something to say here; asked in every save, so it costs
        a few system calls, and says yes when in doubt. Those that are recorded only count if
        `recorded`."""

    def all(self) -> Sequence[Component]:
        """In their order, those that could be loaded."""

    def applying(self, workspace: Path) -> Sequence[Component]:
        """Those of `all` that may have something to say here, as `any_for` finds out. No other is
        loaded."""

    def named(self, names: Container[str]) -> Sequence[Component]:
        """Those of `all` with such names. No other is loaded."""

    def missing(self) -> Sequence[str]:
        """Names that the settings ask for and that cannot be loaded, each with the reason."""
