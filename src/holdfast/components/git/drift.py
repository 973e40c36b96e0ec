"""Differences of HEAD and the working tree from a checkpoint, the index or a commit, for previews
and screens.

    drift         HEAD moved since a checkpoint → files that differ from the index, staged paths
                  (1 process), untracked files that no rule ignores (1 process); HEAD did not move
                  → paths that were staged and no longer are (1 process, if any were)
    present       HEAD's position, and the number of dirty files (1 process unless unchanged)
    uncommitted   paths with changed, staged or untracked content in no commit (2 processes)

An index entry with the file's times and size means unchanged; otherwise its bytes are hashed as git
would. Filters are not run, so a file that a filter changes may count as changed; converted line
ends do not. Nothing is captured.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from holdfast.components.git.commands import Git, GitFailed
from holdfast.components.git.dirty_files import all_dirty, dirty_now
from holdfast.components.git.index_file import GITLINK, IndexEntries, IndexEntry
from holdfast.components.git.loose_objects import name_of
from holdfast.components.git.references import HEADS, Head, read_head
from holdfast.components.git.repository import Repository, opened, read_whole
from holdfast.components.git.staged import read_staged, read_submodules
from holdfast.components.git.states import decode_state
from holdfast.components.git.status import is_unchanged
from holdfast.domain.component_states import ComponentState
from holdfast.domain.git.drift import GitDrift, GitPlace, PresentGit
from holdfast.domain.git.index import UnknownIndex
from holdfast.domain.paths import from_text, to_text
from holdfast.domain.wording import Remark, printable
from holdfast.ports.component import CaptureRequest

After = Mapping[bytes, Callable[[], bytes | None]]
"""Paths below the workspace with their future content; None if they will be removed, or if it is
unknown."""


def drift(git: Git, workspace: bytes, state: ComponentState, after: After) -> GitDrift | None:
    then, now = decode_state(state).head, read_head(git.repository)
    if (then.ref, then.commit) == (now.ref, now.commit):
        unstaged = _unstaged(git, state, now)
        return GitDrift(_place(then), _place(now), unstaged_files=unstaged) if unstaged else None
    try:
        changed, new = _changed(git, workspace, now, after)
    except (GitFailed, UnknownIndex, OSError):
        return GitDrift(_place(then), _place(now))
    return GitDrift(_place(then), _place(now), len(changed | new), len(new - changed))


def _unstaged(git: Git, state: ComponentState, head: Head) -> int:
    """How many of the staged paths no longer are; paths beyond the recorded names count as
    staged."""
    then = {(str(status), from_text(str(path))) for status, path in state.facts["staged"]}
    if not then:
        return 0
    try:
        return len(then - set(read_staged(git, head.commit).rows))
    except GitFailed:
        return 0


def _place(head: Head) -> GitPlace:
    name = None if head.ref is None else printable(to_text(head.ref.removeprefix(HEADS)))
    return GitPlace(name, head.commit)


def _changed(git: Git, workspace: bytes, head: Head, after: After) -> tuple[set[bytes], set[bytes]]:
    """Files that differ from HEAD, and untracked files."""
    repository = git.repository
    prefix = repository.prefix(workspace)
    coming = {prefix + path: content for path, content in after.items()}
    known = _known(repository, head)
    sparse = os.path.exists(repository.own(b"info/sparse-checkout"))
    changed = {path for _, path in read_staged(git, head.commit).rows} if known else set()
    for path, entry in known.items():
        if entry.mode == GITLINK:
            continue
        if path in coming:
            content = coming[path]()
            differs = content is None or not is_content_of(content, entry)
        elif sparse and not os.path.lexists(os.path.join(repository.top, path)):
            continue
        else:
            differs = differs_from_index(repository, entry, path)
        if differs:
            changed.add(path)
    unknown = git.run("ls-files", "--others", "--exclude-standard", "-z").split(b"\0")
    new = {path for path, content in coming.items() if path not in known and content() is not None}
    new -= ignored_paths(git, new)
    new.update(path for path in unknown if path and path not in coming)
    return changed, new


def _known(repository: Repository, head: Head) -> Mapping[bytes, IndexEntry]:
    """The index by path."""
    index = read_whole(repository.own(b"index"))
    return IndexEntries(index, head.commit) if index else {}


def present(
    repository: Repository, environment: Mapping[str, str], request: CaptureRequest
) -> PresentGit:
    head, previous, dirty = read_head(repository), request.previous, None
    if previous is not None and is_unchanged(repository, previous, now_ns=request.now_ns):
        dirty = dirty_now(repository, request, previous, request.changed())
    if dirty is None:
        dirty = _dirty(repository, environment, request, head)
    branch = None if head.ref is None else to_text(head.ref.removeprefix(HEADS))
    return PresentGit(branch, head.commit, None if dirty is None else int(dirty["count"]))


def _dirty(
    repository: Repository, environment: Mapping[str, str], request: CaptureRequest, head: Head
) -> dict[str, Any] | None:
    """None if unknown."""
    try:
        with opened(repository.own(b"index")) as index_fd:
            if index_fd is None:
                return {"count": 0}
            git = Git(repository, environment, request.timeout_s)
            staged = [path for _, path in read_staged(git, head.commit).rows]
            # The dirty files of a split index are unknown anyway.
            submodules = read_submodules(git, head.commit, index_fd, is_split=False)
            workspace = os.fsencode(request.workspace)
            return all_dirty(
                repository, workspace, index_fd, head.commit, staged, submodules, request.seen
            )
    except (GitFailed, UnknownIndex, OSError):
        return None


_SHOWN = 3
_LARGEST_HASHED = 32 << 20


def uncommitted(git: Git, workspace: bytes, paths: Sequence[bytes]) -> list[str]:
    """A line for display, or none. `paths` are relative to the workspace."""
    repository = git.repository
    prefix = repository.prefix(workspace)
    head = read_head(repository)
    known = _known(repository, head)
    staged = {path for _, path in read_staged(git, head.commit).rows} if known else set()
    found = []
    for path in sorted(paths):
        name = prefix + path
        there = os.path.lexists(os.path.join(workspace, path))
        if there and (name in staged or differs_from_index(repository, known.get(name), name)):
            found.append(path)
    unknown = {prefix + path for path in found if prefix + path not in known}
    ignored = ignored_paths(git, unknown)
    found = [path for path in found if prefix + path not in ignored]
    if not found:
        return []
    names = ", ".join(printable(to_text(path)) for path in found[:_SHOWN])
    more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    have = "has changes" if len(found) == 1 else "have changes"
    return [Remark(f"{names}{more} {have} that are not committed in git; they are saved first")]


def ignored_paths(git: Git, paths: set[bytes]) -> set[bytes]:
    """The files among these that git ignores."""
    if not paths:
        return set()
    try:
        given = b"\0".join(sorted(paths))
        return set(git.run("check-ignore", "--stdin", "-z", given=given).split(b"\0"))
    except GitFailed:
        return set()  # git's exit status for no match


def differs_from_index(repository: Repository, entry: IndexEntry | None, path: bytes) -> bool:
    """Whether a file differs from the index; true for an untracked file."""
    if entry is None:
        return True
    place = os.path.join(repository.top, path)
    try:
        status = os.lstat(place)
        if (status.st_mtime_ns, status.st_size & 0xFFFFFFFF) == (entry.mtime_ns, entry.size):
            return False
        if stat.S_ISLNK(status.st_mode):
            return name_of(b"blob", os.readlink(place), like=entry.oid) != entry.oid
        if not stat.S_ISREG(status.st_mode) or status.st_size > _LARGEST_HASHED:
            return True
        data = read_whole(place)
    except OSError:
        return True
    return not is_content_of(data, entry)


def is_content_of(data: bytes, entry: IndexEntry) -> bool:
    """Whether this is the content in the index, ignoring line ends."""
    forms = (data, data.replace(b"\r\n", b"\n"))
    return any(name_of(b"blob", form, like=entry.oid) == entry.oid for form in forms)
