"""Squashing a range of checkpoints into one commit on the current branch.

    lock the index → HEAD and a scratch index → changed paths into it, by git's own rules
    → compare with staged content and with commits since → `git commit` with that index
    → the user's index gets the same content in those paths, and replaces the lock

Guarantees: the working tree is not touched. Staged content stays staged, and is never part of the
commit. No other git can commit or stage meanwhile, because the lock is git's own. If it is refused,
nothing has changed. Not guaranteed: what the user's own hooks do.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from holdfast.components.git.commands import Git, GitFailed
from holdfast.components.git.operation_files import operation_name, present_paths
from holdfast.components.git.plan import tree_of
from holdfast.components.git.references import (
    BrokenReference,
    Head,
    OtherReferences,
    read_head,
    require_file_references,
)
from holdfast.components.git.repository import (
    Repository,
    find_repository,
    read_whole,
)
from holdfast.components.git.scratch_index import IndexLock, Scratch, scratch
from holdfast.components.git.staged import ABSENT_MODE, TreeRow, staged_rows, tree_rows
from holdfast.components.git.user_commit import run_commit
from holdfast.domain.errors import Refused
from holdfast.domain.git.commits import (
    AcceptOutcome,
    AcceptPlan,
    CommitPath,
    LeftOut,
    Obstacle,
    PathLeftOut,
)
from holdfast.domain.paths import ancestors, parent, to_text
from holdfast.ports.repository import CommitWish, HandOver
from holdfast.values.classes import dataclass, replace

_TIMEOUT_S = 600.0
_SHOWN = 3
_GONE = (ABSENT_MODE, b"")
_RULES = (b".gitignore", b".gitattributes")


@dataclass(frozen=True, slots=True)
class _Staged:
    """A scratch index with the future commit, and its differences from HEAD."""

    head: Head
    rows: tuple[TreeRow, ...]
    left_out: tuple[PathLeftOut, ...]


class Acceptance:
    """Squashes one range into a commit in the repository of a workspace."""

    def __init__(self, environment: Mapping[str, str], work: HandOver) -> None:
        self._environment = environment
        self._work = work
        self._repository = require_repository(work.workspace)
        self._git = Git(self._repository, environment, _TIMEOUT_S)
        place = replace(self._repository, top=os.path.realpath(self._repository.top))
        self._prefix = place.prefix(os.path.realpath(os.fsencode(work.workspace)))

    def plan(self) -> AcceptPlan:
        with translate_git_errors(), self._scratch(quarantine=True) as place:
            return self._plan(self._stage(place))

    def commit(self, wish: CommitWish) -> AcceptOutcome:
        with translate_git_errors(), IndexLock(self._repository) as lock, self._scratch() as place:
            staged = self._stage(place)
            plan = self._plan(staged)
            plan.require_clear()
            if wish.checked and wish.expected_head != plan.head:
                raise Refused(
                    "the branch has moved since the preview; nothing was changed",
                    hint="preview it again: holdfast accept --dry-run",
                )
            message_file = place.index + b".message"
            timed_out = run_commit(self._git, self._environment, place.index, message_file, wish)
            made = read_head(self._repository)
            if timed_out and made.commit == staged.head.commit:
                raise Refused(
                    f"a git hook did not finish within {wish.timeout_s:g} seconds and was stopped; "
                    "no commit was made and nothing was changed",
                    hint="make the hook faster, or allow more time: "
                    "holdfast config set accept_timeout SECONDS",
                )
            if made.commit is None or made.commit == staged.head.commit:
                raise Refused("git succeeded but made no commit", hint="see: git log")
            warnings = self._update_user_index(lock, staged.head.commit, made.commit)
            if timed_out:
                warnings.append(
                    "the commit was made, but its post-commit hook did not finish within "
                    f"{wish.timeout_s:g} seconds and was stopped"
                )
            message = self._git.run("log", "-1", "--format=%B", made.commit)
            text = message.decode("utf-8", "replace").strip("\n") + "\n"
            return AcceptOutcome(made.commit, text, plan, tuple(warnings))

    def _scratch(self, *, quarantine: bool = False) -> contextlib.AbstractContextManager[Scratch]:
        return scratch(self._repository, self._environment, _TIMEOUT_S, quarantine=quarantine)

    def _stage(self, place: Scratch) -> _Staged:
        """Stages by git's own rules; checks the repository's ownership first."""
        self._git.require_own_repository()
        head = read_head(self._repository)
        place.begin(head.commit)
        changes = [(self._prefix + change.path, change) for change in self._work.changes]
        nested = _Nested(self._repository.top, place.nested())
        left_out = [PathLeftOut(path, LeftOut.NESTED) for path, _ in changes if nested.holds(path)]
        rest = [(path, change) for path, change in changes if not nested.holds(path)]
        added = [(path, change) for path, change in rest if change.content is not None]
        place.write_files(self._prefix, [change for _, change in added], self._work.read)
        place.write_files(self._prefix, self._work.rules, self._work.read)
        for path in self._rules_above():
            place.copy_file(path, os.path.join(self._repository.top, path))
        ignored = place.ignored()
        left_out += [PathLeftOut(path, LeftOut.IGNORED) for path, _ in added if path in ignored]
        place.remove([path for path, change in rest if change.content is None])
        wanted = [path for path, _ in added if path not in ignored]
        place.add(wanted)
        rows = place.differences(tree_of(self._git, head.commit))
        refused = set(wanted) - place.known(wanted)
        left_out += [PathLeftOut(path, LeftOut.NAME) for path in sorted(refused)]
        return _Staged(head, tuple(rows), tuple(left_out))

    def _rules_above(self) -> Iterator[bytes]:
        """Ignore and attribute files between the top of the repository and the workspace."""
        directory = self._prefix.rstrip(b"/")
        while directory:
            directory = parent(directory)
            yield from (os.path.join(directory, name) for name in _RULES)

    def _plan(self, staged: _Staged) -> AcceptPlan:
        head = staged.head
        return AcceptPlan(
            head.ref,
            head.commit,
            tuple(CommitPath(row.path, row.status) for row in staged.rows),
            staged.left_out,
            tuple(self._obstacles(staged)),
        )

    def _obstacles(self, staged: _Staged) -> Iterator[Obstacle]:
        repository = self._repository
        operation = operation_name(list(present_paths(repository, os.listdir(repository.git_dir))))
        if operation is not None:
            yield Obstacle(
                f"a {operation} is in progress", "finish or abort it, then run accept again"
            )
        if staged.head.ref is None:
            yield Obstacle(
                "HEAD is detached", "create a branch, then run accept again: git switch -c NAME"
            )
        there = staged_rows(self._git, tree_of(self._git, staged.head.commit))
        if unmerged := sorted({row.path for row in there if row.status == "U"}):
            yield Obstacle(
                f"{_some(unmerged)} in conflict",
                "resolve the conflict with git, then run accept again",
            )
        elif clash := _clashes(staged.rows, there):
            yield Obstacle(
                f"{_some(clash)} staged with content that differs from the checkpoint",
                "commit it, or unstage it (git restore --staged PATH), then run accept again",
            )
        if since := self._committed_since(staged):
            yield Obstacle(
                f"{_some(since)} committed with different content since the checkpoint",
                'save the current state: holdfast checkpoint "why"; then accept that checkpoint',
            )
        if not staged.rows:
            yield Obstacle(
                "nothing to accept: the branch already has these changes",
                "see: git log; or use another range: holdfast accept A..B",
            )

    def _committed_since(self, staged: _Staged) -> list[bytes]:
        """Paths whose later commits the checkpoint's content would revert, except commits accepted
        from its ancestors."""
        seen, head = self._work.seen_commit, staged.head.commit
        if seen is None or head is None or seen == head:
            return []
        try:
            moved = {row.path: row for row in tree_rows(self._git, seen, head)}
            later = set(self._git.run("rev-list", f"{seen}..{head}").decode().split())
            own: set[TreeRow] = set()
            for commit in later.intersection(self._work.accepted):
                own.update(tree_rows(self._git, f"{commit}^", commit))
        except GitFailed:
            return []  # that commit no longer exists, so nothing is known
        held = {(row.path, row.mode, row.oid) for row in own}
        reverted = [moved[row.path] for row in staged.rows if row.path in moved]
        return [row.path for row in reverted if (row.path, row.mode, row.oid) not in held]

    def _update_user_index(self, lock: IndexLock, old: str | None, new: str) -> list[str]:
        """Update the user's index to the commit, except for paths that the user has staged."""
        try:
            rows = tree_rows(self._git, tree_of(self._git, old), tree_of(self._git, new))
            there = staged_rows(self._git, tree_of(self._git, old))
            other = set(_clashes(rows, there))
            with self._scratch() as place:
                place.take(read_whole(self._repository.own(b"index")))
                place.put([row for row in rows if row.path not in other])
                place.refresh()
                lock.place(place.index)
        except (GitFailed, OSError) as error:
            return [
                f"the commit was made, but the index was not refreshed ({error}): run git reset"
            ]
        return []


