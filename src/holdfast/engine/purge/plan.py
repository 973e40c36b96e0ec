"""What a purge would do, as data; used for the preview and for the purge itself.

    paths        checkpoints that have one are kept without it: their trees are rebuilt, and their
                 reports list the path as removed
    checkpoints  the row is deleted, with everything that only it needs

Objects that are no longer needed afterwards are removed. If the same content is at another path,
that path is reported, and nothing is removed until the caller decides about it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from holdfast.domain.checkpoints import ChangeCounts, Checkpoint, Skipped, SkipReason
from holdfast.domain.errors import NotFound, Refused
from holdfast.domain.ids import CheckpointId, Digest, short
from holdfast.domain.paths import is_within, to_text
from holdfast.domain.purges import Holder, Purged, count_in_words
from holdfast.domain.retention import APPROVED
from holdfast.domain.trees.changes import replace_entries
from holdfast.domain.trees.objects import digest_of
from holdfast.domain.trees.tree import Tree, decode_tree
from holdfast.domain.wording import count_words
from holdfast.engine.purge.contents import ComponentFiles, Contents, is_absolute
from holdfast.engine.purge.proof import find_holders, purged_content
from holdfast.engine.purge.story_texts import quoted_in, story_parts
from holdfast.engine.restore.plan import read_report, require_paths
from holdfast.engine.restore.records import described_by_id
from holdfast.engine.retention.cleanup import mark
from holdfast.engine.retention.protection import protection_reasons
from holdfast.engine.save.save import count_tree_changes
from holdfast.engine.save.workspace_tree import encode_report
from holdfast.engine.sessions.approval import rounds_in
from holdfast.engine.stored_objects import entry_at
from holdfast.engine.vault import Vault
from holdfast.ports.catalog import all_checkpoints

PURGED_TAG = "purged"
_SHOWN = 5


@dataclass(frozen=True, slots=True)
class PurgeRequest:
    """Paths in every checkpoint, absolute if outside the workspace; or whole checkpoints.

    `everywhere` also removes the same content from other paths, `keep_shared` leaves it there.
    `force` proceeds even if a checkpoint is protected.
    """

    paths: tuple[bytes, ...] = ()
    checkpoints: tuple[Checkpoint, ...] = ()
    everywhere: bool = False
    keep_shared: bool = False
    force: bool = False


@dataclass(frozen=True, slots=True)
class TextPurgePlan:
    """Where a text occurs: counts of messages, checkpoints and so on, in which it is replaced; and
    the files and component data that contain it and are kept."""

    said: Mapping[str, int]
    paths: tuple[bytes, ...] = ()
    components: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PurgePlan:
    """`replaced` rows get new values. `new_objects` must be durable first; `similar` gives earlier
    objects that some of them resemble. `components` belong to remaining checkpoints, and may hold
    the same content in another form, such as git commits or dumps. `purged` is searched for in
    other places; `holders` are the results."""

    removed: tuple[Checkpoint, ...]
    replaced: tuple[Checkpoint, ...]
    new_objects: dict[Digest, bytes]
    paths: tuple[bytes, ...]
    gone: frozenset[Digest]
    gone_contents: frozenset[Digest]
    stays_elsewhere: tuple[bytes, ...] = ()
    refusals: tuple[str, ...] = ()
    hint: str = ""
    similar: dict[Digest, Digest] = field(default_factory=dict)
    components: tuple[str, ...] = ()
    purged: Purged = field(default_factory=Purged)
    holders: tuple[Holder, ...] = ()
    story_parts: tuple[str, ...] = ()
    """Text from the content at the paths that a quotation would repeat."""

    @property
    def changed(self) -> tuple[CheckpointId, ...]:
        """Checkpoints that lose a path, without records that only get another name."""
        return tuple(c.id for c in self.replaced if PURGED_TAG in c.intent.tags)

    def require_allowed(self) -> None:
        if self.refusals:
            raise Refused("; ".join(self.refusals), hint=self.hint)


def is_known_path(vault: Vault, path: bytes) -> bool:
    """Whether any checkpoint of the workspace has this path."""
    if not is_absolute(path):
        trees = {checkpoint.tree for checkpoint in all_checkpoints(vault.catalog)}
        if any(entry_at(vault.load_tree, tree, path) is not None for tree in trees):
            return True
        path = _in_components(vault, path)
    files = ComponentFiles(vault, vault.objects.read)
    return any(files.has(c.components, path) for c in all_checkpoints(vault.catalog))


def _in_components(vault: Vault, path: bytes) -> bytes:
    """A workspace path as components name it, because agents' memory files may be in it."""
    return os.path.join(os.fsencode(vault.workspace), path)


