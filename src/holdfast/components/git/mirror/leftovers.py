"""Where else in a repository commits of a mirror are: after a purge people have to know.

A branch that was the mirror before it got another name, or before it was turned off; one that was
pushed and fetched; a branch or tag that somebody has made of it. Nothing is changed here.
"""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.components.git.commands import Git
from holdfast.components.git.looking import KEPT_PREFIX
from holdfast.domain.git.mirror_commits import read_point
from holdfast.ports.repository import MirrorPlace


def root_of(git: Git, branch: bytes) -> str | None:
    """The first commit of the mirror, which all others grow from; None without a mirror."""
    if not git.run("for-each-ref", "--format=%(refname)", branch):
        return None
    roots = git.run("rev-list", "--max-parents=0", "--max-count=1", branch, "--").split()
    return roots[0].decode() if roots else None


def refs_elsewhere(
    git: Git, owner: str, place: MirrorPlace | None, root: str | None
) -> Iterator[bytes]:
    """Refs that are not of the mirror at `place`, and end in a commit that was made for this store,
    or have grown from `root`."""
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