class _Nested:
    """Paths of other repositories below this one, whether or not git knows them."""

    def __init__(self, top: bytes, known: Iterable[bytes]) -> None:
        self._top = top
        self._found = dict.fromkeys(known, True)

    def holds(self, path: bytes) -> bool:
        return any(self._is_repository(above) for above in ancestors(path))

    def _is_repository(self, directory: bytes) -> bool:
        if directory not in self._found:
            link = os.path.join(self._top, directory, b".git")
            self._found[directory] = os.path.lexists(link)
        return self._found[directory]


def _clashes(rows: Sequence[TreeRow], there: Sequence[TreeRow]) -> list[bytes]:
    """Paths of `rows` with different staged content at the path itself, above or below."""
    staged = {row.path: (row.mode, row.oid) for row in there}
    if not staged:
        return []
    above = {up for path in staged for up in ancestors(path)}
    found = []
    for row in rows:
        same = staged.get(row.path, (row.mode, row.oid)) == (row.mode, row.oid)
        # A file can replace a directory, or the reverse, only if nothing is staged there.
        blocked = any(staged.get(up, _GONE)[0] != ABSENT_MODE for up in ancestors(row.path))
        covers = row.mode != ABSENT_MODE and row.path in above and _holds(there, row.path)
        if not same or blocked or covers:
            found.append(row.path)
    return found


def _holds(there: Sequence[TreeRow], directory: bytes) -> bool:
    return any(row.mode != ABSENT_MODE and row.path.startswith(directory + b"/") for row in there)


def require_repository(workspace: Path) -> Repository:
    repository = find_repository(workspace)
    if repository is None:
        raise Refused(
            f"{workspace} is not in a git repository",
            hint="create one, then run accept again: git init",
        )
    with translate_git_errors():
        require_file_references(repository)
    return repository


@contextmanager
def translate_git_errors() -> Iterator[None]:
    """Git's errors become refusals."""
    try:
        yield
    except GitFailed as error:
        raise Refused(f"git: {error}") from None
    except OtherReferences as error:
        raise Refused(str(error)) from None
    except BrokenReference as error:
        raise Refused(f"the repository is damaged: {error}", hint="see: git fsck") from None


def _some(paths: Sequence[bytes]) -> str:
    shown = ", ".join(to_text(path) for path in paths[:_SHOWN])
    if len(paths) > _SHOWN:
        return f"{shown} and {len(paths) - _SHOWN} more are"
    return f"{shown} is" if len(paths) == 1 else f"{shown} are"
