"""Whether HEAD is elsewhere than it was at a checkpoint, and what a commit would then contain.

    HEAD is where it was → nothing to say
    else: files that differ from the index (looked at, hashed as git would), what is staged (1
    process), and unknown files that no rule ignores (1 process)

With `after`, files are counted as a restore is about to make them. Filters are not run, so a file
that one of them changes on the way into git may count as changed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

from holdfast.components.git.commands import Git, GitFailed
from holdfast.components.git.index_file import GITLINK, IndexEntry, read_index
from holdfast.components.git.plain_files import read_whole
from holdfast.components.git.references import Head, read_head
from holdfast.components.git.states import HEADS, decode_state
from holdfast.components.git.uncommitted import (
    differs_from_index,
    ignored_paths,
    is_content_of,
    read_staged,
)
from holdfast.domain.component_states import ComponentState
from holdfast.domain.git.drift import GitDrift, GitPlace
from holdfast.domain.git.index import UnknownIndex
from holdfast.domain.paths import to_text

After = Mapping[bytes, Callable[[], bytes | None]]
"""Paths below the workspace with what they are about to hold; None for what is about to go, and
for what is not known."""


def drift(git: Git, workspace: bytes, state: ComponentState, after: After) -> GitDrift | None:
    then, now = decode_state(state).head, read_head(git.repository)
    if (then.ref, then.commit) == (now.ref, now.commit):
        return None
    try:
        changed, new = _changed(git, workspace, now, after)
    except (GitFailed, UnknownIndex, OSError):
        return GitDrift(_place(then), _place(now))
    return GitDrift(_place(then), _place(now), len(changed | new), len(new - changed))


def _place(head: Head) -> GitPlace:
    name = None if head.ref is None else to_text(head.ref.removeprefix(HEADS))
    shown = None if name is None else "".join(c if c.isprintable() else "?" for c in name)
    return GitPlace(shown, head.commit)


def _changed(git: Git, workspace: bytes, head: Head, after: After) -> tuple[set[bytes], set[bytes]]:
    """Files that differ from HEAD, and files that git does not know."""
    repository = git.repository
    below = os.path.relpath(workspace, repository.top)
    prefix = b"" if below == b"." else below + b"/"
    coming = {prefix + path: content for path, content in after.items()}
    index = read_whole(repository.own(b"index"))
    oid_bytes = len(head.commit or "0" * 40) // 2
    known = {e.path: e for e in read_index(index, oid_bytes)} if index else {}
    sparse = os.path.exists(repository.own(b"info/sparse-checkout"))
    changed = {path for _, path in read_staged(git, head.commit).rows} if known else set()
    for path, entry in known.items():
        if entry.mode == GITLINK or (
            sparse and path not in coming and not _is_there(repository.top, path)
        ):
            continue
        if path in coming:
            is_other = _will_differ(coming[path](), entry)
        else:
            is_other = differs_from_index(repository, entry, path)
        if is_other:
            changed.add(path)
    unknown = git.run("ls-files", "--others", "--exclude-standard", "-z").split(b"\0")
    new = {path for path, content in coming.items() if path not in known and content() is not None}
    new -= ignored_paths(git, new)
    new.update(path for path in unknown if path and path not in coming)
    return changed, new


def _is_there(top: bytes, path: bytes) -> bool:
    return os.path.lexists(os.path.join(top, path))


def _will_differ(content: bytes | None, entry: IndexEntry) -> bool:
    return content is None or not is_content_of(content, entry)
