"""What a purge reports back: what is gone, and the proof that it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from holdfast.domain.ids import CheckpointId
from holdfast.domain.wording import count_words


@dataclass(frozen=True, slots=True)
class Trace:
    """A place in the store's files where something of what was removed can still be read."""

    file: str
    what: str


@dataclass(frozen=True, slots=True)
class PurgeProof:
    """What was searched for in the raw bytes of every file of the store, and what was found.

    `elsewhere` lists paths that stay and hold some of the same bytes, which nobody asked to remove,
    and `components` what else checkpoints hold with such bytes in it, as dumps of databases.
    """

    files: int
    searched_bytes: int
    digests: int
    samples: int
    traces: tuple[Trace, ...] = ()
    elsewhere: tuple[bytes, ...] = ()
    components: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Purged:
    """What was purged, as other places know it: paths in the workspace, and the ids that git gives
    the same bytes. Not `is_whole` when there was too much to compute them all."""

    paths: tuple[bytes, ...] = ()
    git_ids: frozenset[str] = frozenset()
    is_whole: bool = True


@dataclass(frozen=True, slots=True)
class Holder:
    """A place outside the store that still has purged content or, if not `is_held`, one that was
    not searched. `how` is what to do about it."""

    where: str
    what: str
    how: str = ""
    is_held: bool = True


@dataclass(frozen=True, slots=True)
class PurgeOutcome:
    """Content that is gone. What is `still_in_workspace`, the next checkpoint saves again.
    `holders` have it still, or were not searched."""

    removed: tuple[CheckpointId, ...]
    changed: tuple[CheckpointId, ...]
    paths: tuple[bytes, ...]
    objects: int
    freed_bytes: int
    proof: PurgeProof
    still_in_workspace: tuple[bytes, ...] = ()
    resumed: bool = False
    holders: tuple[Holder, ...] = ()
    warnings: tuple[str, ...] = ()
    said: Mapping[str, int] = field(default_factory=dict)
    """Where a text was replaced: how many messages, checkpoints and so on had it."""


def count_in_words(said: Mapping[str, int]) -> str:
    """`2 messages, 1 checkpoint`."""
    return ", ".join(count_words(number, kind.removesuffix("s")) for kind, number in said.items())
