"""What a purge reports back: what is gone, and the proof that it is."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.domain.ids import CheckpointId


@dataclass(frozen=True, slots=True)
class Trace:
    """A place in the store's files where something of what was removed can still be read."""

    file: str
    what: str


@dataclass(frozen=True, slots=True)
class PurgeProof:
    """What was searched for in the raw bytes of every file of the store, and what was found.

    `elsewhere` lists paths that stay and hold some of the same bytes, which nobody asked to remove.
    """

    files: int
    searched_bytes: int
    digests: int
    samples: int
    traces: tuple[Trace, ...] = ()
    elsewhere: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True)
class PurgeOutcome:
    """Content that is gone. What is `still_in_workspace`, the next checkpoint saves again.
    `unsearched` components of checkpoints may hold the same in a form of their own."""

    removed: tuple[CheckpointId, ...]
    changed: tuple[CheckpointId, ...]
    paths: tuple[bytes, ...]
    objects: int
    freed_bytes: int
    proof: PurgeProof
    still_in_workspace: tuple[bytes, ...] = ()
    resumed: bool = False
    unsearched: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
