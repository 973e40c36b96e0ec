"""The mirror branch: adds missing checkpoints as commits, names some, and packs it into a bundle.

    find the branch's last checkpoint, which its commit names → add the next ones, each as a commit
    with its differences → move the names `approved`, `session_1`, … in one transaction; `approved`
    points to a merge commit for each approval, which `git log --merges` lists

Guarantees: the branch only grows, and only if its commit was made for this store. HEAD, index,
files and other branches are not touched. Commits depend only on the checkpoints, so two processes
that mirror at once make the same ones. Not guaranteed: that deleted checkpoints leave the mirror.

A git bundle is the same mirror in a bare scratch repository. The workspace's own repository is not
needed, and nothing is left behind. The bundle can be cloned: HEAD is the branch, names are tags.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from holdfast.components.files import blocks_of, write_all
from holdfast.components.git.commands import NO_REFLOG, Git, GitFailed
from holdfast.components.git.fast_import import IDENTITY, ImportStream, git_accepts
from holdfast.components.git.repository import Repository, opened
from holdfast.components.git.status import checked_out
from holdfast.domain.checkpoints import Checkpoint
from holdfast.domain.errors import StoreDamaged
from holdfast.domain.git.mirror_commits import (
    MirrorPoint,
    approval_message,
    mirror_message,
    read_point,
)
from holdfast.domain.ids import CheckpointId, Digest
from holdfast.domain.paths import to_text
from holdfast.domain.sessions import Round
from holdfast.domain.trees.changes import tree_changes
from holdfast.domain.trees.entries import DirectoryEntry, Entry, FileEntry, SymlinkEntry
from holdfast.ports.repository import MirroredHistory, MirrorOutcome, MirrorPlace

_TRIES = 3
_NAME = re.compile(rb"approved\Z|session_\d+\Z|sessions/[^/]+/(?:approved|session_\d+)\Z")
_REGULAR, _EXECUTABLE, _LINK = b"100644", b"100755", b"120000"


@dataclass(frozen=True, slots=True)
class _Ref:
    """An existing ref: its commit, and that commit's checkpoint if the mirror made it."""

    commit: bytes
    point: MirrorPoint | None

    @property
    def is_merge(self) -> bool:
        return self.point is not None and self.point.approves is not None


@dataclass(slots=True)
class _Run:
    """The state of one update."""

    tip: _Ref | None
    known: dict[CheckpointId, bytes] = field(default_factory=dict)
    marks: dict[CheckpointId, int] = field(default_factory=dict)
    searched: bool = False
    complete: bool = True
    warnings: list[str] = field(default_factory=list)


