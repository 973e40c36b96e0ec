"""The places in a repository that still have purged content. Nothing is changed.

Searched: commits, stash entries, the index, blobs and the directories of other worktrees. Also
commits of a mirror elsewhere: on a former mirror branch, one that was pushed and fetched, or a
branch or tag made from it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from shlex import quote

from holdfast.components.git.commands import Git
from holdfast.components.git.status import KEPT_PREFIX
from holdfast.domain.git.mirror_commits import read_point
from holdfast.domain.paths import to_text
from holdfast.domain.purges import Holder, Purged
from holdfast.domain.wording import count_words
from holdfast.ports.repository import MirrorPlace

_EVERYWHERE = ("--all", "--reflog", "--full-history")
_MOST_PATHS = 50
_CLEAN = "git reflog expire --expire=now --all && git gc --prune=now"


def holders_in(git: Git, workspace: bytes, purged: Purged) -> list[Holder]:
    prefix = git.repository.prefix(workspace)
    found = [
        holder for path in purged.paths[:_MOST_PATHS] for holder in _at(git, prefix + path, path)
    ]
    blobs = _blobs(git, purged)
    if blobs and not found:
        versions = "it" if len(purged.git_ids) == 2 else f"{count_words(blobs, 'version')} of it"
        found.append(Holder("git", f"the git repository has {versions} as an object", _CLEAN))
    if purged.paths[_MOST_PATHS:] or not purged.is_whole:
        found.append(Holder("git", "git was only partly searched", is_held=False))
    return found


def _at(git: Git, name: bytes, path: bytes) -> Iterator[Holder]:
    shown = to_text(path)
    commits = int(
        git.run("--literal-pathspecs", "rev-list", *_EVERYWHERE, "--count", "--", name) or 0
    )
    if commits:
        many = f"{commits:,} commits or stash entries have"
        said = "1 commit or stash entry has" if commits == 1 else many
        yield Holder(
            "git",
            f"{said} {shown}",
            f"git log {' '.join(_EVERYWHERE)} -- {quote(shown)}",
        )
    if git.run("--literal-pathspecs", "ls-files", "--cached", "-z", "--", name):
        yield Holder("git", f"the index has {shown}", f"git rm -r --cached -- {quote(shown)}")
    for worktree in _other_worktrees(git):
        place = os.path.join(worktree, name)
        if os.path.lexists(place):
            yield Holder("git", f"the worktree {to_text(worktree)} has {shown}", "delete it there")


def _other_worktrees(git: Git) -> list[bytes]:
    listed = git.run("worktree", "list", "--porcelain").split(b"\n")
    found = [line.removeprefix(b"worktree ") for line in listed if line.startswith(b"worktree ")]
    own = os.path.realpath(git.repository.top)
    return [path for path in found if os.path.realpath(path) != own]


def _blobs(git: Git, purged: Purged) -> int:
    """How many of the ids exist in the repository, reachable or not."""
    width = 64 if git.run("rev-parse", "--show-object-format").strip() == b"sha256" else 40
    wanted = sorted(one for one in purged.git_ids if len(one) == width)
    if not wanted:
        return 0
    asked = "".join(f"{one}\n" for one in wanted).encode()
    answers = git.run("cat-file", "--batch-check", given=asked)
    return sum(b" blob " in line for line in answers.split(b"\n"))


def root_of(git: Git, branch: bytes) -> str | None:
    """The mirror's first commit, the ancestor of all others; None without a mirror."""
    if not git.run("for-each-ref", "--format=%(refname)", branch):
        return None
    roots = git.run("rev-list", "--max-parents=0", "--max-count=1", branch, "--").split()
    return roots[0].decode() if roots else None


def refs_elsewhere(
    git: Git, owner: str, place: MirrorPlace | None, root: str | None
) -> Iterator[bytes]:
    """Refs outside the mirror at `place` that point to a commit made for this store, or to a
    descendant of `root`."""
    found = set(_ending_in_mirror(git, owner))
    if root is not None:
        found |= set(git.run("for-each-ref", f"--contains={root}", "--format=%(refname)").split())
    for ref in sorted(found):
        own = place is not None and (ref == place.branch or ref.startswith(place.names))
        if not own and not ref.startswith(KEPT_PREFIX):
            yield ref


def _ending_in_mirror(git: Git, owner: str) -> Iterator[bytes]:
    listed = git.run("for-each-ref", "--format=%(refname)%00%(contents)%00").split(b"\0")
    for ref, message in zip(listed[0::2], listed[1::2], strict=False):
        if read_point(message, owner) is not None:
            yield ref.lstrip(b"\n")