def plan_purge(vault: Vault, request: PurgeRequest) -> PurgePlan:
    """Called with the store's lock held; changes nothing."""
    planner = _Planner(vault, request)
    if request.checkpoints:
        return planner.without_checkpoints()
    return planner.without_paths(_required(vault, request.paths))


def with_holders(vault: Vault, plan: PurgePlan) -> PurgePlan:
    """The plan with the current findings in other places."""
    found = find_holders(vault, plan.purged, plan.gone_contents, plan.components)
    quoted = quoted_in(vault, plan.story_parts, plan.paths)
    if quoted:
        words = f"quoted in {count_in_words(quoted)}"
        found = (Holder("recorded text", words, "holdfast purge --text TEXT"), *found)
    return replace(plan, holders=found)


def _required(vault: Vault, paths: Iterable[bytes]) -> tuple[bytes, ...]:
    """Validated paths. Absolute ones are accepted only if a checkpoint has them."""
    given = [path.rstrip(b"/") for path in paths]
    outside = [path for path in given if is_absolute(path) and is_known_path(vault, path)]
    inside = require_paths(path for path in given if path not in outside)
    both = (_in_components(vault, path) for path in inside)
    return (*inside, *outside, *(path for path in both if is_known_path(vault, path)))


@dataclass(slots=True)
class _Planner:
    vault: Vault
    request: PurgeRequest
    new_objects: dict[Digest, bytes] = field(default_factory=dict)
    similar: dict[Digest, Digest] = field(default_factory=dict)
    last_trees: list[Digest] = field(default_factory=list)
    files: ComponentFiles = field(init=False)

    def __post_init__(self) -> None:
        self.files = ComponentFiles(self.vault, self.read)

    def read(self, digest: Digest) -> bytes:
        made = self.new_objects.get(digest)
        return self.vault.objects.read(digest) if made is None else made

    def load(self, digest: Digest) -> Tree:
        return decode_tree(self.read(digest))

    def reachable(self, rows: Iterable[Checkpoint]) -> set[Digest]:
        return mark(self.vault, rows, set(), self.read)

    def without_paths(self, paths: tuple[bytes, ...]) -> PurgePlan:
        roots = list(all_checkpoints(self.vault.catalog))
        contents = Contents(self.vault, self.load)
        removals = {c.id: self._present(c, paths) for c in roots}
        if not any(removals.values()):
            raise NotFound(
                f"no checkpoint has {' or '.join(repr(to_text(p)) for p in paths)}",
                hint="list the files of a checkpoint: holdfast show REF --files",
            )
        wanted = self._contents(contents, roots, removals)
        rows = self._rewritten(roots, removals)
        shared = wanted & self.reachable(rows)
        elsewhere: tuple[bytes, ...] = ()
        places: dict[CheckpointId, tuple[bytes, ...]] = {}
        if shared:
            known: dict[Digest, tuple[bytes, ...]] = {}
            for c in rows:
                outside = self.files.places(c.components, shared)
                places[c.id] = (*contents.places(c.tree, shared, known), *sorted(outside))
            elsewhere = tuple(sorted({path for found in places.values() for path in found}))
        if shared and self.request.everywhere:
            removals = {c.id: (*removals[c.id], *places[c.id]) for c in roots}
            rows = self._rewritten(roots, removals)
            paths, elsewhere = (*paths, *elsewhere), ()
        refusals, hint = self._refusals_of_paths(removals, elsewhere)
        unnamed = {name for c in rows for name in self.files.unnamed(c.components, shared)}
        if unnamed and not self.request.keep_shared:
            also = f"the component {', '.join(sorted(unnamed))} has the same content"
            refusals, hint = [*refusals, also], _UNNAMED_HINT
        changed = [row for row in rows if removals[row.id]]
        plan = self._plan(roots, (), rows, changed, roots, wanted, refusals, hint, paths)
        parts = story_parts(self.vault, plan.gone_contents)
        return replace(plan, stays_elsewhere=elsewhere, story_parts=parts)

    def _present(self, checkpoint: Checkpoint, paths: Iterable[bytes]) -> tuple[bytes, ...]:
        return tuple(
            path
            for path in paths
            if (
                self.files.has(checkpoint.components, path)
                if is_absolute(path)
                else entry_at(self.load, checkpoint.tree, path) is not None
            )
        )

    def _contents(
        self,
        contents: Contents,
        roots: Sequence[Checkpoint],
        removals: dict[CheckpointId, tuple[bytes, ...]],
    ) -> set[Digest]:
        found: set[Digest] = set()
        seen: set[Digest] = set()
        for checkpoint in roots:
            paths = removals[checkpoint.id]
            outside = [path for path in paths if is_absolute(path)]
            found |= self.files.contents(checkpoint.components, outside)
            for path in paths:
                entry = None if is_absolute(path) else entry_at(self.load, checkpoint.tree, path)
                contents.below([entry] if entry is not None else (), found, seen)
        return found

    def _rewritten(
        self, roots: Sequence[Checkpoint], removals: dict[CheckpointId, tuple[bytes, ...]]
    ) -> list[Checkpoint]:
        """Every checkpoint after the purge, in the same order."""
        rows: dict[CheckpointId, Checkpoint] = {}
        for checkpoint in roots:
            row = checkpoint
            if removals[checkpoint.id]:
                row = self._without(checkpoint, removals[checkpoint.id])
            parent = rows.get(checkpoint.parent) if checkpoint.parent is not None else None
            if row is not checkpoint:
                row = replace(row, changed=self._changes(parent, row))
            rows[checkpoint.id] = row
        return list(rows.values())

    def _without(self, checkpoint: Checkpoint, paths: tuple[bytes, ...]) -> Checkpoint:
        outermost = [p for p in paths if not any(p != q and is_within(p, q) for q in paths)]
        inside = [path for path in outermost if not is_absolute(path)]
        outside = [path for path in outermost if is_absolute(path)]
        tree, report, manifest = checkpoint.tree, checkpoint.report, checkpoint.components
        if inside:
            tree, encoded = replace_entries(self.load, checkpoint.tree, dict.fromkeys(inside))
            self._take(encoded)
            report = self._report(checkpoint, inside)
        if outside and manifest is not None:
            made = self.files.without(manifest, outside)
            self.new_objects |= made
            manifest = next(reversed(made))
        root = self.load(tree)
        intent = checkpoint.intent
        if PURGED_TAG not in intent.tags:
            intent = replace(intent, tags=(*intent.tags, PURGED_TAG))
        return replace(
            checkpoint,
            tree=tree,
            report=report,
            components=manifest,
            files=root.file_count,
            size_bytes=root.size_bytes,
            intent=intent,
        )

    def _take(self, encoded: dict[Digest, bytes]) -> None:
        """Adds the rebuilt directories, each as similar to that of the checkpoint before."""
        trees = list(encoded)
        if len(trees) == len(self.last_trees):
            for new, old in zip(trees, self.last_trees, strict=True):
                if new not in self.new_objects:
                    self.similar[new] = old
        self.last_trees = trees
        self.new_objects |= encoded

    def _report(self, checkpoint: Checkpoint, paths: list[bytes]) -> Digest:
        """The checkpoint's report with these paths added, so that a restore leaves them alone."""
        kept = [s for s in read_report(self.vault, checkpoint) if s.path not in paths]
        data = encode_report([*kept, *(Skipped(path, SkipReason.PURGED) for path in paths)])
        digest = digest_of(data)
        self.new_objects[digest] = data
        return digest

    def _changes(self, parent: Checkpoint | None, row: Checkpoint) -> ChangeCounts:
        if parent is None:
            return ChangeCounts(added=row.files)
        return count_tree_changes(self.load, parent.tree, row.tree)

    def _refusals_of_paths(
        self, removals: dict[CheckpointId, tuple[bytes, ...]], elsewhere: tuple[bytes, ...]
    ) -> tuple[list[str], str]:
        if elsewhere and not self.request.keep_shared:
            return [f"the same content is also at {_some(elsewhere)}"], _SHARED_HINT
        approved = [] if self.request.force else self._approved_with(removals)
        return approved, _APPROVED_HINT if approved else ""

    def _approved_with(self, removals: dict[CheckpointId, tuple[bytes, ...]]) -> list[str]:
        """Every approved round that would lose something, even if later rounds exist."""
        found = []
        for session in self.vault.catalog.sessions():
            rounds = {r.approved: f", {r.name}" for r in rounds_in(self.vault, session.id)}
            for approved, name in ({session.approved: ""} | rounds).items():
                if approved is not None and (paths := removals.get(approved)):
                    found.append(
                        f"{_some(paths)} is part of an approved round{name} of session "
                        f"{session.id} (checkpoint {short(approved)}), which would change"
                    )
        return found

    def without_checkpoints(self) -> PurgePlan:
        removed = {c.id: c for c in self.request.checkpoints}
        roots = list(all_checkpoints(self.vault.catalog))
        rows = [_named_by_id(c, removed.values()) for c in roots if c.id not in removed]
        was = {c.id: c for c in roots}
        changed = [row for row in rows if row != was[row.id]]
        refusals: list[str] = []
        hint = _FORCE_HINT
        if not self.request.force:
            reasons = protection_reasons(self.vault)
            for checkpoint in removed.values():
                why = reasons.get(checkpoint.id)
                if why == APPROVED:
                    hint = _APPROVED_GONE_HINT
                if why is None and checkpoint.name is not None:
                    why = f"it has a name ({checkpoint.name})"
                if why is not None:
                    refusals.append(f"checkpoint {short(checkpoint.id)} is protected: {why}")
        contents = Contents(self.vault, self.load)
        wanted: set[Digest] = set()
        seen: set[Digest] = set()
        for checkpoint in removed.values():
            wanted |= self.files.contents(checkpoint.components, None)
            contents.below(self.load(checkpoint.tree).by_name.values(), wanted, seen)
        going = tuple(removed.values())
        return self._plan(roots, going, rows, changed, going, wanted, refusals, hint)

    def _plan(
        self,
        roots: Sequence[Checkpoint],
        removed: tuple[Checkpoint, ...],
        rows: Sequence[Checkpoint],
        changed: Sequence[Checkpoint],
        losing: Sequence[Checkpoint],
        contents: set[Digest],
        refusals: Sequence[str],
        hint: str,
        paths: tuple[bytes, ...] = (),
    ) -> PurgePlan:
        """From `roots` to `rows`; `changed` are the rows that differ. `losing` currently have some
        of the `contents`."""
        before, after = self.reachable(roots), self.reachable(rows)
        gone, gone_contents = frozenset(before - after), frozenset(contents - after)
        names = {name for c in rows for name in self.files.unsearched(c.components)}
        return PurgePlan(
            removed,
            tuple(changed),
            {d: data for d, data in self.new_objects.items() if d in after},
            paths,
            gone,
            gone_contents,
            refusals=tuple(refusals),
            hint=hint,
            similar=self.similar,
            components=tuple(sorted(names)),
            purged=purged_content(self.vault, self.load, losing, paths, gone | gone_contents),
        )


_SHARED_HINT = "remove it there too with --everywhere, or keep it there with --keep-shared"
_FORCE_HINT = "to purge it anyway: --force"
_APPROVED_GONE_HINT = (
    "to purge it anyway: --force; holdfast reset then goes back to the approval before it, or "
    "to the first checkpoint"
)
_UNNAMED_HINT = "keep it there with --keep-shared, or purge the checkpoints that have it"
_APPROVED_HINT = "to purge it anyway: --force; the round stays approved, without it"


def _named_by_id(row: Checkpoint, removed: Iterable[Checkpoint]) -> Checkpoint:
    """Replaces the name of a removed checkpoint by its id in a restore record."""
    if not row.kind.is_record:
        return row
    reasoning = row.intent.reasoning
    for gone in removed:
        if gone.name is not None and gone.session_id == row.session_id:
            reasoning = described_by_id(reasoning, gone.name, gone.id)
    return replace(row, intent=replace(row.intent, reasoning=reasoning))


def _some(paths: Sequence[bytes]) -> str:
    shown = ", ".join(to_text(path) for path in paths[:_SHOWN])
    more = len(paths) - _SHOWN
    return f"{shown} and {count_words(more, 'more path')}" if more > 0 else shown