class Mirror:
    """The mirror of one store in one repository."""

    def __init__(self, git: Git, place: MirrorPlace, history: MirroredHistory) -> None:
        self._git = git
        self._place = place
        self._history = history

    def catch_up(self) -> MirrorOutcome:
        """`GitFailed` if it could not be completed; commits made so far stay."""
        for attempt in range(_TRIES):
            refs = self._refs()
            tip = refs.get(self._place.branch)
            self._require_ours(tip)
            run = _Run(tip)
            try:
                self._add_commits(run)
                self._set_names(run, refs)
            except GitFailed:
                # If another process was faster, there is less to do, or nothing.
                if attempt == _TRIES - 1 or self._refs() == refs:
                    raise
                continue
            return MirrorOutcome(len(run.marks), run.complete, tuple(run.warnings))
        raise AssertionError("the last attempt returns or raises")

    def remove(self) -> None:
        """Remove the branch and all names of this store."""
        refs = self._refs()
        self._require_ours(refs.get(self._place.branch))
        own = {ref: found for ref, found in refs.items() if found.point is not None}
        lines = [b"delete %b\0%b\0" % (ref, found.commit) for ref, found in own.items()]
        self._update(lines)

    def _refs(self) -> dict[bytes, _Ref]:
        """The branch and all refs under the name prefixes, with their commits' data."""
        listed = self._git.run(
            "for-each-ref",
            "--format=%(refname)%00%(objectname)%00%(contents)%00",
            self._place.branch,
            *(self._place.names + pattern for pattern in (b"approved", b"session_*", b"sessions")),
        )
        fields = listed.split(b"\0")
        found = {}
        for line, commit, message in zip(fields[0::3], fields[1::3], fields[2::3], strict=False):
            ref = line.lstrip(b"\n")
            name = ref.removeprefix(self._place.names)
            if ref == self._place.branch or _NAME.match(name):
                found[ref] = _Ref(commit, read_point(message, self._history.owner))
        return found

    def _require_ours(self, tip: _Ref | None) -> None:
        branch = to_text(self._place.branch.removeprefix(b"refs/heads/"))
        if tip is not None and tip.point is None:
            raise GitFailed(
                f"the branch {branch} is not a mirror of this store, or has other commits",
                "rename the branch, or choose another: holdfast config set mirror '\"NAME\"'",
            )
        if self._place.branch in checked_out(self._git.repository):
            raise GitFailed(
                f"the branch {branch} is checked out", "switch to another: git switch -"
            )

    def _add_commits(self, run: _Run) -> None:
        tip = run.tip.point if run.tip is not None else None
        pending = self._history.after(tip.sequence if tip is not None else 0)
        if not pending:
            return
        with ImportStream(self._git, self._place.branch) as stream:
            base = tip.tree if tip is not None else None
            parent = run.tip.commit if run.tip is not None else None
            while pending:
                for checkpoint in pending:
                    if run.marks and not self._history.has_time():
                        run.complete = False
                        break
                    try:
                        changes = self._changes(checkpoint, base)
                    except StoreDamaged as error:
                        run.warnings.append(
                            f"checkpoint {checkpoint.id} is damaged and skipped: {error}"
                        )
                        continue
                    run.warnings += self._add(stream, checkpoint, changes, parent)
                    run.marks[checkpoint.id] = checkpoint.sequence
                    parent, base = b":%d" % checkpoint.sequence, checkpoint.tree
                if not run.complete:
                    break
                pending = self._history.after(pending[-1].sequence)
            made = stream.finish(run.marks.values())
        run.known = {checkpoint: made[mark] for checkpoint, mark in run.marks.items()}

    def _changes(self, checkpoint: Checkpoint, base: Digest | None) -> _Changes:
        """The differences from the previous commit; everything if its tree no longer exists."""
        if base is not None:
            with contextlib.suppress(StoreDamaged):
                return self._difference(checkpoint, base)
        return self._difference(checkpoint, None)

    def _difference(self, checkpoint: Checkpoint, base: Digest | None) -> _Changes:
        changes = _Changes(whole=base is None)
        for change in tree_changes(self._history.tree, base, checkpoint.tree):
            if _content(change.old) is not None:
                changes.removed.append(change.path)
            entry = _content(change.new)
            if entry is None:
                continue
            link = isinstance(entry, SymlinkEntry)
            if not git_accepts(change.path, link=link) or self._history.leaves_out(change.path):
                changes.left_out += 1
            else:
                changes.put.append((change.path, entry))
        return changes

    def _add(
        self,
        stream: ImportStream,
        checkpoint: Checkpoint,
        changes: _Changes,
        parent: bytes | None,
    ) -> Iterator[str]:
        """Unreadable files are skipped and reported."""
        message = mirror_message(checkpoint, self._history.owner, changes.left_out)
        time_s = checkpoint.created_at_ns // 1_000_000_000
        stream.commit(checkpoint.sequence, time_s, message, parent)
        if changes.whole:
            stream.clear()
        for path in changes.removed:
            stream.remove(path)
        for path, entry in changes.put:
            if isinstance(entry, SymlinkEntry):
                stream.put(path, _LINK, len(entry.target), [entry.target])
                continue
            mode = _EXECUTABLE if entry.mode & 0o100 else _REGULAR
            try:
                pieces = self._sound(entry)
            except StoreDamaged as error:
                yield f"{to_text(path)} of {checkpoint.id} is damaged and skipped: {error}"
                continue
            stream.put(path, mode, entry.size, pieces)

    def _sound(self, entry: FileEntry) -> Iterable[bytes]:
        """The bytes of a file, verified before the first is yielded, because a stream cannot be
        rolled back. A chunked file is read twice instead of being held in memory."""
        if entry.chunks is None:
            return list(self._history.content(entry))
        for _ in self._history.content(entry):
            pass
        return self._history.content(entry)

    def _set_names(self, run: _Run, refs: Mapping[bytes, _Ref]) -> None:
        wanted = {self._place.names + name: to for name, to in self._history.names().items()}
        lines = []
        for ref, checkpoint in wanted.items():
            there = refs.get(ref)
            if there is not None and there.point is None:
                run.warnings.append(f"{to_text(ref)} does not belong to this mirror and is kept")
                continue
            stands_for = there.point.checkpoint if there is not None and there.point else None
            is_approval = ref.endswith(b"/approved")
            done = not is_approval or (there is not None and there.is_merge)
            if stands_for == checkpoint and checkpoint not in run.known and done:
                continue
            if is_approval:
                commit = self._approval(checkpoint, there, run)
            else:
                commit = self._commit_of(checkpoint, run)
            if commit is None or (there is not None and there.commit == commit):
                continue
            old = b"0" * len(commit) if there is None else there.commit
            lines.append(b"update %b\0%b\0%b\0" % (ref, commit, old))
        gone = [
            b"delete %b\0%b\0" % (ref, found.commit)
            for ref, found in refs.items()
            if found.point is not None and ref != self._place.branch and ref not in wanted
        ]
        self._update(gone + lines)

    def _approval(self, checkpoint: CheckpointId, there: _Ref | None, run: _Run) -> bytes | None:
        """The merge commit of the newest approval; missing earlier ones are made too. None while
        the branch is incomplete."""
        if not run.complete:
            return None
        approvals = self._history.approvals(checkpoint)
        left, tip = list(approvals.merges), None
        if there is not None and there.point is not None and there.is_merge:
            known = (there.point.approves, there.point.checkpoint)
            places = [(one.name, row.id) for one, row in left]
            # A rebuilt branch has other commits, so all merges are made again.
            if known in places and there.point.checkpoint not in run.marks:
                left, tip = left[places.index(known) + 1 :], there.commit
        if tip is None and approvals.began is not None:
            tip = self._commit_of(approvals.began, run)
        made = None
        for one, row in left:
            commit = self._commit_of(row.id, run)
            if commit is not None:
                made = tip = self._merge(one, row, commit, tip)
        return made

    def _merge(
        self, approval: Round, checkpoint: Checkpoint, commit: bytes, before: bytes | None
    ) -> bytes:
        tree = self._git.run("rev-parse", commit + b"^{tree}").strip()
        parents = [one for one in (before, commit) if one is not None]
        when = b"%b %d +0000" % (IDENTITY, (approval.ended_at_ns or 0) // 1_000_000_000)
        lines = [
            b"tree " + tree,
            *(b"parent " + parent for parent in dict.fromkeys(parents)),
            b"author " + when,
            b"committer " + when,
            b"",
            approval_message(approval, checkpoint, self._history.owner),
        ]
        content = b"\n".join(lines)
        return self._git.run("hash-object", "-t", "commit", "-w", "--stdin", given=content).strip()

    def _commit_of(self, checkpoint: CheckpointId, run: _Run) -> bytes | None:
        """From this run, or searched once in all earlier commits of the branch."""
        if checkpoint not in run.known and run.tip is not None and not run.searched:
            run.searched = True
            for commit, point in self._all(run.tip.commit):
                run.known.setdefault(point.checkpoint, commit)
        return run.known.get(checkpoint)

    def _all(self, tip: bytes) -> Iterator[tuple[bytes, MirrorPoint]]:
        listed = self._git.run("log", "-z", "--format=%H%n%B", tip.decode()).split(b"\0")
        for row in listed:
            commit, _, message = row.partition(b"\n")
            point = read_point(message, self._history.owner)
            if point is not None:
                yield commit, point

    def _update(self, lines: list[bytes]) -> None:
        if lines:
            script = b"".join(lines)
            self._git.run("update-ref", "--stdin", "-z", given=script, config=NO_REFLOG)


@dataclass(slots=True)
class _Changes:
    """A commit's changes to its parent; `whole`: it starts empty."""

    whole: bool
    removed: list[bytes] = field(default_factory=list)
    put: list[tuple[bytes, FileEntry | SymlinkEntry]] = field(default_factory=list)
    left_out: int = 0


def _content(entry: Entry | None) -> FileEntry | SymlinkEntry | None:
    return None if entry is None or isinstance(entry, DirectoryEntry) else entry


_TIMEOUT_S = 3600.0
_PLAIN = ("init.defaultBranch=main", "init.defaultRefFormat=files")


def write_bundle(
    environment: Mapping[str, str], place: MirrorPlace, history: MirroredHistory, fd: int
) -> MirrorOutcome:
    """`GitFailed` if git cannot make it."""
    scratch = os.fsencode(tempfile.mkdtemp(prefix="holdfast-bundle-"))
    try:
        repository = Repository(
            scratch, os.path.join(scratch, b"git"), os.path.join(scratch, b"git")
        )
        Git(repository, environment, _TIMEOUT_S).run(
            "init", "--bare", "--quiet", "--template=", repository.git_dir, config=_PLAIN
        )
        variables = {"GIT_DIR": repository.git_dir}
        git = Git(repository, environment, _TIMEOUT_S, variables)
        # HEAD points to another name until the branch exists, so that it is never checked out.
        git.run("symbolic-ref", "HEAD", "refs/heads/nobody")
        outcome = Mirror(git, place, history).catch_up()
        git.run("symbolic-ref", "HEAD", place.branch)
        file = os.path.join(scratch, b"bundle")
        git.run("bundle", "create", "--quiet", file, "HEAD", "--all")
        with opened(file) as made:
            if made is None:
                raise GitFailed("git did not create a bundle")
            for block in blocks_of(made):
                write_all(fd, block)
        return outcome
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
