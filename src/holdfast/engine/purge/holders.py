"""Where else purged content still is: in git, in other stores, with agents.

    before the removal: the digests of the content, and the ids that git gives the same bytes
    afterwards: each component that can search outside the store does so; the other stores of the
    user are asked for the digests

Guarantee: nothing is said to be searched that was not. Not guaranteed: content that somebody
changed on the way, as a git filter does, is found by its path only.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence

from holdfast.domain.checkpoints import Checkpoint
from holdfast.domain.errors import StoreDamaged
from holdfast.domain.ids import Digest
from holdfast.domain.purges import Holder, Purged
from holdfast.domain.trees.changes import TreeLoader
from holdfast.domain.trees.entries import FileEntry
from holdfast.domain.wording import count_words
from holdfast.engine.components.guard import Refusal, guarded
from holdfast.engine.purge.contents import files_below, is_absolute
from holdfast.engine.stored_objects import entry_at, read_content
from holdfast.engine.vault import Vault
from holdfast.ports.component import SearchableComponent

_MOST_HASHED_BYTES = 1 << 30
_SAME_REPOSITORY = "worktrees"
"""Commits of linked worktrees are in the repository that the git component searches."""

_NOT_SEARCHED = {
    "postgres": "the PostgreSQL databases themselves were not searched",
    "git": "git was not searched",
}


def purged_content(
    vault: Vault,
    load: TreeLoader,
    roots: Sequence[Checkpoint],
    paths: Sequence[bytes],
    gone: frozenset[Digest],
) -> Purged:
    """What is about to go, as other places would know it: the files at these paths, or, without
    paths, those whose content goes."""
    inside = tuple(path for path in paths if not is_absolute(path))
    found: dict[Digest, FileEntry] = {}
    seen: set[Digest] = set()
    for checkpoint in roots:
        at_paths = (entry_at(load, checkpoint.tree, path) for path in inside)
        tops = [entry for entry in at_paths if entry is not None]
        if not paths:
            tops = list(load(checkpoint.tree).by_name.values())
        for entry in files_below(load, tops, seen):
            if paths or entry.digest in gone or entry.chunks in gone:
                found[entry.digest] = entry
    ids: set[str] = set()
    left = _MOST_HASHED_BYTES
    hashed = 0
    for entry in sorted(found.values(), key=lambda one: one.size):
        left -= entry.size
        if entry.size and left >= 0:
            ids |= _git_ids(vault, entry)
            hashed += 1
    whole = hashed == sum(1 for entry in found.values() if entry.size)
    return Purged(inside, frozenset(ids), is_whole=whole)


def _git_ids(vault: Vault, entry: FileEntry) -> set[str]:
    """How repositories of either format name a blob with these bytes."""
    made = [hashlib.sha1(usedforsecurity=False), hashlib.sha256()]
    for one in made:
        one.update(b"blob %d\0" % entry.size)
    try:
        for piece in read_content(vault.objects, entry):
            for one in made:
                one.update(piece)
    except StoreDamaged:
        return set()
    return {one.hexdigest() for one in made}


def find_holders(
    vault: Vault, purged: Purged, contents: frozenset[Digest], components: Sequence[str]
) -> tuple[Holder, ...]:
    """`components` are those of checkpoints that hold something in a form of their own."""
    found: list[Holder] = []
    searched: set[str] = set()
    for component in vault.components.all():
        if isinstance(component, SearchableComponent):
            found += _told_by(vault, component, purged)
            searched.add(component.name)
    if "git" in searched:
        searched.add(_SAME_REPOSITORY)
    for name in components:
        if name not in searched:
            words = _NOT_SEARCHED.get(name, f"what {name} keeps outside the store was not searched")
            found.append(Holder(name, words, is_held=False))
    return (*found, *_in_other_stores(vault, contents), *_with_agents(vault))


def _told_by(vault: Vault, component: SearchableComponent, purged: Purged) -> Sequence[Holder]:
    timeout_s = vault.settings.component_timeout
    try:
        return guarded(
            lambda: component.holders(vault.workspace, purged, timeout_s=timeout_s),
            timeout_s=timeout_s,
        )
    except Refusal as error:
        return [Holder(component.name, f"it could not be searched: {error}", is_held=False)]


def _in_other_stores(vault: Vault, contents: frozenset[Digest]) -> Iterator[Holder]:
    held, unsearched = vault.files.search_other_stores(contents)
    for workspace in held:
        yield Holder(
            "store",
            f"the store of {workspace} has the same content",
            f"holdfast -C {workspace} purge PATH",
        )
    if unsearched:
        stores = count_words(len(unsearched), "other store")
        words = f"{stores} could not be searched (encrypted or unreadable)"
        yield Holder("store", words, "run the purge in its workspace too", is_held=False)


def _with_agents(vault: Vault) -> Iterator[Holder]:
    agents = sorted({one.agent for one in vault.catalog.sessions() if one.agent is not None})
    if agents:
        words = f"transcripts and memory that {', '.join(agents)} keeps were not searched"
        yield Holder("agents", words, is_held=False)
