"""Recreates missing worktrees, and restores the files of others.

    git no longer knows it    → recreate a missing branch → `git worktree add`, without files
    its directory is missing  → build it beside its place, from its own index → rename it
    if HEAD is the same       → restore files and index, before that rename if it is recreated

Guarantees: no existing worktree is removed, except one that a restore created, that its undo
removes, and that is unused. If only its directory was missing, only that is removed, and its index
is restored. A file or index is only replaced or removed if the state before the restore has its
bytes or staged changes. A directory is complete when it gets its name, and renamed before it is
removed, so an interruption leaves it whole or missing. Everything is synced before it counts as
done, including what git wrote. No branch is moved. Each step can be repeated. A worktree that is at
another commit by now is left alone and reported. A moved one is recognised only if git knows it and
its log begins the same.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from holdfast.components.git.commands import Git, GitFailed
from holdfast.components.git.durability import sync_changed, sync_references, sync_tree
from holdfast.components.git.index_file import is_same_index, shared_file
from holdfast.components.git.keep_alive import existing_objects
from holdfast.components.git.references import read_reference
from holdfast.components.git.repository import (
    Repository,
    own_copy,
    read_whole,
    remove_own_lock,
    sync_directory,
    take_lock,
    write_new,
)
from holdfast.components.git.staged import staged_rows, write_shared
from holdfast.components.git.status import checked_out
from holdfast.components.worktrees.capture import (
    Linked,
    changed_paths,
    index_digest,
    is_linked,
    linked_worktrees,
    unknown_to_git,
)
from holdfast.components.worktrees.component import GONE_ONLY
from holdfast.components.worktrees.states import (
    GONE,
    Worktree,
    WorktreeFiles,
    WorktreesState,
    decode,
)
from holdfast.domain.paths import STAGING_PREFIX, to_text
from holdfast.ports.component import ComponentProblem, RestoreOf

_INDEX_MODE = 0o644
_LONGEST_NAME = 200


@dataclass(slots=True)
class WorktreeSteps:
    """The steps of a restore, as data: the same for the preview and the execution."""

    make: list[Worktree] = field(default_factory=list)
    rebuild: list[tuple[Worktree, Linked]] = field(default_factory=list)
    restore_files: list[Worktree] = field(default_factory=list)
    remove: list[tuple[Linked, Worktree | None]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    blocked: list[str] = field(default_factory=list)

    def actions(self) -> Iterator[str]:
        for one in self.make:
            yield f"recreate the worktree {to_text(one.path)}, {_head_words(one)}"
        for one, _ in self.rebuild:
            yield f"restore the worktree {to_text(one.path)}, {_head_words(one)}"
        known = {one.path for one in self.make} | {one.path for one, _ in self.rebuild}
        for one in self.restore_files:
            if one.path not in known:
                yield f"restore the files of the worktree {to_text(one.path)}"
        for linked, _ in self.remove:
            yield f"remove the worktree {to_text(linked.path)}"


class WorktreesRestore:
    """One restore. In a preview, everything counts as known, because it will be captured first."""

    def __init__(
        self, repository: Repository, request: RestoreOf, environment: Mapping[str, str]
    ) -> None:
        self._repository = repository
        self._request = request
        self._environment = environment
        self._git = Git(repository, environment, request.timeout_s)
        self._gone_only = request.mode == GONE_ONLY
        self._target = decode(request.target)
        self._present = WorktreesState() if request.present is None else decode(request.present)

    def steps(self) -> WorktreeSteps:
        steps = WorktreeSteps()
        linked = {
            one.path: replace(one, is_there=one.is_there and not _is_empty(one))
            for one in linked_worktrees(self._repository)
        }
        for one in self._target.worktrees:
            if not one.is_there:
                continue
            there = linked.get(one.path) or self._moved_worktree(one, linked)
            if there is not None:
                one = replace(one, path=there.path)
            if self._gone_only and there is not None and there.is_there:
                continue
            self._plan_one(steps, one, there)
        if self._gone_only:  # others were not requested, so they block nothing
            steps.warnings += steps.blocked
            steps.blocked = []
        for path in self._target.absent:
            if path in linked:
                self._plan_removal(steps, linked[path])
        return steps

    def _plan_removal(self, steps: WorktreeSteps, there: Linked) -> None:
        """Plan to remove one that a restore created; only its directory if git knew it before."""
        before = self._target.at(there.path)
        if before is not None and not there.is_there and self._has_index(before, there):
            return
        if self._is_untouched(there):
            steps.remove.append((there, before))
        else:
            steps.warnings.append(f"{to_text(there.path)} is kept: it has been used since")

    def changed_but_kept(self) -> Iterator[bytes]:
        """Changed worktrees, which only an exact restore changes."""
        linked = {one.path: one for one in linked_worktrees(self._repository)}
        for one in self._target.worktrees if self._gone_only else ():
            there = linked.get(one.path)
            if there is None or not there.is_there:
                continue
            moved = (there.ref, there.commit) != (one.ref, one.commit)
            if moved or (one.files is not None and self._differs(one, there)):
                yield one.path

    def _moved_worktree(self, one: Worktree, linked: Mapping[bytes, Linked]) -> Linked | None:
        """The same worktree at another path, if git knows it there, it exists, and it is not
        another saved one."""
        if one.born is None or os.path.lexists(one.path):
            return None
        saved = {other.path for other in self._target.worktrees}
        same = [w for w in linked.values() if w.born == one.born and w.is_there]
        return same[0] if len(same) == 1 and same[0].path not in saved else None

    def _plan_one(self, steps: WorktreeSteps, one: Worktree, there: Linked | None) -> None:
        shown = to_text(one.path)
        if there is not None and there.is_there:
            if (there.ref, there.commit) != (one.ref, one.commit):
                steps.warnings.append(
                    f"the worktree {shown} is at another commit and is not changed"
                )
            elif one.files is not None and self._differs(one, there):
                steps.restore_files.append(one)
            return
        if one.commit is None:
            steps.warnings.append(f"the worktree {shown} had no commit yet and is not restored")
            return
        if _is_occupied(one.path) and not (there is not None and _is_empty(there)):
            steps.blocked.append(
                f"{shown} is occupied by something else; move it away, then restore again"
            )
        elif not self._is_from_here():
            steps.blocked.append(
                f"the worktree {shown} was saved in another repository; create it with git "
                "worktree add, then restore again"
            )
        elif not existing_objects(self._git, [one.commit])[0]:
            steps.blocked.append(f"the commit {one.commit[:10]} of {shown} is gone")
        elif there is not None:
            same = (there.ref, there.commit) == (one.ref, one.commit)
            steps.rebuild.append((one, there))
            if same and one.index is not None:
                steps.restore_files.append(one)
        else:
            self._plan_new(steps, one)

    def _plan_new(self, steps: WorktreeSteps, one: Worktree) -> None:
        shown = to_text(one.path)
        if one.ref is not None:
            stands = read_reference(self._repository, one.ref)
            if stands not in (None, one.commit):
                branch = to_text(one.ref.removeprefix(b"refs/heads/"))
                steps.warnings.append(
                    f"the branch {branch} has moved since: {shown} is recreated at its old commit "
                    "with a detached HEAD"
                )
                one = replace(one, ref=None)
            elif one.ref in checked_out(self._repository):
                branch = to_text(one.ref.removeprefix(b"refs/heads/"))
                steps.blocked.append(f"the branch {branch} of {shown} is checked out elsewhere")
                return
        steps.make.append(one)
        if one.index is not None:
            steps.restore_files.append(one)

    def _is_from_here(self) -> bool:
        """Whether this was captured in this repository: its kept-alive references still exist."""
        kept = self._target.kept
        return kept is not None and read_reference(self._repository, kept[0]) == kept[1]

    def run(self) -> None:
        steps = self.steps()
        if steps.blocked:
            raise ComponentProblem("; ".join(steps.blocked))
        for path in {*self._target.absent, *(one.path for one in self._target.worktrees)}:
            shutil.rmtree(_aside(path), ignore_errors=True)  # left by an interrupted restore
        for linked in linked_worktrees(self._repository):
            repository = linked.repository(self._repository.common_dir)
            remove_own_lock(repository, self._request.owner)  # of an interrupted restore
        filled = {one.path for one in steps.restore_files}
        missing = [*steps.make, *(one for one, _ in steps.rebuild)]
        above = {one.path: _existing_above(one.path) for one in missing}
        recreated = [(one, self._register(one)) for one in steps.make] + steps.rebuild
        for one, there in recreated:
            self._recreate(one, there, with_files=one.path in filled)
            sync_changed(above[one.path], [_within(above[one.path], os.path.dirname(one.path))])
        known = {one.path for one, _ in recreated}
        for one in steps.restore_files:
            if one.path not in known:
                self._restore_existing(one)
        for linked, before in steps.remove:
            self._remove(linked, before)
        self._drop_branches()

    def _remove(self, there: Linked, before: Worktree | None) -> None:
        if there.is_there:
            os.rename(there.path, _aside(there.path))
            sync_directory(os.path.dirname(there.path))
        if before is None:
            with contextlib.suppress(OSError):
                os.rmdir(there.path)  # git refuses to remove a worktree that is an empty directory
            self._git.run("worktree", "remove", "--force", there.path)
        else:
            self._place_index(before, replace(there, is_there=False))
        if there.is_there:
            shutil.rmtree(_aside(there.path))
            sync_directory(os.path.dirname(there.path))
        self._sync_registered()

    def _sync_registered(self, git_dir: bytes | None = None) -> None:
        """Sync which worktrees git knows, and everything that it keeps about one of them."""
        if git_dir is not None:
            sync_tree(git_dir)
        sync_changed(self._repository.common_dir, [b"worktrees"])

    def _register(self, one: Worktree) -> Linked:
        """Let git know the worktree, without any file except `.git`."""
        assert one.commit is not None
        add = ("worktree", "add", "--no-checkout")
        if one.ref is None:
            self._git.run(*add, "--detach", one.path, one.commit)
        else:
            if read_reference(self._repository, one.ref) is None:
                nothing = b"0" * len(one.commit)
                line = b"update %b\0%b\0%b\0" % (one.ref, one.commit.encode(), nothing)
                self._git.run("update-ref", "--stdin", "-z", given=line)
                sync_references(self._repository, [one.ref])
            self._git.run(*add, one.path, one.ref.removeprefix(b"refs/heads/"))
        return self._linked_at(one.path)

    def _linked_at(self, path: bytes) -> Linked:
        for linked in linked_worktrees(self._repository):
            if linked.path == path:
                return linked
        raise ComponentProblem(f"git does not know the worktree {to_text(path)}")

    def _recreate(self, one: Worktree, there: Linked, *, with_files: bool) -> None:
        """Build the directory of a registered worktree, and give it its name when complete."""
        if _is_empty(there):
            os.unlink(os.path.join(there.path, b".git"))  # makes way for the rename
        aside = _aside(one.path)
        os.makedirs(aside)
        write_new(os.path.join(aside, b".git"), [b"gitdir: " + there.git_dir + b"\n"], _INDEX_MODE)
        git = self._git_of(replace(there, path=aside, is_there=True))
        if (there.ref, there.commit) == (one.ref, one.commit):
            self._place_index(one, there)
        if os.path.exists(os.path.join(there.git_dir, b"index")):
            git.run("checkout-index", "--all", "--force", "--quiet", "--index")
        else:
            git.run("reset", "--hard", "--quiet")
        if with_files:
            self._write_files(one, WorktreeFiles(aside), git)
        sync_tree(aside)
        self._sync_registered(there.git_dir)
        os.rename(aside, one.path)

    def _restore_existing(self, one: Worktree) -> None:
        """Restore index and files of an existing worktree. Index first, because it decides what
        differs."""
        there = self._linked_at(one.path)
        self._require_known(one, there)
        self._place_index(one, there)
        written = self._write_files(one, WorktreeFiles(one.path), self._git_of(there))
        sync_changed(one.path, written)
        self._sync_registered(there.git_dir)

    def _write_files(self, one: Worktree, files: WorktreeFiles, git: Git) -> list[bytes]:
        """Remove blocking files, write files, and let git write those that match the index. Returns
        the paths, which have to be synced."""
        saved_files = one.files or {}
        extra = [path for path in changed_paths(git) if path not in saved_files]
        for path in extra:
            files.remove(path)
        for path, saved in saved_files.items():
            if saved.kind == GONE:
                files.remove(path)
            elif files.look(path) != (saved.kind, saved.digest):
                files.write(path, saved.kind, self._request.contents.read(saved.content))
        tracked = set(git.run("ls-files", "-z").split(b"\0"))
        if given := b"".join(path + b"\0" for path in extra if path in tracked):
            git.run("checkout-index", "--force", "--quiet", "-z", "--stdin", given=given)
        with contextlib.suppress(GitFailed):  # its exit status says that some have changed
            git.run("update-index", "-q", "--refresh")
        return [*saved_files, *extra]

    def _differs(self, one: Worktree, there: Linked) -> bool:
        """Whether index or files differ."""
        assert one.files is not None
        files = WorktreeFiles(one.path)
        return (
            any(files.look(path) != (saved.kind, saved.digest) for path, saved in one.files.items())
            or any(path not in one.files for path in changed_paths(self._git_of(there)))
            or not self._is_index(one, there)
        )

    def _has_index(self, one: Worktree, there: Linked) -> bool:
        return one.index is None or self._is_index(one, there)

    def _is_index(self, one: Worktree, there: Linked) -> bool:
        """Whether the index has the same entries; times do not matter."""
        found = read_whole(os.path.join(there.git_dir, b"index"))
        if one.shared is None and shared_file(found) is None:
            return is_same_index(found, self._index_of(one), one.commit)
        with contextlib.suppress(GitFailed):  # its shared file is missing
            return bool(found) and one.staged == index_digest(
                self._git_of(there), found, one.commit
            )
        return False

    def _index_of(self, one: Worktree) -> bytes:
        return b"" if one.index is None else b"".join(self._request.contents.read(one.index))

    def _require_known(self, one: Worktree, there: Linked) -> None:
        """Require that the state before the restore has everything to be overwritten; git has files
        that match the index."""
        known = self._present.at(one.path)
        wanted, captured = one.files or {}, (known.files if known is not None else None) or {}
        files = WorktreeFiles(one.path)
        for path in changed_paths(self._git_of(there)):
            now = files.look(path)
            for saved in (wanted.get(path), captured.get(path)):
                if saved is not None and (saved.kind, saved.digest) == now:
                    break
            else:
                if now[0] != GONE:
                    raise ComponentProblem(
                        f"{to_text(path)} in {to_text(one.path)} changed in the meantime, or was "
                        "not saved; the worktree was not changed"
                    )

    def _place_index(self, one: Worktree, there: Linked) -> None:
        if one.index is None:
            return
        data = self._index_of(one)
        place = os.path.join(there.git_dir, b"index")
        if not data or self._is_index(one, there):
            return
        if not self._is_index_saved(there):
            raise ComponentProblem(
                f"what is staged in {to_text(there.path)} changed in the meantime, or was not "
                "saved; the worktree was not changed"
            )
        repository = there.repository(self._repository.common_dir)
        if one.shared is not None:
            shared = b"".join(self._request.contents.read(one.shared))
            write_shared(repository, one.shared.rpartition("/")[2], shared)
        take_lock(repository, self._request.owner, [data], _INDEX_MODE)
        os.replace(place + b".lock", place)
        os.unlink(own_copy(repository, self._request.owner))
        sync_directory(there.git_dir)

    def _is_index_saved(self, there: Linked) -> bool:
        """Whether the state before the restore, or HEAD, has all staged changes."""
        data = read_whole(os.path.join(there.git_dir, b"index"))
        known = self._present.at(there.path)
        git = self._git_of(there)
        if not data:
            return True
        if known is not None and known.staged == index_digest(git, data, there.commit):
            return True
        return there.commit is not None and not staged_rows(git, there.commit)

    def _is_untouched(self, there: Linked) -> bool:
        """Whether a worktree that a restore created contains nothing that would be lost."""
        known = self._present.at(there.path)
        if known is None or (known.ref, known.commit) != (there.ref, there.commit):
            return False
        if not self._is_index_saved(there):
            return False
        if not there.is_there:
            return True
        git, files = self._git_of(there), WorktreeFiles(there.path)
        captured = known.files or {}
        for path in {*changed_paths(git), *unknown_to_git(git)}:
            saved = captured.get(path)
            if saved is None or files.look(path) != (saved.kind, saved.digest):
                return False
        return True

    def _drop_branches(self) -> None:
        """Remove branches that the restore created, if they have not moved."""
        lines = [
            b"delete %b\0%b\0" % (ref, commit.encode())
            for ref, commit in self._target.new_refs.items()
            if read_reference(self._repository, ref) == commit
            and ref not in checked_out(self._repository)
        ]
        if lines:
            self._git.run("update-ref", "--stdin", "-z", given=b"".join(lines))
            sync_references(self._repository, self._target.new_refs)

    def differences(self) -> Iterator[str]:
        """What differs from the checkpoint after a restore."""
        steps = self.steps()
        yield from steps.blocked
        yield from steps.actions()

    def _git_of(self, there: Linked) -> Git:
        repository = there.repository(self._repository.common_dir)
        return Git(repository, self._environment, self._request.timeout_s)


def _aside(path: bytes) -> bytes:
    """The path of a worktree's directory while it is built or removed."""
    above, name = os.path.split(path)
    return os.path.join(above, STAGING_PREFIX + name[:_LONGEST_NAME])


def _existing_above(path: bytes) -> bytes:
    """The nearest existing directory above."""
    above = os.path.dirname(path)
    while not os.path.isdir(above):
        above = os.path.dirname(above)
    return above


def _within(directory: bytes, path: bytes) -> bytes:
    below = os.path.relpath(path, directory)
    return b"" if below == b"." else below


def _is_occupied(path: bytes) -> bool:
    try:
        return bool(os.listdir(path))
    except FileNotFoundError:
        return False
    except OSError:
        return True


def _is_empty(there: Linked) -> bool:
    """Whether it has neither an index nor a file, as after an interrupted restore. Then nothing is
    lost if it is built again."""
    if os.path.lexists(os.path.join(there.git_dir, b"index")):
        return False
    return is_linked(there.path, there.git_dir) and os.listdir(there.path) == [b".git"]


def _head_words(one: Worktree) -> str:
    if one.ref is not None:
        return f"on {to_text(one.ref.removeprefix(b'refs/heads/'))}"
    return f"at {(one.commit or '')[:10]}"
